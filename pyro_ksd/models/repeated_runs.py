# SPDX-License-Identifier: Apache-2.0
"""Checks of what a user wrote that take two runs: scores must not be random, and draws must be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pyro_ksd.models.session_state import random_states, session_kept

_OTHER_SEED = 1_234_567_891


def repeatable(run: Callable[[], Tensor], kind: str = "program") -> Tensor:
    """What a run of a program or network gives, if the next run would give the same.

    One that uses random numbers runs twice, with different seeds. Each run starts from the same state of the session.

    :param kind: what runs, as an error calls it.
    :raises ValueError: if its values depend on random numbers.

    >>> repeatable(lambda: torch.rand(2), "network")
    Traceback (most recent call last):
    ValueError: the network draws random numbers when it scores sequences, expected the same log-probability ...
    """
    with session_kept(seed=0):
        before = random_states()
        value = run()
        if same_state(before, random_states()):
            return value
    with session_kept(_OTHER_SEED):
        again = run()
    if isinstance(value, Tensor) and not torch.equal(value, again):
        when = "although all its sites have values" if kind == "program" else "when it scores sequences"
        raise ValueError(
            f"the {kind} draws random numbers {when}, expected the same log-probability from every run; look for "
            "dropout (call .eval() on modules), blocked sites, torch.rand"
        )
    return value


def check_goes_on(states: Sequence[dict[str, Any]]) -> None:
    """Refuses a program that sets a seed itself when it draws: all its draws would be the same.

    :param states: the random states before a run, and after it and each of the next ones.

    >>> state = random_states()
    >>> check_goes_on([state, state, state])  # no random numbers at all
    """
    before, *after = states
    if any(same_state(*pair) and not same_state(before, pair[0]) for pair in pairwise(after)):
        raise ValueError(
            "draw: expected other random numbers in each run of the program, found the same: it sets a seed itself, so "
            "that all sequences it draws are equal; leave out torch.manual_seed, pyro.set_rng_seed, numpy.random.seed "
            "and random.seed, and pass seed= to the check"
        )


def same_state(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether the random states of torch, numpy and ``random`` are the same."""
    numpy = zip(one["numpy"], other["numpy"], strict=True)
    return (
        torch.equal(one["torch"], other["torch"])
        and one["random"] == other["random"]
        and all(np.array_equal(mine, theirs) for mine, theirs in numpy)
    )

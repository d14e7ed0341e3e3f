# SPDX-License-Identifier: Apache-2.0
"""Small models to try things with."""

from __future__ import annotations

import math

import torch

from pyro_ksd.common.option_checks import check_number, found, is_real
from pyro_ksd.models.distributions.markov import MarkovSequence


def random_walk(size: int = 8, *, hold: float = 0.0, mean_length: float = 8.0) -> MarkovSequence:
    """A walk on a ring: one step to the left or to the right, or none with the probability ``hold``.

    It starts anywhere and stops with probability ``1 / mean_length`` after each symbol. As in Baum, Kanagawa and
    Gretton (2023), every step has a probability of at least 0.001 (before the rows are normalized), so that no
    sequence is impossible.

    :param size: the number of places on the ring.

    >>> walk = random_walk(4, hold=0.2)
    >>> walk.log_prob(torch.tensor([[0, 1, 1, 2], [0, 2, 0, 2]])).exp()
    tensor([6.6...e-04, 2.0...e-11], dtype=torch.float64)
    """
    check_number("size", size, least=1)
    if not is_real(hold) or not 0 <= hold <= 1:
        raise ValueError(f"hold: expected a probability, from 0 to 1, found {found(hold)}")
    if not is_real(mean_length) or not 1 <= mean_length < math.inf:
        raise ValueError(f"mean_length: expected a finite number of at least 1, found {found(mean_length)}")
    here = torch.eye(size, dtype=torch.double)
    steps = (1 - hold) * (here.roll(1, 1) + here.roll(-1, 1)) / 2 + hold * here
    steps = steps.clamp(min=1e-3)
    start = torch.full((size,), 1 / size, dtype=torch.double)
    return MarkovSequence.from_transitions(start, steps / steps.sum(-1, keepdim=True), stop=1 / mean_length)

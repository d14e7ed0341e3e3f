# SPDX-License-Identifier: Apache-2.0
"""Splitting data into a part to fit a model to and a part to check it on."""

from __future__ import annotations

from typing import Any

import torch

from pyro_ksd.common.option_checks import found, is_real
from pyro_ksd.common.random_numbers import Seed, as_seed
from pyro_ksd.sequences.container import Sequences


def split(data: Any, fraction: float = 0.5, *, seed: Seed = 0) -> tuple[Sequences, Sequences]:
    """Two parts of the data at random: one to fit a model to, one to check it on.

    A model that was fitted to other sequences is a given model for these: the check has its level, and nothing needs to
    be refitted.

    :param data: :class:`Sequences`, or what :meth:`Sequences.of` takes.
    :param fraction: the share of the first part.
    :param seed: of the random choice.

    >>> fit_to, check_on = split(["ab", "b", "abb", "ba", "a"], 0.4)
    >>> len(fit_to), len(check_on), fit_to.alphabet == check_on.alphabet
    (2, 3, True)
    """
    generator = torch.Generator().manual_seed(as_seed(seed))
    sequences = Sequences.of(data)
    count = round(float(fraction) * len(sequences)) if is_real(fraction) and 0 < fraction < 1 else 0
    if not 0 < count < len(sequences):
        raise ValueError(
            f"fraction: expected a share that leaves sequences in both parts, found {found(fraction)} of "
            f"{len(sequences)}"
        )
    order = torch.randperm(len(sequences), generator=generator)
    return sequences[order[:count]], sequences[order[count:]]

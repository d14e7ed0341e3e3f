# SPDX-License-Identifier: Apache-2.0
"""Splitting data into parts: some to fit a model to, and others to check it on."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_number, found, is_real
from pyro_ksd.common.random_numbers import Seed, as_seed, seeded_generator
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


def fold_rows(num_sequences: int, folds: int, *, seed: Seed = 0) -> list[Tensor]:
    """The rows of each of several folds, drawn at random: the sizes of any two differ by at most one sequence.

    :param folds: their number, 3 or more; each has two sequences or more.
    :param seed: of the random choice.

    >>> [len(rows) for rows in fold_rows(11, 4)]
    [3, 3, 3, 2]
    """
    check_number("num_sequences", num_sequences, least=1)
    folds = check_number("folds", folds, least=3)
    if num_sequences < 2 * folds:
        raise ValueError(
            f"folds: expected at least 2 sequences in each, found {num_sequences} sequences for {folds} folds; take "
            "fewer folds or more data"
        )
    order = torch.randperm(num_sequences, generator=seeded_generator(seed))
    return [order[fold::folds].sort().values for fold in range(folds)]

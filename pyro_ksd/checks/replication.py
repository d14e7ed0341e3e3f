# SPDX-License-Identifier: Apache-2.0
"""Replicated data beside the data, for the predictive checks of ArviZ."""

from __future__ import annotations

import torch

from pyro_ksd.common.random_numbers import drawn_seed, seeded_generator
from pyro_ksd.common.user_warnings import warn_user
from pyro_ksd.fit_tests.replicates import Replicates, draw_replicates
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.sequences.container import Sequences

_MOST_SETS = 100
_LEAST_SETS = 10
_DRAWN = 2_000  # sequences, where a check has not drawn many more already, unless the data sets would be fewer than ten
_LARGEST = 100_000  # sequences of data that still have replicates: their numbers take some megabytes


def replicated_data(
    model: SequenceModel, sequences: Sequences, seed: int, *, many: bool, tokens: bool = False
) -> Replicates | None:
    """Data sets that the model makes, at least ten and at most 100; ``None`` for very large data.

    They are independent of the null draws of a check with the same seed.

    :param model: one that can be sampled.
    :param sequences: the data.
    :param many: whether to make 100, because the check has drawn many more as null draws; else some 2,000 sequences.
    :param tokens: whether to keep the symbols.

    >>> from pyro_ksd.examples import random_walk
    >>> replicated_data(random_walk(3), Sequences.of(["ab", "bcb", "c"]), seed=0, many=True).length.shape
    torch.Size([100, 3])
    """
    size = len(sequences)
    if size > _LARGEST:
        return None
    num_sets = _MOST_SETS if many else min(_MOST_SETS, max(_LEAST_SETS, _DRAWN // max(1, size)))
    generator = torch.Generator().manual_seed(drawn_seed(seeded_generator(seed)))
    try:
        return draw_replicates(model, sequences, num_sets, generator, tokens=tokens)
    except ValueError as error:
        warn_user(f"there is no group posterior_predictive, as draws from the model failed: {error}")
        return None

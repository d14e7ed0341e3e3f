# SPDX-License-Identifier: Apache-2.0
"""Models of few and short sequences, which can be tilted exactly by enumeration."""

from __future__ import annotations

import torch
from neighbor_lists import Codes, space

from pyro_ksd.edits.counts import Count
from pyro_ksd.models import MarkovSequence, SequenceModel, constrain
from pyro_ksd.sequences.container import Sequences

LONGEST = 7
LISTS = space(3, LONGEST)
SPACE = Sequences.of(LISTS, 3)


def spread_chain(rare: float = 1.0) -> MarkovSequence:
    """A chain of three symbols, all transitions of which are possible.

    :param rare: by which number the probabilities of the last symbol are divided.
    """
    moves = torch.rand(3, 3, dtype=torch.double, generator=torch.Generator().manual_seed(5)) + 0.2
    moves[:, 2] /= rare
    start = torch.full((3,), 1 / 3, dtype=torch.double)
    return MarkovSequence.from_transitions(start, moves / moves.sum(1, keepdim=True), stop=0.2)


def bounded(model: SequenceModel) -> SequenceModel:
    """The model given that its sequence is in the space."""
    return constrain(model, lambda x: x.lengths <= LONGEST)


def plain_count(count: Count, x: Codes) -> int:
    """A count in plain Python."""
    if count.kind == "length":
        return len(x)
    if count.kind == "first":
        return int(x[:1] == count.symbols)
    if count.kind == "last":
        return int(x[-1:] == count.symbols)
    width = len(count.symbols)
    return sum(x[place : place + width] == count.symbols for place in range(len(x) - width + 1))

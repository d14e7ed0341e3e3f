# SPDX-License-Identifier: Apache-2.0
"""The sequences and the edits with the largest shares of a statistic, found a chunk of sequences at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from pyro_ksd.common.compilation import is_compiled
from pyro_ksd.edits.splices import Edits
from pyro_ksd.edits.weighted_edits import WeightedEdits

MOST_EDITS = 100
"""How many edits of a view are reported, those with the largest share."""
MOST_SHOWN = 1000
"""Of how many sequences of a view the positions are reported, those with the largest share, unless all are wanted."""


@dataclass(frozen=True, eq=False)
class TopSequences:
    """The sequences of a view with the largest share, in descending order of it; ``K`` of them.

    :ivar sequence: long ``[K]``, the rows of the sequences.
    :ivar share: double ``[K]``.
    :ivar attribution: double ``[K, T + 1]``, the share of each position; NaN after the end of a sequence. An insertion
        counts for the position that the new symbol takes, so that there is one position more than symbols.
    """

    sequence: Tensor
    share: Tensor
    attribution: Tensor

    @staticmethod
    def of(
        edits: WeightedEdits, shares: Tensor, contribution: Tensor, width: int, most: int, above: float = -torch.inf
    ) -> TopSequences:
        """Those of a chunk, at most ``most`` of them, whose contributions exceed a number.

        :param shares: ``[E]``, those of the edits.
        :param contribution: ``[N]``, their sums over the edits of each sequence.
        :param width: of all sequences of the data, ``T``.
        """
        rows = _above(contribution, above)
        rows = rows[contribution[rows].argsort(descending=True, stable=True)[:most]]
        attribution = _position_sums(edits.edits, rows, shares, width + 1)
        after = torch.arange(width + 1) > edits.sequences.lengths[rows, None]
        return TopSequences(rows + edits.begin, contribution[rows], attribution.masked_fill_(after, torch.nan))

    @staticmethod
    def cat(parts: Sequence[TopSequences], most: int) -> TopSequences:
        """Those with the largest share of all parts."""
        share = torch.cat([part.share for part in parts])
        order = share.argsort(descending=True, stable=True)[:most]
        return TopSequences(
            sequence=torch.cat([part.sequence for part in parts])[order],
            share=share[order],
            attribution=stacked([part.attribution for part in parts], torch.nan)[order],
        )


@dataclass(frozen=True, eq=False)
class TopEdits:
    """The edits of a view with the largest share, in descending order of it; ``K`` of them.

    :ivar sequence: long ``[K]``, the row of the edited sequence.
    :ivar position: long ``[K]``, where it is edited.
    :ivar removed: long ``[K, R]``, the codes of the symbols that go, padded with -1.
    :ivar inserted: long ``[K, W]``, the codes of the symbols that come, padded with -1.
    :ivar share: double ``[K]``.
    """

    sequence: Tensor
    position: Tensor
    removed: Tensor
    inserted: Tensor
    share: Tensor

    @staticmethod
    def of(chunk: WeightedEdits, shares: Tensor, above: float = -torch.inf) -> TopEdits:
        """Those of a chunk whose shares exceed a number, in the order of the chunk.

        :param shares: ``[E]``, those of the edits.
        """
        top = _above(shares, max(above, _just_below(shares, MOST_EDITS)))
        if len(top) > MOST_EDITS:  # equal ones, of which the first count
            top = top[shares[top].argsort(descending=True, stable=True)[:MOST_EDITS]].sort().values
        blocks = chunk.edits.select(top).blocks
        tokens = chunk.sequences.tokens
        removed = [tokens[block.owner[:, None], block.start[:, None] + torch.arange(block.removed)] for block in blocks]
        return TopEdits(
            sequence=torch.cat([top[:0], *(block.owner for block in blocks)]) + chunk.begin,
            position=torch.cat([top[:0], *(block.start for block in blocks)]),
            removed=stacked(removed),
            inserted=stacked([block.inserted for block in blocks]),
            share=shares[top],
        )

    @staticmethod
    def cat(parts: Sequence[TopEdits]) -> TopEdits:
        """Those with the largest share of all parts."""
        share = torch.cat([part.share for part in parts])
        order = share.argsort(descending=True, stable=True)[:MOST_EDITS]
        return TopEdits(
            sequence=torch.cat([part.sequence for part in parts])[order],
            position=torch.cat([part.position for part in parts])[order],
            removed=stacked([part.removed for part in parts])[order],
            inserted=stacked([part.inserted for part in parts])[order],
            share=share[order],
        )


class LargestShares:
    """The sequences and edits of a view with the largest shares, of all chunks that were added.

    :param width: of all sequences of the data, ``T``.
    :param most_shown: how many sequences.
    """

    def __init__(self, width: int, most_shown: int) -> None:
        self._width = width
        self._most_shown = most_shown
        self._sequences: list[TopSequences] = []
        self._edits: list[TopEdits] = []
        self._least_sequence = -torch.inf  # shares must exceed it: that many larger ones are known
        self._least_edit = -torch.inf

    def add(self, edits: WeightedEdits, shares: Tensor, contribution: Tensor) -> None:
        """Adds the edits of a chunk, with their shares ``[E]`` and the sums of these for each sequence, ``[N]``."""
        most = self._most_shown
        if _exceeds(contribution, self._least_sequence):
            self._sequences.append(
                TopSequences.of(edits, shares, contribution, self._width, most, self._least_sequence)
            )
            if sum(len(part.share) for part in self._sequences) >= 2 * most:
                self._sequences = [TopSequences.cat(self._sequences, most)]
                self._least_sequence = float(self._sequences[0].share[-1])
        if _exceeds(shares, self._least_edit):
            self._edits.append(TopEdits.of(edits, shares, self._least_edit))
            if sum(len(part.share) for part in self._edits) >= 2 * MOST_EDITS:
                self._edits = [TopEdits.cat(self._edits)]
                self._least_edit = float(self._edits[0].share[-1])

    @property
    def sequences(self) -> TopSequences:
        """The sequences with the largest shares."""
        return TopSequences.cat(self._sequences, self._most_shown)

    @property
    def edits(self) -> TopEdits:
        """The edits with the largest shares."""
        none = torch.zeros(0, dtype=torch.long)
        return TopEdits.cat([TopEdits(none, none, none.view(0, 0), none.view(0, 0), none.double()), *self._edits])


def _exceeds(values: Tensor, least: float) -> bool:
    """Whether one of the values is above a number, which in most chunks of large data none is."""
    return bool((values.numpy() > least).any())


def _just_below(values: Tensor, count: int) -> float:
    """A number below which none of the largest values lies, ``count`` of them; ``-inf`` if there are no more."""
    if len(values) <= count:
        return -np.inf
    return float(np.nextafter(float(values.topk(count).values[-1]), -np.inf))


def _above(values: Tensor, least: float) -> Tensor:
    """Where values are above a number, long ``[M]``; with numpy, which is faster where few are."""
    return torch.from_numpy(np.flatnonzero(values.numpy() > least))


def _position_sums(edits: Edits, rows: Tensor, values: Tensor, width: int) -> Tensor:
    """The sums of values ``[E]`` over the edits at each position of some sequences, double ``[K, width]``."""
    if is_compiled() and edits.flat is not None:
        from pyro_ksd.fit_tests.compiled_positions import position_sums

        return position_sums(edits.flat, rows, values, width)
    place = rows.new_full((edits.num_sequences,), -1).index_copy_(0, rows, torch.arange(len(rows)))
    row = place.index_select(0, edits.owner)
    shown = (row >= 0).nonzero().squeeze(1)
    start = torch.cat([rows[:0], *(block.start for block in edits.blocks)])
    sums = torch.zeros(len(rows), width, dtype=torch.double)
    sums.view(-1).index_add_(0, row[shown] * width + start[shown], values[shown])
    return sums


def stacked(parts: Sequence[Tensor], filling: float = -1) -> Tensor:
    """Tensors of several widths ``[K, W]`` below each other, filled up; codes with -1.

    >>> stacked([torch.zeros(1, 2, dtype=torch.long), torch.ones(1, 1, dtype=torch.long)])
    tensor([[ 0,  0],
            [ 1, -1]])
    """
    width = max((part.shape[1] for part in parts), default=0)
    rows = [pad(part, (0, width - part.shape[1]), value=filling) for part in parts]
    return torch.cat(rows) if rows else torch.zeros(0, 0, dtype=torch.long)

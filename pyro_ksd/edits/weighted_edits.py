# SPDX-License-Identifier: Apache-2.0
"""Edits around sequences with their log-ratios and weights, as plain data, a chunk of sequences at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from pyro_ksd.common.chunk_sizes import EDITS, GROUPED_EDITS
from pyro_ksd.common.lazy_values import computed_once
from pyro_ksd.edits.neighborhoods import Neighborhood
from pyro_ksd.edits.splices import Edits, SpliceBlock
from pyro_ksd.sequences.container import Sequences

_bounds: WeakKeyDictionary[Neighborhood, dict[tuple[int, int], int]] = WeakKeyDictionary()  # as asked for until now


@dataclass(frozen=True, eq=False)
class ScoredEdits:
    r"""Some consecutive sequences of the data with their edits and what a model says of these.

    :param begin: the row of the first sequence in the data.
    :param sequences: the sequences, no wider than they need to be.
    :param edits: their edits; owners count from the first sequence of the chunk.
    :param log_ratio: double ``[E]``, :math:`\log p(y) - \log p(x)` of the edits; ``[K, E]`` under ``K`` models.
    """

    begin: int
    sequences: Sequences
    edits: Edits
    log_ratio: Tensor


@dataclass(frozen=True, eq=False)
class WeightedEdits:
    """Some consecutive sequences of the data with their edits, as an operator weights them.

    :param begin: the row of the first sequence in the data.
    :param sequences: the sequences, no wider than they need to be.
    :param edits: their edits; owners count from the first sequence of the chunk.
    :param weights: double ``[E]``, the weights of the edits; ``[K, E]`` under ``K`` models.
    :param log_ratio: of the same shape, the log-ratios of the edits; needed by kernels that look at the model itself.
    """

    begin: int
    sequences: Sequences
    edits: Edits
    weights: Tensor
    log_ratio: Tensor | None = None

    def used(self) -> WeightedEdits:
        """The same without the blocks of edits that have no weight at all."""
        return self if all(self.has_weight) else self._used

    def of_model(self, index: int) -> WeightedEdits:
        """The same under one of the ``K`` models; shares what kernels remember, if the same blocks have weight."""
        log_ratio = None if self.log_ratio is None else self.log_ratio[index]
        own = replace(self, weights=self.weights[index], log_ratio=log_ratio)
        if own.has_weight == self.has_weight:
            vars(own)["remembered"] = self.remembered
            if not all(self.has_weight):
                vars(own)["_used"] = self._used.of_model(index)
        return own

    def whole(self, used: Tensor) -> Tensor:
        """Values of the edits :meth:`used`, ``[...]``, as values of all edits, ``[E]``; 0 for the others."""
        if all(self.has_weight):
            return used
        parts = iter(used.split([len(block) for block in compress(self.edits.blocks, self.has_weight)]))
        blocks = zip(self.edits.blocks, self.has_weight, strict=True)
        return torch.cat([next(parts) if has else used.new_zeros(len(block)) for block, has in blocks])

    @computed_once
    def has_weight(self) -> list[bool]:
        """Whether each block has weight."""
        parts = self.edits.split(self.weights)
        return [bool(weights[..., :1].any()) or bool(weights.any()) for weights in parts]  # mostly the first tells

    @computed_once
    def weights_by_edit(self) -> Tensor:
        """The weights with those of each edit side by side, double ``[E, K]``."""
        weights: Tensor = torch.atleast_2d(self.weights)
        return weights.double().t().contiguous()

    @computed_once
    def remembered(self) -> dict[Any, Any]:
        """What kernels found of the chunk and need again, by kernel."""
        return {}

    @computed_once
    def _used(self) -> WeightedEdits:
        edits = Edits(tuple(compress(self.edits.blocks, self.has_weight)), self.edits.num_sequences)
        log_ratio = None if self.log_ratio is None else self._compressed(self.log_ratio)
        return replace(self, edits=edits, weights=self._compressed(self.weights), log_ratio=log_ratio)

    def _compressed(self, values: Tensor) -> Tensor:
        """The parts of ``[..., E]`` that belong to blocks with weight."""
        parts = list(compress(self.edits.split(values), self.has_weight))
        return parts[0] if len(parts) == 1 else torch.cat([values[..., :0], *parts], -1)

    @staticmethod
    def cat(chunks: Sequence[WeightedEdits], sequences: Sequences) -> WeightedEdits:
        """All chunks as one, for kernels that compare every pair of neighbors.

        :param sequences: those of all chunks, in their order.
        """
        blocks = [
            SpliceBlock(block.owner + chunk.begin, block.start, block.removed, block.inserted)
            for chunk in chunks
            for block in chunk.edits.blocks
        ]
        weights = torch.cat([chunk.weights for chunk in chunks], -1)
        ratios = [chunk.log_ratio for chunk in chunks if chunk.log_ratio is not None]
        log_ratio = torch.cat(ratios, -1) if len(ratios) == len(chunks) else None
        return WeightedEdits(0, sequences, Edits(tuple(blocks), len(sequences)), weights, log_ratio)


def chunk_rows(neighborhood: Neighborhood, sequences: Sequences) -> list[slice]:
    """Consecutive rows of the data, about as many as have :data:`~pyro_ksd.common.chunk_sizes.EDITS` edits together.

    >>> from pyro_ksd.edits import zs
    >>> chunk_rows(zs(), Sequences.of(["ab", "b", "aba"]))
    [slice(0, 3, None)]
    """
    return _cut(edit_bounds(neighborhood, sequences), EDITS)


def rows_of_groups(bounds: Tensor, size: int) -> list[slice]:
    """As :func:`chunk_rows`, for groups of ``size`` consecutive rows: a chunk has whole groups or is a part of one.

    :param bounds: long ``[N]``, about how many edits each row has.

    >>> rows_of_groups(torch.tensor([1, 2, 1, 2]), 2), rows_of_groups(torch.tensor([10**6] * 4), 2)
    ([slice(0, 4, None)], [slice(0, 1, None), slice(1, 2, None), slice(2, 3, None), slice(3, 4, None)])
    """
    groups = bounds.view(-1, size)
    total = groups.sum(1)
    if int(total.max()) <= GROUPED_EDITS:
        return [slice(rows.start * size, rows.stop * size) for rows in _cut(total, GROUPED_EDITS)]
    parts = [(size * index, rows) for index, own in enumerate(groups) for rows in _cut(own, EDITS)]
    return [slice(begin + rows.start, begin + rows.stop) for begin, rows in parts]


def _cut(edits: Tensor, size: int) -> list[slice]:
    """Consecutive parts with about ``size`` edits, from their numbers."""
    counts = (edits.cumsum(0) // size).unique_consecutive(return_counts=True)[1]
    ends = counts.cumsum(0).tolist()
    return [slice(end - count, end) for end, count in zip(ends, counts.tolist(), strict=True)]


def num_in_chunks(around: Iterable[Neighborhood], counts: Tensor, alphabet_size: int, num_chunks: int) -> int:
    """How many of some sequences fill some chunks, if they have the mean number of edits; at most all of them.

    :param around: the neighborhoods, of which the one with the most edits counts.
    :param counts: long ``[L]``, how many sequences have the length 0, 1, ...

    >>> from pyro_ksd.edits import zs
    >>> num_in_chunks([zs()], torch.tensor([0, 10**6]), alphabet_size=4, num_chunks=1)
    10922
    """
    size = int(counts.sum())
    known = list(enumerate(counts.tolist()))
    edits = max(sum(number * one.edit_bound(length, alphabet_size) for length, number in known) for one in around)
    return size if edits <= num_chunks * EDITS else max(1, size * num_chunks * EDITS // edits)


def even_rows(size: int, count: int) -> Tensor:
    """``count`` out of ``size`` rows, at even distances; long ``[count]``.

    >>> even_rows(10, 4).tolist()
    [0, 2, 5, 7]
    """
    return torch.arange(count) * size // count


def edit_bounds(neighborhood: Neighborhood, sequences: Sequences) -> Tensor:
    """An upper bound of the number of edits around each sequence, long ``[N]``.

    >>> from pyro_ksd.edits import Substitutions
    >>> edit_bounds(Substitutions(), Sequences.of(["ab", "b", "aba"]))
    tensor([2, 1, 3])
    """
    lengths, inverse = sequences.lengths.unique(return_inverse=True)
    known = _bounds.setdefault(neighborhood, {})
    size = sequences.alphabet_size
    for length in lengths.tolist():
        if (length, size) not in known:
            known[length, size] = neighborhood.edit_bound(length, size)
    return torch.tensor([known[length, size] for length in lengths.tolist()])[inverse]

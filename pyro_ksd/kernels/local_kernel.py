# SPDX-License-Identifier: Apache-2.0
"""Kernels of which an edit changes only a few features."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from pyro_ksd.common.chunk_sizes import EDITS, ENTRIES
from pyro_ksd.common.compilation import is_compiled
from pyro_ksd.edits.splices import Edits, SpliceBlock
from pyro_ksd.edits.weighted_edits import WeightedEdits
from pyro_ksd.kernels.base import FeatureKernel
from pyro_ksd.kernels.feature_places import FEW_FEATURES, DensePlaces, FeaturePlaces
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.kernels.witness import Witness
from pyro_ksd.sequences.container import Sequences

_REMEMBERED_EDITS = 2 * EDITS  # of a chunk of the data; there are far more around all data sets of a bootstrap


class _Changes(NamedTuple):
    """What some edits change.

    :ivar place: their flat positions.
    :ivar owner: long ``[E]``.
    :ivar codes: ``[K, E]``, of the features that they touch.
    :ivar change: ``[K, E]``.
    """

    place: slice
    owner: Tensor
    codes: Tensor
    change: Tensor


class LocalKernel(FeatureKernel):
    """A kernel with features that are found place by place, and changed by edits place by place.

    A subclass writes :meth:`num_features`, :meth:`entries` and :meth:`changes`.
    """

    @abstractmethod
    def num_features(self, alphabet_size: int) -> int:
        """How many features there are; their codes are ``0 .. D-1``."""

    @abstractmethod
    def entries(self, sequences: Sequences) -> tuple[Tensor, Tensor, Tensor]:
        """The features of the sequences as rows, codes and values, ``[M]`` each; equal places are added up."""

    @abstractmethod
    def changes(self, sequences: Sequences, block: SpliceBlock) -> tuple[Tensor, Tensor] | None:
        """What each splice of a block changes.

        :returns: the codes of the features that are touched, integers ``[K, E]``, and the change of each, floats
            ``[K, E]``, where changes of equal features are added up; ``None`` if splices of this shape have no short
            cut. Then the edited sequences are compared with the sequences.
        """

    def features(self, sequences: Sequences) -> FeatureMatrix:
        row, code, value = self.entries(sequences)
        places = FeaturePlaces.number([(row, code)], len(sequences), self.num_features(sequences.alphabet_size))
        values = torch.zeros(places.size, dtype=torch.double)
        return places.matrix(values.index_add_(0, places.of(row, code), value))

    def stein_features_each(self, chunk: WeightedEdits) -> list[FeatureMatrix]:
        sequences = chunk.sequences
        weights = torch.atleast_2d(chunk.weights).double()
        found = self._changes(chunk)
        entries = [(owner, codes) for _, owner, codes, _ in found]
        places = FeaturePlaces.number(entries, len(sequences), self.num_features(sequences.alphabet_size))
        psi = torch.zeros(len(weights), places.size, dtype=torch.double)
        for index, owner, codes, change in found:
            if is_compiled() and isinstance(places, DensePlaces):
                from pyro_ksd.kernels.compiled_changes import add_changes

                add_changes(owner, (codes, change), weights[:, index], psi.view(len(psi), len(sequences), -1))
                continue
            place = places.of(owner, codes).reshape(-1)
            for values, own in zip(psi, weights[:, index], strict=True):
                values.index_add_(0, place, (change * own).reshape(-1))
        return [places.matrix(values) for values in psi]

    def steps_along(self, chunk: WeightedEdits, witness: Witness) -> Tensor:
        steps = torch.zeros(len(chunk.edits), dtype=torch.double)
        size = self.num_features(chunk.sequences.alphabet_size)
        has_all_codes = witness.own.values.shape[1] == size and not witness.own.values.is_sparse
        for index, owner, codes, change in self._changes(chunk):
            if is_compiled() and has_all_codes:
                from pyro_ksd.kernels.compiled_changes import steps_of_changes

                steps[index] = steps_of_changes(owner, (codes, change), witness.total, witness.own.values)
                continue
            coefficient = witness.at(owner.expand_as(codes).reshape(-1), codes.reshape(-1)).view(codes.shape)
            steps[index] = (change * coefficient).sum(0)
        return steps

    def few_changes(self, chunk: WeightedEdits) -> Tensor | None:
        size = self.num_features(chunk.sequences.alphabet_size)
        if size > FEW_FEATURES:
            return None
        changes = torch.zeros(len(chunk.edits), size, dtype=torch.double)
        for index, _, codes, change in self._changes(chunk):
            changes[index].scatter_add_(1, codes.t().long(), change.t().double())
        return changes

    def _changes(self, chunk: WeightedEdits) -> list[_Changes]:
        """The changes of the edits of each block that has weight, piece by piece; of a small chunk, found once."""
        known: dict[LocalKernel, list[_Changes]] = chunk.remembered
        if self in known:
            return known[self]
        found = list(self._found_changes(chunk))
        if len(chunk.edits) <= _REMEMBERED_EDITS:
            known[self] = found
        return found

    def _found_changes(self, chunk: WeightedEdits) -> Iterator[_Changes]:
        sequences = chunk.sequences
        begin = 0
        for block, has_weight in zip(chunk.edits.blocks, chunk.has_weight, strict=True):
            end = begin + len(block)
            if has_weight:
                found = self.changes(sequences, block)
                if found is not None:
                    yield _Changes(slice(begin, end), block.owner, *found)
                else:
                    for first, piece in _pieces(block, self.num_features(sequences.alphabet_size)):
                        position = slice(begin + first, begin + first + len(piece))
                        yield _Changes(position, piece.owner, *self._compared(sequences, piece))
            begin = end

    def _compared(self, sequences: Sequences, block: SpliceBlock) -> tuple[Tensor, Tensor]:
        """The changes of all features, from the edited sequences themselves."""
        edited = Edits((block,), len(sequences)).apply(sequences)
        size = self.num_features(sequences.alphabet_size)
        change = torch.zeros(len(block), size, dtype=torch.double)
        for sign, of in ((1.0, edited), (-1.0, sequences[block.owner])):
            row, code, value = self.entries(of)
            change.view(-1).index_add_(0, row * size + code, sign * value)
        return torch.arange(size)[:, None].expand(size, len(block)), change.t()


def _pieces(block: SpliceBlock, num_features: int) -> Iterator[tuple[int, SpliceBlock]]:
    """Pieces of a block, with their first positions, that are small enough to change all features."""
    size = max(1, ENTRIES // num_features)
    for begin in range(0, len(block), size):
        yield begin, block.select(torch.arange(begin, min(begin + size, len(block))))

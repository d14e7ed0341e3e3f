# SPDX-License-Identifier: Apache-2.0
"""Windows of symbols counted by compiled loops: the same numbers as :mod:`pyro_ksd.kernels.window_kernel`, faster."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from pyro_ksd.common.compilation import share_rows
from pyro_ksd.edits.compiled_counts import dense_features, dense_features_each, sparse_features, window_steps
from pyro_ksd.edits.compiled_entries import collect_entries
from pyro_ksd.edits.flat_edits import FlatEdits
from pyro_ksd.edits.weighted_edits import WeightedEdits
from pyro_ksd.edits.window_arrays import Coefficients, Counting, Entries, direct_slots, hash_table
from pyro_ksd.kernels.feature_places import FEW_FEATURES, DensePlaces, matrix_in_order
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.kernels.witness import Witness
from pyro_ksd.sequences.container import Sequences

_DENSE_SHARE = 4  # if fewer of the codes than one in four can be in use, the features are sparse
_MARKED_CODES = 2**22  # to mark which of these are in use takes less time than to sort those in use
_CODES_OF_A_FEATURE = 64  # going through this many codes takes as long as sorting one feature


@dataclass(frozen=True, eq=False)
class CompiledWindows:
    """The windows of one shape of sequences, and how each edit changes their counts.

    :param counting: the sequences, what is counted, and how counts become features.
    :param edits: of the sequences.
    :param num_codes: windows have the codes ``0 .. num_codes - 1``.
    """

    counting: Counting
    edits: FlatEdits
    num_codes: int

    @staticmethod
    def of(
        sequences: Sequences,
        edits: FlatEdits,
        width: int,
        between: bool,
        power: float,
        divisors: Tensor,
        by_energy: bool,
    ) -> CompiledWindows:
        """All windows of ``width`` symbols.

        :param between: whether all symbols of a window count, or only the first and the last.
        :param power: of the counts.
        :param divisors: double ``[L]``, for all lengths that occur, from 0 on.
        :param by_energy: whether the energy counts in the scale.
        """
        size = sequences.alphabet_size
        digits = [size**place for place in range(width)] if between else [1, *[0] * (width - 2), size]
        counts = np.arange(len(divisors) + 1, dtype=np.double)
        counting = Counting(
            tokens=np.ascontiguousarray(sequences.tokens.numpy()),
            lengths=np.ascontiguousarray(sequences.lengths.numpy()),
            size=size,
            digits=np.array(digits, dtype=np.int64),
            transformed=counts**power,
            step=np.diff(counts**power),
            gain=np.diff(counts ** (2 * power)),
            divisors=divisors.numpy(),
            by_energy=by_energy,
        )
        return CompiledWindows(counting, edits, size * max(digits))

    def stein_features(self, chunk: WeightedEdits) -> list[FeatureMatrix]:
        """The Stein features under each of ``K`` models, from weights ``[K, E]`` or ``[E]`` of the edits."""
        most = int(self._room.sum())
        is_dense = self.num_codes <= FEW_FEATURES or len(self._room) * self.num_codes <= _DENSE_SHARE * most
        weights = torch.atleast_2d(chunk.weights)
        if is_dense and len(weights) > 1:
            return self._dense_features_each(chunk.weights_by_edit.numpy())
        features = self._dense_features if is_dense else self._sparse_features
        return [features(own) for own in weights.double().contiguous().numpy()]

    def steps_along(self, witness: Witness, offset: int) -> Tensor:
        """How far each edit moves along the witness, ``[E]``, whose codes of these features begin at ``offset``."""
        coefficients = _coefficients(witness, offset, self.num_codes)
        steps = np.empty(self.edits.num_edits)

        def loop(first: int, last: int) -> None:
            entries = np.diff(coefficients.begin[first : last + 1])
            slots = direct_slots(self.num_codes) if self._is_direct else hash_table(self._room[first:last] + entries)
            window_steps(first, last, self.counting, self.edits, coefficients, slots, steps)

        share_rows(loop, self.edits.work)
        return torch.from_numpy(steps)

    @cached_property
    def _room(self) -> np.ndarray:
        """At most how many features each row has, long ``[N]``."""
        room: np.ndarray = self.counting.lengths + self.edits.most_windows(len(self.counting.digits))
        return room

    @property
    def _is_direct(self) -> bool:
        """Whether to have a slot for every code: it takes less time to go through all of them than to sort some."""
        return len(self._room) * self.num_codes <= _CODES_OF_A_FEATURE * int(self._room.sum())

    def _dense_features(self, weights: np.ndarray) -> FeatureMatrix:
        num_rows = len(self._room)
        matrix = np.empty((num_rows, self.num_codes))
        used = np.empty(num_rows, dtype=np.int64)

        def loop(first: int, last: int) -> None:
            slots = direct_slots(self.num_codes)
            dense_features(first, last, self.counting, self.edits, weights, slots, matrix, used)

        share_rows(loop, self.edits.work)
        return DensePlaces(num_rows, self.num_codes).matrix(torch.from_numpy(matrix), int(used.sum()))

    def _dense_features_each(self, weights: np.ndarray) -> list[FeatureMatrix]:
        """As :meth:`_dense_features`, from weights ``[E, K]``."""
        num_rows = len(self._room)
        matrices = np.empty((weights.shape[1], num_rows, self.num_codes))
        used = np.empty((weights.shape[1], num_rows), dtype=np.int64)

        def loop(first: int, last: int) -> None:
            slots = direct_slots(self.num_codes)
            dense_features_each(first, last, self.counting, self.edits, weights, slots, matrices, used)

        share_rows(loop, self.edits.work)
        places = DensePlaces(num_rows, self.num_codes)
        pairs = zip(torch.from_numpy(matrices), used.sum(1).tolist(), strict=True)
        return [places.matrix(matrix, num_used) for matrix, num_used in pairs]

    def _sparse_features(self, weights: np.ndarray) -> FeatureMatrix:
        num_rows = len(self._room)
        begin = np.concatenate([[0], self._room.cumsum()])
        count = np.zeros(num_rows, dtype=np.int64)
        entries = Entries(begin, count, np.empty(begin[-1], dtype=np.int64), np.empty(begin[-1]))
        used = np.zeros(self.num_codes if self.num_codes <= _MARKED_CODES else 0, dtype=np.bool_)

        def loop(first: int, last: int) -> None:
            slots = direct_slots(self.num_codes) if self._is_direct else hash_table(self._room[first:last])
            sparse_features(first, last, self.counting, self.edits, weights, slots, entries, used)

        share_rows(loop, self.edits.work)
        total = int(count.sum())
        place = count.cumsum() - count
        column = used.cumsum() - 1
        index = np.empty((2, total), dtype=np.int64)
        value = np.empty(total)
        share_rows(
            lambda first, last: collect_entries(first, last, entries, place, column, index, value), self.edits.work
        )
        codes = torch.from_numpy(used.nonzero()[0])
        places = torch.from_numpy(index)
        if not len(used):
            codes, places[1] = places[1].unique(return_inverse=True)
        return matrix_in_order(places, torch.from_numpy(value), num_rows, codes)


def _coefficients(witness: Witness, offset: int, num_codes: int) -> Coefficients:
    """The coefficients of the codes ``offset .. offset + num_codes - 1``, as the codes ``0 .. num_codes - 1``."""
    codes = torch.arange(len(witness.total)) if witness.own.codes is None else witness.own.codes
    left, right = torch.searchsorted(codes, torch.tensor([offset, offset + num_codes])).tolist()
    own = witness.own.values
    if own.is_sparse:
        row, column = own.indices()
        inside = (column >= left) & (column < right)
        row, column, value = row[inside], column[inside] - left, own.values()[inside]
        begin = torch.searchsorted(row, torch.arange(len(own) + 1))
    else:
        value = own[:, left:right].reshape(-1)
        column = codes[:0]
        begin = torch.arange(len(own) + 1) * (right - left)
    parts = (codes[left:right] - offset, witness.total[left:right], begin, column, value)
    return Coefficients(*(part.contiguous().numpy() for part in parts))

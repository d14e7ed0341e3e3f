# SPDX-License-Identifier: Apache-2.0
"""The witness: the function on which the data and the model disagree most, without the sequence that it is asked of."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pyro_ksd.kernels.stein_matrices import FeatureMatrix


@dataclass(frozen=True, eq=False)
class Witness:
    r"""The leave-one-out witness in features, :math:`f_{-i} = \sum_{j \ne i} \psi_j`, of some consecutive sequences.

    :param total: ``[D]``, :math:`\sum_j \psi_j` over all sequences.
    :param own: :math:`\psi_i` of the sequences that are asked.
    """

    total: Tensor
    own: FeatureMatrix

    @staticmethod
    def of(matrix: FeatureMatrix, begin: int, count: int) -> Witness:
        """The witness for ``count`` sequences from the row ``begin`` on."""
        return Witness(matrix.total, matrix.rows(begin, begin + count))

    def at(self, rows: Tensor, codes: Tensor) -> Tensor:
        """The coefficient of the feature ``codes[m]`` in the witness for the sequence ``rows[m]``, ``[M]``."""
        if not len(self.total):
            return self.total.new_zeros(len(codes))
        column = codes
        known = None
        if self.own.codes is not None:
            column = torch.searchsorted(self.own.codes, codes.contiguous()).clamp_(max=len(self.own.codes) - 1)
            known = self.own.codes.index_select(0, column) == codes
        found = self.total.index_select(0, column) - self._own_at(rows, column)
        return found if known is None else found.mul_(known)

    def scaled(self, factor: float) -> Witness:
        """That of the kernel times ``factor``."""
        return Witness(self.total * factor**0.5, self.own.scaled(factor))

    def dense(self) -> Tensor:
        """All coefficients, ``[N, D]``."""
        own = self.own.values
        return self.total - (own.to_dense() if own.is_sparse else own)

    def _own_at(self, rows: Tensor, columns: Tensor) -> Tensor:
        keys = rows * len(self.total) + columns
        if not self.own.values.is_sparse:
            return self.own.values.reshape(-1).index_select(0, keys)
        (row, column) = self.own.values.indices()
        values = self.own.values.values()
        if not len(values):
            return self.total.new_zeros(len(keys))
        known = row * len(self.total) + column
        place = torch.searchsorted(known, keys).clamp_(max=len(known) - 1)
        return values.index_select(0, place).mul_(known.index_select(0, place) == keys)

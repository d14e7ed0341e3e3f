# SPDX-License-Identifier: Apache-2.0
"""Sums over groups of sequences of their features, all that statistics and scores of features need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from pyro_ksd.common.compilation import is_compiled

_ROUNDING = 1e-12  # relative


@dataclass(frozen=True, eq=False)
class FeatureSums:
    r"""Sums of features ``ψ [N, D]`` over each of ``G`` groups of consecutive sequences.

    :ivar total: double ``[G, D]``, :math:`\sum_i \psi_i`.
    :ivar squares: double ``[G, D]``, :math:`\sum_i \psi_i^2`, element by element.
    :ivar gains: double ``[G, D]``, :math:`\sum_i \max(\psi_i, 0)`.
    :ivar squared_losses: double ``[G]``, the sum of :math:`\min(\psi_i, 0)^2` over sequences and columns.
    :ivar squared_norms: double ``[G]``, :math:`\sum_i \|\psi_i\|^4`.
    """

    total: Tensor
    squares: Tensor
    gains: Tensor
    squared_losses: Tensor
    squared_norms: Tensor

    @staticmethod
    def of(values: Tensor, size: int) -> FeatureSums:
        """The sums over each ``size`` consecutive rows; one group without rows if ``size`` is 0.

        :param values: ``[N, D]``, dense or sparse and coalesced; ``size`` divides ``N``.

        >>> sums = FeatureSums.of(torch.tensor([[1.0, 2.0], [3.0, -1.0]]).double(), 2)
        >>> sums.total.tolist(), sums.gains.tolist(), sums.squared_norms.item()
        ([[4.0, 1.0]], [[4.0, 2.0]], 125.0)
        """
        count = len(values) // size if size else 1
        if values.is_sparse:
            return _of_sparse(values, count, size)
        groups = values.view(count, size, values.shape[1])
        if is_compiled() and values.is_contiguous() and values.dtype == torch.double:
            return _compiled(groups)
        return FeatureSums(
            total=groups.sum(1),
            squares=groups.square().sum(1),
            gains=groups.clamp(min=0).sum(1),
            squared_losses=groups.clamp(max=0).square_().sum((1, 2)),
            squared_norms=groups.square().sum(2).square_().sum(1),
        )

    @staticmethod
    def of_each(parts: Sequence[Tensor]) -> FeatureSums:
        """The sums over all rows of each of ``G`` dense tensors ``[N, D]`` of one shape.

        >>> sums = FeatureSums.of_each([torch.tensor([[1.0, 2.0], [3.0, -1.0]]).double(), torch.ones(2, 2).double()])
        >>> sums.total.tolist()
        [[4.0, 1.0], [2.0, 2.0]]
        """
        each = [FeatureSums.of(values, len(values)) for values in parts]
        return FeatureSums(
            **{field.name: torch.cat([getattr(own, field.name) for own in each]) for field in fields(FeatureSums)}
        )

    def __add__(self, other: FeatureSums) -> FeatureSums:
        """The sums over the rows of both, group by group."""
        names = [field.name for field in fields(self)]
        return FeatureSums(**{name: getattr(self, name) + getattr(other, name) for name in names})

    @property
    def off_diagonal(self) -> Tensor:
        """``Σ_{i≠j} <ψ_i, ψ_j>`` in each group, ``[G]``."""
        return off_diagonal_rest(self.total.square().sum(1), self.squares.sum(1))


def off_diagonal_rest(whole: Tensor, diagonal: Tensor) -> Tensor:
    """What is left of sums without their diagonal, exactly 0 where that is less than the rounding.

    Sequences over a large alphabet may have no feature in common: then nothing is left, of the data as of all null
    draws, and no difference in the last bits may tell them apart.
    """
    rest = whole - diagonal
    return rest.masked_fill(rest.abs() <= _ROUNDING * diagonal, 0.0)


def _of_sparse(values: Tensor, count: int, size: int) -> FeatureSums:
    row, column = values.indices()
    entries = values.values()
    shape = (count, values.shape[1])
    place = (row // max(1, size)).mul_(shape[1]).add_(column)

    def summed(found: Tensor) -> Tensor:
        return entries.new_zeros(shape[0] * shape[1]).index_add_(0, place, found).view(shape)

    norms = entries.new_zeros(len(values)).index_add_(0, row, entries.square())
    losses = entries.new_zeros(len(values)).index_add_(0, row, entries.clamp(max=0).square_())
    return FeatureSums(
        total=summed(entries),
        squares=summed(entries.square()),
        gains=summed(entries.clamp(min=0)),
        squared_losses=losses.view(count, size).sum(1),
        squared_norms=norms.square_().view(count, size).sum(1),
    )


def _compiled(groups: Tensor) -> FeatureSums:
    """All sums but one in one pass: features of many sequences do not fit into the processor's cache.

    The totals are those of torch, bit for bit, as equal shares of the statistic must be equal with compiled loops too.

    :param groups: ``[G, size, D]``.
    """
    from pyro_ksd.kernels.compiled_feature_sums import sum_features

    count, _, columns = groups.shape
    sums = np.zeros((2, count, columns))
    squares = np.zeros((2, count))
    sum_features(groups.detach().numpy(), sums, squares)
    return FeatureSums(groups.sum(1), *torch.from_numpy(sums), *torch.from_numpy(squares))

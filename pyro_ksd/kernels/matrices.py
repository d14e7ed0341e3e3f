# SPDX-License-Identifier: Apache-2.0
"""The forms in which a Stein kernel matrix ``H [N, N]`` is held: as features ``Ψ Ψᵀ``, as itself, or as a sum."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

_CHUNK = 2**24  # elements of the largest temporary tensor in a quadratic form


class SteinMatrix(ABC):
    """A symmetric positive semi-definite ``[N, N]`` matrix that need not exist as such."""

    @abstractmethod
    def __len__(self) -> int:
        """The number of sequences ``N``."""

    @abstractmethod
    def diagonal(self) -> Tensor:
        """``H_ii``, ``[N]``."""

    @abstractmethod
    def off_diagonal_form(self, weights: Tensor) -> Tensor:
        """``Σ_{i≠j} w_i w_j H_ij`` for each row of weights ``[B, N]``: ``[B]``."""

    @abstractmethod
    def dense(self) -> Tensor:
        """``H`` itself, ``[N, N]``."""

    @abstractmethod
    def scaled(self, factor: float) -> SteinMatrix:
        """``factor · H``."""


@dataclass(frozen=True, eq=False)
class GramMatrix(SteinMatrix):
    """The matrix itself, ``[N, N]``."""

    matrix: Tensor

    def __len__(self) -> int:
        return len(self.matrix)

    def diagonal(self) -> Tensor:
        return self.matrix.diagonal()

    def off_diagonal_form(self, weights: Tensor) -> Tensor:
        hollow = self.matrix.clone().fill_diagonal_(0.0)
        rows = max(1, _CHUNK // max(1, len(self)))
        return torch.cat([((part @ hollow) * part).sum(1) for part in weights.split(rows)])

    def dense(self) -> Tensor:
        return self.matrix

    def scaled(self, factor: float) -> SteinMatrix:
        return GramMatrix(factor * self.matrix)


@dataclass(frozen=True, eq=False)
class FeatureMatrix(SteinMatrix):
    """Features ``Ψ [N, D]`` of ``H = Ψ Ψᵀ``, as a dense or a sparse (COO) tensor.

    :param values: ``[N, D]``.
    :param codes: long ``[D]``, what each column stands for, ascending; ``None`` for ``0 .. D-1``. Matrices with
        different columns can be put together by their codes.
    """

    values: Tensor
    codes: Tensor | None = None

    def __len__(self) -> int:
        return len(self.values)

    def diagonal(self) -> Tensor:
        if self.values.is_sparse:
            squares = (self.values * self.values).coalesce()
            return torch.sparse.sum(squares, 1).to_dense()
        return self.values.square().sum(1)

    def off_diagonal_form(self, weights: Tensor) -> Tensor:
        rows = max(1, _CHUNK // max(1, self.values.shape[1], len(self)))
        totals = [self.weighted_sum(part).square().sum(1) for part in weights.split(rows)]
        return torch.cat(totals) - weights.square() @ self.diagonal()

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """``Σ_i w_i ψ_i`` for each row of weights ``[B, N]``: ``[B, D]``."""
        if self.values.is_sparse:
            return torch.sparse.mm(self.values.t(), weights.t()).t()
        return weights @ self.values

    def dense(self) -> Tensor:
        return _product(self.values, self.values)

    def cross(self, split: int) -> Tensor:
        """Inner products of the first ``split`` rows with the others, ``[split, N - split]``."""
        if self.values.is_sparse:
            rows = torch.arange(len(self), device=self.values.device)
            return _product(self.values.index_select(0, rows[:split]), self.values.index_select(0, rows[split:]))
        return _product(self.values[:split], self.values[split:])

    def scaled(self, factor: float) -> SteinMatrix:
        return FeatureMatrix(self.values * factor**0.5, self.codes)

    @staticmethod
    def from_entries(rows: Tensor, codes: Tensor, values: Tensor, num_rows: int) -> FeatureMatrix:
        """A sparse matrix from its entries, ``[M]`` each; entries at one place are added up."""
        columns, index = codes.unique(return_inverse=True)
        shape = (num_rows, len(columns))
        sparse = torch.sparse_coo_tensor(torch.stack([rows, index]), values, shape, check_invariants=False)
        return FeatureMatrix(sparse.coalesce(), columns)

    @staticmethod
    def cat(parts: Sequence[FeatureMatrix]) -> FeatureMatrix:
        """The rows of all parts, with the columns matched by their codes."""
        if all(not part.values.is_sparse for part in parts):
            return FeatureMatrix(torch.cat([part.values for part in parts]), parts[0].codes)
        rows, codes, values, offset = [], [], [], 0
        for part in parts:
            sparse = part.values.to_sparse() if not part.values.is_sparse else part.values
            row, column = sparse.indices()
            rows.append(row + offset)
            codes.append(column if part.codes is None else part.codes[column])
            values.append(sparse.values())
            offset += len(part)
        return FeatureMatrix.from_entries(torch.cat(rows), torch.cat(codes), torch.cat(values), offset)


def _product(left: Tensor, right: Tensor) -> Tensor:
    """``left rightᵀ``, dense, of two dense or two sparse matrices."""
    return torch.sparse.mm(left, right.t()).to_dense() if left.is_sparse else left @ right.t()


@dataclass(frozen=True, eq=False)
class SumMatrix(SteinMatrix):
    """The sum of several matrices."""

    parts: tuple[SteinMatrix, ...]

    def __len__(self) -> int:
        return len(self.parts[0])

    def diagonal(self) -> Tensor:
        return torch.stack([part.diagonal() for part in self.parts]).sum(0)

    def off_diagonal_form(self, weights: Tensor) -> Tensor:
        return torch.stack([part.off_diagonal_form(weights) for part in self.parts]).sum(0)

    def dense(self) -> Tensor:
        return torch.stack([part.dense() for part in self.parts]).sum(0)

    def scaled(self, factor: float) -> SteinMatrix:
        return SumMatrix(tuple(part.scaled(factor) for part in self.parts))


def cat_rows(parts: Sequence[SteinMatrix]) -> SteinMatrix:
    """Puts together matrices of features that were computed for consecutive rows of the data."""
    first = parts[0]
    if isinstance(first, SumMatrix):
        columns = zip(*(part.parts for part in parts if isinstance(part, SumMatrix)), strict=True)
        return SumMatrix(tuple(cat_rows(column) for column in columns))
    return FeatureMatrix.cat([part for part in parts if isinstance(part, FeatureMatrix)])

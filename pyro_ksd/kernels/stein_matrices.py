# SPDX-License-Identifier: Apache-2.0
"""The forms in which a Stein kernel matrix ``H [N, N]`` is held: as features ``Ψ Ψᵀ``, as itself, or as a sum."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import torch
from torch import Tensor

from pyro_ksd.common.chunk_sizes import ENTRIES
from pyro_ksd.kernels.feature_sums import FeatureSums, off_diagonal_rest


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
    def off_diagonal_sums(self, size: int) -> Tensor:
        """``Σ_{i≠j} H_ij`` within each group of ``size`` consecutive sequences: ``[N / size]``."""

    @abstractmethod
    def others(self) -> Tensor:
        """``Σ_{j≠i} H_ij``, ``[N]``."""

    @abstractmethod
    def dense(self) -> Tensor:
        """``H`` itself, ``[N, N]``."""

    @abstractmethod
    def scaled(self, factor: float) -> Self:
        """``factor · H``."""

    @classmethod
    @abstractmethod
    def cat(cls, parts: Sequence[Self]) -> Self:
        """The matrix of all sequences, from its parts for consecutive ones."""

    @abstractmethod
    def copied(self) -> Self:
        """The same in memory of its own, where it may be a part of that of several matrices."""

    @property
    def features(self) -> FeatureMatrix | None:
        """The features of which this is the matrix of inner products, if it has them."""
        return None


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
        rows = max(1, ENTRIES // max(1, len(self)))
        return torch.cat([((part @ hollow) * part).sum(1) for part in weights.split(rows)])

    def off_diagonal_sums(self, size: int) -> Tensor:
        blocks = [self.matrix[rows, rows] for rows in _groups(len(self), size)]
        return torch.stack([block.sum() - block.diagonal().sum() for block in blocks])

    def others(self) -> Tensor:
        return self.matrix.sum(1) - self.diagonal()

    def dense(self) -> Tensor:
        return self.matrix

    def scaled(self, factor: float) -> GramMatrix:
        return GramMatrix(factor * self.matrix)

    def copied(self) -> GramMatrix:
        return GramMatrix(self.matrix.clone())

    @classmethod
    def cat(cls, parts: Sequence[GramMatrix]) -> GramMatrix:
        [only] = parts  # what lies between two parts is known to neither
        return only


@dataclass(frozen=True, eq=False)
class FeatureMatrix(SteinMatrix):
    """Features ``Ψ [N, D]`` of ``H = Ψ Ψᵀ``, as a dense or a sparse (COO) tensor.

    :param values: ``[N, D]``.
    :param codes: long ``[D]``, what each column means, ascending; ``None`` for ``0 .. D-1``. Matrices with
        different columns can be put together by their codes.
    """

    values: Tensor
    codes: Tensor | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def num_entries(self) -> int:
        """How many numbers are held."""
        return (self.values.values() if self.values.is_sparse else self.values).numel()

    def diagonal(self) -> Tensor:
        if self.values.is_sparse:
            squares = (self.values * self.values).coalesce()
            return squares.values().new_zeros(len(self)).index_add_(0, squares.indices()[0], squares.values())
        return self.values.square().sum(1)

    def off_diagonal_form(self, weights: Tensor) -> Tensor:
        rows = max(1, ENTRIES // max(1, self.values.shape[1], len(self)))
        totals = [self.weighted_sum(part).square().sum(1) for part in weights.split(rows)]
        return off_diagonal_rest(torch.cat(totals), weights.square() @ self.diagonal())

    def off_diagonal_sums(self, size: int) -> Tensor:
        return torch.cat([sums.off_diagonal for sums in self.group_sums(size)])

    def others(self) -> Tensor:
        if self.values.is_sparse:
            return torch.mv(self.values, self.total) - self.diagonal()
        return self.values @ self.total - self.diagonal()

    @cached_property
    def total(self) -> Tensor:
        """``Σ_i ψ_i``, ``[D]``."""
        return torch.sparse.sum(self.values, 0).to_dense() if self.values.is_sparse else self.values.sum(0)

    def group_sums(self, size: int) -> Iterator[FeatureSums]:
        """The sums over each group of ``size`` consecutive sequences, some groups at a time."""
        together = max(1, ENTRIES // max(1, self.values.shape[1])) * size
        for begin in range(0, len(self), together):
            yield FeatureSums.of(self.rows(begin, min(begin + together, len(self))).values, size)

    def rows(self, begin: int, end: int) -> FeatureMatrix:
        """The features of some consecutive sequences."""
        if not self.values.is_sparse:
            return FeatureMatrix(self.values[begin:end], self.codes)
        if begin == 0 and end == len(self):
            return self
        index = self.values.indices()
        values = self.values.values()
        first, last = torch.searchsorted(index[0].contiguous(), torch.tensor([begin, end])).tolist()
        shifted = torch.stack([index[0, first:last] - begin, index[1, first:last]])
        shape = (end - begin, self.values.shape[1])
        part = torch.sparse_coo_tensor(shifted, values[first:last], shape, is_coalesced=True, check_invariants=False)
        return FeatureMatrix(part, self.codes)

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """``Σ_i w_i ψ_i`` for each row of weights ``[B, N]``: ``[B, D]``."""
        if self.values.is_sparse:
            total: Tensor = torch.sparse.mm(self.values.t(), weights.t()).t()
            return total
        return weights @ self.values

    def dense(self) -> Tensor:
        rows = torch.arange(len(self))
        return self.products(rows, rows)

    def products(self, left: Tensor, right: Tensor) -> Tensor:
        """Inner products of the rows ``left`` with the rows ``right``, long ``[L]`` and ``[R]``: ``[L, R]``."""
        a = self.values.index_select(0, left)
        b = self.values.index_select(0, right)
        if not self.values.is_sparse:
            return a @ b.t()
        chunk = max(1, ENTRIES // max(1, self.values.shape[1]))
        parts = [
            torch.sparse.mm(a, b.index_select(0, rows).to_dense().t()) for rows in torch.arange(len(right)).split(chunk)
        ]
        return torch.cat(parts, 1)

    def scaled(self, factor: float) -> FeatureMatrix:
        return FeatureMatrix(self.values * factor**0.5, self.codes)

    def copied(self) -> FeatureMatrix:
        return FeatureMatrix(self.values.clone(), self.codes)

    def scaled_rows(self, factors: Tensor) -> FeatureMatrix:
        """Each row multiplied by a factor, ``[N]``."""
        if not self.values.is_sparse:
            return FeatureMatrix(self.values * factors[:, None], self.codes)
        index = self.values.indices()
        values = self.values.values() * factors.index_select(0, index[0])
        scaled = torch.sparse_coo_tensor(index, values, self.values.shape, is_coalesced=True, check_invariants=False)
        return FeatureMatrix(scaled, self.codes)

    @property
    def features(self) -> FeatureMatrix:
        return self

    @staticmethod
    def from_entries(rows: Tensor, codes: Tensor, values: Tensor, num_rows: int) -> FeatureMatrix:
        """A sparse matrix from its entries, ``[M]`` each; entries at one place are added up."""
        columns, index = codes.unique(return_inverse=True)
        shape = (num_rows, len(columns))
        sparse = torch.sparse_coo_tensor(torch.stack([rows, index]), values, shape, check_invariants=False)
        return FeatureMatrix(sparse.coalesce(), columns)

    @staticmethod
    def side_by_side(parts: Sequence[FeatureMatrix], sizes: Sequence[int]) -> FeatureMatrix:
        """The columns of all parts, which have the same rows; ``sizes`` are the numbers of codes of the parts."""
        if len(parts) == 1:
            return parts[0]
        if all(not part.values.is_sparse for part in parts):
            return FeatureMatrix(torch.cat([part.values for part in parts], 1))
        entries = [part.entries() for part in parts]
        offsets = [sum(sizes[:index]) for index in range(len(sizes))]
        rows = torch.cat([row for row, _, _ in entries])
        values = torch.cat([value for _, _, value in entries])
        codes = torch.cat([code + offset for (_, code, _), offset in zip(entries, offsets, strict=True)])
        return FeatureMatrix.from_entries(rows, codes, values, len(parts[0]))

    def entries(self) -> tuple[Tensor, Tensor, Tensor]:
        """Row, code and value of the entries that are not 0, ``[M]`` each."""
        if self.values.is_sparse:
            (row, column) = self.values.indices()
            values = self.values.values()
        else:
            row, column = self.values.nonzero().unbind(1)
            values = self.values[row, column]
        return row, column if self.codes is None else self.codes[column], values

    @classmethod
    def cat(cls, parts: Sequence[FeatureMatrix]) -> FeatureMatrix:
        """The rows of all parts, with the columns matched by their codes."""
        if len(parts) == 1:
            return parts[0]
        if all(not part.values.is_sparse for part in parts):
            return FeatureMatrix(torch.cat([part.values for part in parts]), parts[0].codes)
        entries = [part.entries() for part in parts]
        known = [
            code.unique() if part.codes is None else part.codes
            for part, (_, code, _) in zip(parts, entries, strict=True)
        ]
        codes = torch.cat(known).unique()
        offsets = [sum(map(len, parts[:index])) for index in range(len(parts))]
        rows = torch.cat([row + offset for (row, _, _), offset in zip(entries, offsets, strict=True)])
        columns = torch.searchsorted(codes, torch.cat([code for _, code, _ in entries]))
        values = torch.cat([value for _, _, value in entries])
        shape = (sum(map(len, parts)), len(codes))
        # The entries of each part are in the order of their rows and codes, and so are those of all parts.
        whole = torch.sparse_coo_tensor(
            torch.stack([rows, columns]), values, shape, is_coalesced=True, check_invariants=False
        )
        return FeatureMatrix(whole, codes)


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

    def off_diagonal_sums(self, size: int) -> Tensor:
        return torch.stack([part.off_diagonal_sums(size) for part in self.parts]).sum(0)

    def others(self) -> Tensor:
        return torch.stack([part.others() for part in self.parts]).sum(0)

    def dense(self) -> Tensor:
        return torch.stack([part.dense() for part in self.parts]).sum(0)

    def scaled(self, factor: float) -> SumMatrix:
        return SumMatrix(tuple(part.scaled(factor) for part in self.parts))

    def copied(self) -> SumMatrix:
        return SumMatrix(tuple(part.copied() for part in self.parts))

    @classmethod
    def cat(cls, parts: Sequence[SumMatrix]) -> SumMatrix:
        columns = zip(*(part.parts for part in parts), strict=True)
        return SumMatrix(tuple(type(column[0]).cat(column) for column in columns))


def _groups(count: int, size: int) -> list[slice]:
    """Consecutive groups of ``size`` out of ``count``."""
    return [slice(begin, begin + size) for begin in range(0, count, size)]

# SPDX-License-Identifier: Apache-2.0
"""Places in flat memory for the features ``(row, code)`` that a batch of sequences and edits touches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from pyro_ksd.kernels.stein_matrices import FeatureMatrix

LARGEST_CODE = 2**62
FEW_FEATURES = 16
"""Up to so many features are never sparse, and their kernels tell what each edit changes of them."""
_DENSE_PLACES = 2**22  # a table of this size costs less than sorting, however few of its places are in use


def is_affordable(num_entries: int, num_rows: int, num_codes: int) -> bool:
    """Whether to have a place for every code of every row, of which at most ``num_entries`` are in use.

    >>> is_affordable(10, num_rows=10, num_codes=1000), is_affordable(10, num_rows=10, num_codes=10**6)
    (True, False)
    """
    return num_codes <= FEW_FEATURES or num_rows * num_codes <= max(_DENSE_PLACES, 8 * num_entries)


def matrix_in_order(places: Tensor, values: Tensor, num_rows: int, codes: Tensor) -> FeatureMatrix:
    """A sparse matrix from entries in ascending order.

    :param places: long ``[2, M]``, row and column of each entry.
    :param values: ``[M]``.
    :param codes: long ``[D]``, of the columns, ascending.

    >>> places = torch.tensor([[0, 1], [1, 0]])
    >>> matrix_in_order(places, torch.ones(2), 2, torch.tensor([3, 5])).values.to_dense()
    tensor([[0., 1.],
            [1., 0.]])
    """
    shape = (num_rows, len(codes))
    sparse = torch.sparse_coo_tensor(places, values, shape, is_coalesced=True, check_invariants=False)
    return FeatureMatrix(sparse, codes)


class FeaturePlaces(ABC):
    """Numbers the features in use: a feature ``code`` of the sequence ``row`` has the place ``0 .. size-1``."""

    size: int

    @abstractmethod
    def of(self, rows: Tensor, codes: Tensor) -> Tensor:
        """The places of features; ``rows`` and ``codes`` are long and broadcast against each other."""

    @abstractmethod
    def spread(self, values: Tensor) -> Tensor:
        """Values of the rows ``[N]``, repeated for each place of the row: ``[size]``."""

    @abstractmethod
    def matrix(self, values: Tensor) -> FeatureMatrix:
        """The values of all places ``[size]`` as features of the rows."""

    @abstractmethod
    def entries(self) -> tuple[Tensor, Tensor]:
        """The row and the code of each place, long ``[size]`` each."""

    @staticmethod
    def number(entries: Sequence[tuple[Tensor, Tensor]], num_rows: int, num_codes: int) -> FeaturePlaces:
        """FeaturePlaces for the features that occur in ``entries``.

        :param entries: pairs of rows and codes, long, which broadcast against each other.
        :param num_codes: codes are ``0 .. num_codes-1``.
        """
        if num_codes > LARGEST_CODE:
            raise ValueError(
                f"expected at most 2**62 different features, found {num_codes}; "
                "use shorter n-grams (or prefixes) or a smaller alphabet"
            )
        if is_affordable(sum(codes.numel() for _, codes in entries), num_rows, num_codes):
            return DensePlaces(num_rows, num_codes)
        rows = torch.cat([rows.expand_as(codes).reshape(-1) for rows, codes in entries])
        return SparsePlaces(rows, torch.cat([codes.reshape(-1) for _, codes in entries]), num_rows)


class DensePlaces(FeaturePlaces):
    """A place for every code: ``row * num_codes + code``."""

    def __init__(self, num_rows: int, num_codes: int) -> None:
        self._shape = (num_rows, num_codes)
        self.size = num_rows * num_codes

    def of(self, rows: Tensor, codes: Tensor) -> Tensor:
        return codes + rows * self._shape[1]

    def spread(self, values: Tensor) -> Tensor:
        return values[:, None].expand(self._shape).reshape(-1)

    def matrix(self, values: Tensor, num_used: int | None = None) -> FeatureMatrix:
        """As :meth:`FeaturePlaces.matrix`.

        :param num_used: how many of the values are not 0, if that is known.
        """
        matrix = values.view(self._shape)
        if self._shape[1] <= FEW_FEATURES:
            return FeatureMatrix(matrix)
        if 8 * (int((matrix != 0).sum()) if num_used is None else num_used) >= self.size:
            return FeatureMatrix(matrix)
        is_used = matrix != 0
        codes = is_used.any(0).nonzero().squeeze(1)
        places = is_used.index_select(1, codes).nonzero().t()
        return matrix_in_order(places, matrix[is_used], self._shape[0], codes)

    def entries(self) -> tuple[Tensor, Tensor]:
        place = torch.arange(self.size)
        return place // self._shape[1], place % self._shape[1]


class SparsePlaces(FeaturePlaces):
    """FeaturePlaces only for the features that occur, found by sorting; the codes may be as large as they like."""

    def __init__(self, rows: Tensor, codes: Tensor, num_rows: int) -> None:
        self._num_rows = num_rows
        self._codes, rank = codes.unique(return_inverse=True)
        self._width = max(1, len(self._codes))
        self._keys = (rows * self._width + rank).unique()
        self.size = len(self._keys)

    def of(self, rows: Tensor, codes: Tensor) -> Tensor:
        keys = rows * self._width + torch.searchsorted(self._codes, codes)
        return torch.searchsorted(self._keys, keys)

    def spread(self, values: Tensor) -> Tensor:
        return values[self._keys // self._width]

    def matrix(self, values: Tensor) -> FeatureMatrix:
        places = torch.stack([self._keys // self._width, self._keys % self._width])
        return matrix_in_order(places, values, self._num_rows, self._codes)

    def entries(self) -> tuple[Tensor, Tensor]:
        return self._keys // self._width, self._codes[self._keys % self._width]

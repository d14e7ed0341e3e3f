# SPDX-License-Identifier: Apache-2.0
"""Sums, products and multiples of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor

from pyro_ksd.edits import Edits
from pyro_ksd.jumps import Chunk
from pyro_ksd.kernels.base import DEFAULT_MAX_BYTES, Kernel
from pyro_ksd.kernels.matrices import SteinMatrix, SumMatrix
from pyro_ksd.sequences import Sequences


@dataclass(frozen=True, eq=False)
class KernelSum(Kernel):
    """``k(x, y) = Σ_m k_m(x, y)``. Written ``a + b``."""

    parts: tuple[Kernel, ...]

    @property
    def has_features(self) -> bool:
        return all(part.has_features for part in self.parts)

    @property
    def zero_across_lengths(self) -> bool:
        return all(part.zero_across_lengths for part in self.parts)

    def bytes_per_pair(self, width: int) -> int:
        return sum(part.bytes_per_pair(width) for part in self.parts)

    def gram(self, x: Sequences, y: Sequences) -> Tensor:
        return torch.stack([part.gram(x, y) for part in self.parts]).sum(0)

    def stein_each(
        self, sequences: Sequences, edits: Edits, weights: Tensor, max_bytes: int = DEFAULT_MAX_BYTES
    ) -> Sequence[SteinMatrix]:
        parts = [part.stein_each(sequences, edits, weights, max_bytes) for part in self.parts]
        return [SumMatrix(own) for own in zip(*parts, strict=True)]

    def edit_products(self, chunk: Chunk, matrix: SteinMatrix, max_bytes: int = DEFAULT_MAX_BYTES) -> Tensor:
        if not isinstance(matrix, SumMatrix):
            raise TypeError(f"matrix: expected the SumMatrix that stein() gave, found {type(matrix).__name__}")
        parts = [part.edit_products(chunk, own, max_bytes) for part, own in zip(self.parts, matrix.parts, strict=True)]
        return torch.stack(parts).sum(0)


@dataclass(frozen=True, eq=False)
class KernelProduct(Kernel):
    """``k(x, y) = Π_m k_m(x, y)``. Written ``a * b``."""

    parts: tuple[Kernel, ...]

    @property
    def zero_across_lengths(self) -> bool:
        return any(part.zero_across_lengths for part in self.parts)

    def bytes_per_pair(self, width: int) -> int:
        return sum(part.bytes_per_pair(width) for part in self.parts)

    def gram(self, x: Sequences, y: Sequences) -> Tensor:
        return reduce(torch.mul, (part.gram(x, y) for part in self.parts))


@dataclass(frozen=True, eq=False)
class ScaledKernel(Kernel):
    """``c k(x, y)`` with ``c > 0``. Written ``c * k``."""

    kernel: Kernel
    factor: float

    def __post_init__(self) -> None:
        if not 0 < self.factor < float("inf"):
            raise ValueError(f"expected a kernel multiplied by a positive number, found {self.factor}")

    @property
    def has_features(self) -> bool:
        return self.kernel.has_features

    @property
    def zero_across_lengths(self) -> bool:
        return self.kernel.zero_across_lengths

    def bytes_per_pair(self, width: int) -> int:
        return self.kernel.bytes_per_pair(width)

    def gram(self, x: Sequences, y: Sequences) -> Tensor:
        return self.factor * self.kernel.gram(x, y)

    def stein_each(
        self, sequences: Sequences, edits: Edits, weights: Tensor, max_bytes: int = DEFAULT_MAX_BYTES
    ) -> Sequence[SteinMatrix]:
        found = self.kernel.stein_each(sequences, edits, weights, max_bytes)
        return [matrix.scaled(self.factor) for matrix in found]

    def edit_products(self, chunk: Chunk, matrix: SteinMatrix, max_bytes: int = DEFAULT_MAX_BYTES) -> Tensor:
        return self.factor * self.kernel.edit_products(chunk, matrix.scaled(1 / self.factor), max_bytes)

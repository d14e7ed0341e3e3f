# SPDX-License-Identifier: Apache-2.0
r"""What a kernel is, and how it gives the Stein kernel matrix.

With the operator's weights, :math:`(A_p f)(x) = \sum_y w(x, y) (f(y) - f(x))`, the Stein kernel is
:math:`h(x, x') = A_p A'_p k(x, x')`. For explicit features :math:`\varphi` it is
:math:`h(x, x') = \langle \psi(x), \psi(x') \rangle` with the Stein features :math:`\psi = A_p \varphi`, which kernels
with features compute from local changes. Any other kernel gives :math:`H = W K W^\top` by blocks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from pyro_ksd.edits import Edits
from pyro_ksd.kernels.matrices import FeatureMatrix, GramMatrix, SteinMatrix
from pyro_ksd.sequences import Sequences

DEFAULT_MAX_BYTES = 2**28
"""How much memory one block of a Stein Gram matrix may take, if the caller does not say."""


class Kernel(ABC):
    """A positive semi-definite kernel on sequences. Kernels add, multiply, and can be multiplied by a number."""

    @property
    def has_features(self) -> bool:
        """Whether :meth:`stein` gives features, row by row, so that nothing ``[N, N]`` is ever built."""
        return False

    @property
    def zero_across_lengths(self) -> bool:
        """Whether the kernel is 0 for sequences of different lengths, so that such pairs need no evaluation."""
        return False

    @abstractmethod
    def gram(self, x: Sequences, y: Sequences) -> Tensor:
        """``k(x_i, y_j)``, double ``[len(x), len(y)]``."""

    def bytes_per_pair(self, width: int) -> int:
        """How much memory :meth:`gram` needs at its peak for each pair of sequences of up to ``width`` symbols."""
        return 64

    def stein(
        self, sequences: Sequences, edits: Edits, weights: Tensor, max_bytes: int = DEFAULT_MAX_BYTES
    ) -> SteinMatrix:
        """The Stein kernel matrix ``H`` of the sequences, ``[N, N]``.

        :param edits: the edits around the sequences.
        :param weights: ``[E]``, the operator's weights of the edits.
        :param max_bytes: an upper bound of the memory for one block of the kernel matrix between neighbors.
        """
        weights = weights.double()
        items = Edits.cat([Edits.identity(sequences), edits])
        coefficients = torch.cat([-edits.sum_by_owner(weights), weights])
        lengths = items.new_lengths(sequences.lengths)
        used = coefficients.nonzero().squeeze(1)
        groups = _by_length(used, lengths) if self.zero_across_lengths else [used]
        width = sequences.width + max(block.growth for block in items.blocks)
        side = max(1, int((max_bytes / self.bytes_per_pair(width)) ** 0.5))
        total = weights.new_zeros(len(sequences), len(sequences))
        for group in groups:
            blocks = [(items.select(index), coefficients[index]) for index in group.split(side)]
            for i, (left, left_weights) in enumerate(blocks):
                x = left.apply(sequences)
                for j, (right, right_weights) in enumerate(blocks[: i + 1]):
                    block = self.gram(x, x if i == j else right.apply(sequences)) * left_weights[:, None]
                    rows = block.new_zeros(len(sequences), len(right)).index_add_(0, left.owner, block)
                    part = torch.zeros_like(total).index_add_(1, right.owner, rows.mul_(right_weights))
                    total += part if i == j else part + part.T
        return GramMatrix(total)

    def __add__(self, other: Kernel) -> Kernel:
        from pyro_ksd.kernels.algebra import KernelSum

        return KernelSum((self, other)) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel | float) -> Kernel:
        from pyro_ksd.kernels.algebra import KernelProduct, ScaledKernel

        if isinstance(other, Kernel):
            return KernelProduct((self, other))
        return ScaledKernel(self, float(other)) if isinstance(other, int | float) else NotImplemented

    __rmul__ = __mul__


def _by_length(index: Tensor, lengths: Tensor) -> Sequence[Tensor]:
    """The flat positions ``index`` in groups of equal length, ascending within each."""
    order = lengths[index].argsort(stable=True)
    counts = lengths[index].bincount()
    return torch.split(index[order], counts[counts > 0].tolist())


class FeatureKernel(Kernel):
    """A kernel with explicit features, ``k(x, y) = <φ(x), φ(y)>``."""

    @property
    def has_features(self) -> bool:
        return True

    @abstractmethod
    def features(self, sequences: Sequences) -> FeatureMatrix:
        """``φ(x_i)``, ``[N, D]``."""

    @abstractmethod
    def stein_features(self, sequences: Sequences, edits: Edits, weights: Tensor) -> FeatureMatrix:
        """``ψ(x_i) = Σ_y w(x_i, y) (φ(y) - φ(x_i))``, ``[N, D]``."""

    def gram(self, x: Sequences, y: Sequences) -> Tensor:
        rows = torch.arange(len(x) + len(y), device=x.device)
        return self.features(Sequences.cat([x, y])).products(rows[: len(x)], rows[len(x) :])

    def stein(
        self, sequences: Sequences, edits: Edits, weights: Tensor, max_bytes: int = DEFAULT_MAX_BYTES
    ) -> SteinMatrix:
        return self.stein_features(sequences, edits, weights)

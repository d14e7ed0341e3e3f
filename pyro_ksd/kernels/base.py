# SPDX-License-Identifier: Apache-2.0
r"""What a kernel is, how it gives the Stein kernel matrix, and how kernels combine.

With the operator's weights, :math:`(A_p f)(x) = \sum_y w(x, y) (f(y) - f(x))`, the Stein kernel is
:math:`h(x, x') = A_p A'_p k(x, x')`. There are two kinds of kernels, and sums and multiples of both:

* A :class:`FeatureKernel` has explicit features :math:`\varphi`. Then
  :math:`h(x, x') = \langle \psi(x), \psi(x') \rangle` with the Stein features :math:`\psi = A_p \varphi`, which are
  computed from what each edit changes.
* A :class:`PairwiseKernel` compares pairs of sequences, and gives :math:`H = W K W^\top` by blocks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Generic, Literal, TypeVar

import torch
from torch import Tensor

from pyro_ksd.common.chunk_sizes import PAIR_BYTES
from pyro_ksd.common.option_checks import check_instance, check_positive
from pyro_ksd.edits.splices import Edits
from pyro_ksd.edits.weighted_edits import WeightedEdits
from pyro_ksd.kernels.stein_matrices import FeatureMatrix, GramMatrix, SteinMatrix, SumMatrix
from pyro_ksd.kernels.witness import Witness
from pyro_ksd.sequences.argument_checks import check_pair
from pyro_ksd.sequences.container import Sequences

FeatureKind = Literal[
    "ngram",
    "start",
    "end",
    "ends",
    "skip",
    "position",
    "length",
    "surprise",
    "mirror",
    "repeats",
    "composition",
    "feature",
    "grouped",
]
"""What a feature is: it decides the words for it."""

Matrix = TypeVar("Matrix", bound=SteinMatrix)
"""The form in which a kernel holds its Stein kernel matrix."""


class Kernel(ABC, Generic[Matrix]):
    """A positive semi-definite kernel on sequences. Kernels add, multiply, and can be multiplied by a number.

    Derive your own kernel from :class:`PairwiseKernel` or :class:`FeatureKernel`.

    >>> from pyro_ksd.kernels import DiracKernel, StartKernel
    >>> x = Sequences.of(["ab", "aa", "b"])
    >>> (DiracKernel() + 0.5 * StartKernel()).gram(x, x).tolist()
    [[1.5, 0.5, 0.0], [0.5, 1.5, 0.0], [0.0, 0.0, 1.5]]
    """

    @property
    def has_features(self) -> bool:
        """Whether :meth:`stein` works row by row, so that nothing ``[N, N]`` is ever built."""
        return False

    @property
    def is_threadsafe(self) -> bool:
        """Whether several threads may call the kernel at once, as it computes with tensors alone."""
        return True

    @property
    def feature_kind(self) -> FeatureKind | Literal[""]:
        """What a feature is, for a kernel whose features are reported one by one."""
        return ""

    def feature_label(self, code: int, alphabet_size: int) -> str:
        """What the feature with a code is called, apart from its symbols."""
        return ""

    def feature_symbols(self, codes: Tensor, alphabet_size: int) -> Tensor:
        """The symbols of the n-grams that some features count.

        :param codes: long ``[D]``, the codes of the features, see
            :class:`~pyro_ksd.kernels.stein_matrices.FeatureMatrix`.
        :returns: long ``[D, W]``, codes of symbols, padded with -1, and ``S`` for the end of the sequence; ``W = 0``
            where features are not n-grams.
        """
        return codes.new_empty(len(codes), 0)

    @property
    def meaning(self) -> str:
        """What the kernel looks at, in words."""
        return "whole sequences"

    @property
    def zero_across_lengths(self) -> bool:
        """Whether the kernel is 0 for sequences of different lengths, so that such pairs need no evaluation."""
        return False

    def check_data(self, sequences: Sequences) -> None:
        """Checks, on a few of the sequences, that a function of the user's own gives features of each by itself.

        :raises ValueError: saying what else they depend on.
        """

    @abstractmethod
    def gram(self, x: Sequences, y: Sequences) -> Tensor:
        """``k(x_i, y_j)``, double ``[len(x), len(y)]``."""

    def bytes_per_pair(self, width: int) -> int:
        """How much memory ``gram`` needs at its peak for each pair of sequences of up to ``width`` symbols."""
        return 64

    def stein(self, sequences: Sequences, edits: Edits, weights: Tensor, max_bytes: int = PAIR_BYTES) -> Matrix:
        """The Stein kernel matrix ``H`` of the sequences, ``[N, N]``.

        :param edits: the edits around the sequences.
        :param weights: ``[E]``, the operator's weights of the edits.
        :param max_bytes: an upper bound of the memory for one block of the kernel matrix between neighbors.
        """
        return self.stein_each(WeightedEdits(0, sequences, edits, weights), max_bytes)[0]

    @abstractmethod
    def stein_each(self, chunk: WeightedEdits, max_bytes: int = PAIR_BYTES) -> Sequence[Matrix]:
        """The Stein kernel matrices under each of ``K`` models, which share all work but that of the weights.

        :param chunk: sequences with their edits, and the weights ``[K, E]`` of these, or ``[E]`` for one model.
        :param max_bytes: as in :meth:`stein`.
        """

    @abstractmethod
    def edit_products(self, chunk: WeightedEdits, matrix: Matrix, max_bytes: int = PAIR_BYTES) -> Tensor:
        r"""How far each edit moves its sequence along the witness of all other sequences.

        For an edit :math:`y` of :math:`x_i` this is :math:`f_{-i}(y) - f_{-i}(x_i)` with
        :math:`f_{-i} = \sum_{j \ne i} A_p k(x_j, \cdot)`. Weighted by :math:`w(x_i, y)`, the edits add up to
        :math:`\sum_{i \ne j} H_{ij}`.

        :param chunk: some of the sequences with their edits; for a kernel without features, all of them.
        :param matrix: the result of :meth:`stein` for all sequences; for a kernel with features, the witness for the
            sequences of the chunk will do.
        :returns: double ``[E]``; anything for an edit of weight 0.
        """

    def __add__(self, other: Kernel[Any]) -> Kernel[Any]:
        check_instance("other", other, Kernel, "a kernel to add to a kernel")
        return KernelSum((self, other))

    def __mul__(self, other: Kernel[Any] | float) -> Kernel[Any]:
        if isinstance(other, Kernel):
            return KernelProduct((self, other))
        check_positive("other", other)
        return ScaledKernel(self, float(other))

    __rmul__ = __mul__


class PairwiseKernel(Kernel[GramMatrix]):
    """A kernel that is known by its values for pairs of sequences; a subclass writes ``gram``.

    >>> class SameLength(PairwiseKernel):
    ...     def gram(self, x, y):
    ...         return (x.lengths[:, None] == y.lengths).double()
    >>> x = Sequences.of(["ab", "aa", "b"])
    >>> SameLength().gram(x, x).tolist()
    [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    def stein_each(self, chunk: WeightedEdits, max_bytes: int = PAIR_BYTES) -> Sequence[GramMatrix]:
        sequences = chunk.sequences
        weights = torch.atleast_2d(chunk.weights)
        total = torch.zeros(len(weights), len(sequences), len(sequences), dtype=torch.double)
        for left, right, block in self._blocks(sequences, chunk.edits, weights, max_bytes):
            for own, first, second in zip(total, left.coefficients, right.coefficients, strict=True):
                weighted = block * first[:, None]
                rows = weighted.new_zeros(len(sequences), len(right.owner)).index_add_(0, left.owner, weighted)
                part = torch.zeros_like(own).index_add_(1, right.owner, rows.mul_(second))
                own += part if left is right else part + part.T
        return [GramMatrix(own) for own in total]

    def edit_products(self, chunk: WeightedEdits, matrix: GramMatrix, max_bytes: int = PAIR_BYTES) -> Tensor:
        sequences = chunk.sequences
        edits = chunk.edits
        value = torch.zeros(len(sequences) + len(edits), dtype=torch.double)
        for left, right, block in self._blocks(sequences, edits, chunk.weights[None], max_bytes):
            block = block * (left.owner[:, None] != right.owner)
            value.index_add_(0, left.index, block @ right.coefficients[0])
            if left is not right:
                value.index_add_(0, right.index, left.coefficients[0] @ block)
        own = value[: len(sequences)]
        edited = value[len(sequences) :]
        return edited - own.index_select(0, edits.owner)

    def _blocks(
        self, sequences: Sequences, edits: Edits, weights: Tensor, max_bytes: int
    ) -> Iterator[tuple[_Items, _Items, Tensor]]:
        """The kernel between the sequences and edits that have weight, block by block on and below the diagonal.

        :param weights: ``[K, E]``.
        """
        weights = weights.double()
        items = Edits.cat([Edits.identity(sequences), edits])
        coefficients = torch.cat([torch.stack([-edits.sum_by_owner(own) for own in weights]), weights], 1)
        lengths = items.new_lengths(sequences.lengths)
        used = coefficients.any(0).nonzero().squeeze(1)
        groups = _by_length(used, lengths) if self.zero_across_lengths else [used]
        width = sequences.width + max(block.growth for block in items.blocks)
        side = max(1, int((max_bytes / self.bytes_per_pair(width)) ** 0.5))
        # The pairs take time that grows with the square of the edits, so the edited sequences can be afforded.
        edited = items.apply(sequences)
        for group in groups:
            parts = [_Items(index, items.owner[index], coefficients[:, index]) for index in group.split(side)]
            for i, left in enumerate(parts):
                x = edited[left.index]
                for right in parts[: i + 1]:
                    yield left, right, self.gram(x, x if left is right else edited[right.index])


@dataclass(frozen=True, eq=False)
class _Items:
    """``M`` of the sequences and edits: their flat positions ``[M]``, owners ``[M]``, and coefficients ``[K, M]``."""

    index: Tensor
    owner: Tensor
    coefficients: Tensor


def _by_length(index: Tensor, lengths: Tensor) -> Sequence[Tensor]:
    """The flat positions ``index`` in groups of equal length, ascending within each."""
    order = lengths[index].argsort(stable=True)
    counts = lengths[index].bincount()
    return torch.split(index[order], counts[counts > 0].tolist())


class FeatureKernel(Kernel[FeatureMatrix]):
    """A kernel with explicit features, ``k(x, y) = <φ(x), φ(y)>``.

    >>> from pyro_ksd.kernels import StartKernel
    >>> kernel, x = StartKernel(), Sequences.of(["ab", "aa", "b"])
    >>> kernel.features(x).dense().equal(kernel.gram(x, x))
    True
    """

    @property
    def has_features(self) -> bool:
        return True

    @abstractmethod
    def features(self, sequences: Sequences) -> FeatureMatrix:
        """``φ(x_i)``, ``[N, D]``."""

    def stein_features(self, sequences: Sequences, edits: Edits, weights: Tensor) -> FeatureMatrix:
        """``ψ(x_i) = Σ_y w(x_i, y) (φ(y) - φ(x_i))``, ``[N, D]``, from weights ``[E]``."""
        return self.stein_features_each(WeightedEdits(0, sequences, edits, weights))[0]

    @abstractmethod
    def stein_features_each(self, chunk: WeightedEdits) -> list[FeatureMatrix]:
        """The Stein features under each of ``K`` models, ``K`` times ``[N, D]``, from weights ``[K, E]`` or ``[E]``.

        They are linear in the weights, so what the edits change is found once.
        """

    @abstractmethod
    def steps_along(self, chunk: WeightedEdits, witness: Witness) -> Tensor:
        """``<φ(y) - φ(x_i), f_i>`` for every edit ``y`` of its owner ``x_i``, with the witness ``f_i``; ``[E]``.

        Anything for an edit of weight 0.
        """

    def few_changes(self, chunk: WeightedEdits) -> Tensor | None:
        """``φ(y) - φ(x_i)`` for every edit ``y`` of its owner ``x_i``, ``[E, D]``; ``None`` if ``D`` is above 16.

        Anything for an edit of weight 0.
        """
        return None

    def gram(self, x: Sequences, y: Sequences) -> Tensor:
        check_pair(x, y)
        rows = torch.arange(len(x) + len(y))
        return self.features(Sequences.cat([x, y])).products(rows[: len(x)], rows[len(x) :])

    def stein_each(self, chunk: WeightedEdits, max_bytes: int = PAIR_BYTES) -> Sequence[FeatureMatrix]:
        return self.stein_features_each(chunk.used())

    def edit_products(
        self, chunk: WeightedEdits, matrix: FeatureMatrix | Witness, max_bytes: int = PAIR_BYTES
    ) -> Tensor:
        witness = matrix
        if isinstance(witness, FeatureMatrix):
            witness = Witness.of(witness, chunk.begin, len(chunk.sequences))
        return chunk.whole(self.steps_along(chunk.used(), witness))


@dataclass(frozen=True, eq=False)
class KernelSum(Kernel[SumMatrix]):
    """``k(x, y) = Σ_m k_m(x, y)``. Written ``a + b``."""

    parts: tuple[Kernel[Any], ...]

    @property
    def has_features(self) -> bool:
        return all(part.has_features for part in self.parts)

    @property
    def is_threadsafe(self) -> bool:
        return all(part.is_threadsafe for part in self.parts)

    @property
    def zero_across_lengths(self) -> bool:
        return all(part.zero_across_lengths for part in self.parts)

    def check_data(self, sequences: Sequences) -> None:
        for part in self.parts:
            part.check_data(sequences)

    def bytes_per_pair(self, width: int) -> int:
        return sum(part.bytes_per_pair(width) for part in self.parts)

    def gram(self, x: Sequences, y: Sequences) -> Tensor:
        return torch.stack([part.gram(x, y) for part in self.parts]).sum(0)

    def stein_each(self, chunk: WeightedEdits, max_bytes: int = PAIR_BYTES) -> Sequence[SumMatrix]:
        parts = [part.stein_each(chunk, max_bytes) for part in self.parts]
        return [SumMatrix(own) for own in zip(*parts, strict=True)]

    def edit_products(self, chunk: WeightedEdits, matrix: SumMatrix, max_bytes: int = PAIR_BYTES) -> Tensor:
        pairs = zip(self.parts, matrix.parts, strict=True)
        return torch.stack([part.edit_products(chunk, own, max_bytes) for part, own in pairs]).sum(0)


@dataclass(frozen=True, eq=False)
class KernelProduct(PairwiseKernel):
    """``k(x, y) = Π_m k_m(x, y)``. Written ``a * b``."""

    parts: tuple[Kernel[Any], ...]

    @property
    def is_threadsafe(self) -> bool:
        return all(part.is_threadsafe for part in self.parts)

    @property
    def zero_across_lengths(self) -> bool:
        return any(part.zero_across_lengths for part in self.parts)

    def check_data(self, sequences: Sequences) -> None:
        for part in self.parts:
            part.check_data(sequences)

    def bytes_per_pair(self, width: int) -> int:
        return sum(part.bytes_per_pair(width) for part in self.parts)

    def gram(self, x: Sequences, y: Sequences) -> Tensor:
        return reduce(torch.mul, (part.gram(x, y) for part in self.parts))


@dataclass(frozen=True, eq=False)
class ScaledKernel(Kernel[Matrix]):
    """``c k(x, y)`` with ``c > 0``. Written ``c * k``."""

    kernel: Kernel[Matrix]
    factor: float

    @property
    def has_features(self) -> bool:
        return self.kernel.has_features

    @property
    def is_threadsafe(self) -> bool:
        return self.kernel.is_threadsafe

    @property
    def zero_across_lengths(self) -> bool:
        return self.kernel.zero_across_lengths

    def check_data(self, sequences: Sequences) -> None:
        self.kernel.check_data(sequences)

    def bytes_per_pair(self, width: int) -> int:
        return self.kernel.bytes_per_pair(width)

    def gram(self, x: Sequences, y: Sequences) -> Tensor:
        return self.factor * self.kernel.gram(x, y)

    def stein_each(self, chunk: WeightedEdits, max_bytes: int = PAIR_BYTES) -> Sequence[Matrix]:
        found = self.kernel.stein_each(chunk, max_bytes)
        return [matrix.scaled(self.factor) for matrix in found]

    def edit_products(self, chunk: WeightedEdits, matrix: Matrix | Witness, max_bytes: int = PAIR_BYTES) -> Tensor:
        inner: Any = matrix.scaled(1 / self.factor)
        return self.factor * self.kernel.edit_products(chunk, inner, max_bytes)

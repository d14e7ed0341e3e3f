# SPDX-License-Identifier: Apache-2.0
"""Features for kernels without them, by comparison with a few landmark sequences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_instance, check_number
from pyro_ksd.common.random_numbers import Seed, seeded_generator
from pyro_ksd.common.row_groups import distinct_rows
from pyro_ksd.edits.weighted_edits import WeightedEdits
from pyro_ksd.kernels.base import FeatureKernel, Kernel
from pyro_ksd.kernels.feature_places import FEW_FEATURES
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.kernels.witness import Witness
from pyro_ksd.sequences.alphabets import shown_alphabet
from pyro_ksd.sequences.argument_checks import check_sequences
from pyro_ksd.sequences.container import Sequences

_BLOCK_BYTES = 2**22
"""For a block of the kernel between edits and landmarks; measured: larger ones leave the processor's cache."""

_CUT = 1e-10
"""Eigenvalues below this share of the largest one are left out: their eigenvectors are mostly rounding errors."""

_NEGATIVE = -1e-8
"""An eigenvalue below this share of the largest one is no rounding error."""


@dataclass(frozen=True, eq=False)
class LandmarkKernel(FeatureKernel):
    r"""The Nyström approximation of any kernel :math:`k`, with features, for large data.

    A kernel without features compares every edit of a sequence with every edit of every other one. This one compares
    the edits with :math:`m` landmark sequences :math:`z` only, so that its cost grows with the number of edits, not of
    pairs of them:

    .. math:: \varphi(x) = K_{zz}^{-1/2}\, k(z, x), \qquad
        \langle \varphi(x), \varphi(y) \rangle = k(x, z)\, K_{zz}^{+}\, k(z, y) \approx k(x, y)

    It equals :math:`k(x, y)` if :math:`x` or :math:`y` is a landmark, and :math:`k(x, x)` is never exceeded. The
    inverse leaves out eigenvalues of :math:`K_{zz}` below :math:`10^{-10}` of the largest one.

    Williams and Seeger (2001), Using the Nyström Method to Speed Up Kernel Machines. Kalinke, Szabó and Sriperumbudur
    (2025), Nyström Kernel Stein Discrepancy, approximate the Stein kernel in this way; here it is the kernel itself, of
    which the Stein kernel is then taken exactly.

    For landmarks that do not depend on the data, such as draws from the model, this is a kernel like any other: a test
    has its level whatever the landmarks, and more of them show more faults. Landmarks taken from the data that are
    tested make the kernel depend on these data; the guide to large data says what that changes.

    :param kernel: :math:`k`, such as :class:`~pyro_ksd.kernels.HammingKernel`.
    :param landmarks: :math:`z`, over the alphabet of the data; see :meth:`from_sequences` to choose them. A kernel that
        is 0 for sequences of different lengths needs landmarks of all lengths that matter.

    >>> from pyro_ksd.kernels import HammingKernel
    >>> data = Sequences.of(["ab", "aa", "bb"])
    >>> HammingKernel().gram(data, data)[1:]
    tensor([[0.6065, 1.0000, 0.3679],
            [0.6065, 0.3679, 1.0000]], dtype=torch.float64)
    >>> LandmarkKernel(HammingKernel(), data[:2]).gram(data, data)[1:]
    tensor([[0.6065, 1.0000, 0.3679],
            [0.6065, 0.3679, 0.3679]], dtype=torch.float64)
    """

    kernel: Kernel[Any]
    landmarks: Sequences
    _roots: Tensor = field(init=False, repr=False)
    """``[m, D]``, what makes features of the kernel between sequences and landmarks."""

    def __post_init__(self) -> None:
        check_instance("kernel", self.kernel, Kernel, "a kernel, such as HammingKernel()")
        check_sequences("landmarks", self.landmarks)
        if not len(self.landmarks):
            raise ValueError("landmarks: expected at least one sequence, found none")
        object.__setattr__(self, "landmarks", self.landmarks.narrowed())
        object.__setattr__(self, "_roots", _inverse_root(self.kernel.gram(self.landmarks, self.landmarks)))

    @classmethod
    def from_sequences(
        cls, kernel: Kernel[Any], sequences: Sequences, num_landmarks: int = 100, *, seed: Seed = 0
    ) -> LandmarkKernel:
        """A kernel with landmarks that are chosen at random.

        :param sequences: what to choose from: draws from the model, or a part of the data that is not tested.
        :param num_landmarks: how many different sequences to choose; all of them, if there are fewer.
        :param seed: of the random choice.

        >>> from pyro_ksd.kernels import HammingKernel
        >>> drawn = Sequences.of(["ab", "aa", "ab", "ab", "b"])
        >>> len(LandmarkKernel.from_sequences(HammingKernel(), drawn, 3).landmarks)
        3
        """
        check_sequences("sequences", sequences)
        num_landmarks = check_number("num_landmarks", num_landmarks, least=1)
        shuffled = sequences[torch.randperm(len(sequences), generator=seeded_generator(seed))]
        _, group = distinct_rows(shuffled.padded(-1))
        rows = torch.arange(len(group))
        first = torch.full_like(rows, len(rows)).scatter_reduce_(0, group, rows, "amin")
        chosen = first[first < len(rows)].sort().values[:num_landmarks]
        return cls(kernel, shuffled[chosen])

    @property
    def is_threadsafe(self) -> bool:
        return self.kernel.is_threadsafe

    @property
    def meaning(self) -> str:
        return self.kernel.meaning

    def features(self, sequences: Sequences) -> FeatureMatrix:
        return FeatureMatrix(self._compared(sequences) @ self._roots)

    def stein_features_each(self, chunk: WeightedEdits) -> list[FeatureMatrix]:
        weights = torch.atleast_2d(chunk.weights).double()
        sums = weights.new_zeros(len(weights), len(chunk.sequences), len(self.landmarks))
        for index, owner, change in self._changes(chunk):
            for total, weight in zip(sums, weights, strict=True):
                total.index_add_(0, owner, change * weight[index, None])
        return [FeatureMatrix(total @ self._roots) for total in sums]

    def steps_along(self, chunk: WeightedEdits, witness: Witness) -> Tensor:
        coefficient = witness.dense() @ self._roots.T
        steps = coefficient.new_zeros(len(chunk.edits))
        for index, owner, change in self._changes(chunk):
            steps[index] = change.mul_(coefficient.index_select(0, owner)).sum(1)
        return steps

    def few_changes(self, chunk: WeightedEdits) -> Tensor | None:
        if self._roots.shape[1] > FEW_FEATURES:
            return None
        changes = self._roots.new_zeros(len(chunk.edits), self._roots.shape[1])
        for index, _, change in self._changes(chunk):
            changes[index] = change @ self._roots
        return changes

    def _changes(self, chunk: WeightedEdits) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Blocks of edits with weight: flat positions ``[B]``, owners ``[B]``, and ``k(y, z) - k(x, z)``, ``[B, m]``.

        What is linear in these is summed before it is turned into features: there are fewer sequences than edits.
        """
        own = self._compared(chunk.sequences)
        used = torch.atleast_2d(chunk.weights).any(0).nonzero().squeeze(1)
        width = chunk.sequences.width + max([block.growth for block in chunk.edits.blocks], default=0)
        for index in used.split(self._block_size(width)):
            part = chunk.edits.select(index)
            compared = self._gram(part.apply(chunk.sequences))
            yield index, part.owner, compared.sub_(own.index_select(0, part.owner))

    def _compared(self, sequences: Sequences) -> Tensor:
        """The kernel between sequences and landmarks, ``[N, m]``."""
        if sequences.alphabet != self.landmarks.alphabet:
            raise ValueError(
                f"landmarks: expected sequences over the alphabet of the data, {shown_alphabet(sequences.alphabet)}, "
                f"found {shown_alphabet(self.landmarks.alphabet)}; use drawn.over(data.alphabet) for what a model drew"
            )
        rows = torch.arange(len(sequences)).split(self._block_size(sequences.width))
        return torch.cat([self._gram(sequences[index]) for index in rows])

    def _gram(self, sequences: Sequences) -> Tensor:
        if sequences.covariates is not None and self.landmarks.covariates is None:  # then the kernel looks at none
            sequences = replace(sequences, covariates=None)
        return self.kernel.gram(sequences, self.landmarks)

    def _block_size(self, width: int) -> int:
        """How many sequences are compared with all landmarks at once."""
        pair = self.kernel.bytes_per_pair(max(width, self.landmarks.width)) + 24  # with two copies and an index
        return max(1, _BLOCK_BYTES // (pair * len(self.landmarks)))


def _inverse_root(gram: Tensor) -> Tensor:
    """``R [m, D]`` with ``R Rᵀ`` the inverse of a matrix ``[m, m]`` on the eigenvectors that rounding leaves intact."""
    if not gram.isfinite().all():
        raise ValueError("kernel: expected finite values between the landmarks, found others; choose other landmarks")
    values, vectors = torch.linalg.eigh((gram + gram.T) / 2)
    largest = values[-1]
    if not gram.any():
        raise ValueError(
            "landmarks: expected sequences that the kernel can compare, found its value 0 for all of them; choose "
            "longer landmarks"
        )
    if values[0] < _NEGATIVE * largest:
        raise ValueError(
            f"kernel: expected a positive semi-definite one, found the eigenvalue {float(values[0]):.3g} beside "
            f"{float(largest):.3g} between the landmarks"
        )
    kept = values > _CUT * largest
    root: Tensor = vectors[:, kept] / values[kept].sqrt()
    return root

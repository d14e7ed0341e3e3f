# SPDX-License-Identifier: Apache-2.0
"""The direction kernel: one weighted sum of the features of other kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_instance
from pyro_ksd.edits.weighted_edits import WeightedEdits
from pyro_ksd.kernels.base import FeatureKernel
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.kernels.witness import Witness
from pyro_ksd.sequences.container import Sequences


@dataclass(frozen=True, eq=False)
class DirectionPart:
    """Weights of the features of one kernel.

    :param kernel: whose features they are.
    :param codes: long ``[D]``, the codes of the features, ascending. Features of other codes have the weight 0; for a
        kernel whose features have no codes, such as :class:`~pyro_ksd.kernels.EmbeddingKernel`, these are all of
        ``0 .. D-1``.
    :param weights: double ``[D]``.
    """

    kernel: FeatureKernel
    codes: Tensor
    weights: Tensor

    def __post_init__(self) -> None:
        check_instance("kernel", self.kernel, FeatureKernel, "a kernel with features, such as ContiguousKernel()")
        if self.codes.ndim != 1 or self.codes.shape != self.weights.shape or not len(self.codes):
            raise ValueError(
                f"weights: expected one for each of at least one code, found codes of shape {list(self.codes.shape)} "
                f"and weights of shape {list(self.weights.shape)}"
            )
        if not (self.codes.diff() > 0).all():
            raise ValueError("codes: expected them in ascending order, each once; sort them, with their weights")

    def projected(self, matrix: FeatureMatrix) -> Tensor:
        """The weighted sums of features or of Stein features of the kernel, double ``[N]``."""
        codes = torch.arange(matrix.values.shape[1]) if matrix.codes is None else matrix.codes
        return torch.mv(matrix.values, self._witness(1).at(torch.zeros_like(codes), codes))

    def steps(self, chunk: WeightedEdits) -> Tensor:
        """What each edit changes of the weighted sum, double ``[E]``; anything for an edit of weight 0."""
        return self.kernel.steps_along(chunk, self._witness(len(chunk.sequences)))

    def _witness(self, num_rows: int) -> Witness:
        """A witness that is the same for all sequences."""
        total = self.weights.double()
        nothing = torch.sparse_coo_tensor(
            self.codes.new_empty(2, 0), total[:0], (num_rows, len(total)), is_coalesced=True, check_invariants=False
        )
        return Witness(total, FeatureMatrix(nothing, self.codes.contiguous()))


@dataclass(frozen=True, eq=False)
class DirectionKernel(FeatureKernel):
    r"""The product of two values of one combination of features, :math:`k(x, y) = f(x) f(y)`.

    With the features :math:`\varphi_u` of several kernels and their weights,

    .. math:: f(x) = \sum_u w_u \varphi_u(x), \qquad \psi(x) = \sum_u w_u \psi_u(x) .

    What an edit changes of :math:`f` is found by the kernels themselves, so that no edited sequence is ever built. A
    kernel that has Stein features but no features of a single sequence, such as that of the surprise, can take part.

    :param parts: the features, by kernel.
    :param name: what the combination is called in tables and pictures.

    >>> from pyro_ksd.kernels import ContiguousKernel, StartKernel
    >>> starts = DirectionPart(StartKernel(), torch.tensor([0]), torch.tensor([3.0]))
    >>> symbols = DirectionPart(ContiguousKernel(1), torch.tensor([0, 1]), torch.tensor([1.0, -1.0]))
    >>> kernel = DirectionKernel((starts, symbols), "^a + a - b")
    >>> kernel.features(Sequences.of(["aa", "b", "bab"])).values.round(decimals=2).tolist()
    [[4.0], [-1.0], [-0.24]]
    """

    parts: Sequence[DirectionPart]
    name: str

    def __post_init__(self) -> None:
        check_instance("name", self.name, str, "a word, such as 'aa + bb'")
        if not self.parts:
            raise ValueError("parts: expected at least one DirectionPart, found none")
        for part in self.parts:
            check_instance("parts", part, DirectionPart, "DirectionPart objects")

    @property
    def is_threadsafe(self) -> bool:
        return all(part.kernel.is_threadsafe for part in self.parts)

    def check_data(self, sequences: Sequences) -> None:
        for part in self.parts:
            part.kernel.check_data(sequences)

    def features(self, sequences: Sequences) -> FeatureMatrix:
        return self._summed([part.kernel.features(sequences) for part in self.parts])

    def stein_features_each(self, chunk: WeightedEdits) -> list[FeatureMatrix]:
        each = [part.kernel.stein_features_each(chunk) for part in self.parts]
        return [self._summed(of_model) for of_model in zip(*each, strict=True)]

    def steps_along(self, chunk: WeightedEdits, witness: Witness) -> Tensor:
        return self._steps(chunk) * witness.dense().index_select(0, chunk.edits.owner)[:, 0]

    def few_changes(self, chunk: WeightedEdits) -> Tensor:
        return self._steps(chunk)[:, None]

    @property
    def feature_kind(self) -> Literal["feature"]:
        return "feature"

    def feature_label(self, code: int, alphabet_size: int) -> str:
        return self.name

    @property
    def meaning(self) -> str:
        return f"the combination {self.name}"

    def _summed(self, matrices: Sequence[FeatureMatrix]) -> FeatureMatrix:
        """One feature from the features of the parts."""
        sums = [part.projected(matrix) for part, matrix in zip(self.parts, matrices, strict=True)]
        return FeatureMatrix(torch.stack(sums).sum(0)[:, None])

    def _steps(self, chunk: WeightedEdits) -> Tensor:
        """What each edit changes of the combination, ``[E]``."""
        return torch.stack([part.steps(chunk) for part in self.parts]).sum(0)

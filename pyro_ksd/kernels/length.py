# SPDX-License-Identifier: Apache-2.0
"""The length kernel: how long sequences are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_function, check_instance
from pyro_ksd.edits.splices import Edits
from pyro_ksd.kernels.base import FeatureKernel
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.kernels.witness import Witness
from pyro_ksd.sequences.container import Sequences


def squared_length(lengths: Tensor) -> Tensor:
    """``ℓ²``, the feature that sees a change of the length distribution best."""
    return lengths.double().square()


@dataclass(frozen=True, eq=False)
class LengthKernel(FeatureKernel):
    r"""The inner product of features of the length, :math:`k(x, y) = \langle f(\ell_x), f(\ell_y) \rangle`.

    With the default :math:`f(\ell) = \ell^2`, :math:`k(x, x) = \ell^4`. Meant for the
    :class:`~pyro_ksd.stein.TailBlockOperator`.

    :param feature: takes lengths, long ``[N]``, gives ``[N]`` or ``[N, D]``.

    >>> data = Sequences.of(["abc", "b"])
    >>> LengthKernel().gram(data, data).tolist()
    [[81.0, 9.0], [9.0, 1.0]]
    """

    feature: Callable[[Tensor], Tensor] = squared_length

    def __post_init__(self) -> None:
        check_function("feature", self.feature, "lengths")

    def features(self, sequences: Sequences) -> FeatureMatrix:
        return FeatureMatrix(self._feature(sequences.lengths))

    def stein_features_each(self, sequences: Sequences, edits: Edits, weights: Tensor) -> list[FeatureMatrix]:
        change = self._change(sequences, edits)
        psi = change.new_zeros(len(weights), len(sequences), change.shape[1])
        for values, weight in zip(psi, weights, strict=True):
            values.index_add_(0, edits.owner, change * weight[:, None])
        return [FeatureMatrix(values) for values in psi]

    def steps_along(self, sequences: Sequences, edits: Edits, witness: Witness) -> Tensor:
        return (self._change(sequences, edits) * witness.dense().index_select(0, edits.owner)).sum(1)

    @property
    def feature_kind(self) -> Literal["length"]:
        return "length"

    @property
    def feature_name(self) -> str:
        return "length"

    @property
    def meaning(self) -> str:
        return "the length"

    def _change(self, sequences: Sequences, edits: Edits) -> Tensor:
        """``φ(y) - φ(x)`` for every edit ``y`` of its owner ``x``, ``[E, D]``."""
        longest = sequences.width + max((block.growth for block in edits.blocks), default=0)
        table = self._feature(torch.arange(max(longest, sequences.width) + 1))
        own = sequences.lengths.index_select(0, edits.owner)
        return table.index_select(0, edits.new_lengths(sequences.lengths)) - table.index_select(0, own)

    def _feature(self, lengths: Tensor) -> Tensor:
        values = self.feature(lengths)
        check_instance("feature", values, Tensor, "a function that gives a tensor")
        values = values.double()
        values = values[:, None] if values.ndim == 1 else values
        if values.ndim != 2 or len(values) != len(lengths):
            raise ValueError(
                f"feature: expected [{len(lengths)}] or [{len(lengths)}, D] values for {len(lengths)} lengths, "
                f"found shape {list(values.shape)}"
            )
        if not values.isfinite().all():
            length = int(lengths[(~values.isfinite()).any(1)][0])
            raise ValueError(f"feature: expected finite values, found others at length {length}")
        return values

# SPDX-License-Identifier: Apache-2.0
"""Kernels from the user's own features, a neural embedding for instance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_function, check_number
from pyro_ksd.edits.weighted_edits import WeightedEdits
from pyro_ksd.kernels.base import FeatureKernel
from pyro_ksd.kernels.feature_places import FEW_FEATURES
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.kernels.witness import Witness
from pyro_ksd.sequences.container import Sequences


@dataclass(frozen=True, eq=False)
class EmbeddingKernel(FeatureKernel):
    r"""The inner product of any features, :math:`k(x, y) = \langle \varphi(x), \varphi(y) \rangle`.

    Nothing is known about how an edit changes the features, so the neighbors are built and embedded, a batch at a time.

    :param function: takes ``N`` :class:`~pyro_ksd.sequences.Sequences`, gives their features ``[N, D]``. A sequence
        must have the same features whatever other sequences are in the batch.
        Its name is that of the features in tables and pictures, with a number if there are several.
    :param batch_size: how many sequences are embedded at once.

    >>> counts = EmbeddingKernel(lambda x: torch.nn.functional.one_hot(x.tokens, 3).mul(x.mask[..., None]).sum(1))
    >>> data = Sequences.of(["aab", "c"])
    >>> counts.gram(data, data).tolist()
    [[5.0, 0.0], [0.0, 1.0]]
    """

    function: Callable[[Sequences], Tensor]
    batch_size: int = 2**14

    def __post_init__(self) -> None:
        check_function("function", self.function, "sequences")
        object.__setattr__(self, "batch_size", check_number("batch_size", self.batch_size, least=1))

    @property
    def meaning(self) -> str:
        return f"the features of {self._name!r}"

    @property
    def feature_kind(self) -> Literal["feature"]:
        return "feature"

    def feature_label(self, code: int, alphabet_size: int) -> str:
        return f"{self._name} {code}"

    @property
    def _name(self) -> str:
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return "a function" if name == "<lambda>" else str(name)

    def features(self, sequences: Sequences) -> FeatureMatrix:
        rows = torch.arange(len(sequences)).split(self.batch_size)
        return FeatureMatrix(torch.cat([self._embed(sequences[index]) for index in rows]))

    def stein_features_each(self, chunk: WeightedEdits) -> list[FeatureMatrix]:
        weights = torch.atleast_2d(chunk.weights)
        own = self.features(chunk.sequences).values
        psi = own.new_zeros(len(weights), *own.shape)
        for index, owner, change in self._changes(chunk, own):
            for values, weight in zip(psi, weights, strict=True):
                values.index_add_(0, owner, change * weight[index, None])
        return [FeatureMatrix(values) for values in psi]

    def steps_along(self, chunk: WeightedEdits, witness: Witness) -> Tensor:
        coefficient = witness.dense()
        steps = coefficient.new_zeros(len(chunk.edits))
        for index, owner, change in self._changes(chunk, self.features(chunk.sequences).values):
            steps[index] = (change * coefficient.index_select(0, owner)).sum(1)
        return steps

    def few_changes(self, chunk: WeightedEdits) -> Tensor | None:
        own = self.features(chunk.sequences).values
        if own.shape[1] > FEW_FEATURES:
            return None
        changes = own.new_zeros(len(chunk.edits), own.shape[1])
        for index, _, change in self._changes(chunk, own):
            changes[index] = change
        return changes

    def _changes(self, chunk: WeightedEdits, own: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Batches of edits with weight: flat positions ``[B]``, owners ``[B]``, and ``φ(y) - φ(x)``, ``[B, D]``."""
        used = torch.atleast_2d(chunk.weights).any(0).nonzero().squeeze(1)
        for index in used.split(self.batch_size):
            part = chunk.edits.select(index)
            yield index, part.owner, self._embed(part.apply(chunk.sequences)) - own.index_select(0, part.owner)

    def _embed(self, sequences: Sequences) -> Tensor:
        with torch.no_grad():
            values = self.function(sequences)
        if not isinstance(values, Tensor) or values.ndim != 2 or len(values) != len(sequences):
            found = list(values.shape) if isinstance(values, Tensor) else type(values).__name__
            raise ValueError(f"function: expected features [{len(sequences)}, D], one row a sequence, found {found}")
        if not values.isfinite().all():
            row = int((~values.isfinite()).any(1).nonzero()[0])
            raise ValueError(f"function: expected finite features, found others for {sequences.to_lists()[row]}")
        return values.double()

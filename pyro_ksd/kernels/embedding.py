# SPDX-License-Identifier: Apache-2.0
"""Kernels from the user's own features, a neural embedding for instance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_function, check_number
from pyro_ksd.common.torch_threads import chosen_torch_threads
from pyro_ksd.edits.weighted_edits import WeightedEdits
from pyro_ksd.kernels.base import FeatureKernel
from pyro_ksd.kernels.feature_places import FEW_FEATURES
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.kernels.witness import Witness
from pyro_ksd.sequences.batch_probes import batch_fault, few_rows, in_many_rows, padding_fault, widened
from pyro_ksd.sequences.container import Sequences

_UNNAMED = "a function"
_RELATIVE = 1e-5  # of the largest value of a feature: what rounding may change


@dataclass(frozen=True, eq=False)
class EmbeddingKernel(FeatureKernel):
    r"""The inner product of any features, :math:`k(x, y) = \langle \varphi(x), \varphi(y) \rangle`.

    Nothing is known about how an edit changes the features, so the neighbors are built and embedded, a batch at a time.

    :param function: takes ``N`` :class:`~pyro_ksd.sequences.Sequences` ``s``, gives their features ``[N, D]``.
        ``s.tokens`` is 0 after the end of a sequence, which is the code of the first symbol as well: count only where
        ``s.mask`` is true. The features of a sequence must depend on nothing but the sequence and its covariates: not
        on its row, on other sequences of the batch, such as a mean over them, or on chance. A check refuses those that
        do. A single feature has the name of its :class:`~pyro_ksd.View` in tables and pictures; several have that
        of the function, with a number.
    :param batch_size: how many sequences are embedded at once.

    >>> counts = EmbeddingKernel(lambda x: torch.nn.functional.one_hot(x.tokens, 3).mul(x.mask[..., None]).sum(1))
    >>> data = Sequences.of(["aab", "c"])
    >>> counts.gram(data, data).tolist()
    [[5.0, 0.0], [0.0, 1.0]]
    >>> EmbeddingKernel(lambda x: (x.tokens == 0).sum(1, keepdim=True)).check_data(data)
    Traceback (most recent call last):
    ValueError: function: a feature of a sequence changes with the padding after its end, from 2 to 5; expected ...
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
        return _UNNAMED if name == "<lambda>" else str(name)

    def labels_in(self, view: str, codes: Sequence[int]) -> list[str]:
        """What features are called in a view: a single one as the view, several as the function.

        :param view: the name of the view.
        :param codes: those of the features.

        >>> EmbeddingKernel(len).labels_in("evenness", [0]), EmbeddingKernel(len).labels_in("evenness", [0, 2])
        (['evenness'], ['len 0', 'len 2'])
        """
        if len(codes) == 1 and not codes[0]:
            return [view]
        name = view if self._name == _UNNAMED else self._name
        return [f"{name} {code}" for code in codes]

    @property
    def is_threadsafe(self) -> bool:
        return False  # the function may run a network or a program

    def check_data(self, sequences: Sequences) -> None:
        if not len(sequences):
            return
        few = sequences[few_rows(sequences.lengths)].narrowed()
        own = self._embed_all(few)
        size = own.shape[1]
        smallest = _RELATIVE * own.abs().amax(0)
        many = in_many_rows(few.lengths, sequences)
        fault = batch_fault(lambda index, wide: self._embed_taken(few[index], wide, size), own, many, smallest)
        if fault is None and (padded := self._embed_widened(few, size)) is not None:
            fault = padding_fault(lambda: self._embed_all(few), own, padded, smallest)
        if fault is not None:
            raise fault.error(
                "function: a feature of a sequence",
                alone="features must not be centered, scaled or ranked within the batch (use constants)",
                masked="one value: s.tokens is 0 after the end of a sequence, so count only where s.mask is true",
            )

    def _embed_taken(self, sequences: Sequences, wide: bool, size: int) -> Tensor:
        return self._embed_all(sequences if wide else sequences.narrowed(), size)

    def _embed_widened(self, few: Sequences, size: int) -> Tensor | None:
        """The features with more padding; ``None`` if the function takes no more columns, as one of fixed lengths."""
        try:
            return self._embed_all(widened(few), size)
        except Exception:  # anything that the user's function may raise
            return None

    def features(self, sequences: Sequences) -> FeatureMatrix:
        return FeatureMatrix(self._embed_all(sequences))

    def _embed_all(self, sequences: Sequences, size: int | None = None) -> Tensor:
        """The features ``[N, D]``, a batch at a time; ``size`` as for ``_embed``."""
        rows = torch.arange(len(sequences)).split(self.batch_size)
        return torch.cat([self._embed(sequences[index], size) for index in rows])

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
            found = self._embed(part.apply(chunk.sequences), own.shape[1])
            yield index, part.owner, found - own.index_select(0, part.owner)

    def _embed(self, sequences: Sequences, size: int | None = None) -> Tensor:
        """The features ``[N, D]`` of a batch.

        :param size: the number of features ``D``, if it is known already.
        """
        with torch.no_grad(), chosen_torch_threads():
            values = self.function(sequences)
        if not isinstance(values, Tensor) or values.ndim != 2 or len(values) != len(sequences):
            found = list(values.shape) if isinstance(values, Tensor) else type(values).__name__
            raise ValueError(f"function: expected features [{len(sequences)}, D], one row a sequence, found {found}")
        if size is not None and values.shape[1] != size:
            raise ValueError(
                f"function: expected {size} features for every sequence, found {values.shape[1]} in a batch with "
                f"{sequences.width} columns; let their number not depend on the width of tokens"
            )
        if not values.isfinite().all():
            row = int((~values.isfinite()).any(1).nonzero()[0])
            raise ValueError(f"function: expected finite features, found others for {sequences.to_lists()[row]}")
        return values.double()

# SPDX-License-Identifier: Apache-2.0
"""The data as views see them under a model, a chunk at a time, as often as they are visited."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Generic, TypeVar

from torch import Tensor

from pyro_ksd.common.chunk_sizes import KEPT_BYTES, PAIR_BYTES
from pyro_ksd.common.kept_memory import keep_freed_memory
from pyro_ksd.common.lazy_values import computed_once
from pyro_ksd.edits.neighborhoods import Neighborhood
from pyro_ksd.edits.splices import Edits
from pyro_ksd.edits.weighted_edits import (
    ScoredEdits,
    WeightedEdits,
    chunk_rows,
    edit_bounds,
    even_rows,
    num_in_chunks,
    rows_of_groups,
)
from pyro_ksd.kernels.stein_matrices import FeatureMatrix, SteinMatrix, SumMatrix
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.model_batch import ModelBatch
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.operators import Operator
from pyro_ksd.stein.views import View
from pyro_ksd.stein.weighting import scored_edits, weighted

Value = TypeVar("Value")


class Visits:
    """Sequences with their edits, log-ratios and Stein features, a chunk of sequences at a time.

    Nothing of the size of the data is built. What fits into a bounded memory is kept for the next visit, so that the
    model is asked only once about small data; the rest is found again. A chunk gives the same numbers at each visit.

    :param model: one model, or ``K`` of them.
    :param sequences: all of them possible under the model.
    :param kept_bytes: how much memory log-ratios may take, and features as well; 0 for data that are visited once.
    :param first_row: the number of the first sequence, where they are a part of the data.
    :param group_size: of groups of consecutive sequences, where they are several data sets: a chunk then has whole
        groups or is a part of one.

    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.stein import default_views
    >>> views = default_views()
    >>> visits = Visits(random_walk(3), Sequences.of(["ab", "bca"]), views)
    >>> [chunk] = visits.chunks(views[0].operator.neighborhood)
    >>> len(chunk.scored.edits), chunk.features(views[0])[0].values.shape
    (31, torch.Size([2, 3]))
    """

    def __init__(
        self,
        model: SequenceModel | ModelBatch,
        sequences: Sequences,
        views: Sequence[View],
        kept_bytes: int = KEPT_BYTES,
        *,
        first_row: int = 0,
        group_size: int | None = None,
    ) -> None:
        keep_freed_memory()
        self.model = model
        self.sequences = sequences
        self.views = tuple(views)
        self.first_row = first_row
        self._group_size = group_size
        self._kept_bytes = kept_bytes
        self._seconds = [0.0]
        self._models: list[int] | None = None
        self._rows: dict[Neighborhood, list[slice]] = {}
        self._answers: _Kept[tuple[Edits | None, Tensor]] = _Kept(kept_bytes)
        self._features: _Kept[list[SteinMatrix]] = _Kept(kept_bytes)

    @property
    def model_seconds(self) -> float:
        """The time that the model took until now."""
        return self._seconds[0]

    @property
    def operators(self) -> list[Operator]:
        """The operators of the views."""
        return list(dict.fromkeys(view.operator for view in self.views))

    @property
    def neighborhoods(self) -> list[Neighborhood]:
        """The neighborhoods of the views. Views that share one share its edits and their log-ratios."""
        return list(dict.fromkeys(operator.neighborhood for operator in self.operators))

    def views_of(self, around: Neighborhood) -> list[View]:
        """The views with a neighborhood."""
        return [view for view in self.views if view.operator.neighborhood is around]

    def rows(self, around: Neighborhood) -> list[slice]:
        """The consecutive rows of the data that make up the chunks of a neighborhood."""
        if around not in self._rows:
            if self._group_size is None:
                self._rows[around] = chunk_rows(around, self.sequences)
            else:
                self._rows[around] = rows_of_groups(edit_bounds(around, self.sequences), self._group_size)
        return self._rows[around]

    def chunks(self, around: Neighborhood, indices: Iterable[int] | None = None) -> Iterator[Chunk]:
        """The chunks of the data, one after the other; some of them, in the given order."""
        for index in range(len(self.rows(around))) if indices is None else indices:
            yield Chunk(self, around, index)

    def under_some(self, models: Sequence[int]) -> Visits:
        """The same under some of the ``K`` models, numbered anew; of the others nothing is held."""
        own = copy(self)
        own._models = list(models)
        own._answers = self._answers.each(lambda answer: (answer[0], answer[1][own._models]))
        own._features = self._features.each(lambda found: [found[which].copied() for which in models])
        return own

    def seen_by(self, views: Sequence[View]) -> Visits:
        """The same by some of the views."""
        own = copy(self)
        own.views = tuple(views)
        return own

    def thinned(self, num_chunks: int) -> Visits:
        """The same with sequences at even distances, about as many as fill some chunks; all if there are no more."""
        size = len(self.sequences)
        counts = self.sequences.lengths.bincount()
        count = num_in_chunks(self.neighborhoods, counts, self.sequences.alphabet_size, num_chunks)
        if count >= size:
            return self
        return Visits(self.model, self.sequences[even_rows(size, count)].narrowed(), self.views, self._kept_bytes)

    def whole(self, view: View, max_bytes: int = PAIR_BYTES) -> list[SteinMatrix]:
        """The Stein kernel matrix of all sequences, under each of the models.

        A kernel with features gets the features of all chunks. A kernel without them compares all edits at once.
        """
        around = view.operator.neighborhood
        if view.kernel.has_features:
            each = zip(*(chunk.features(view) for chunk in self.chunks(around)), strict=True)
            return [type(parts[0]).cat(parts) for parts in each]
        edits = [chunk.weighted(view.operator) for chunk in self.chunks(around)]
        return list(view.kernel.stein_each(WeightedEdits.cat(edits, self.sequences), max_bytes))

    def _answered(self, around: Neighborhood, index: int) -> ScoredEdits:
        """The edits of a chunk with the model's answers, from memory or anew."""
        rows = self.rows(around)[index]
        part = self.sequences[rows].narrowed()
        known = self._answers.get((around, index))
        if known is not None:
            (edits, log_ratio) = known
            return ScoredEdits(
                self.first_row + rows.start, part, around.edits(part) if edits is None else edits, log_ratio
            )
        started = perf_counter()
        scored = scored_edits(self.model, around, part, self.first_row + rows.start)
        self._seconds[0] += perf_counter() - started
        if self._models is not None:
            scored = replace(scored, log_ratio=scored.log_ratio[self._models])
        kept = (scored.edits if around.is_costly else None, scored.log_ratio)
        self._answers.offer((around, index), kept, _size(scored.log_ratio))
        return scored


class Chunk:
    """Some consecutive sequences of the data, as views see them; what is not asked for is not computed.

    :param index: the number of the chunk.
    """

    def __init__(self, visits: Visits, around: Neighborhood, index: int) -> None:
        self._visits = visits
        self._around = around
        self._index = index
        rows = visits.rows(around)[index]
        self.begin = visits.first_row + rows.start
        self.count = rows.stop - rows.start
        self._weighted: dict[Operator, WeightedEdits] = {}

    @computed_once
    def scored(self) -> ScoredEdits:
        """The edits with their log-ratios: ``[K, E]`` under ``K`` models, ``[E]`` under one."""
        return self._visits._answered(self._around, self._index)

    def weighted(self, operator: Operator) -> WeightedEdits:
        """The edits as an operator weights them."""
        if operator not in self._weighted:
            self._weighted[operator] = self._found_weighted(operator)
        return self._weighted[operator]

    def features(self, view: View) -> list[SteinMatrix]:
        """The Stein features of a view whose kernel has them, under each of the models."""
        known = self._known_features(view)
        if known is None:
            known = list(view.kernel.stein_each(self.weighted(view.operator)))
            self._visits._features.offer((view, self._index), known, sum(map(_matrix_size, known)))
        return known

    def under(self, which: int) -> Chunk:
        """The same under one of the ``K`` models; the edits are found once for all of them."""
        return _ChunkOfModel(self, which)

    def _found_weighted(self, operator: Operator) -> WeightedEdits:
        return weighted(self.scored, operator)

    def _known_features(self, view: View) -> list[SteinMatrix] | None:
        return self._visits._features.get((view, self._index))


class _ChunkOfModel(Chunk):
    """A chunk under one of several models."""

    def __init__(self, whole: Chunk, which: int) -> None:
        super().__init__(whole._visits, whole._around, whole._index)
        self._whole = whole
        self._which = which

    @computed_once
    def scored(self) -> ScoredEdits:
        found = self._whole.scored
        return replace(found, log_ratio=found.log_ratio[self._which])

    def features(self, view: View) -> list[SteinMatrix]:
        known = self._known_features(view)
        return list(view.kernel.stein_each(self.weighted(view.operator))) if known is None else [known[self._which]]

    def _found_weighted(self, operator: Operator) -> WeightedEdits:
        return self._whole.weighted(operator).of_model(self._which)


@dataclass(eq=False)
class _Kept(Generic[Value]):
    """Values by key, as many as fit; those that come first."""

    room: int
    values: dict[Any, Value] = field(default_factory=dict)

    def get(self, key: Any) -> Value | None:
        return self.values.get(key)

    def each(self, function: Callable[[Value], Value]) -> _Kept[Value]:
        """The same with what a function makes of each value, and no room for more."""
        return _Kept(0, {key: function(value) for key, value in self.values.items()})

    def offer(self, key: Any, value: Value, size: int) -> None:
        if size <= self.room:
            self.room -= size
            self.values[key] = value


def _size(values: Tensor) -> int:
    return values.numel() * values.element_size()


def _matrix_size(matrix: SteinMatrix) -> int:
    """The bytes that features take."""
    if isinstance(matrix, SumMatrix):
        return sum(map(_matrix_size, matrix.parts))
    if not isinstance(matrix, FeatureMatrix):
        return 0
    return matrix.num_entries * (24 if matrix.values.is_sparse else 8)  # with two indices of 8 bytes

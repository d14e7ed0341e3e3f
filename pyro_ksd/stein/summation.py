# SPDX-License-Identifier: Apache-2.0
"""From visits of the data to the sums of each view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from pyro_ksd.common.checkpoints import Checkpoint, counted_if_stopped
from pyro_ksd.common.chunk_sizes import PAIR_BYTES, SIGNED_ENTRIES, SUMMED_ENTRIES
from pyro_ksd.common.progress import PartOfBar, progress_bar
from pyro_ksd.common.torch_threads import chosen_torch_threads, one_torch_thread
from pyro_ksd.edits.weighted_edits import WeightedEdits, edit_bounds
from pyro_ksd.kernels.stein_matrices import FeatureMatrix, SteinMatrix
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.operators import Operator
from pyro_ksd.stein.signs import Signs
from pyro_ksd.stein.sums import SteinSums, added_each
from pyro_ksd.stein.views import View
from pyro_ksd.stein.visits import Chunk, Visits

_MORE_COLUMNS = 4  # how many times more sparse features all sequences may have than the first chunk

KEPT_SECONDS = 10.0
"""After how much time sums are kept again."""

_SUMMED = [field.name for field in fields(SteinSums) if field.name != "count"]

SteinState = SteinSums | SteinMatrix
"""What is known of a view's Stein kernel matrix: sums over its features, or, if it has none, the matrix itself."""


@dataclass(frozen=True, eq=False)
class Summed:
    """What one visit of all sequences gives, seen by ``V`` views under ``K`` models.

    :ivar of_views: for each view, what is known of it under each model.
    :ivar rates: for each operator of the views, the sums of all weights, double ``[K]``: how many jumps from all
        sequences are to be expected in a unit of time.
    :ivar signs: those of the sums with random signs; ``None`` if there are no sums.
    """

    of_views: Sequence[Sequence[SteinState]]
    rates: Mapping[Operator, Tensor]
    signs: Signs | None

    @property
    def states(self) -> list[list[SteinState]]:
        """``K`` times one for each view."""
        return [self.under(which) for which in range(len(self.of_views[0]) if self.of_views else 0)]

    def under(self, which: int) -> list[SteinState]:
        """What is known of each view under one of the models."""
        return [states[which] for states in self.of_views]


def sum_views(
    visits: Visits,
    signs: Signs | None,
    max_bytes: int = PAIR_BYTES,
    *,
    checkpoint: Checkpoint | None = None,
    progress: bool = False,
    outer: PartOfBar | None = None,
) -> Summed:
    """The sums of each view over all sequences. Every chunk is visited once for each neighborhood.

    :param signs: those of the sums with random signs, of which the first draws are taken that fit into memory; ``None``
        to keep the features of all sequences, unsummed.
    :param max_bytes: for kernels without features, see :meth:`pyro_ksd.kernels.Kernel.stein`.
    :param checkpoint: where the sums of the sequences visited until now are kept, and taken from.
    :param progress: whether to show a bar.
    :param outer: of the bar of the work that this is a part of, to be moved as well.

    >>> from pyro_ksd import Sequences
    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.stein import default_views
    >>> visits = Visits(random_walk(3), Sequences.of(["ab", "bca"]), default_views())
    >>> found = sum_views(visits, Signs(seed=0, num_draws=5))
    >>> len(found.states[0]), found.states[0][0].signed.shape
    (10, torch.Size([3, 5]))
    """
    states: dict[View, Sequence[SteinState]] = {}
    rates: dict[Operator, Tensor] = {}
    size = len(visits.sequences)
    edits = {around: int(edit_bounds(around, visits.sequences).sum()) for around in visits.neighborhoods}
    largest_first = sorted(edits, key=lambda around: -edits[around])
    total = len(edits) * size
    unit = f"steps, up to {sum(edits.values()):,} edits"
    with one_torch_thread(), progress_bar(total=total, desc="Stein features", unit=unit, show=progress) as bar:
        for number, around in enumerate(largest_first):
            running = _RunningSums(visits.views_of(around), signs, visits.first_row, as_fits=number == 0)
            kept = _KeptSums(checkpoint, f"sums {number}", running)
            kept.take()
            bar.update(running.num_done)
            for chunk in visits.chunks(around, range(running.num_chunks, len(visits.rows(around)))):
                visited = chunk.begin - visits.first_row
                done = number * size + (visited if checkpoint is None else kept.num_kept)
                with counted_if_stopped(done, total, "steps", checkpoint):
                    running.add(chunk)
                    kept.put_if_due()
                bar.update(chunk.count)
                if outer is not None:
                    outer.reach((number * size + chunk.begin + chunk.count) / (len(edits) * size))
            states |= running.states(visits.sequences, max_bytes)
            rates |= running.rates
            signs = running.signs
    ordered = {operator: rates[operator] for operator in visits.operators}
    return Summed([states[view] for view in visits.views], ordered, signs)


class _RunningSums:
    """The sums of views with one neighborhood until now, under ``K`` models, and features that wait to be summed.

    Many sequences are summed at once, since the sums with signs may be far larger than the features of a few. What
    comes from a sum of kernels, which is no single matrix of features, waits until the end, as do the edits of kernels
    without features, and all features if there are no signs.

    :param first_row: the number of the first sequence in the data.
    :param as_fits: whether to take only as many of the draws of signs as fit into memory.
    :ivar num_chunks: how many chunks were added.
    :ivar num_done: how many sequences are summed.
    :ivar sums: of the views whose features are summed.
    :ivar rates: the sums of all weights of each operator, double ``[K]``.
    """

    def __init__(self, views: Sequence[View], signs: Signs | None, first_row: int, as_fits: bool) -> None:
        self.signs = signs
        self._first_row = first_row
        self.num_chunks = 0
        self.num_done = 0
        self.sums: dict[View, Sequence[SteinSums]] = {}
        self.rates: dict[Operator, Tensor] = {}
        self._as_fits = as_fits
        self._views = views
        self._count = 0
        self._entries = 0
        self._features: dict[View, list[Sequence[SteinMatrix]]] = {
            view: [] for view in views if view.kernel.has_features
        }
        self._edits: dict[View, list[WeightedEdits]] = {view: [] for view in views if not view.kernel.has_features}

    def parts(self) -> dict[str, Tensor] | None:
        """The sums as tensors by name; ``None`` if anything waits, so that they do not tell everything."""
        if self.signs is None or self._count or self._edits or any(self._features.values()):
            return None
        found = {"numbers": torch.tensor([self.num_chunks, self.num_done, self.signs.num_draws])}
        for index, view in enumerate(self._views):
            [sums] = self.sums[view]
            values = {name: getattr(sums, name) for name in _SUMMED}
            found[f"{index} rate"] = self.rates[view.operator]
            found |= {f"{index} {name}": value for name, value in values.items() if value is not None}
        return found

    def go_on_from(self, parts: Mapping[str, Tensor]) -> None:
        """Goes on after the chunks that some :meth:`parts` have."""
        self.num_chunks, self.num_done, num_draws = parts["numbers"].tolist()
        self.signs = None if self.signs is None else self.signs.part(0, num_draws)
        for index, view in enumerate(self._views):
            values: dict[str, Any] = {name: parts.get(f"{index} {name}") for name in _SUMMED}
            self.rates[view.operator] = parts[f"{index} rate"]
            self.sums[view] = [SteinSums(count=self.num_done, **values)]

    def add(self, chunk: Chunk) -> None:
        """Adds the next chunk."""
        for operator in dict.fromkeys(view.operator for view in self._views):
            rate = torch.atleast_2d(chunk.weighted(operator).weights).sum(1)
            self.rates[operator] = self.rates[operator] + rate if operator in self.rates else rate
        for view, features in self._features.items():
            found = chunk.features(view)
            features.append(found)
            self._entries += sum(matrix.num_entries for matrix in found if isinstance(matrix, FeatureMatrix))
        for view, edits in self._edits.items():
            edits.append(chunk.weighted(view.operator))
        self.num_chunks += 1
        self._count += chunk.count
        if self.signs is not None and self._entries > SUMMED_ENTRIES:
            self._sum_up(self.signs)

    def states(self, sequences: Sequences, max_bytes: int) -> dict[View, Sequence[SteinState]]:
        """What is known of each view after all sequences were added, one state for each model."""
        if self.signs is not None:
            self._sum_up(self.signs)
        found: dict[View, Sequence[SteinState]] = {**self.sums}
        found |= {view: _whole(features) for view, features in self._features.items() if features}
        for view, edits in self._edits.items():
            with chosen_torch_threads():  # for large blocks of pairs
                found[view] = list(view.kernel.stein_each(WeightedEdits.cat(edits, sequences), max_bytes))
        return found

    def _sum_up(self, all_signs: Signs) -> None:
        if self._as_fits and not self.sums:
            self.signs = all_signs = all_signs.part(0, self._fitting(all_signs.num_draws))
        signs = all_signs.of_rows(self._first_row + self.num_done, self._count)
        for view, features in self._features.items():
            if not features or not isinstance(features[0][0], FeatureMatrix):
                continue
            if len(features[0]) > 1 and not len(signs):
                parts = [SteinSums.each_of(_matrices(chunk)) for chunk in features]
            else:
                parts = [[SteinSums.of_parts(_matrices(own), signs) for own in zip(*features, strict=True)]]
            for new in parts:
                old = self.sums.get(view)
                self.sums[view] = new if old is None else added_each(old, new)
            features.clear()
        self.num_done += self._count
        self._count = self._entries = 0

    def _fitting(self, num_draws: int) -> int:
        """How many draws of signs fit into memory, at least 1 if there are any."""
        columns = 0
        for features in self._features.values():
            matrix = features[0][0] if features else None
            if isinstance(matrix, FeatureMatrix):
                columns += matrix.values.shape[1] * (_MORE_COLUMNS if matrix.values.is_sparse else 1)
        return min(num_draws, max(1, SIGNED_ENTRIES // max(1, columns)))


class _KeptSums:
    """Keeps running sums in a checkpoint now and then, if nothing but sums is needed, and takes them from there.

    :ivar num_kept: how many sequences the kept sums have.
    """

    def __init__(self, checkpoint: Checkpoint | None, name: str, running: _RunningSums) -> None:
        self._checkpoint = checkpoint
        self._name = name if running.signs is None else f"{name}, draws from {running.signs.first_draw}"
        self._running = running
        self._last = perf_counter()
        self.num_kept = 0

    def take(self) -> None:
        """Goes on from what is in the checkpoint, if anything."""
        found = None if self._checkpoint is None else self._checkpoint.get(self._name)
        if found is not None:
            self._running.go_on_from(found)
            self.num_kept = self._running.num_done

    def put_if_due(self) -> None:
        """Keeps the sums if the last time is a while ago."""
        if self._checkpoint is None or perf_counter() - self._last < KEPT_SECONDS:
            return
        parts = self._running.parts()
        if parts is not None:
            self._checkpoint.put(self._name, parts)
            self._last = perf_counter()
            self.num_kept = self._running.num_done


def _matrices(parts: Sequence[SteinMatrix]) -> list[FeatureMatrix]:
    """Those that are features, as all of a view are or none."""
    return [part for part in parts if isinstance(part, FeatureMatrix)]


def _whole(parts: Sequence[Sequence[SteinMatrix]]) -> list[SteinState]:
    """The matrices of all chunks together, one for each model."""
    return [type(own[0]).cat(own) for own in zip(*parts, strict=True)]

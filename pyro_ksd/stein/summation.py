# SPDX-License-Identifier: Apache-2.0
"""From visits of the data to the sums of each view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pyro_ksd.common.chunk_sizes import PAIR_BYTES, SIGNED_ENTRIES, SUMMED_ENTRIES
from pyro_ksd.common.progress import progress_bar
from pyro_ksd.edits.weighted_edits import WeightedEdits, edit_bounds
from pyro_ksd.kernels.stein_matrices import FeatureMatrix, SteinMatrix
from pyro_ksd.stein.operators import Operator
from pyro_ksd.stein.signs import Signs
from pyro_ksd.stein.sums import SteinSums
from pyro_ksd.stein.views import View
from pyro_ksd.stein.visits import Chunk, Visits

_MORE_COLUMNS = 4  # all sequences together may have so many times more sparse features than those of the first chunk

SteinState = SteinSums | SteinMatrix
"""What is known of a view's Stein kernel matrix: sums over its features, or, if it has none, the matrix itself."""


@dataclass(frozen=True, eq=False)
class Summed:
    """What one visit of all sequences gives, seen by ``V`` views under ``K`` models.

    :ivar states: ``K`` times one for each view.
    :ivar rates: for each operator of the views, the sums of all weights, double ``[K]``: how many jumps from all
        sequences are to be expected in a unit of time.
    :ivar signs: those of the sums with random signs; ``None`` if there are no sums.
    """

    states: list[list[SteinState]]
    rates: Mapping[Operator, Tensor]
    signs: Signs | None


def sum_views(visits: Visits, signs: Signs | None, max_bytes: int = PAIR_BYTES, *, progress: bool = False) -> Summed:
    """The sums of each view over all sequences. Every chunk is visited once for each neighborhood.

    :param signs: those of the sums with random signs, of which the first draws are taken that fit into memory; ``None``
        to keep the features of all sequences, unsummed.
    :param max_bytes: for kernels without features, see :meth:`pyro_ksd.kernels.Kernel.stein`.

    >>> from pyro_ksd import Sequences
    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.stein import default_views
    >>> visits = Visits(random_walk(3), Sequences.of(["ab", "bca"]), default_views())
    >>> found = sum_views(visits, Signs(seed=0, num_draws=5))
    >>> len(found.states[0]), found.states[0][0].signed.shape
    (10, torch.Size([3, 5]))
    """
    states: dict[View, list[SteinState]] = {}
    rates: dict[Operator, Tensor] = {}
    total = len(visits.neighborhoods) * len(visits.sequences)
    edits = {around: int(edit_bounds(around, visits.sequences).sum()) for around in visits.neighborhoods}
    largest_first = sorted(edits, key=lambda around: -edits[around])
    with progress_bar(total=total, desc="Stein features", unit="step", show=progress) as bar:
        bar.set_postfix_str(f"up to {sum(edits.values()):,} edits")
        for around in largest_first:
            views = visits.views_of(around)
            by_pairs = [view for view in views if not view.kernel.has_features]
            by_features = [view for view in views if view.kernel.has_features]
            waiting = _Waiting(by_features, signs, as_fits=around is largest_first[0])
            edits_of: dict[View, list[WeightedEdits]] = {view: [] for view in by_pairs}
            for chunk in visits.chunks(around):
                for operator in dict.fromkeys(view.operator for view in views):
                    rate = torch.atleast_2d(chunk.weighted(operator).weights).sum(1)
                    rates[operator] = rates[operator] + rate if operator in rates else rate
                waiting.add(chunk)
                for view, own in edits_of.items():
                    own.append(chunk.weighted(view.operator))
                bar.update(chunk.count)
            states |= waiting.states()
            signs = waiting.signs
            for view, own in edits_of.items():
                states[view] = list(view.kernel.stein_each(WeightedEdits.cat(own, visits.sequences), max_bytes))
    each = zip(*(states[view] for view in visits.views), strict=True)
    ordered = {operator: rates[operator] for operator in visits.operators}
    return Summed([list(of_model) for of_model in each], ordered, signs)


class _Waiting:
    """Features of some views under ``K`` models that wait to be summed, and the sums until now.

    Many sequences are summed at once, since the sums with signs may be far larger than the features of a few. What
    comes from a sum of kernels, which is no single matrix of features, waits until the end, as do all features if there
    are no signs.

    :param as_fits: whether to take only as many of the draws of signs as fit into memory.
    """

    def __init__(self, views: Sequence[View], signs: Signs | None, as_fits: bool) -> None:
        self.signs = signs
        self._as_fits = as_fits
        self._views = views
        self._begin = 0
        self._count = 0
        self._entries = 0
        self._features: dict[View, list[Sequence[SteinMatrix]]] = {view: [] for view in views}
        self._sums: dict[View, list[SteinSums]] = {}

    def add(self, chunk: Chunk) -> None:
        """Adds the features of the next chunk."""
        for view in self._views:
            found = chunk.features(view)
            self._features[view].append(found)
            self._entries += sum(matrix.num_entries for matrix in found if isinstance(matrix, FeatureMatrix))
        self._count += chunk.count
        if self.signs is not None and self._entries > SUMMED_ENTRIES:
            self._sum_up(self.signs)

    def states(self) -> dict[View, list[SteinState]]:
        """The sums of all that was added, or the whole matrices of sums of kernels; for each view, one a model."""
        if self.signs is not None:
            self._sum_up(self.signs)
        whole = {view: _whole(parts) for view, parts in self._features.items() if parts}
        return {view: whole[view] if view in whole else list(self._sums[view]) for view in self._views}

    def _sum_up(self, all_signs: Signs) -> None:
        if self._as_fits and not self._sums:
            self.signs = all_signs = all_signs.part(0, self._fitting(all_signs.num_draws))
        signs = all_signs.of_rows(self._begin, self._count)
        for view, parts in self._features.items():
            if not parts or not isinstance(parts[0][0], FeatureMatrix):
                continue
            new = [SteinSums.of(matrix, signs) for matrix in _whole(parts) if isinstance(matrix, FeatureMatrix)]
            old = self._sums.get(view)
            self._sums[view] = new if old is None else [one + other for one, other in zip(old, new, strict=True)]
            parts.clear()
        self._begin += self._count
        self._count = self._entries = 0

    def _fitting(self, num_draws: int) -> int:
        """How many draws of signs fit into memory, at least 1 if there are any."""
        columns = 0
        for parts in self._features.values():
            matrix = parts[0][0] if parts else None
            if isinstance(matrix, FeatureMatrix):
                columns += matrix.values.shape[1] * (_MORE_COLUMNS if matrix.values.is_sparse else 1)
        return min(num_draws, max(1, SIGNED_ENTRIES // max(1, columns)))


def _whole(parts: Sequence[Sequence[SteinMatrix]]) -> list[SteinState]:
    """The matrices of all chunks together, one for each model."""
    return [type(own[0]).cat(own) for own in zip(*parts, strict=True)]

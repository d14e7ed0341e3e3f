# SPDX-License-Identifier: Apache-2.0
"""Visits of the data: the same numbers each time, and nothing asked twice that fits into memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from example_models import Unsampled, walk, walks
from torch import Tensor

from pyro_ksd.edits.neighborhoods import BeforeEnd, CustomNeighborhood, Neighborhood, zs
from pyro_ksd.edits.splices import Edits
from pyro_ksd.edits.weighted_edits import chunk_rows
from pyro_ksd.fit_tests.absolute import goodness_of_fit
from pyro_ksd.fit_tests.localization import localize
from pyro_ksd.kernels import ContiguousKernel, HammingKernel, StartKernel
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.models.model_batch import ModelList
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.signs import Signs
from pyro_ksd.stein.summation import sum_views
from pyro_ksd.stein.views import View, default_views
from pyro_ksd.stein.visits import Visits
from pyro_ksd.stein.weighting import weighted_edits


class CountingModel(Unsampled):
    """A walk that counts how often it is asked for ratios."""

    def __init__(self) -> None:
        super().__init__(walk())
        self.asked = 0

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        self.asked += 1
        return super().log_ratio(sequences, edits)


class Enumerated(Neighborhood):
    """Substitutions, insertions and deletions, which count how often they are enumerated."""

    def __init__(self, costly: bool) -> None:
        self.costly = costly
        self.asked = 0

    @property
    def kinds(self) -> frozenset[str]:
        return zs().kinds

    def edits(self, sequences: Sequences) -> Edits:
        self.asked += 1
        return zs().edits(sequences)

    def edit_bound(self, width: int, alphabet_size: int) -> int:
        return zs().edit_bound(width, alphabet_size)

    @property
    def is_costly(self) -> bool:
        return self.costly


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.EDITS", 150)


def pairs_around(neighborhood: Neighborhood) -> View:
    return View("pairs", ZanellaOperator(neighborhood), ContiguousKernel(2))


def swaps(x: Sequence[Any]) -> list[tuple[Any, ...]]:
    return [(*x[:i], x[i + 1], x[i], *x[i + 2 :]) for i in range(len(x) - 1)]


@pytest.mark.parametrize("kept_bytes", [2**28, 4000, 0])
@pytest.mark.parametrize(
    "around",
    [zs(), zs() | CustomNeighborhood(swaps), Enumerated(costly=True), BeforeEnd(zs())],
    ids=["cheap", "custom", "costly", "before the end"],
)
def test_every_visit_finds_the_same(around: Neighborhood, kept_bytes: int) -> None:
    data, view = walks(16), pairs_around(around)
    visits = Visits(CountingModel(), data, [view], kept_bytes)
    whole = weighted_edits(walk(), view.operator, data)
    [expected] = view.kernel.stein_each(whole)
    for _ in range(2):
        chunks = list(visits.chunks(around))
        assert len(chunks) > 2
        assert [chunk.begin for chunk in chunks] == [rows.start for rows in chunk_rows(around, data)]
        assert sum(chunk.count for chunk in chunks) == 16
        assert all(chunk.scored.sequences.width == int(chunk.scored.sequences.lengths.max()) for chunk in chunks)
        total = sum(float(chunk.weighted(view.operator).weights.sum()) for chunk in chunks)
        assert total == pytest.approx(float(whole.weights.sum()), rel=1e-12)
        [matrix] = visits.whole(view)
        torch.testing.assert_close(matrix.dense(), expected.dense(), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("costly", [False, True])
def test_what_fits_is_not_asked_for_again(costly: bool) -> None:
    model, around = CountingModel(), Enumerated(costly)
    visits = Visits(model, walks(16), [pairs_around(around)])
    for chunk in visits.chunks(around):
        assert chunk.scored is chunk.scored
    count = len(visits.rows(around))
    assert model.asked == around.asked == count > 2
    for chunk in visits.chunks(around):
        assert len(chunk.scored.edits)
    assert model.asked == count
    assert around.asked == (count if costly else 2 * count)


def test_kept_features_need_no_edits() -> None:
    model, around = CountingModel(), Enumerated(costly=False)
    view = pairs_around(around)
    visits = Visits(model, walks(16), [view])
    first = [chunk.features(view)[0] for chunk in visits.chunks(around)]
    asked = around.asked
    again = [chunk.features(view)[0] for chunk in visits.chunks(around)]
    assert around.asked == asked
    assert all(one is other for one, other in zip(first, again, strict=True))


def test_nothing_is_kept_without_room() -> None:
    model, around = CountingModel(), Enumerated(costly=True)
    view = pairs_around(around)
    visits = Visits(model, walks(16), [view], kept_bytes=0)
    for _ in range(2):
        for chunk in visits.chunks(around):
            chunk.features(view)
    assert model.asked == around.asked == 2 * len(visits.rows(around))


def test_as_much_is_kept_as_there_is_room_for() -> None:
    model, around = CountingModel(), zs()
    bytes_of = [8 * len(chunk.scored.edits) for chunk in Visits(walk(), walks(16), []).chunks(around)]
    visits = Visits(model, walks(16), [], kept_bytes=sum(bytes_of[:3]))
    for _ in range(2):
        for chunk in visits.chunks(around):
            chunk.scored  # noqa: B018
    assert len(bytes_of) > 3
    assert model.asked == 2 * len(bytes_of) - 3


def test_some_chunks_in_a_given_order() -> None:
    visits = Visits(walk(), walks(16), default_views())
    around = visits.neighborhoods[0]
    every = list(visits.chunks(around))
    assert [chunk.begin for chunk in visits.chunks(around, [2, 0])] == [every[2].begin, every[0].begin]


@pytest.mark.parametrize("kept_bytes", [2**28, 0])
def test_visits_under_one_of_several_models(kept_bytes: int) -> None:
    models, data, views = [walk(), walk(hold=0.3)], walks(9), default_views()
    visits = Visits(ModelList(models), data, views, kept_bytes)
    sum_views(visits, Signs(0, 0))
    for index, model in enumerate(models):
        alone = Visits(model, data, views)
        for around in visits.neighborhoods:
            for chunk, other in zip(visits.chunks(around), alone.chunks(around), strict=True):
                one = chunk.under(index)
                torch.testing.assert_close(one.scored.log_ratio, other.scored.log_ratio)
                assert one.scored.edits is chunk.scored.edits
                for view in visits.views_of(around):
                    [found], [expected] = one.features(view), other.features(view)
                    torch.testing.assert_close(found.dense(), expected.dense(), rtol=1e-10, atol=1e-12)
                    weights = one.weighted(view.operator).weights
                    torch.testing.assert_close(weights, other.weighted(view.operator).weights)


@pytest.mark.parametrize("kept_bytes", [2**28, 0])
def test_visits_under_some_of_several_models(kept_bytes: int) -> None:
    """They are numbered anew, and nothing is held of the others."""
    views = [*default_views(), View("Hamming", ZanellaOperator(), HammingKernel())]
    visits = Visits(ModelList([walk(hold=hold) for hold in (0.1, 0.2, 0.3, 0.4)]), walks(9), views, kept_bytes)
    sum_views(visits, Signs(0, 0))
    some = visits.under_some([3, 1])
    for around in visits.neighborhoods:
        for own, chunk in zip(some.chunks(around), visits.chunks(around), strict=True):
            for number, index in enumerate((3, 1)):
                assert own.under(number).scored.log_ratio.equal(chunk.under(index).scored.log_ratio)
                for view in some.views_of(around):
                    [found], [expected] = own.under(number).features(view), chunk.under(index).features(view)
                    assert found.dense().equal(expected.dense())
    assert bool(some._features.values) == bool(kept_bytes)
    for log_ratio in (log_ratio for _, log_ratio in some._answers.values.values()):
        assert log_ratio.untyped_storage().nbytes() == 2 * log_ratio.shape[1] * 8
    for [matrix, _] in some._features.values.values():
        if isinstance(matrix, FeatureMatrix) and not matrix.values.is_sparse:
            assert matrix.values.untyped_storage().nbytes() == matrix.values.numel() * 8


def test_fewer_views() -> None:
    operator = ZanellaOperator()
    views = [View("start", operator, StartKernel()), pairs_around(zs()), View("Hamming", operator, HammingKernel())]
    visits = Visits(walk(), walks(5), views)
    assert visits.operators == [operator, views[1].operator]
    some = visits.seen_by(views[1:2])
    assert some.views == (views[1],)
    assert some.neighborhoods == [views[1].operator.neighborhood]
    assert visits.views == tuple(views)


def test_the_time_of_the_model_is_measured() -> None:
    visits = Visits(walk(), walks(16), default_views())
    assert visits.model_seconds == 0.0
    some = visits.seen_by(default_views()[:1])
    assert sum(len(chunk.scored.edits) for chunk in some.chunks(some.neighborhoods[0])) > 0
    assert visits.model_seconds == some.model_seconds > 0.0


@pytest.mark.parametrize("limit", ["KEPT_BYTES", "SIGNED_ENTRIES"])
def test_bounded_memory_does_not_change_a_check(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is kept, or signs are drawn for a few draws at a time, with the same result."""
    data, views = walk(hold=0.2).draw(40, torch.Generator().manual_seed(0)), default_views()
    expected = goodness_of_fit(walk(), data, views, bootstrap="wild", num_bootstrap=50)
    places = localize(expected)
    if limit == "KEPT_BYTES":
        monkeypatch.setattr(Visits.__init__, "__defaults__", (0,))
    else:
        monkeypatch.setattr("pyro_ksd.stein.summation.SIGNED_ENTRIES", 5000)
    found = goodness_of_fit(walk(), data, views, bootstrap="wild", num_bootstrap=50)
    assert found.statistic.equal(expected.statistic)
    torch.testing.assert_close(found.null.extreme, expected.null.extreme, rtol=1e-9, atol=1e-12)
    if limit == "KEPT_BYTES":
        assert found.p_value.equal(expected.p_value)
    for one, other in zip(localize(found), places, strict=True):
        assert one.contribution.equal(other.contribution)

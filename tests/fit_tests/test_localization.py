# SPDX-License-Identifier: Apache-2.0
"""Shares of the statistic against brute force, and directions against truth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyro.distributions as dist
import pytest
import torch
from counting_objects import CountingNetwork
from example_models import Unsampled, walk
from torch import Tensor

from pyro_ksd.edits.weighted_edits import WeightedEdits, chunk_rows
from pyro_ksd.examples import random_walk
from pyro_ksd.fit_tests import localization
from pyro_ksd.fit_tests.absolute import GoodnessOfFit, goodness_of_fit
from pyro_ksd.fit_tests.feature_scores import scores
from pyro_ksd.fit_tests.largest_shares import MOST_EDITS, TopEdits, TopSequences
from pyro_ksd.fit_tests.localization import (
    Localization,
    TopFeatures,
    edit_shares,
    joined_localization,
    localize,
    localize_part,
    localize_under_each,
    mean_localization,
    mean_of_sums,
)
from pyro_ksd.kernels import ContiguousKernel, HammingKernel, SurpriseKernel
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.models import AutoregressiveModel, IndependentSequence, MarkovSequence
from pyro_ksd.models.model_batch import ModelList
from pyro_ksd.results.labels import feature_labels
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.sums import SteinSums
from pyro_ksd.stein.views import View, default_views
from pyro_ksd.stein.visits import Visits
from pyro_ksd.stein.weighting import weighted_edits

SYMBOLS = list("abcde")


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def fit(model: MarkovSequence, data: Sequences, views: list[View] | None = None, draws: int = 99) -> GoodnessOfFit:
    return goodness_of_fit(model, data, views or default_views(), num_bootstrap=draws)


def weighted_chunks(result: GoodnessOfFit, view: View) -> list[WeightedEdits]:
    """The edits of a view as its operator weights them, chunk by chunk."""
    return [chunk.weighted(view.operator) for chunk in result.visits.chunks(view.operator.neighborhood)]


def findings(result: GoodnessOfFit, name: str, level: float = 0.05) -> dict[str, float]:
    """The scores of the features of a view that are significant at the level."""
    index = [view.name for view in result.views].index(name)
    features = localize(result)[index].features
    assert features is not None
    kernel = result.views[index].kernel
    own = [kernel.feature_label(code, len(SYMBOLS)) for code in features.code.tolist()]
    labels = feature_labels(kernel.feature_kind, own, features.symbols.tolist(), SYMBOLS)
    rows = zip(labels, features.z.tolist(), features.p_value.tolist(), strict=True)
    return {label: z for label, z, p in rows if p <= level}


def surprise_gram(x: Sequences, y: Sequences) -> Tensor:
    """log p(x) log p(y) under the walk; 0 for impossible sequences, to which no jump leads."""
    one, other = (walk().log_joint(z).double() for z in (x, y))
    return torch.outer(one.masked_fill(one == -torch.inf, 0.0), other.masked_fill(other == -torch.inf, 0.0))


@pytest.mark.parametrize("chunk", [2**17, 60])
def test_shares_of_edits_are_what_leaving_one_out_gives(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.EDITS", chunk)
    operator = ZanellaOperator()
    views = [View("2", operator, ContiguousKernel(2)), View("Hamming", operator, HammingKernel()), *default_views()[3:]]
    data = walk(hold=0.4).draw(7, seeded(2))
    result = fit(walk(), data, views, draws=2)
    n = len(data)
    for index, (view, place) in enumerate(zip(views, localize(result), strict=True)):
        [matrix] = result.visits.whole(view)
        chunks = weighted_chunks(result, view)
        assert (len(chunks) > 1) == (chunk == 60)
        whole = WeightedEdits.cat(chunks, data)
        parts = [
            (part, edit_shares(part, view, matrix, n)) for part in (chunks if view.kernel.has_features else [whole])
        ]
        total = sum(float(shares.sum()) for _, shares in parts)
        assert total == pytest.approx(float(result.statistic[index]), rel=1e-12)
        assert float(place.contribution.sum()) == pytest.approx(total, rel=1e-12)
        assert float(place.shown.attribution.nansum()) == pytest.approx(total, rel=1e-12)
        hollow = matrix.dense().clone().fill_diagonal_(0.0)
        torch.testing.assert_close(place.contribution, hollow.sum(1) / (n * (n - 1)), rtol=1e-10, atol=1e-14)
        for part, shares in parts:  # each edit by the definition, f_{-i} from the kernel itself
            own, neighbors = part.edits.owner, part.edits.apply(part.sequences)
            others, theirs = whole.edits.apply(data), whole.edits.owner
            gram = surprise_gram if isinstance(view.kernel, SurpriseKernel) else view.kernel.gram
            step = gram(neighbors, others) - gram(neighbors, data)[:, theirs]
            here = gram(part.sequences, others) - gram(part.sequences, data)[:, theirs]
            apart = (own + part.begin)[:, None] != theirs
            expected = ((step - here[own]) * whole.weights * apart).sum(1) * part.weights / (n * (n - 1))
            torch.testing.assert_close(shares, expected, rtol=1e-9, atol=1e-13)


def test_shares_of_edits_with_the_weight_one() -> None:
    view = View("2", ZanellaOperator(balancing="metropolis"), ContiguousKernel(2))
    result = fit(walk(), walk(hold=0.4).draw(7, seeded(2)), [view], draws=2)
    [chunk] = weighted_chunks(result, view)
    assert (chunk.weights == 1).sum() > 5
    shares = edit_shares(chunk, view, result.visits.whole(view)[0], 7)
    assert float(shares.sum()) == pytest.approx(float(result.statistic[0]), rel=1e-12)
    assert (shares[chunk.weights == 1] != 0).any()


def test_positions_are_where_the_edits_begin() -> None:
    data = walk(hold=0.4).draw(6, seeded(0))
    result = fit(walk(), data, default_views()[:1], draws=2)
    [view], [place] = result.views, localize(result)
    [matrix] = result.visits.whole(view)
    [chunk] = weighted_chunks(result, view)
    shares = edit_shares(chunk, view, matrix, len(data))
    expected = torch.full((6, data.width + 1), torch.nan, dtype=torch.double)
    for row, length in enumerate(data.lengths.tolist()):
        expected[row, : length + 1] = 0.0
    starts = torch.cat([block.start for block in chunk.edits.blocks])
    for row, start, share in zip(chunk.edits.owner.tolist(), starts.tolist(), shares.tolist(), strict=True):
        expected[row, start] += share
    order = place.contribution.argsort(descending=True, stable=True)
    assert place.shown.sequence.equal(order)
    assert place.shown.share.equal(place.contribution[order])
    torch.testing.assert_close(place.shown.attribution, expected[order], rtol=1e-10, atol=1e-14, equal_nan=True)


def without_padding(codes: Tensor) -> list[list[int]]:
    return [[code for code in row if code >= 0] for row in codes.tolist()]


def test_the_most_telling_edits_are_told_in_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.EDITS", 100)
    data = walk(hold=0.4).draw(9, seeded(1))
    result = fit(walk(), data, default_views()[1:2], draws=2)
    edits = localize(result)[0].edits
    [view] = result.views
    [matrix] = result.visits.whole(view)
    chunks = weighted_chunks(result, view)
    assert len(chunks) > 1
    every = torch.cat([edit_shares(chunk, view, matrix, len(data)) for chunk in chunks])
    torch.testing.assert_close(edits.share, every.sort(descending=True).values[:MOST_EDITS])
    lists = data.to_lists()
    removed, inserted = (without_padding(codes) for codes in (edits.removed, edits.inserted))
    for row, position, gone in zip(edits.sequence.tolist(), edits.position.tolist(), removed, strict=True):
        assert lists[row][position : position + len(gone)] == gone
    growth = [len(come) - len(gone) for come, gone in zip(inserted, removed, strict=True)]
    assert set(growth) == {-1, 0, 1}
    # Each edit with its share is one of the chunks' edits: what it makes of its sequence is what they make of it.
    after = {}
    for chunk in chunks:
        rows, shares = (chunk.edits.owner + chunk.begin).tolist(), edit_shares(chunk, view, matrix, 9).tolist()
        made = chunk.edits.apply(chunk.sequences).to_lists()
        after |= {(row, tuple(y)): share for row, y, share in zip(rows, made, shares, strict=True)}
    places = zip(edits.sequence.tolist(), edits.position.tolist(), removed, inserted, edits.share.tolist(), strict=True)
    for row, position, gone, come, share in places:
        y = [*lists[row][:position], *come, *lists[row][position + len(gone) :]]
        assert after[row, tuple(y)] == pytest.approx(share, rel=1e-12)


@pytest.mark.parametrize(("size", "kind"), [(40, "parametric"), (400, "wild")])
def test_a_walk_that_cannot_hold_makes_repeated_symbols_too_rarely(size: int, kind: str) -> None:
    result = fit(walk(), walk(hold=0.4).draw(size, seeded(0)), draws=199)
    assert result.kind == kind
    found = findings(result, "content-2")
    repeats = {label for label in found if label[0] == label[1]}
    assert repeats
    assert all(found[label] < 0 for label in repeats)
    assert all(found[label] > 0 for label in set(found) - repeats)


def test_the_other_way_round_it_makes_them_too_often() -> None:
    found = findings(fit(walk(hold=0.4), walk().draw(40, seeded(0)), draws=199), "content-2")
    repeats = [z for label, z in found.items() if label[0] == label[1]]
    assert repeats
    assert min(repeats) > 0


@pytest.mark.parametrize(("mean_length", "sign"), [(4.0, 1), (20.0, -1)])
def test_direction_of_the_length(mean_length: float, sign: int) -> None:
    # Where the data are shorter than the model has them, the model makes sequences too long, and the other way round.
    data = random_walk(5, mean_length=mean_length).draw(60, seeded(0))
    found = findings(fit(random_walk(5, mean_length=8.0), data, draws=199), "length")
    assert found["length"] * sign > 0


def test_first_symbols_are_named() -> None:
    even = torch.full((5,), 0.2, dtype=torch.double)
    start = torch.tensor([0.8, 0.05, 0.05, 0.05, 0.05], dtype=torch.double)
    model = MarkovSequence.from_transitions(even, even.expand(5, 5), stop=0.2)
    data = MarkovSequence.from_transitions(start, even.expand(5, 5), stop=0.2).draw(50, seeded(3))
    found = findings(fit(model, data, draws=199), "start")
    assert found["^a"] < 0  # the model makes it too rarely
    assert all(found[label] > 0 for label in set(found) - {"^a"})


def test_a_model_without_samples_is_localized_by_signs() -> None:
    data = walk(hold=0.4).draw(120, seeded(0))
    result = goodness_of_fit(Unsampled(walk()), data, default_views(), num_bootstrap=199)
    assert result.kind == "wild"
    assert min(findings(result, "content-2").values()) < 0


def test_single_symbols_are_named() -> None:
    def symbols(*probs: float) -> IndependentSequence:
        return IndependentSequence(torch.tensor(probs, dtype=torch.double), dist.Poisson(6.0))

    result = fit(symbols(0.6, 0.2, 0.2), symbols(0.2, 0.2, 0.6).draw(40, seeded(0)), draws=199)  # type: ignore[arg-type]
    found = findings(result, "content-1")
    assert found["a"] > 0 > found["c"]


def named_features(features: TopFeatures) -> list[tuple[float, ...]]:
    """The code of each feature, its symbols, and its mean, share, z and p-value."""
    numbers = (features.code, *features.symbols.unbind(1), features.mean, features.share, features.z, features.p_value)
    return list(zip(*(column.tolist() for column in numbers), strict=True))


def test_several_chunks_give_the_same_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    views = [*default_views(), View("Hamming", ZanellaOperator(), HammingKernel())]
    data = walk(hold=0.4).draw(9, seeded(1))
    whole = localize(fit(walk(), data, views, draws=5))
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.EDITS", 50)
    result = fit(walk(), data, views, draws=5)
    assert all(len(result.visits.rows(around)) > 1 for around in result.visits.neighborhoods)
    for one, other in zip(whole, localize(result), strict=True):
        torch.testing.assert_close(one.contribution, other.contribution, rtol=1e-9, atol=1e-13)
        assert one.shown.sequence.equal(other.shown.sequence)
        torch.testing.assert_close(
            one.shown.attribution, other.shown.attribution, rtol=1e-9, atol=1e-13, equal_nan=True
        )
        torch.testing.assert_close(one.edits.share, other.edits.share, rtol=1e-9, atol=1e-13)
        assert (one.features is None) == (other.features is None)
        if one.features is None or other.features is None:
            continue
        rows, found = ({row[0]: row[1:] for row in named_features(of)} for of in (one.features, other.features))
        left_out = rows.keys() ^ found.keys()  # by a sparse matrix, as they never change
        assert all((rows | found)[code][-4:-1] == (0.0, 0.0, 0.0) for code in left_out)
        for code in rows.keys() & found.keys():
            assert found[code] == pytest.approx(rows[code], rel=1e-9, abs=1e-12)
        assert len(rows.keys() & found.keys()) >= 0.9 * len(rows)


def test_edits_that_a_network_found_are_not_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.EDITS", 300)
    network = CountingNetwork()
    model = AutoregressiveModel(network, prompt=[4], end=2, max_length=12)
    data = model.draw(30, seeded(0))
    views = default_views(model.default_neighborhood)
    assert len(chunk_rows(views[0].operator.neighborhood, data)) > 1
    result = goodness_of_fit(model, data, views, bootstrap="wild", num_bootstrap=20)
    calls = network.calls
    places = localize(result)
    assert network.calls == calls > 0
    torch.testing.assert_close(torch.stack([place.contribution.sum() for place in places]), result.statistic)
    torch.testing.assert_close(torch.stack([place.shown.attribution.nansum() for place in places]), result.statistic)


def test_the_mean_of_several_models_counts_what_one_does_not_report_as_nothing() -> None:
    def place(sequence: int, inserted: int, share: float, codes: list[int]) -> Localization:
        count = len(codes)
        one, several = torch.ones(1, dtype=torch.long), torch.ones(count, dtype=torch.double)
        edits = TopEdits(
            sequence * one, one, one[:, None] * -1, inserted * one[:, None], torch.tensor([share]).double()
        )
        features = TopFeatures(
            torch.tensor(codes), torch.tensor(codes)[:, None], several, 4 * several, 3 * several, 0.1 * several
        )
        shares = share * torch.tensor([1.0, 2.0]).double()
        shown = TopSequences(torch.tensor([1, 0]), shares.flip(0), shares.flip(0)[:, None].expand(2, 3))
        return Localization(shares, shown, edits, features, None)

    mean = mean_localization([place(0, 3, 1.0, [7, 5]), place(0, 3, 2.0, [5]), place(1, 3, 6.0, [5])])
    assert mean.contribution.tolist() == [3.0, 6.0]
    assert mean.shown.sequence.tolist() == [1, 0]
    assert mean.shown.share.tolist() == [6.0, 3.0]
    assert mean.shown.attribution.tolist() == [[6.0] * 3, [3.0] * 3]
    assert mean.edits.sequence.tolist() == [1, 0]
    assert mean.edits.share.tolist() == pytest.approx([2.0, 1.0])
    assert mean.features is not None
    assert mean.features.code.tolist() == mean.features.symbols[:, 0].tolist() == [5, 7]
    assert mean.features.share.tolist() == pytest.approx([4.0, 4 / 3])
    assert mean.features.p_value.tolist() == pytest.approx([0.1, (0.1 + 1 + 1) / 3])


def test_rows_are_numbered_as_they_come() -> None:
    rows = torch.tensor([[2, -1, 7], [0, 5, 7], [2, -1, 7], [2, -1, 0], [0, 5, 7]])
    number, first = localization._numbered(rows)
    assert number.tolist() == [0, 1, 0, 2, 1]
    assert first.tolist() == [0, 1, 3]
    for nothing in localization._numbered(rows[:0]):
        assert nothing.shape == (0,)
        assert nothing.dtype == torch.long
    many = torch.randint(0, 2, (1000, 40), generator=seeded(0)).cumsum(1) % 2
    assert localization._numbered(many)[1].tolist() == list(range(1000))


def test_places_under_several_models_are_the_mean_of_those_under_each() -> None:
    models, data = [walk(), walk(hold=0.3), walk(hold=0.6)], walk(hold=0.4).draw(12, seeded(0))
    views = [*default_views(), View("Hamming", ZanellaOperator(), HammingKernel())]
    views.append(View("both", ZanellaOperator(), ContiguousKernel(1) + ContiguousKernel(2)))
    results = [fit(model, data, views, draws=5) for model in models]
    states, extremes = [result.states for result in results], [result.null.extreme for result in results]
    visits = Visits(ModelList(models), data, views)
    together = localize_under_each(visits, states, extremes)
    parts = [
        localize_under_each(Visits(ModelList(models[own]), data, views), states[own], extremes[own])
        for own in (slice(0, 2), slice(2, 3))
    ]
    for index, view in enumerate(views):
        assert (together[index].count, parts[0][index].count) == (3, 2)
        found = mean_of_sums([together[index]])
        expected = mean_localization([localize(result, attribution=True)[index] for result in results])
        again = mean_of_sums([part[index] for part in parts])
        for own in (found, again):
            assert own.contribution is not None
            assert expected.contribution is not None
            torch.testing.assert_close(own.contribution, expected.contribution, rtol=1e-9, atol=1e-12)
            order = own.shown.sequence.argsort(), expected.shown.sequence.argsort()
            torch.testing.assert_close(
                own.shown.attribution[order[0]],
                expected.shown.attribution[order[1]],
                rtol=1e-9,
                atol=1e-12,
                equal_nan=True,
            )
            assert (own.features is None) == (expected.features is None)
            if own.features is not None and expected.features is not None:
                torch.testing.assert_close(own.features.p_value.sort().values, expected.features.p_value.sort().values)
                torch.testing.assert_close(own.features.share.sum(), expected.features.share.sum())
        shares = torch.stack(
            [
                edit_shares(
                    weighted_edits(model, view.operator, data), view, stein_matrices(model, data, [view])[0], 12
                )
                for model in models
            ]
        ).mean(0)
        known = found.edits.share[found.edits.share != 0]
        top = shares[shares != 0].sort(descending=True).values
        assert len(known) > 50 or index  # some views have hardly any edits with a positive share
        torch.testing.assert_close(known, top[: len(known)], rtol=1e-9, atol=1e-12)


def test_progress_can_be_seen_and_switched_off(terminal: pytest.CaptureFixture[str]) -> None:
    result = fit(walk(), walk().draw(5, seeded(0)), default_views()[:1], draws=5)
    localize(result)
    assert terminal.readouterr().err == ""
    localize(result, progress=True)
    assert "localization: 100%" in terminal.readouterr().err


def test_scores_of_features_are_sums_over_spreads() -> None:
    result = fit(walk(), walk(hold=0.5).draw(20, seeded(0)), default_views()[:1], draws=19)
    [sums] = result.states
    features = localize(result)[0].features
    assert isinstance(sums, SteinSums)
    assert features is not None
    total, spread = scores(sums)
    codes = features.code if sums.codes is None else torch.searchsorted(sums.codes, features.code)
    torch.testing.assert_close(features.z, (total / spread)[codes])
    torch.testing.assert_close(features.mean, total[codes] / 20)
    exceeding = (result.null.extreme[:, 0] >= features.z.abs()[:, None] - 1e-9).sum(1)
    torch.testing.assert_close(features.p_value, (1 + exceeding).double() / 20)


def test_of_large_data_the_positions_of_the_largest_shares_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.EDITS", 50)
    monkeypatch.setattr("pyro_ksd.fit_tests.localization.MOST_SHOWN", 4)
    result = fit(walk(), walk(hold=0.4).draw(12, seeded(1)), draws=5)
    assert len(result.visits.rows(result.views[0].operator.neighborhood)) > 5
    for some, every in zip(localize(result), localize(result, attribution=True), strict=True):
        assert len(every.shown.sequence) == 12
        assert some.shown.sequence.equal(every.shown.sequence[:4])
        torch.testing.assert_close(some.shown.attribution, every.shown.attribution[:4], equal_nan=True)
        assert some.contribution.equal(every.contribution)
        assert some.edits.share.equal(every.edits.share)


def equal_features(scale: float, number: int = 1200) -> TopFeatures:
    """The features of a matrix in which all of them are the same."""
    psi = scale * torch.tensor([3.0, 2.0, 4.0, -1.0]).double()[:, None].expand(-1, number)
    view = View("1", ZanellaOperator(), ContiguousKernel(1))
    found = localization.top_features(view, SteinSums.of(FeatureMatrix(psi)), torch.tensor([1.0, 2.0]), number)
    assert found is not None
    return found


def test_of_equal_features_the_first_thousand_are_told() -> None:
    found = equal_features(1.0)
    assert found.code.tolist() == found.symbols.flatten().tolist() == list(range(1000))
    mean = mean_localization([one_of(equal_features(1.0, 600)), one_of(found)]).features
    assert mean is not None
    assert mean.code.tolist() == list(range(1000))
    assert mean.share[:600].tolist() == pytest.approx([2 * float(mean.share[-1])] * 600)
    equal = one_of(TopFeatures(*(value.flip(0) for value in vars(found).values())))
    mean = mean_localization([equal, equal]).features
    assert mean is not None
    assert mean.code.tolist() == list(reversed(range(1000)))


def one_of(features: TopFeatures) -> Localization:
    """A localization that tells nothing but features."""
    nothing = torch.zeros(0, dtype=torch.long)
    edits = TopEdits(nothing, nothing, nothing[:, None], nothing[:, None], nothing.double())
    shown = TopSequences(torch.arange(2), torch.zeros(2).double(), torch.zeros(2, 3).double())
    return Localization(torch.zeros(2).double(), shown, edits, features, None)


def test_the_unit_of_the_features_does_not_matter() -> None:
    large, small = equal_features(1.0, 5), equal_features(1e-4, 5)
    torch.testing.assert_close(small.z, large.z)
    torch.testing.assert_close(small.p_value, large.p_value)
    torch.testing.assert_close(small.share * 1e8, large.share)
    nothing = equal_features(0.0, 5)  # what never varies tells nothing
    assert len(nothing.code) == 0
    mean = mean_localization([one_of(nothing), one_of(large)]).features
    assert mean is not None
    assert mean.share.tolist() == pytest.approx((large.share / 2).tolist())


def test_parts_of_the_data_are_one_localization() -> None:
    rows = walk(hold=0.4).draw(20, seeded(1))
    views = [default_views()[1], default_views()[5]]
    result = goodness_of_fit(walk(), rows, views, bootstrap="wild", num_bootstrap=20)
    whole = localize(result)
    visits = [Visits(walk(), part, views) for part in (rows[:7], rows[7:])]
    parts = [localize_part(own, result.states, result.null.extreme, 20) for own in visits]
    for index, expected in enumerate(whole):
        one, other = parts[0][index], parts[1][index]
        joined = one + other
        torch.testing.assert_close(joined.shown.share, expected.shown.share, rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(joined.edits.share, expected.edits.share, rtol=1e-9, atol=1e-12)
        assert (joined.pushes is None) == (expected.pushes is None)
        if joined.pushes is not None and expected.pushes is not None:
            assert joined.pushes.count == 20
            assert joined.pushes.number.equal(expected.pushes.number)
            assert (replace(one, pushes=None) + other).pushes is None
            assert (one + replace(other, pushes=None)).pushes is None
    assert whole[0].pushes is not None


def test_an_edit_without_weight_has_no_share_whatever_its_product_is() -> None:
    """Edits to impossible sequences have a weight of 0, and an infinite surprise."""
    chain = MarkovSequence.from_transitions(torch.ones(2) / 2, torch.tensor([[0.5, 0.5], [1.0, 0.0]]), stop=0.3)
    rows = Sequences.of([[0, 1, 0], [0, 0], [1, 0, 0, 1], [1]], 2)
    view = View("embedding", ZanellaOperator(), HammingKernel())
    [matrix] = stein_matrices(chain, rows, [view])
    chunk = weighted_edits(chain, view.operator, rows)
    assert (chunk.weights == 0).any()

    class Infinite(HammingKernel):
        def edit_products(self, chunk: Any, found: Any, max_bytes: int = 2**20) -> Tensor:
            products = super().edit_products(chunk, found, max_bytes)
            return products.masked_fill(chunk.weights == 0, torch.inf)

    plain = edit_shares(chunk, view, matrix, 4)
    found = edit_shares(chunk, replace(view, kernel=Infinite()), matrix, 4)
    assert found.equal(plain.masked_fill(chunk.weights == 0, 0.0))
    assert found.isfinite().all()


def test_wrong_parts_are_refused() -> None:
    [own] = localize(fit(walk(), walk().draw(5, seeded(1)), default_views()[:1], draws=5))
    without = replace(own, contribution=None)
    rows = [torch.arange(5), torch.arange(5, 10)]
    with pytest.raises(ValueError, match="parts: expected those of data in memory, found those of partitioned data"):
        mean_localization([own, without])
    with pytest.raises(ValueError, match="parts: expected the contribution of every sequence, found a Localization wi"):
        joined_localization([own, without], rows)
    for wrong in (3, [own, 3]):
        with pytest.raises(ValueError, match="parts: expected a list of Localization objects"):
            joined_localization(wrong, rows)  # type: ignore[arg-type]

# SPDX-License-Identifier: Apache-2.0
"""How large faults are: against direct calls of the tilts, and against counting in plain Python."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache

import pytest
import torch
from example_models import walk
from torch import Tensor

from pyro_ksd.edits.counts import Count
from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.edits.splices import Edits
from pyro_ksd.fit_tests import fault_sizes as module
from pyro_ksd.fit_tests.absolute import GoodnessOfFit, goodness_of_fit
from pyro_ksd.fit_tests.count_rates import mean_counts
from pyro_ksd.fit_tests.fault_sizes import EffectSizes, effect_sizes
from pyro_ksd.fit_tests.localization import Localization, TopFeatures, localize
from pyro_ksd.fit_tests.tilting import tilts
from pyro_ksd.kernels import EmbeddingKernel, EndKernel, HammingKernel, StartKernel
from pyro_ksd.models import LinearChainMRF, MarkovSequence, SequenceModel
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.views import View, default_views, further_views

SIZED = {"content-1": "ngram", "content-2": "ngram", "content-3": "ngram", "start": "first", "end": "last"}
NAMES = [field.name for field in fields(EffectSizes)]


def chain(start: list[float], hold: float, stop: float) -> MarkovSequence:
    moves = torch.full((3, 3), (1 - hold) / 2, dtype=torch.double).fill_diagonal_(hold)
    moves[0] = torch.tensor([0.2, 0.1, 0.7], dtype=torch.double)
    return MarkovSequence.from_transitions(torch.tensor(start, dtype=torch.double), moves, stop)


MODEL = chain([0.6, 0.2, 0.2], hold=0.2, stop=0.2)
DATA = chain([0.1, 0.2, 0.7], hold=0.6, stop=0.1).draw(80, torch.Generator().manual_seed(0))
DRAWN = MODEL.draw(300, torch.Generator().manual_seed(1))


def all_views() -> list[View]:
    jumps = ZanellaOperator(zs())
    return [
        *default_views(),
        *further_views(),
        View("rests", jumps, EmbeddingKernel(lambda x: ((x.tokens == 0) & x.mask).sum(1, keepdim=True).double())),
        View("Hamming", jumps, HammingKernel()),
        View("first two", jumps, StartKernel(2)),
        View("last two", jumps, EndKernel(2)),
    ]


@cache
def fitted() -> tuple[GoodnessOfFit, list[Localization]]:
    result = goodness_of_fit(MODEL, DATA, all_views(), num_bootstrap=99)
    assert result.p_value_overall <= 0.05
    return result, localize(result)


def plain_count(count: Count, row: list[int]) -> int:
    """A count of one sequence."""
    ngram = list(count.symbols)
    if count.kind == "length":
        return len(row)
    if count.kind == "first":
        return int(row[:1] == ngram)
    if count.kind == "last":
        return int(row[-1:] == ngram)
    return sum(row[place : place + len(ngram)] == ngram for place in range(len(row) - len(ngram) + 1))


def plain_mean(count: Count, sequences: Sequences) -> float:
    rows = sequences.to_lists()
    return sum(plain_count(count, row) for row in rows) / len(rows)


def outstanding(place: Localization, kind: str, most: int = 10) -> dict[int, Count]:
    """By the rows of the features of a view, those that are to be sized, with what they count."""
    features = place.features
    assert features is not None
    rows = zip(features.symbols.tolist(), features.z.tolist(), features.p_value.tolist(), strict=True)
    known = {
        index: (abs(z), Count(kind, tuple(symbols)))  # type: ignore[arg-type]
        for index, (symbols, z, p) in enumerate(rows)
        if p <= 0.05 and max(symbols) < 3
    }
    largest = sorted(known, key=lambda index: -known[index][0])[:most]
    return {index: known[index][1] for index in largest}


def known_rows(values: Tensor) -> set[int]:
    return set((~values.isnan()).nonzero().squeeze(1).tolist())


@pytest.mark.parametrize("name", [*SIZED, "length"])
def test_factors_are_those_of_the_tilts(name: str) -> None:
    result, places = fitted()
    index = [view.name for view in result.views].index(name)
    assert result.p_value[index] <= 0.05
    sizes = effect_sizes(result, places, DATA, DRAWN, 0.05)[index]
    features = places[index].features
    assert features is not None
    assert all(getattr(sizes, field).shape == features.code.shape for field in NAMES)
    if name == "length":
        counts = {features.code.tolist().index(0): Count("length")}
    else:
        counts = outstanding(places[index], SIZED[name])
    assert counts
    assert known_rows(sizes.observed) == known_rows(sizes.expected) == set(counts)
    around = zs() if name == "length" else result.views[index].operator.neighborhood
    found = tilts(MODEL, DATA, around, list(counts.values()))
    assert found.is_known.any()
    for place, (row, count) in enumerate(counts.items()):
        torch.testing.assert_close(sizes.factor[row], found.log_factor[place].exp(), rtol=1e-8, atol=0, equal_nan=True)
        torch.testing.assert_close(sizes.factor_low[row], found.low[place].exp(), rtol=1e-7, atol=0, equal_nan=True)
        torch.testing.assert_close(sizes.factor_high[row], found.high[place].exp(), rtol=1e-7, atol=0, equal_nan=True)
        assert float(sizes.observed[row]) == pytest.approx(plain_mean(count, DATA))
        assert float(sizes.expected[row]) == pytest.approx(plain_mean(count, DRAWN))
        assert plain_mean(count, DATA) != plain_mean(count, DRAWN)
        is_share = torch.tensor([count.kind in ("first", "last")])
        numbers = [torch.tensor([[plain_count(count, row)] for row in of.to_lists()]) for of in (DATA, DRAWN)]
        observed, expected = (mean_counts(of.double(), is_share) for of in numbers)
        for field, rates in {"observed": observed, "expected": expected, "ratio": observed.over(expected)}.items():
            told = [float(getattr(sizes, f"{field}{end}")[row]) for end in ("", "_low", "_high")]
            assert told == pytest.approx([float(rates.value), float(rates.low), float(rates.high)])


def test_only_features_with_a_count_of_their_own_are_sized() -> None:
    result, places = fitted()
    names = [view.name for view in result.views]
    sizes = dict(zip(names, effect_sizes(result, places, DATA, DRAWN, 0.05), strict=True))
    assert len(sizes["Hamming"].factor) == 0
    for name in set(names) - {*SIZED, "length"}:
        values = torch.stack([getattr(sizes[name], field) for field in NAMES])
        assert values.isnan().all(), name
    assert {name for name in names if result.p_value[names.index(name)] <= 0.05} > {"first two", "last two", "rests"}
    assert set(known_rows(sizes["length"].factor)) <= {places[names.index("length")].features.code.tolist().index(0)}


def test_without_draws_nothing_is_expected() -> None:
    result, places = fitted()
    sizes = effect_sizes(result, places, DATA, None, 0.05)
    unknown = ("expected", "expected_low", "expected_high", "ratio", "ratio_low", "ratio_high")
    assert all(getattr(one, name).isnan().all() for one in sizes for name in unknown)
    for one, other in zip(sizes, effect_sizes(result, places, DATA, DRAWN, 0.05), strict=True):
        torch.testing.assert_close(one.factor, other.factor, rtol=0, atol=0, equal_nan=True)
        torch.testing.assert_close(one.observed, other.observed, rtol=0, atol=0, equal_nan=True)


def test_nothing_is_sized_unless_the_model_is_rejected() -> None:
    result, places = fitted()
    accepted = replace(result, p_value_overall=0.0501)
    for one, place in zip(effect_sizes(accepted, places, DATA, DRAWN, 0.05), places, strict=True):
        count = 0 if place.features is None else len(place.features.code)
        assert all(len(getattr(one, field)) == count and getattr(one, field).isnan().all() for field in NAMES)
    assert known_rows(effect_sizes(accepted, places, DATA, DRAWN, 0.06)[1].factor)


def test_nothing_stands_out_where_nothing_is_rejected() -> None:
    result, places = fitted()
    features = [place.features for place in places]
    for own in module.outstanding(replace(result, p_value_overall=0.0501), features, 0.05):
        assert own.rows.tolist() == own.counts == []
    for own in module.outstanding(result, features, 0.05):
        assert len(own.rows) == len(own.counts)


def test_nothing_is_sized_of_a_view_that_does_not_reject() -> None:
    result, places = fitted()
    p_value = result.p_value.clone()
    p_value[1] = 0.051
    sizes = effect_sizes(replace(result, p_value=p_value), places, DATA, DRAWN, 0.05)
    assert sizes[1].observed.isnan().all()
    assert known_rows(sizes[0].observed)


def test_the_largest_scores_are_sized_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    result, places = fitted()
    monkeypatch.setattr(module, "MOST_SIZED", 2)
    sizes = effect_sizes(result, places, DATA, DRAWN, 0.05)
    assert len(outstanding(places[1], "ngram")) > 2
    assert known_rows(sizes[1].observed) == set(outstanding(places[1], "ngram", most=2))


def test_of_equal_scores_the_first_ten_are_sized() -> None:
    codes = torch.arange(60)
    same = torch.ones(60).double()
    z = torch.where(codes % 2 == 0, 3.0, -3.0).double()
    p = torch.tensor([0.051] * 5 + [0.05] * 55, dtype=torch.double)
    features = TopFeatures(codes, codes[:, None], same, same, z, p)
    rows, counts = module._outstanding(default_views()[0], features, 0.05, 60)
    assert rows.tolist() == list(range(5, 15))
    assert counts == [Count("ngram", (code,)) for code in range(5, 15)]


def test_a_start_that_is_over_is_not_counted() -> None:
    # A quarter of the data are empty, which hardly any are under the model: that there is no first symbol stands out.
    model = LinearChainMRF(torch.zeros(2, 2), torch.zeros(2), torch.tensor([0.02, 0.5, 0.48]).log())
    empty = Sequences.of([[], [0], [1], [0, 1]] * 15, 2)
    result = goodness_of_fit(model, empty, [View("start", ZanellaOperator(zs()), StartKernel())], num_bootstrap=99)
    places = localize(result)
    features = places[0].features
    assert features is not None
    over = features.symbols[:, 0].tolist().index(2)
    assert features.p_value[over] <= 0.05
    [sizes] = effect_sizes(replace(result, p_value_overall=0.01), places, empty, None, 0.05)
    assert sizes.observed[over].isnan()


class Counted(SequenceModel):
    """A model that counts how often it is asked."""

    def __init__(self, inner: MarkovSequence) -> None:
        self.inner = inner
        self.calls = 0

    @property
    def alphabet_size(self) -> int:
        return self.inner.alphabet_size

    def log_joint(self, sequences: Sequences) -> Tensor:
        self.calls += 1
        return self.inner.log_joint(sequences)

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        self.calls += 1
        return self.inner.log_ratio(sequences, edits)


def test_the_model_is_not_asked_again() -> None:
    model = Counted(MODEL)
    result = goodness_of_fit(model, DATA, default_views(), num_bootstrap=99)
    places = localize(result)
    calls = model.calls
    sizes = effect_sizes(result, places, DATA, None, 0.05)
    assert model.calls == calls > 0
    assert known_rows(sizes[1].factor)


def test_nothing_is_known_of_features_at_first() -> None:
    sizes = EffectSizes.unknown(3)
    assert all(getattr(sizes, name).shape == (3,) and getattr(sizes, name).isnan().all() for name in NAMES)
    assert len({getattr(sizes, name).data_ptr() for name in NAMES}) == 12


def factors(result: GoodnessOfFit, data: Sequences) -> dict[int, float]:
    """The factors of pairs, by their codes."""
    places = localize(result)
    features = places[1].features
    assert features is not None
    values = effect_sizes(result, places, data, None, 0.05)[1].factor.tolist()
    return {code: factor for code, factor in zip(features.code.tolist(), values, strict=True) if factor == factor}


def test_several_chunks_give_the_same_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    data = walk(hold=0.4).draw(120, torch.Generator().manual_seed(0))
    found = []
    for edits, num_chunks in ((2**17, 1), (1500, 100), (1500, 2)):
        monkeypatch.setattr("pyro_ksd.edits.weighted_edits.EDITS", edits)
        monkeypatch.setattr("pyro_ksd.fit_tests.absolute.SAMPLED_CHUNKS", num_chunks)
        result = goodness_of_fit(walk(hold=0.1), data, default_views()[:2], num_bootstrap=99)
        assert (2 < len(result.visits.rows(result.views[0].operator.neighborhood)) <= 100) == (edits == 1500)
        found.append(factors(result, data))
    whole, in_chunks, of_some = found
    assert len(whole) >= 3
    assert whole == pytest.approx(in_chunks, rel=1e-7)
    for code in of_some.keys() & whole.keys():  # of large data, some of the chunks are enough
        assert of_some[code] != pytest.approx(whole[code], rel=1e-7)
        assert 0.3 < of_some[code] / whole[code] < 3

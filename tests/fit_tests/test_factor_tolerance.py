# SPDX-License-Identifier: Apache-2.0
"""Whether n-grams are off by more than a factor: against direct calls of the tilts, and by simulation."""

from __future__ import annotations

import math
from collections import Counter
from functools import cache

import pytest
import torch
from example_models import walk
from scipy.stats import binom
from tilted_spaces import SPACE, bounded, spread_chain
from torch import Tensor

from pyro_ksd.edits.counts import Count
from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.examples import random_walk
from pyro_ksd.fit_tests import factor_tolerance as module
from pyro_ksd.fit_tests.absolute import GoodnessOfFit, goodness_of_fit
from pyro_ksd.fit_tests.factor_tolerance import ToleratedFactors, tolerated_factors
from pyro_ksd.fit_tests.jumps import Jumps
from pyro_ksd.fit_tests.tilting import tilts
from pyro_ksd.kernels import ContiguousKernel
from pyro_ksd.models import LinearChainMRF, SequenceModel
from pyro_ksd.models.wrappers.tilted import TiltedModel
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.views import View, default_views

MODEL = walk(hold=0.1)
DATA = walk(hold=0.25).draw(300, torch.Generator().manual_seed(0))


def views() -> list[View]:
    return [*default_views(), View("one or two", ZanellaOperator(zs()), ContiguousKernel(1, 2))]


@cache
def fitted() -> GoodnessOfFit:
    return goodness_of_fit(MODEL, DATA, views(), bootstrap="wild", num_bootstrap=9)


def plain_numbers(lengths: range) -> Counter[tuple[int, ...]]:
    """How often each n-gram occurs, in plain Python."""
    rows = [tuple(row) for row in DATA.to_lists()]
    return Counter(
        row[place : place + width] for width in lengths for row in rows for place in range(len(row) - width + 1)
    )  # type: ignore[arg-type]


def ngrams_of(factors: ToleratedFactors) -> list[tuple[int, ...]]:
    return [tuple(code for code in row if code >= 0) for row in factors.symbols.tolist()]


def test_the_most_frequent_ngrams_of_the_views_that_count_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_NGRAMS", 20)
    found = tolerated_factors(fitted(), DATA, 0.05)
    names = [view.name for view in fitted().views]
    assert [names[one.view] for one in found] == ["content-1", "content-2", "content-3", "one or two"]
    for one, lengths in zip(found, (range(1, 2), range(2, 3), range(3, 4), range(1, 3)), strict=True):
        numbers = plain_numbers(lengths)
        times = [numbers[ngram] for ngram in ngrams_of(one)]
        assert times == sorted(numbers.values(), reverse=True)[:20]
        assert len(set(ngrams_of(one))) == len(times) == min(len(numbers), 20)


def test_of_equally_frequent_ngrams_a_hundred_are_taken_in_the_order_of_their_symbols() -> None:
    data = Sequences.of([[code] for code in reversed(range(150))] + [[149]], 150)
    assert module._most_frequent(range(1, 2), data).flatten().tolist() == [149, *range(99)]


def test_factors_and_intervals_are_those_of_the_tilts() -> None:
    found = tolerated_factors(fitted(), DATA, 0.1)
    total = sum(len(one.symbols) for one in found)
    states: Counter[str] = Counter()
    for one in found:
        counts = [Count("ngram", ngram) for ngram in ngrams_of(one)]
        usual = tilts(MODEL, DATA, zs(), counts, coverage=0.9)
        for name in ("log_factor", "low", "high"):
            torch.testing.assert_close(
                getattr(one.tilts, name), getattr(usual, name), rtol=1e-7, atol=1e-8, equal_nan=True
            )
        certain = tilts(MODEL, DATA, zs(), counts, coverage=1 - 0.1 / total)
        assert one.is_within.tolist() == usual.within(1.25).tolist()
        assert one.is_outside.tolist() == certain.outside(1.25).tolist()
        states["within"] += int(one.is_within.sum())
        states["outside"] += int(one.is_outside.sum())
        states["outside by itself"] += int(usual.outside(1.25).sum())
        states["unknown"] += int((~usual.is_known).sum())
    assert states["outside by itself"] > states["outside"] > 0
    assert states["within"] > 0
    assert states["unknown"] > 0


def test_of_large_data_some_sequences_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tolerated_factors(fitted(), DATA, 0.05)
    monkeypatch.setattr(module, "ENOUGH", 1000)
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.EDITS", 2000)
    result = goodness_of_fit(MODEL, DATA, views()[:3], bootstrap="wild", num_bootstrap=9)
    around = result.views[0].operator.neighborhood
    counts = [Count("ngram", ngram) for ngram in ngrams_of(whole[0])]
    jumps = module._some_jumps(result.visits, around, counts)
    assert len(jumps) == min(len(result.visits.rows(around)), 31) > 5
    changes = torch.cat([part.count for part in jumps]).bincount()
    assert all(600 < number < 1600 for number in changes.tolist())
    for one, other in zip(tolerated_factors(result, DATA, 0.05), whole, strict=False):
        both = one.tilts.is_known & other.tilts.is_known
        assert both.any()
        distance = (one.tilts.log_factor - other.tilts.log_factor)[both].abs() / one.tilts.error[both]
        assert float(distance.max()) < 4


def test_the_same_share_of_all_chunks_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    # Data may be sorted, so that chunks differ.
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.EDITS", 2000)
    monkeypatch.setattr(module, "ENOUGH", 500)
    shares = []

    def recorded(jumps: Jumps, chance: Tensor, share: Tensor) -> Jumps:
        shares.append(share.tolist())
        return thinned(jumps, chance, share)

    thinned = module._thinned
    monkeypatch.setattr(module, "_thinned", recorded)
    data = Sequences.of([[2] * 12] * 60 + [[0, 1, 0, 1, 0]] * 200 + [[3, 4]] * 200, 5)
    result = goodness_of_fit(MODEL, data, views()[1:2], bootstrap="wild", num_bootstrap=9)
    tolerated_factors(result, data, 0.05)
    assert len(shares) > 5
    assert all(share == shares[0] for share in shares)
    assert min(shares[0]) < 1


def test_the_part_of_the_data_is_not_chosen_by_the_numbers_that_made_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ENOUGH", 20_000)
    model = random_walk(3, hold=0.1)
    data = model.draw(2000, torch.Generator().manual_seed(0))
    result = goodness_of_fit(model, data, views()[:1], bootstrap="wild", num_bootstrap=9)
    [found] = tolerated_factors(result, data, 0.05)
    whole = tilts(model, data, zs(), [Count("ngram", (code,)) for code in range(3)])
    assert bool((found.tilts.error > 1.1 * whole.error.max()).all())  # only some of the sequences were taken
    assert float((found.tilts.log_factor / found.tilts.error).abs().max()) < 3.5


def test_sequences_that_are_too_short_have_no_ngrams() -> None:
    data = Sequences.of([[0], [1], [2], [3], [0], [1]] * 5, 5)
    result = goodness_of_fit(MODEL, data, views()[:3], bootstrap="parametric", num_bootstrap=9)
    assert [len(one.symbols) for one in tolerated_factors(result, data, 0.05)] == [4]


FIELD = LinearChainMRF(
    torch.tensor([[1.0, 0, -1], [0, 0.5, 0], [-1, 0, 1]], dtype=torch.double), length=-torch.arange(8).double()
)
MODELS = {"chain": bounded(spread_chain()), "MRF": FIELD}
PLANTED = Count("ngram", (0, 1))


def pairs_of(model: SequenceModel, factor: float, size: int, runs: int, seed: int) -> list[ToleratedFactors]:
    """What is said of pairs in data sets of the model with a planted factor."""
    p = TiltedModel(model, {PLANTED: math.log(factor)}).log_joint(SPACE).softmax(0)
    generator = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(runs):
        data = SPACE[p.multinomial(size, replacement=True, generator=generator)].narrowed()
        result = goodness_of_fit(model, data, default_views()[1:2], bootstrap="wild", num_bootstrap=1)
        found += tolerated_factors(result, data, 0.05)
    return found


def planted(found: ToleratedFactors) -> int:
    return found.symbols.tolist().index([0, 1])


@pytest.mark.slow
@pytest.mark.parametrize("size", [100, 500, 2000])
@pytest.mark.parametrize("factor", [1.25, 0.8])
@pytest.mark.parametrize("name", MODELS)
def test_level_at_the_boundary(name: str, factor: float, size: int) -> None:
    runs = 300
    found = pairs_of(MODELS[name], factor, size, runs, seed=size)
    outside = sum(bool(one.is_outside[planted(one)]) for one in found)
    within = sum(bool(one.is_within[one.tilts.is_known].all()) for one in found)
    print(f"\n{name}, factor {factor}, n = {size}: outside {outside}, all within {within}, of {runs}")
    assert outside <= binom.ppf(0.999, runs, 0.01)
    assert within <= binom.ppf(0.999, runs, 0.025)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_power(name: str) -> None:
    runs = 100
    wrong = [
        sum(bool(one.is_outside[planted(one)]) for one in pairs_of(MODELS[name], 1.6, size, runs, seed=7))
        for size in (100, 500, 2000)
    ]
    right = [
        sum(bool(one.is_within[one.tilts.is_known].all()) for one in pairs_of(MODELS[name], 1.0, size, runs, seed=8))
        for size in (500, 2000, 8000)
    ]
    print(f"\n{name}: outside at 1.6, n = 100, 500, 2000: {wrong}; all within, n = 500, 2000, 8000: {right}, of {runs}")
    assert wrong[-1] >= 80
    assert right[-1] >= 80

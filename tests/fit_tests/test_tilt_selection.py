# SPDX-License-Identifier: Apache-2.0
"""The smallest set of tilts: scores against plain matrices, planted factors, and true models."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.stats import binom, norm
from tilted_spaces import SPACE, bounded, spread_chain
from torch import Tensor

from pyro_ksd.edits.counts import Count, count_values
from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.fit_tests import tilt_selection
from pyro_ksd.fit_tests.jumps import jumps_of
from pyro_ksd.fit_tests.tilt_selection import SelectedTilts, effective_scores, select_tilts
from pyro_ksd.fit_tests.tilting import Tilts, tilt_jointly
from pyro_ksd.models.wrappers.tilted import TiltedModel
from pyro_ksd.sequences.container import Sequences

MODEL = bounded(spread_chain())
PAIRS = [Count("ngram", (a, b)) for a in range(3) for b in range(3)]
COUNTS = [
    *PAIRS,
    *(Count("ngram", (a,)) for a in range(3)),
    *(Count("first", (a,)) for a in range(3)),
    *(Count("last", (a,)) for a in range(3)),
    Count("length"),
]


def drawn(factors: dict[Count, float], size: int, generator: torch.Generator) -> Sequences:
    """Sequences from the chain with planted factors."""
    log_p = MODEL.log_joint(SPACE)
    for count, factor in factors.items():
        log_p = log_p + math.log(factor) * count_values([count], SPACE)[:, 0]
    return SPACE[log_p.softmax(0).multinomial(size, replacement=True, generator=generator)].narrowed()


def selected(factors: dict[Count, float], size: int, generator: torch.Generator) -> SelectedTilts:
    jumps = jumps_of(MODEL, drawn(factors, size, generator), zs(), COUNTS)
    return select_tilts(jumps, len(COUNTS), level=0.05, coverage=0.95)


def plain_scores(data: Sequences, chosen: list[int], theta: Tensor) -> Tensor:
    """The scores from the tilted model itself, with all changes in one matrix."""
    model = TiltedModel(MODEL, dict(zip([COUNTS[place] for place in chosen], theta.tolist(), strict=True)))
    edits = zs().edits(data)
    edited = edits.apply(data)
    change = count_values(COUNTS, edited) - count_values(COUNTS, data)[edits.owner]
    weight = (model.log_joint(edited) - model.log_joint(data)[edits.owner]).exp()
    weight = weight / (1 + weight)
    scores = torch.stack([(weight[:, None] * change)[edits.owner == row].sum(0) for row in range(len(data))])
    gains = torch.stack(
        [(weight[:, None] * change.clamp(min=0))[edits.owner == row].sum(0) for row in range(len(data))]
    )
    losses = gains - scores
    information = change.T @ (change * (weight * (1 - weight))[:, None])
    rest = scores - scores[:, chosen] @ information[chosen][:, chosen].inverse() @ information[chosen]
    rare = torch.maximum(
        losses.square().sum(0) / losses.sum(0) * gains.sum(0), gains.square().sum(0) / gains.sum(0) * losses.sum(0)
    )
    return scores.sum(0) / torch.maximum(rest.square().sum(0), rare).sqrt()


def test_scores_against_plain_matrices() -> None:
    data = drawn({}, 50, torch.Generator().manual_seed(0))
    chosen = [3, 17]
    jumps = jumps_of(MODEL, data, zs(), COUNTS)
    theta = tilt_jointly(jumps, chosen, 0.95).log_factor
    found, many = effective_scores(jumps, len(COUNTS), chosen, theta)
    torch.testing.assert_close(found, plain_scores(data, chosen, theta), rtol=1e-6, atol=1e-6)
    assert bool(many[-1])


def test_a_planted_pair_is_all_that_is_found() -> None:
    found = selected({Count("ngram", (0, 1)): 2.0}, 2000, torch.Generator().manual_seed(1))
    assert [COUNTS[place] for place in found.chosen] == [Count("ngram", (0, 1))]
    assert abs(float(found.tilts.log_factor) - math.log(2.0)) < 4 * float(found.tilts.error)
    assert found.largest <= found.threshold == pytest.approx(norm.ppf(1 - 0.025 / len(COUNTS)), rel=1e-10)


def test_two_causes_are_separated() -> None:
    truth = {Count("ngram", (0, 1)): 2.0, Count("first", (2,)): 0.4}
    found = selected(truth, 4000, torch.Generator().manual_seed(2))
    assert {COUNTS[place] for place in found.chosen} == set(truth)
    expected = torch.tensor([math.log(truth[COUNTS[place]]) for place in found.chosen], dtype=torch.double)
    assert bool(((found.tilts.log_factor - expected).abs() < 4 * found.tilts.error).all())


def test_there_is_a_largest_number_of_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tilt_selection, "MOST_FACTORS", 1)
    found = selected({Count("ngram", (0, 1)): 2.0, Count("first", (2,)): 0.4}, 2000, torch.Generator().manual_seed(2))
    assert len(found.chosen) == len(found.tilts.log_factor) == 1
    assert found.largest > found.threshold


def test_no_factors_for_a_true_model() -> None:
    found = selected({}, 300, torch.Generator().manual_seed(3))
    assert found.chosen == ()
    assert len(found.tilts.log_factor) == 0
    assert found.largest <= found.threshold


def test_what_was_dropped_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tilt_selection, "_strength", lambda tilts: torch.zeros(len(tilts.log_factor)))
    found = selected({Count("ngram", (0, 1)): 2.0}, 500, torch.Generator().manual_seed(5))
    assert found.chosen == ()


def scripted(monkeypatch: pytest.MonkeyPatch, scores: list[float], strengths: list[float]) -> SelectedTilts:
    """What is selected if the scores and the strengths of the factors are always these; NaN is no candidate."""
    known = torch.tensor(scores, dtype=torch.double)
    strength = torch.tensor(strengths, dtype=torch.double)

    def jointly(jumps: object, chosen: list[int], coverage: float) -> Tilts:
        one = torch.ones(len(chosen), dtype=torch.double)
        return Tilts(one, one / strength[chosen], one, one, one)

    monkeypatch.setattr(tilt_selection, "tilt_jointly", jointly)
    monkeypatch.setattr(tilt_selection, "effective_scores", lambda *_: (known.nan_to_num(9.0), ~known.isnan()))
    return select_tilts([], len(scores), level=0.1, coverage=0.95)


def test_no_more_than_twenty_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    found = scripted(monkeypatch, [float(score) for score in range(10, 40)], [10.0] * 30)
    assert found.chosen == tuple(range(29, 9, -1))
    assert found.largest == 19.0


def test_the_weakest_factor_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    found = scripted(monkeypatch, [9.0, 8.0, 7.0, 0.0], [10.0, 1.0, 10.0, 10.0])
    assert found.chosen == (0, 2)
    assert found.largest == 0.0


def test_scores_and_strengths_must_exceed_the_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    threshold = scripted(monkeypatch, [1.0, 1.0], [10.0, 10.0]).threshold
    above = math.nextafter(threshold, math.inf)
    assert scripted(monkeypatch, [-threshold, 0.0], [10.0, 10.0]).chosen == ()
    assert scripted(monkeypatch, [-above, 0.0], [10.0, 10.0]).chosen == (0,)
    assert scripted(monkeypatch, [9.0, 0.0], [threshold / 1.0001, 10.0]).chosen == ()
    assert scripted(monkeypatch, [9.0, 0.0], [threshold * 1.0001, 10.0]).chosen == (0,)


@pytest.mark.parametrize(("scores", "candidates"), [([], 1), ([math.nan], 1), ([1.0], 1), ([1.0, math.nan, 0.0], 2)])
def test_the_level_is_divided_among_the_candidates(
    scores: list[float], candidates: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = scripted(monkeypatch, [*scores, math.nan], [10.0] * (len(scores) + 1))
    assert found.threshold == pytest.approx(norm.ppf(1 - 0.05 / candidates), rel=1e-10)
    assert found.chosen == ()
    assert found.largest == max([0.0, *(score for score in scores if score > 0)])  # not the score of another


def test_what_cannot_be_estimated_has_no_strength() -> None:
    one = torch.tensor([3.0, -4.0, math.nan], dtype=torch.double)
    assert tilt_selection._strength(Tilts(one, one.abs() / 2, one, one, one)).tolist() == [2.0, 2.0, 0.0]


def test_a_count_that_no_edit_changes_has_no_score() -> None:
    jumps = jumps_of(MODEL, drawn({}, 20, torch.Generator().manual_seed(0)), zs(), COUNTS)
    found, many = effective_scores(jumps, len(COUNTS) + 1, [], torch.zeros(0).double())
    assert float(found[-1]) == 0.0
    assert not bool(many[-1])


@pytest.mark.slow
@pytest.mark.parametrize("size", [50, 500])
def test_a_true_model_seldom_gets_factors(size: int) -> None:
    runs = 400
    generator = torch.Generator().manual_seed(4000 + size)
    wrong = sum(bool(selected({}, size, generator).chosen) for _ in range(runs))
    print(f"\ntrue model, n = {size}: factors in {wrong} of {runs}")
    assert wrong <= binom.ppf(0.9995, runs, 0.05)


@pytest.mark.slow
def test_how_often_the_cause_is_found_alone() -> None:
    runs = 100
    generator = torch.Generator().manual_seed(5000)
    cause = COUNTS.index(Count("ngram", (0, 1)))
    found = [selected({COUNTS[cause]: 1.6}, 1000, generator) for _ in range(runs)]
    alone = sum(one.chosen == (cause,) for one in found)
    among = sum(cause in one.chosen for one in found)
    print(f"\nfactor 1.6 at n = 1000: found alone in {alone}, among others in {among - alone}, of {runs}")
    assert alone >= 85

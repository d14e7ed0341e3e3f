# SPDX-License-Identifier: Apache-2.0
"""Factors by tilting: against plain loops, on exact populations, and by simulation."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import oracle
import pytest
import torch
from example_models import small_mrf, walk
from neighbor_lists import Codes, around
from scipy.optimize import brentq
from scipy.stats import binom, gamma, poisson
from scipy.stats import t as student
from tilted_spaces import SPACE, bounded, plain_count, spread_chain
from torch import Tensor

from pyro_ksd.edits.counts import Count
from pyro_ksd.edits.neighborhoods import Substitutions, zs
from pyro_ksd.fit_tests import tilting
from pyro_ksd.fit_tests.jumps import Jumps, jumps_of
from pyro_ksd.fit_tests.tilting import (
    Sides,
    Tilts,
    selection_shift,
    tilt_each,
    tilt_jointly,
    tilts,
    tilts_at,
)
from pyro_ksd.models import LinearChainMRF, SequenceModel
from pyro_ksd.models.wrappers.tilted import TiltedModel
from pyro_ksd.sequences.container import Sequences

COUNTS = [Count("ngram", (0, 1)), Count("ngram", (2,)), Count("first", (1,)), Count("last", (0,))]


def plain_scores(model: SequenceModel, rows: list[Codes], count: Count, theta: float) -> tuple[list[float], Tensor]:
    """The scores of the sequences and their derivatives, in plain loops."""
    scores = []
    slopes = []
    for x, neighbors in zip(rows, around(zs(), rows, 3), strict=True):
        both = model.log_joint(Sequences.of([x, *neighbors], 3)).tolist()
        score = slope = 0.0
        for y, log_p in zip(neighbors, both[1:], strict=True):
            change = plain_count(count, y) - plain_count(count, x)
            weight = oracle.barker(theta * change + log_p - both[0])
            score += weight * change
            slope += weight * (1 - weight) * change**2
        scores.append(score)
        slopes.append(slope)
    return scores, torch.tensor(slopes, dtype=torch.double)


def plain_events(model: SequenceModel, rows: list[Codes], count: Count, theta: float) -> tuple[float, float]:
    """How many sequences, effectively, gain and lose a count, in plain loops."""
    gains = []
    losses = []
    for x, neighbors in zip(rows, around(zs(), rows, 3), strict=True):
        both = model.log_joint(Sequences.of([x, *neighbors], 3)).tolist()
        changes = [plain_count(count, y) - plain_count(count, x) for y in neighbors]
        jumps = [
            change * oracle.barker(theta * change + log_p - both[0])
            for change, log_p in zip(changes, both[1:], strict=True)
        ]
        gains.append(sum(jump for jump in jumps if jump > 0))
        losses.append(sum(-jump for jump in jumps if jump < 0))
    gained, lost = (sum(side) ** 2 / sum(part**2 for part in side) for side in (gains, losses))
    return gained, lost


def plain_shift(events: float, least: float = 5.0) -> float:
    """How much further down the mean of a Poisson number may lie that is at least ``least``, by its distribution."""
    alone = brentq(lambda mean: gamma.cdf(mean, events) - 0.025, 1e-9, events)
    given = brentq(lambda mean: gamma.cdf(mean, events) / gamma.cdf(mean, least) - 0.025, 1e-9, events)
    return math.log(alone / given)


@pytest.mark.parametrize("model", [small_mrf(longest=7), bounded(spread_chain())])
def test_estimate_and_error_in_plain_loops(model: SequenceModel) -> None:
    space = SPACE[model.log_joint(SPACE) > -torch.inf]
    data = space[torch.randint(len(space), (30,), generator=torch.Generator().manual_seed(0))]
    rows: list[Codes] = [tuple(x) for x in data.to_lists()]  # type: ignore[misc]
    found = tilts(model, data, zs(), COUNTS)
    for place, count in enumerate(COUNTS):
        root = brentq(lambda theta, count=count: sum(plain_scores(model, rows, count, theta)[0]), -9, 9, xtol=1e-12)
        scores, slopes = plain_scores(model, rows, count, root)
        left = [score / float(slopes.sum() - slope) for score, slope in zip(scores, slopes, strict=True)]
        error = math.sqrt(sum(part**2 for part in left))
        assert float(found.log_factor[place]) == pytest.approx(root, abs=1e-9)
        assert float(found.error[place]) == pytest.approx(error, rel=1e-7)
        events = plain_events(model, rows, count, root)
        assert float(found.events[place]) == pytest.approx(min(events), rel=1e-7)
        usual = student.ppf(0.975, 2 * (min(events) - 1))
        up, down = ((usual + math.sqrt(number) * plain_shift(number)) * error for number in events)
        assert float(found.low[place]) == pytest.approx(root - down, abs=1e-7)
        assert float(found.high[place]) == pytest.approx(root + up, abs=1e-7)


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = bounded(spread_chain())
    data = SPACE[torch.randint(1, len(SPACE), (40,), generator=torch.Generator().manual_seed(1))]
    counts = [*COUNTS, Count("length")]
    whole = tilts(model, data, zs(), counts)
    joint = tilt_jointly(jumps_of(model, data, zs(), counts), range(5), 0.95)
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.EDITS", 100)
    assert len(jumps_of(model, data, zs(), counts)) > 5
    parts = tilts(model, data, zs(), counts)
    again = tilt_jointly(jumps_of(model, data, zs(), counts), range(5), 0.95)
    for name in ("log_factor", "error", "low", "high", "events"):
        torch.testing.assert_close(getattr(parts, name), getattr(whole, name), rtol=1e-8, atol=1e-9)
        torch.testing.assert_close(getattr(again, name), getattr(joint, name), rtol=1e-7, atol=1e-8)


def test_frequent_counts_need_only_some_of_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.EDITS", 2000)
    model = bounded(spread_chain(rare=8.0))
    p = model.log_joint(SPACE).softmax(0)
    rows = p.multinomial(2000, replacement=True, generator=torch.Generator().manual_seed(6))
    data = SPACE[rows.sort().values]  # sorted data would mislead whoever takes the first of them
    counts = [Count("ngram", (2, 2)), Count("ngram", (0,))]
    whole = jumps_of(model, data, zs(), counts)
    some = jumps_of(model, data, zs(), counts, enough=4000)
    sizes = [torch.cat([part.count for part in parts]).bincount().tolist() for parts in (whole, some)]
    assert 4000 <= sizes[1][1] < 5500 < sizes[0][1]
    assert sizes[1][0] == sizes[0][0] < 4000
    assert [int((part.count == 1).any()) for part in some] == sorted(
        (int((part.count == 1).any()) for part in some), reverse=True
    )
    monkeypatch.setattr(tilting, "ENOUGH", 4000)
    found = tilts(model, data, zs(), counts)
    assert bool((found.log_factor.abs() < 4 * found.error).all())
    assert len(jumps_of(model, data, zs(), counts[1:], enough=4000)) < len(some)


@pytest.mark.parametrize(("size", "known"), [(5.0, True), (10.9, True), (15.0, False)])
def test_factors_that_are_too_large_are_not_estimates(size: float, known: bool) -> None:
    """Twenty sequences gain the count with the probability ratio exp(-size), and twenty lose it with exp(size)."""
    owner = torch.arange(40, dtype=torch.int32)
    change = torch.tensor([1, -1], dtype=torch.int8).repeat(20)
    jumps = Jumps(40, owner, -size * change.double(), owner, torch.zeros_like(owner), change)
    for found in (tilt_each([jumps], 1, 0.95), tilt_jointly([jumps], [0], 0.95)):
        assert found.is_known.tolist() == [known]
        if known:
            assert float(found.log_factor) == pytest.approx(size)


def population(model: SequenceModel, counts: list[Count], thetas: list[float], size: int = 300_000) -> Sequences:
    """Every short sequence as often as the tilted model says, up to rounding."""
    log_p = TiltedModel(model, dict(zip(counts, thetas, strict=True))).log_joint(SPACE)
    times = (log_p.softmax(0) * size).round().long()
    return SPACE[torch.arange(len(SPACE)).repeat_interleave(times)]


@pytest.mark.parametrize("count", [*COUNTS, Count("length"), Count("ngram", (0, 1, 0))])
def test_a_planted_factor_is_found_in_a_whole_population(count: Count, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tilting, "ENOUGH", math.inf)
    model = bounded(spread_chain())
    found = tilts(model, population(model, [count], [math.log(1.4)]), zs(), [count])
    assert float(found.log_factor.exp()) == pytest.approx(1.4, abs=0.005)


def test_joint_factors_separate_cause_from_side_effect() -> None:
    model = bounded(spread_chain())
    counts = [*COUNTS, Count("length")]
    data = population(model, [COUNTS[0], Count("length")], [math.log(2.0), math.log(0.8)])
    alone = tilts(model, data, zs(), counts).log_factor.exp()
    together = tilt_jointly(jumps_of(model, data, zs(), counts), range(5), 0.95).log_factor.exp()
    torch.testing.assert_close(together, torch.tensor([2.0, 1, 1, 1, 0.8]).double(), rtol=0, atol=0.01)
    assert float((alone[1:4] - 1).abs().max()) > 0.1


def test_one_joint_factor_is_a_single_one() -> None:
    model = bounded(spread_chain())
    data = SPACE[torch.randint(1, len(SPACE), (60,), generator=torch.Generator().manual_seed(1))]
    single = tilts(model, data, zs(), COUNTS[:1])
    joint = tilt_jointly(jumps_of(model, data, zs(), COUNTS[:1]), [0], 0.95)
    for name in ("log_factor", "error", "low", "high", "events"):
        torch.testing.assert_close(getattr(joint, name), getattr(single, name), rtol=1e-8, atol=1e-9)


def test_the_length_is_not_blamed_for_symbols() -> None:
    chain = spread_chain()
    other = population(bounded(chain), [Count("ngram", (0, 0))], [math.log(2.0)])
    lengths = (
        bounded(chain)
        .log_joint(SPACE)
        .softmax(0)
        .new_zeros(8)
        .index_add_(0, SPACE.lengths, bounded(chain).log_joint(SPACE).softmax(0))
    )
    observed = other.lengths.bincount(minlength=8).double() / len(other)
    weight = (lengths / observed).nan_to_num(0.0)[other.lengths]
    chosen = weight.multinomial(100_000, replacement=True, generator=torch.Generator().manual_seed(0))
    found = tilts(bounded(chain), other[chosen], zs(), [Count("length")])
    assert float(found.log_factor.exp()) == pytest.approx(1.0, abs=0.03)


def test_the_order_of_the_counts_does_not_matter() -> None:
    model = bounded(spread_chain())
    data = SPACE[torch.randint(1, len(SPACE), (60,), generator=torch.Generator().manual_seed(2))]
    forth = tilts(model, data, zs(), [*COUNTS, Count("length")])
    back = tilts(model, data, zs(), [Count("length"), *COUNTS[::-1]])
    torch.testing.assert_close(back.log_factor.flip(0), forth.log_factor)


def test_what_cannot_be_estimated_is_flagged() -> None:
    model = walk()
    data = Sequences.of([[0, 1, 2, 3, 4], [1, 2, 1], [4, 3, 4, 0]] * 20, 5)
    counts = [
        Count("ngram", (0, 0)),  # nowhere in the data
        Count("ngram", (1, 2)),
        Count("ngram", (0,) * 9),  # which no edit can make
        Count("last", (3,)),
    ]
    found = tilts(model, data, zs(), counts)
    assert found.is_known.tolist() == [False, True, False, False]
    for values in (found.log_factor, found.error, found.low, found.high):
        assert values.isnan().tolist() == [True, False, True, True]
    assert found.events.tolist()[0] == found.events.tolist()[2] == 0.0
    joint = tilt_jointly(jumps_of(model, data, zs(), counts), [0, 1], 0.95)
    assert joint.is_known.tolist() == [False, True]


def test_a_handful_of_sequences_is_needed() -> None:
    model = walk()
    common = [[0, 1, 2], [3, 4, 0]] * 50
    for times, known in ((4, False), (8, True), (12, True)):  # the walk hardly ever stays
        found = tilts(model, Sequences.of([*common, *[[2, 2]] * times], 5), zs(), [Count("ngram", (2, 2))])
        assert float(found.events) == pytest.approx(times, rel=0.1)
        assert bool(found.is_known) is known


def test_exactly_a_handful_is_enough_whatever_the_rounding() -> None:
    for portion in (0.1, 0.3, 0.7, 1.1):
        losses = torch.full((5, 1), portion, dtype=torch.double)
        gains = torch.full((7, 1), 5 * portion / 7, dtype=torch.double)
        sides = Sides.of(torch.cat([gains, 0 * losses]), torch.cat([0 * gains, losses]))
        assert sides.events.squeeze(1).tolist() == pytest.approx([7.0, 5.0])
        assert bool(sides.are_many)


def test_a_number_that_is_known_only_if_it_is_large() -> None:
    # Of all Poisson numbers that are at least 5, the intervals from below miss the mean at most in 2.5 %.
    events = torch.arange(5, 60, dtype=torch.double)
    alone = torch.tensor(gamma.ppf(0.025, events.numpy()))
    lowest = (alone.log() - selection_shift(events, 0.95)).exp()
    assert float(lowest[0]) == 0.0
    assert selection_shift(events, 0.95)[20:].max() < 1e-3
    for mean in (0.1, 0.5, 1.0, 3.0, 5.0, 9.0, 15.0):
        chance = torch.tensor(poisson.pmf(events.numpy(), mean))
        missed = float(chance[lowest > mean].sum() / chance.sum())
        alone_missed = float(chance[alone > mean].sum() / chance.sum())
        assert missed <= 0.025
        assert alone_missed > 0.5 or mean > 1
    assert selection_shift(torch.tensor([6.0]).double(), 0.99) > selection_shift(torch.tensor([6.0]).double(), 0.95)


def test_intervals_at_another_coverage() -> None:
    model = bounded(spread_chain())
    data = SPACE[torch.randint(1, len(SPACE), (60,), generator=torch.Generator().manual_seed(1))]
    jumps = jumps_of(model, data, zs(), [*COUNTS, Count("ngram", (0,) * 7)])
    usual = tilt_each(jumps, 5, 0.95)
    wide = tilts_at(jumps, usual.log_factor, 0.999)
    assert usual.is_known.tolist() == [True] * 4 + [False]
    for name in ("log_factor", "error", "low", "high", "events"):
        direct = getattr(tilt_each(jumps, 5, 0.999), name)
        torch.testing.assert_close(getattr(wide, name), direct, rtol=1e-8, atol=1e-9, equal_nan=True)
    assert bool((wide.low[:4] < usual.low[:4]).all())


def test_without_changes_of_length_the_length_has_no_factor() -> None:
    data = Sequences.of([[0, 1, 2]] * 20, 5)
    found = tilt_jointly(jumps_of(walk(), data, Substitutions(), [Count("length")]), [0], 0.95)
    assert found.is_known.tolist() == [False]


def made_up(low: float, high: float) -> Tilts:
    low, high = math.log(low), math.log(high)
    values = [torch.tensor([value], dtype=torch.double) for value in ((low + high) / 2, 0.1, low, high, 50.0)]
    return Tilts(*values)


@pytest.mark.parametrize(
    ("low", "high", "outside", "within"),
    [
        (1.3, 2.0, True, False),
        (0.4, 0.7, True, False),
        (1.2, 1.3, False, False),
        (0.9, 1.2, False, True),
        (1.25, 2.0, False, False),
        (0.9, 1.25, False, True),
        (0.9, math.nextafter(1.25, 2.0), False, False),
        (math.nan, math.nan, False, False),
    ],
)
def test_tolerance(low: float, high: float, outside: bool, within: bool) -> None:
    assert bool(made_up(low, high).outside(1.25)) is outside
    assert bool(made_up(low, high).within(1.25)) is within
    tilt = made_up(low, high)
    mirrored = replace(tilt, low=-tilt.high, high=-tilt.low)
    assert bool(mirrored.outside(1.25)) is outside
    assert bool(mirrored.within(1.25)) is within


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"coverage": 95}, "coverage: expected a number between 0 and 1"),
        ({"counts": []}, "counts: expected a list of distinct counts"),
        ({"counts": [Count("first", (7,))]}, "codes of 5 symbols"),
        ({"neighborhood": None}, "neighborhood: expected"),
        ({"sequences": ["ab"]}, "sequences: expected"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], words: str) -> None:
    arguments = {"model": walk(), "sequences": Sequences.of([[0]], 5), "neighborhood": zs(), "counts": COUNTS[:1]}
    with pytest.raises(ValueError, match=words):
        tilts(**(arguments | options))


def test_wrong_tolerance() -> None:
    with pytest.raises(ValueError, match="tolerance: expected a factor of at least 1"):
        made_up(1.0, 1.1).outside(0.8)


FIELD = LinearChainMRF(
    torch.tensor([[1.0, 0, -1], [0, 0.5, 0], [-1, 0, 1]], dtype=torch.double), length=-torch.arange(8).double()
)
TRUTHS = {"chain": bounded(spread_chain()), "rare": bounded(spread_chain(rare=20.0)), "MRF": FIELD}
PLANTED = [
    Count("ngram", (0, 1)),
    Count("ngram", (2, 0)),
    Count("ngram", (2, 2)),
    Count("ngram", (2,)),
    Count("first", (1,)),
    Count("last", (2,)),
    Count("length"),
]


def simulated(model: SequenceModel, count: Count, factor: float, size: int, runs: int, seed: int) -> Tilts:
    """Estimates from data sets of ``size`` sequences of the model with a planted factor, ``[runs]``."""
    p = TiltedModel(model, {count: math.log(factor)}).log_joint(SPACE).softmax(0)
    generator = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(runs):
        rows = p.multinomial(size, replacement=True, generator=generator)
        found.append(tilts(model, SPACE[rows].narrowed(), zs(), [count]))
    names = ("log_factor", "error", "low", "high", "events")
    return Tilts(*(torch.cat([getattr(one, name) for one in found]) for name in names))


@pytest.mark.slow
@pytest.mark.parametrize("size", [50, 200, 1000])
@pytest.mark.parametrize("name", TRUTHS)
def test_coverage_of_a_planted_factor(name: str, size: int) -> None:
    runs = 400 if size < 1000 else 200
    truth = math.log(1.4)
    for place, count in enumerate(PLANTED):
        found = simulated(TRUTHS[name], count, 1.4, size, runs, seed=1000 + place)
        known = int(found.is_known.sum())
        covered = int(((found.low <= truth) & (truth <= found.high)).sum())
        middle = float(found.log_factor.nanmedian().exp())
        print(f"\n{name}, n = {size}, {count.kind} {count.symbols}: {covered} of {known} known of {runs}, {middle:.3f}")
        assert covered >= binom.ppf(0.0005, known, 0.94)
        if known and float(found.events.median()) > 20:  # intervals of what is rare allow for its selection
            assert covered <= binom.ppf(0.9995, known, 0.97)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.5, 1.0, 1.4, 3.0])
@pytest.mark.parametrize("rare", [4.0, 8.0, 14.0, 20.0])
def test_factors_of_rare_ngrams_are_in_their_intervals(rare: float, factor: float) -> None:
    runs = 400
    truth = math.log(factor)
    found = simulated(bounded(spread_chain(rare)), Count("ngram", (2, 2)), factor, 200, runs, seed=3000)
    known = int(found.is_known.sum())
    covered = int(((found.low <= truth) & (truth <= found.high)).sum())
    print(f"\nrare {rare}, factor {factor}: {covered} of {known} known of {runs}")
    assert covered >= binom.ppf(0.0005, known, 0.95)  # of those that are stated, however few


@pytest.mark.slow
@pytest.mark.parametrize("size", [100, 1000])
@pytest.mark.parametrize("factor", [1.25, 1 / 1.25])
def test_level_of_a_tolerance_at_its_boundary(factor: float, size: int) -> None:
    runs = 400
    for name in ("chain", "MRF"):
        found = simulated(TRUTHS[name], Count("ngram", (0, 1)), factor, size, runs, seed=2000 + size)
        outside, within = int(found.outside(1.25).sum()), int(found.within(1.25).sum())
        print(f"\n{name}, factor {factor:.2f}, n = {size}: {outside} outside, {within} within, of {runs}")
        assert max(outside, within) <= binom.ppf(0.9995, runs, 0.025)


@pytest.mark.parametrize("tolerance", [0.0, -1.0, "1", torch.nan, 0.999])
def test_tolerances_are_factors_of_at_least_1(tolerance: Any) -> None:
    own = made_up(1.0, 1.0)
    assert own.within(1.0).all()
    for look in (own.within, own.outside):
        with pytest.raises(ValueError, match="tolerance: expected a "):
            look(tolerance)


def test_portions_are_typical_gains_and_losses() -> None:
    gains = torch.tensor([[2.0, 0.0], [4.0, 0.0]], dtype=torch.double)
    losses = torch.tensor([[0.0, 0.0], [3.0, 0.0]], dtype=torch.double)
    assert Sides.of(gains, losses).portions.tolist() == [[20 / 6, 0.0], [3.0, 0.0]]

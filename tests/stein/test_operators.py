# SPDX-License-Identifier: Apache-2.0
"""Stein operators on a space small enough to sum over all of it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import product
from typing import Any

import oracle
import pytest
import torch
from example_models import Unsampled

from pyro_ksd.edits.neighborhoods import (
    BeforeEnd,
    CustomNeighborhood,
    DoubleSubstitutions,
    InsertionsDeletions,
    Neighborhood,
    Substitutions,
    zs,
)
from pyro_ksd.edits.prefix_neighborhoods import prefix_zs
from pyro_ksd.edits.splices import Edits
from pyro_ksd.kernels.length import LengthDistribution, LengthKernel
from pyro_ksd.models import MarkovSequence
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.operators import (
    HeatBathOperator,
    LengthOperator,
    Operator,
    TailBlockOperator,
    ZanellaOperator,
    block_ratios,
)
from pyro_ksd.stein.views import View

pytestmark = pytest.mark.usefixtures("engine")

Codes = tuple[int, ...]
Rates = dict[tuple[Codes, Codes], float]

SIZE, LONGEST = 3, 4
SPACE: list[Codes] = [x for length in range(LONGEST + 1) for x in product(range(SIZE), repeat=length)]
BALANCINGS: dict[str, Callable[[float], float]] = {
    "barker": oracle.barker,
    "mpf": oracle.mpf,
    "metropolis": oracle.metropolis,
}
FUNCTIONS: dict[str, Callable[[Codes], float]] = {
    "length squared": lambda x: float(len(x) ** 2),
    "empty": lambda x: float(x == ()),
    "last symbol": lambda x: float(x[-1] if x else -1),
    "first symbol": lambda x: float(x[:1] == (1,)),
    "noise": lambda x: random.Random(str(x)).gauss(0, 1),
    "one sequence": lambda x: float(x == (0, 2, 1)),
}


def distribution(seed: int) -> dict[Codes, float]:
    """Probabilities of very different sizes on the space; a fifth of the sequences are impossible."""
    generator = random.Random(seed)
    weights = {x: 0.0 if generator.random() < 0.2 else math.exp(generator.gauss(0, 2)) for x in SPACE}
    weights[()] = 1.0
    weights.update(dict.fromkeys([(2,), (2, 0), (0, 1, 0), (0, 1, 1), (0, 1, 2)], 0.0))  # blocks without any mass
    weights.update(dict.fromkeys([(1, 2), (1, 2, 0), (2, 2, 0), (1, 1, 1, 1)], 0.5))
    total = math.fsum(weights.values())
    return {x: weight / total for x, weight in weights.items()}


def log_of(p: dict[Codes, float]) -> Callable[[Codes], float]:
    return lambda x: math.log(p[x]) if p.get(x, 0.0) > 0 else -math.inf


def evaluate(
    operator: Operator, log_p: Callable[[Codes], float], rows: list[Codes]
) -> tuple[Edits, torch.Tensor, Rates]:
    """Weights of the operator around the rows, flat and by pair (x, y)."""
    data = Sequences.of(rows, alphabet=SIZE)
    edits = operator.neighborhood.edits(data)
    targets: list[Codes] = [tuple(y) for y in edits.apply(data).to_lists()]  # type: ignore[arg-type]
    pairs = [(rows[owner], y) for owner, y in zip(edits.owner.tolist(), targets, strict=True)]
    log_ratio = torch.tensor([log_p(y) - log_p(x) for x, y in pairs], dtype=torch.double)
    weights = operator.weights(data, edits, log_ratio)
    assert weights.shape == log_ratio.shape
    assert weights.dtype == torch.double
    assert weights.isfinite().all()
    assert (weights >= 0).all()
    assert len(set(pairs)) == len(pairs)
    return edits, weights, dict(zip(pairs, weights.tolist(), strict=True))


def block_rates(p: dict[Codes, float], g: Callable[[float], float]) -> Rates:
    """The rates of the tail block moves as they are written down."""
    rates: Rates = {}
    for x in SPACE:
        if len(x) == LONGEST:
            continue
        above = math.fsum(p[(*x, s)] for s in range(SIZE))
        for s in range(SIZE):
            y = (*x, s)
            if p[x] > 0:
                rates[x, y] = g(math.log(above / p[x])) * p[y] / above if above > 0 else 0.0
            if p[y] > 0:
                rates[y, x] = g(math.log(p[x] / above)) if p[x] > 0 else 0.0
    return rates


NEIGHBORHOODS: dict[str, Neighborhood] = {
    "zs": zs(),
    "last": zs(locations=1),
    "substitutions": Substitutions(symbols=1),
    "indel": InsertionsDeletions(2),
    "double": zs(2) | DoubleSubstitutions(),
}
OPERATORS: dict[str, Callable[[str], Operator]] = {
    **{name: lambda g, name=name: ZanellaOperator(NEIGHBORHOODS[name], g) for name in NEIGHBORHOODS},  # type: ignore[misc]
    "tail": TailBlockOperator,
}


@pytest.mark.parametrize("balancing", BALANCINGS)
@pytest.mark.parametrize("name", OPERATORS)
def test_invariance_and_detailed_balance(name: str, balancing: str) -> None:
    p = distribution(seed=1)
    support = [x for x in SPACE if p[x] > 0]
    assert len(support) < 0.9 * len(SPACE)
    _, _, rates = evaluate(OPERATORS[name](balancing), log_of(p), support)
    assert sum(rate > 0 for rate in rates.values()) > len(support)
    for (x, y), rate in rates.items():
        if p.get(y, 0.0) == 0:
            assert rate == 0.0
        else:
            assert p[x] * rate == pytest.approx(p[y] * rates[y, x], rel=1e-12, abs=0)
    assert math.fsum(p[x] * rate for (x, _), rate in rates.items()) > 0.1  # zero must come from balance, not from rest
    for function in FUNCTIONS.values():
        changes = [p[x] * rate * (function(y) - function(x)) for (x, y), rate in rates.items()]
        assert abs(math.fsum(changes)) < 1e-12


def test_the_identity_fails_for_another_model() -> None:
    p, q = distribution(seed=1), distribution(seed=2)
    support = [x for x in SPACE if p[x] > 0 and q[x] > 0]
    for make in OPERATORS.values():
        _, _, rates = evaluate(make("barker"), log_of(p), support)
        noise = FUNCTIONS["noise"]
        assert abs(math.fsum(q[x] * rate * (noise(y) - noise(x)) for (x, y), rate in rates.items())) > 1e-3


@pytest.mark.parametrize("balancing", BALANCINGS)
@pytest.mark.parametrize(
    ("neighborhood", "options"),
    [
        (zs(), {}),
        (zs(locations=2), {"locations": 2}),
        (Substitutions(), {"indel": False}),
        (InsertionsDeletions(), {"substitute": False}),
        (zs() | DoubleSubstitutions(), {"double": True}),
    ],
)
def test_zanella_weights(neighborhood: Neighborhood, options: dict[str, bool], balancing: str) -> None:
    p = distribution(seed=3)
    support = [x for x in SPACE if p[x] > 0]
    edits, weights, rates = evaluate(ZanellaOperator(neighborhood, balancing), log_of(p), support)
    total = edits.sum_by_owner(weights)
    for row, x in enumerate(support):
        around = oracle.neighbors(x, SIZE, **options)  # type: ignore[arg-type]
        expected = oracle.operator(log_of(p), x, around, BALANCINGS[balancing])
        assert -total[row].item() == pytest.approx(expected.pop(x), rel=1e-12)
        assert {y: rate for (start, y), rate in rates.items() if start == x} == pytest.approx(
            expected, rel=1e-12, abs=0
        )


def test_zanella_defaults_and_own_functions() -> None:
    operator = ZanellaOperator()
    data = Sequences.of([(0, 1)], alphabet=3)
    assert len(operator.neighborhood.edits(data)) == len(oracle.neighbors((0, 1), 3))
    ratios = torch.tensor([-1.0, 0.0, 2.0])
    assert operator.weights(data, operator.neighborhood.edits(data), ratios).equal(ratios.sigmoid())
    twice = ZanellaOperator(balancing=lambda r: 2 * r.sigmoid())
    assert twice.weights(data, operator.neighborhood.edits(data), ratios).equal(2 * ratios.sigmoid())


@pytest.mark.parametrize("make", [ZanellaOperator, TailBlockOperator])
def test_bad_balancing_is_refused_when_the_operator_is_made(make: Callable[..., Operator]) -> None:
    with pytest.raises(ValueError, match="balancing: expected one of"):
        make(balancing="gibbs")
    with pytest.raises(ValueError, match=r"balancing: expected g\(t\) = t g\(1/t\)"):
        make(balancing=torch.exp)


@pytest.mark.parametrize("balancing", BALANCINGS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_tail_block_rates(balancing: str, seed: int) -> None:
    p = distribution(seed)
    support = [x for x in SPACE if p[x] > 0]
    _, _, rates = evaluate(TailBlockOperator(balancing), log_of(p), support)
    expected = block_rates(p, BALANCINGS[balancing])
    for (x, y), rate in rates.items():
        assert rate == pytest.approx(expected.pop((x, y), 0.0), rel=1e-12, abs=0)
    assert expected == {}


@pytest.mark.parametrize("balancing", BALANCINGS)
def test_tail_block_averages_over_the_last_symbol(balancing: str) -> None:
    """On functions of the length only the sums over blocks matter: siblings have equal rates downward."""
    p = distribution(seed=2)
    support = [x for x in SPACE if p[x] > 0]
    _, _, rates = evaluate(TailBlockOperator(balancing), log_of(p), support)
    for x in support:
        down = {rates[y, x] for y in ((*x, s) for s in range(SIZE)) if (y, x) in rates}
        assert max(down, default=0.0) == pytest.approx(min(down, default=0.0), rel=1e-12, abs=0)


def test_tail_block_takes_the_edits_of_several_models_one_after_the_other() -> None:
    data = Sequences.of([[0, 1], [], [1]], SIZE)
    operator = TailBlockOperator("mpf")
    edits = operator.neighborhood.edits(data)
    ratios = [torch.randn(len(edits), dtype=torch.double, generator=torch.Generator().manual_seed(s)) for s in (0, 1)]
    found = operator.weights(data, Edits.cat([edits, edits]), torch.cat(ratios))
    assert found.equal(torch.cat([operator.weights(data, edits, own) for own in ratios]))


def test_tail_block_does_not_depend_on_batch_mates() -> None:
    p = distribution(seed=1)
    support = [x for x in SPACE if p[x] > 0]
    _, _, together = evaluate(TailBlockOperator("mpf"), log_of(p), support)
    alone: Rates = {}
    for x in support:
        alone |= evaluate(TailBlockOperator("mpf"), log_of(p), [x])[2]
    assert alone == pytest.approx(together, rel=1e-14, abs=0)


@pytest.mark.parametrize("balancing", BALANCINGS)
def test_tail_block_at_the_maximal_length(balancing: str) -> None:
    def log_p(x: Codes) -> float:
        return 0.0 if len(x) <= 2 else -math.inf

    _, _, rates = evaluate(TailBlockOperator(balancing), log_p, [(0, 1)])
    g = BALANCINGS[balancing]
    assert {y: rate for (_, y), rate in rates.items() if len(y) == 3} == {(0, 1, s): 0.0 for s in range(SIZE)}
    assert rates[(0, 1), (0,)] == pytest.approx(g(-math.log(SIZE)), rel=1e-14)


@pytest.mark.parametrize("balancing", BALANCINGS)
def test_tail_block_of_the_empty_sequence(balancing: str) -> None:
    def log_p(x: Codes) -> float:
        return -2.0 * len(x)

    g = BALANCINGS[balancing]
    _, _, rates = evaluate(TailBlockOperator(balancing), log_p, [()])
    assert rates == pytest.approx({((), (s,)): g(math.log(SIZE) - 2) / SIZE for s in range(SIZE)}, rel=1e-14)
    _, _, rates = evaluate(TailBlockOperator(balancing), lambda x: 0.0 if x == () else -math.inf, [()])
    assert rates == {((), (s,)): 0.0 for s in range(SIZE)}


@pytest.mark.parametrize("balancing", BALANCINGS)
def test_tail_block_where_the_shorter_sequence_is_impossible(balancing: str) -> None:
    _, _, rates = evaluate(TailBlockOperator(balancing), lambda x: 0.0 if len(x) == 1 else -math.inf, [(0,), (2,)])
    assert set(rates.values()) == {0.0}


@pytest.mark.parametrize("balancing", BALANCINGS)
def test_all_neighbors_impossible(balancing: str) -> None:
    only = (0, 1, 2)
    for make in OPERATORS.values():
        _, weights, _ = evaluate(make(balancing), lambda x: 0.0 if x == only else -math.inf, [only])
        assert not weights.any()


@pytest.mark.parametrize("balancing", BALANCINGS)
def test_very_unlikely_sequences_keep_their_ratios(balancing: str) -> None:
    """Log-probabilities far below the smallest double must not underflow: only ratios count."""

    def log_p(x: Codes) -> float:
        return -5000.0 - 1.5 * len(x) - 0.25 * sum(x)

    def lifted(x: Codes) -> float:
        return log_p(x) + 5000.0

    low = evaluate(TailBlockOperator(balancing), log_p, [(0, 2), ()])[2]
    high = evaluate(TailBlockOperator(balancing), lifted, [(0, 2), ()])[2]
    assert low == pytest.approx(high, rel=1e-10)


@pytest.mark.parametrize("balancing", BALANCINGS)
@pytest.mark.parametrize("slope", [-800.0, -600.0, 0.0, 600.0, 800.0])
def test_ratios_beyond_the_range_of_doubles(balancing: str, slope: float) -> None:
    """Ratios of exp(±800) neither vanish nor overflow on their way through the block sums."""
    g = BALANCINGS[balancing]
    block = math.log(sum(math.exp(-0.25 * s) for s in range(SIZE)))
    rates = evaluate(TailBlockOperator(balancing), lambda x: slope * len(x) - 0.25 * sum(x), [(), (2,)])[2]
    for s in range(SIZE):
        share = math.exp(-0.25 * s - block)
        assert rates[(), (s,)] == pytest.approx(g(slope + block) * share, rel=1e-10, abs=0)
        assert rates[(2,), (2, s)] == pytest.approx(g(slope + block) * share, rel=1e-10, abs=0)
    assert rates[(2,), ()] == pytest.approx(g(-slope - block), rel=1e-10, abs=0)


# --------------------------------------------------------------------------------------------- drawing symbols anew


def after_itself(x: Sequences, top: int) -> torch.Tensor:
    """After a symbol may come itself or the next one, at the start any symbol."""
    before = torch.nn.functional.pad(x.tokens, (1, 0))
    codes = torch.stack([before, (before + 1) % SIZE, (before + 2) % SIZE], 2)
    codes[:, 1:, 2] = -1
    return codes[..., :top]


HEAT_BATHS: dict[str, tuple[Neighborhood, bool]] = {
    "zs": (zs(), True),
    "substitutions": (Substitutions(), True),
    "last two": (zs(locations=2), True),
    "before the end": (BeforeEnd(zs()), True),
    "prefixes": (prefix_zs(after_itself, 3), True),
    "and double substitutions": (zs() | DoubleSubstitutions(), True),
    "ring": (zs(symbols=torch.eye(SIZE).roll(1, 1) + torch.eye(SIZE).roll(-1, 1) > 0), False),
    "only 0 and 1": (Substitutions(symbols=torch.tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]]).bool()), False),
    "rotations": (CustomNeighborhood(lambda x: [(*x[:-1], (x[-1] + d) % SIZE) for d in (1, 2) if x]), False),
}


def place_of_substitution(x: Codes, y: Codes) -> int | None:
    """Where two sequences differ, if that is one symbol."""
    places = [i for i, (a, b) in enumerate(zip(x, y, strict=False)) if a != b]
    return places[0] if len(x) == len(y) and len(places) == 1 else None


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", HEAT_BATHS)
def test_heat_bath(name: str, seed: int) -> None:
    """The weights as they are written down, detailed balance, and the Stein identity."""
    neighborhood, is_free = HEAT_BATHS[name]
    p = distribution(seed)
    support = [x for x in SPACE if p[x] > 0]
    _, _, rates = evaluate(HeatBathOperator(neighborhood), log_of(p), support)
    assert neighborhood.replaces_freely == is_free
    moved = 0
    for (x, y), rate in rates.items():
        place = place_of_substitution(x, y)
        if place is None:
            assert rate == 0.0
            continue
        there = {z for own, z in rates if own == x and place_of_substitution(x, z) == place} if is_free else {y}
        total = math.fsum([p[x], *(p[z] for z in there)])
        assert rate == pytest.approx(p[y] / total, rel=1e-12, abs=0)
        if p[y] > 0:
            assert p[x] * rate == pytest.approx(p[y] * rates[y, x], rel=1e-12, abs=0)
            moved += 1
    assert moved > 20
    for function in FUNCTIONS.values():
        changes = [p[x] * rate * (function(y) - function(x)) for (x, y), rate in rates.items()]
        assert abs(math.fsum(changes)) < 1e-13


def test_heat_bath_compares_a_symbol_with_its_distribution_given_the_rest() -> None:
    p = distribution(seed=1)
    support = [x for x in SPACE if p[x] > 0 and len(x) == 3]
    _, _, rates = evaluate(HeatBathOperator(), log_of(p), support)
    for x in support:
        whole = [p[(s, *x[1:])] for s in range(SIZE)]
        mean = math.fsum(s * own for s, own in enumerate(whole)) / math.fsum(whole)
        found = math.fsum(rate * (y[0] - x[0]) for (own, y), rate in rates.items() if own == x and len(y) == 3)
        assert found == pytest.approx(mean - x[0], rel=1e-12, abs=1e-13)


def test_heat_bath_does_not_depend_on_batch_mates() -> None:
    p = distribution(seed=1)
    support = [x for x in SPACE if p[x] > 0]
    _, _, together = evaluate(HeatBathOperator(), log_of(p), support)
    alone: Rates = {}
    for x in support:
        alone |= evaluate(HeatBathOperator(), log_of(p), [x])[2]
    assert alone == pytest.approx(together, rel=1e-14, abs=0)


@pytest.mark.parametrize("slope", [-800.0, -300.0, 0.0, 300.0, 800.0])
def test_heat_bath_for_ratios_beyond_the_range_of_doubles(slope: float) -> None:
    rates = evaluate(HeatBathOperator(Substitutions()), lambda x: slope * sum(x), [(1,)])[2]
    expected = {0: 1 / (1 + math.exp(min(slope, 700)) + math.exp(min(2 * slope, 700))), 1: 0.0}
    expected[2] = 1 / (1 + math.exp(min(-slope, 700)) + math.exp(min(-2 * slope, 700)))
    for s in (0, 2):
        assert rates[(1,), (s,)] == pytest.approx(expected[s], rel=1e-9, abs=1e-300)


def test_heat_bath_where_nothing_can_be_replaced() -> None:
    _, weights, _ = evaluate(HeatBathOperator(), lambda x: 0.0 if x == (0, 1) else -math.inf, [(0, 1)])
    assert not weights.any()
    _, weights, _ = evaluate(HeatBathOperator(Substitutions()), lambda x: 0.0, [()])
    assert weights.shape == (0,)
    data = Sequences.of([(0, 1)], alphabet=SIZE)
    nothing = CustomNeighborhood(lambda x: [])
    assert HeatBathOperator(nothing).weights(data, Edits((), 1), torch.zeros(0)).shape == (0,)
    with pytest.raises(ValueError, match="neighborhood: expected a neighborhood"):
        HeatBathOperator("zs")  # type: ignore[arg-type]


def test_ratios_of_blocks() -> None:
    p = distribution(seed=3)
    support = [x for x in SPACE if p[x] > 0 and len(x) < LONGEST]
    data = Sequences.of(support, alphabet=SIZE)
    edits = zs(locations=1).edits(data)
    targets = [tuple(y) for y in edits.apply(data).to_lists()]
    owners = [support[row] for row in edits.owner.tolist()]
    ratio = [log_of(p)(y) - log_of(p)(x) for x, y in zip(owners, targets, strict=True)]  # type: ignore[arg-type]
    log_ratio = torch.tensor(ratio, dtype=torch.double)
    up, siblings = block_ratios(edits.blocks, edits.split(log_ratio), len(support))
    for row, x in enumerate(support):
        above = math.fsum(p[(*x, s)] for s in range(SIZE))
        beside = math.fsum(p[(*x[:-1], s)] for s in range(SIZE)) if x else p[x]
        assert float(up[row].exp()) == pytest.approx(above / p[x], rel=1e-12, abs=0)
        assert float(siblings[row].exp()) == pytest.approx(beside / p[x], rel=1e-12, abs=0)


KNOWN = LengthDistribution(1, torch.tensor([0.1, 0.4, 0.5], dtype=torch.double))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"distribution": [0.5, 0.5]}, "distribution: expected a LengthDistribution"),
        ({"neighborhood": 3}, "neighborhood: expected"),
        ({"neighborhood": Substitutions()}, "neighborhood: expected edits that add a symbol to every sequence"),
        ({"neighborhood": zs(locations=1, insertable=[0])}, "neighborhood: expected edits that add a symbol to every"),
        ({"balancing": "gibbs"}, "balancing: expected one of"),
    ],
)
def test_known_lengths_need_edits_that_change_them(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LengthOperator(**({"distribution": KNOWN} | arguments))


def test_known_lengths_are_those_of_the_model_that_is_asked() -> None:
    chain = MarkovSequence.from_transitions(torch.ones(2) / 2, torch.ones(2, 2) / 2, stop=0.5)
    operator = LengthOperator(KNOWN, "metropolis")
    other = operator.under(chain)
    assert isinstance(other, LengthOperator)
    assert other.distribution.probability[:3].tolist() == pytest.approx([0.5, 0.25, 0.125], rel=1e-6)
    assert float(other.distribution.probability.min()) > 1e-10  # without lengths of negligible probability
    assert other.balancing is operator.balancing
    assert operator.under(Unsampled(chain)) is operator
    plain = ZanellaOperator()
    assert plain.under(chain) is plain
    view = View("length", operator, LengthKernel(), weight=0.5)
    assert view.under(Unsampled(chain)) is view
    under = view.under(chain)
    assert (under.name, under.kernel, under.weight) == (view.name, view.kernel, 0.5)
    assert isinstance(under.operator, LengthOperator)
    assert under.operator.distribution.probability.equal(other.distribution.probability)


def test_the_tail_under_several_models_shows_a_balancing_function_flat_log_ratios() -> None:
    shapes = []

    def flat(log_ratio: torch.Tensor) -> torch.Tensor:
        shapes.append(log_ratio.ndim)
        return log_ratio.sigmoid()

    data = Sequences.of(["ab", "b", "aba"])
    operator, plain = TailBlockOperator(flat), TailBlockOperator()
    edits = operator.neighborhood.edits(data)
    log_ratio = torch.randn(4, len(edits), dtype=torch.double, generator=torch.Generator().manual_seed(0))
    found = operator.weights_each(data, edits, log_ratio)
    torch.testing.assert_close(found, torch.stack([plain.weights(data, edits, own) for own in log_ratio]))
    assert set(shapes) == {1}

# SPDX-License-Identifier: Apache-2.0
"""Features of the length: the Poisson equation on birth–death chains, and length distributions from ratios."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import oracle
import pyro.distributions as dist
import pytest
import torch
from example_models import Unsampled, small_mrf
from torch import Tensor

from benchmarks.true_models import field, lengths_between, stop_by_symbol
from pyro_ksd.edits.neighborhoods import BeforeEnd, zs
from pyro_ksd.kernels.length import LengthDistribution, LengthKernel
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.models import IndependentSequence, LinearChainMRF, MarkovSequence, SequenceModel, constrain
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.balancing import barker, metropolis, mpf
from pyro_ksd.stein.length_features import FEATURE_NAMES, length_distribution, length_kernel, smooth_features
from pyro_ksd.stein.operators import TailBlockOperator
from pyro_ksd.stein.views import View

TAIL = zs(locations=1)
BALANCINGS = {
    "barker": (barker, oracle.barker),
    "mpf": (mpf, oracle.mpf),
    "metropolis": (metropolis, oracle.metropolis),
}


def normalized(values: list[float]) -> list[float]:
    return [value / math.fsum(values) for value in values]


# The shortest length, and the probabilities from there on.
CHAINS: dict[str, tuple[int, list[float]]] = {
    "geometric": (1, normalized([0.8**j for j in range(60)])),
    "uniform with a hard end": (1, [1 / 30] * 30),
    "lengths 8 to 12": (8, [0.1, 0.3, 0.2, 0.15, 0.25]),
    "Poisson": (0, normalized([7.0**j / math.factorial(j) for j in range(30)])),
    "two lengths": (4, [0.9, 0.1]),
    "two humps": (0, normalized([5.0, 1e-3, 1e-4, 1e-3, 2.0, 1.0])),
}


def distribution_of(name: str) -> LengthDistribution:
    shortest, p = CHAINS[name]
    return LengthDistribution(shortest, torch.tensor(p, dtype=torch.double))


def plain_targets(shortest: int, p: list[float]) -> list[list[float]]:
    """Legendre polynomials of the rank of each length and its parity, of mean 0 and variance 1; ``[M][D]``."""
    rank = [math.fsum(p[:j]) + own / 2 for j, own in enumerate(p)]
    columns = [np.polynomial.legendre.Legendre.basis(k)(2 * np.array(rank) - 1) for k in range(1, 5)]
    columns.append(np.array([float((shortest + j) % 2 == 0) for j in range(len(p))]))
    standard = []
    for column in columns:
        mean = math.fsum(own * value for own, value in zip(p, column, strict=True))
        variance = math.fsum(own * (value - mean) ** 2 for own, value in zip(p, column, strict=True))
        standard.append([(value - mean) / math.sqrt(variance) if variance > 1e-12 else 0.0 for value in column])
    return [list(row) for row in zip(*standard, strict=True)]


@pytest.mark.parametrize("balancing", BALANCINGS)
@pytest.mark.parametrize("name", CHAINS)
def test_the_poisson_equation(name: str, balancing: str) -> None:
    """A f = P(h) - h, with the rates of the birth–death chain and P(h) = 0."""
    (shortest, p), (function, g) = CHAINS[name], BALANCINGS[balancing]
    f = smooth_features(distribution_of(name), function).tolist()
    targets = plain_targets(shortest, p)
    assert len(f) == len(p) + 1
    assert len(f[0]) == len(FEATURE_NAMES) == 5
    for j in range(len(p)):
        up = g(math.log(p[j + 1] / p[j])) if j + 1 < len(p) else 0.0
        down = g(math.log(p[j - 1] / p[j])) if j else 0.0
        for feature in range(5):
            change = up * (f[j + 1][feature] - f[j][feature])
            change += down * (f[j - 1][feature] - f[j][feature]) if j else 0.0
            assert change == pytest.approx(-targets[j][feature], rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("name", CHAINS)
def test_features_go_on_with_the_last_slope(name: str) -> None:
    table = smooth_features(distribution_of(name), barker)
    torch.testing.assert_close(table[-1] - table[-2], table[-2] - table[-3])


@pytest.mark.parametrize("name", CHAINS)
def test_targets_have_mean_zero_and_variance_one(name: str) -> None:
    shortest, p = CHAINS[name]
    targets = np.array(plain_targets(shortest, p))
    mean, square = np.array(p) @ targets, np.array(p) @ targets**2
    assert mean == pytest.approx(np.zeros(5), abs=1e-12)
    assert all(value == pytest.approx(1.0) or abs(value) < 1e-9 for value in square)


def independent(name: str) -> IndependentSequence:
    """Two symbols, with the lengths of a chain."""
    shortest, p = CHAINS[name]
    lengths = torch.tensor([0.0] * shortest + p, dtype=torch.double)
    return IndependentSequence(torch.tensor([0.3, 0.7], dtype=torch.double), lengths)


def drawn(model: SequenceModel) -> Sequences:
    return model.draw(1000, torch.Generator().manual_seed(0))


def stein_features(
    model: SequenceModel, data: Sequences, kernel: LengthKernel, g: Callable[[Tensor], Tensor]
) -> Tensor:
    [matrix] = stein_matrices(model, data, [View("length", TailBlockOperator(g), kernel)])
    assert isinstance(matrix, FeatureMatrix)
    return matrix.values


@pytest.mark.parametrize("balancing", BALANCINGS)
@pytest.mark.parametrize("name", ["uniform with a hard end", "lengths 8 to 12", "two lengths"])
def test_stein_features_are_the_functions_of_the_length_themselves(name: str, balancing: str) -> None:
    """The ratios of independent symbols do not depend on the symbols, so the distribution is found exactly."""
    model, (shortest, p), g = independent(name), CHAINS[name], BALANCINGS[balancing][0]
    rows = [[length % 2] * length for length in range(shortest, shortest + len(p))]
    data = Sequences.of(rows, 2)
    kernel = length_kernel(model, Sequences.of(rows * 10, 2), TAIL, g)
    assert kernel is not None
    assert kernel.distribution is not None
    assert kernel.distribution.shortest == shortest
    assert kernel.distribution.probability.tolist() == pytest.approx(p, rel=1e-9)
    assert kernel.names == FEATURE_NAMES
    psi = stein_features(model, data, kernel, g)
    expected = -torch.tensor(plain_targets(shortest, p), dtype=torch.double)
    torch.testing.assert_close(psi, expected, rtol=1e-7, atol=1e-8)
    square = torch.tensor(p, dtype=torch.double) @ psi.square()
    assert all(value == pytest.approx(1.0, rel=1e-6) or value < 1e-9 for value in square.tolist())


# ------------------------------------------------------------------------------------------- exact distributions


def chain_lengths(initial: Tensor, moves: Tensor, stop: Tensor, longest: int) -> Tensor:
    """Probabilities of the lengths 0 .. longest of a chain, by its transitions."""
    alive, found = initial, [torch.zeros((), dtype=torch.double)]
    for _ in range(longest):
        found.append(alive @ stop)
        alive = (alive * (1 - stop)) @ moves
    return torch.stack(found)


def field_lengths(model: LinearChainMRF, length: Tensor) -> Tensor:
    """Probabilities of the lengths of a field, by sums over all sequences of each length."""
    pairs, ones = model.pairwise.exp(), torch.ones(len(model.pairwise), dtype=torch.double)
    weights, total = [length[0].exp()], ones
    for own in length[1:]:
        weights.append(own.exp() * total.sum())
        total = pairs @ total
    return torch.stack(weights) / torch.stack(weights).sum()


def distance(found: LengthDistribution, exact: Tensor) -> float:
    """The total variation distance of two length distributions."""
    own = torch.zeros(max(len(exact), found.shortest + len(found.probability)), dtype=torch.double)
    own[found.shortest : found.shortest + len(found.probability)] = found.probability
    own[: len(exact)] -= exact
    return float(own.abs().sum() / 2)


def length_terms(longest: int, per_symbol: float) -> Tensor:
    terms = per_symbol * torch.arange(longest + 1, dtype=torch.double)
    terms[0] = -torch.inf
    return terms


STOP = torch.tensor([0.01, 0.02, 0.05, 0.3], dtype=torch.double)
MODELS: dict[str, tuple[Callable[[], SequenceModel], Callable[[], Tensor], float]] = {
    # A model, its exact length distribution, and a bound of the distance.
    "chain": (
        lambda: MarkovSequence.from_transitions(torch.ones(2) / 2, torch.ones(2, 2) / 2, stop=0.2),
        lambda: torch.tensor([0.0] + [0.2 * 0.8**j for j in range(200)], dtype=torch.double),
        1e-6,
    ),
    "field with a hard end": (lambda: field(30), lambda: field_lengths(field(30), length_terms(30, -1.45)), 0.02),
    "field with a soft end": (
        lambda: field(200, per_symbol=-1.6),
        lambda: field_lengths(field(200), length_terms(200, -1.6)),
        0.01,
    ),
    "uniform lengths of a chain": (
        lambda: lengths_between(8, 12),
        lambda: torch.tensor([0.0] * 8 + [0.2] * 5, dtype=torch.double),
        1e-9,
    ),
    "a chain that stops by symbols": (
        stop_by_symbol,
        lambda: chain_lengths(*stopping_chain(), STOP, 400),
        0.25,  # how probable a sequence makes longer ones depends much on its last symbol
    ),
}


def stopping_chain() -> tuple[Tensor, Tensor]:
    from benchmarks.fault_models import reversible_moves

    initial, moves = reversible_moves()
    return initial.double(), moves.double()


@pytest.mark.parametrize("name", MODELS)
def test_estimated_distributions_against_exact_ones(name: str) -> None:
    make, exact, bound = MODELS[name]
    model = make()
    data = model.draw(400, torch.Generator().manual_seed(1))
    found = length_distribution(model, data, TAIL)
    assert found is not None
    assert float(found.probability.sum()) == pytest.approx(1.0)
    truth = exact()
    assert float(truth.sum()) == pytest.approx(1.0, abs=1e-6)
    assert distance(found, truth) < bound
    if bound < 0.1:  # ratios tell more than the numbers of sequences of each length
        histogram = data.lengths.bincount().double() / len(data)
        assert distance(found, truth) < distance(LengthDistribution(0, histogram), truth) / 2


def test_lengths_that_the_data_lack_are_found_by_ratios() -> None:
    model = independent("uniform with a hard end")
    data = Sequences.of([[0], [1] * 15, [0] * 30, [1] * 14], 2)
    found = length_distribution(model, data, TAIL)
    assert found is not None
    assert distance(found, torch.tensor([0.0] + [1 / 30] * 30, dtype=torch.double)) < 1e-9


def test_few_possible_sequences_are_found_beyond_impossible_ones() -> None:
    """At the last length nothing can be appended; those sequences tell nothing about the lengths before it."""
    terms = torch.tensor([-40.0] * 5 + [0.0] + [-2.0] * 3 + [0.0], dtype=torch.double)
    model = Unsampled(LinearChainMRF(torch.zeros(2, 2).double(), length=terms))
    found = length_distribution(model, Sequences.of([[0] * 5] * 100 + [[1] * 9] * 100, 2), TAIL)
    assert found is not None
    assert found.probability.isfinite().all()
    assert found.shortest + len(found.probability) == 10


def test_fixed_lengths_have_no_features() -> None:
    model = lengths_between(10, 10)
    data = model.draw(20, torch.Generator().manual_seed(0))
    assert length_kernel(model, data, TAIL, barker) is None


def test_lengths_that_no_edit_connects_have_no_features() -> None:
    lengths = torch.tensor([0.0, 0.5, 0.0, 0.5], dtype=torch.double)
    model = IndependentSequence(torch.tensor([0.5, 0.5], dtype=torch.double), lengths)
    assert length_kernel(model, Sequences.of(["a", "aab"], "ab"), TAIL, barker) is None


def test_data_of_one_length_under_a_model_with_others() -> None:
    """The other lengths are found on both sides: one length of data says nothing about those of the model."""
    model = independent("geometric")
    data = Sequences.of([[0, 1, 0]] * 20, 2)
    kernel = length_kernel(model, data, TAIL, barker)
    assert kernel is not None
    assert kernel.distribution is not None
    assert kernel.distribution.is_complete
    assert distance(kernel.distribution, torch.tensor([0.0, *CHAINS["geometric"][1]], dtype=torch.double)) < 1e-4
    psi = stein_features(model, data, kernel, barker)
    assert float(psi[0, 0]) > 0  # the mean rank of the model is larger


@pytest.mark.parametrize("cut", [4, 9, 12])
@pytest.mark.parametrize("name", ["uniform with a hard end", "lengths 8 to 12", "Poisson", "geometric"])
def test_data_that_are_cut_at_a_length_do_not_cut_the_model(name: str, cut: int) -> None:
    shortest, p = CHAINS[name]
    model = independent(name)
    whole = model.draw(200, torch.Generator().manual_seed(0))
    longest = max(cut, shortest)
    data = whole.derived(whole.tokens[:, :longest], whole.lengths.clamp(max=longest))
    found = length_distribution(model, data, TAIL)
    assert found is not None
    assert found.is_complete
    bound = 0.025 if name == "Poisson" else 2e-3  # few data are so short that their ratios are known exactly
    assert distance(found, torch.tensor([0.0] * shortest + p, dtype=torch.double)) < bound


@pytest.mark.parametrize("bounds", [(6, 100), (0, 4), (8, 9)])
def test_a_field_of_which_the_data_have_few_lengths(bounds: tuple[int, int]) -> None:
    """Ratios depend on the symbols, and the walks find the hard end at 30."""
    model = field(30)
    exact = field_lengths(model, length_terms(30, -1.45))
    drawn = model.draw(2000, torch.Generator().manual_seed(0))
    data = drawn[(drawn.lengths >= bounds[0]) & (drawn.lengths <= bounds[1])][:200]
    found = length_distribution(model, data, TAIL)
    assert found is not None
    assert found.is_complete
    assert found.shortest + len(found.probability) == 31
    assert distance(found, exact) < 0.06


def test_longer_lengths_may_be_missing() -> None:
    """A model whose lengths are far beyond those of the data is not walked to the end."""
    poisson = IndependentSequence(torch.tensor([0.5, 0.5]).double(), dist.Poisson(torch.tensor(700.0).double()))
    found = length_distribution(poisson, Sequences.of([[0, 1, 0]] * 10, 2), TAIL)
    assert found is not None
    assert not found.is_complete
    assert found.mean > 100


def test_lengths_that_only_other_edits_reach_go_on_with_the_last_ratio() -> None:
    """Sequences that end with 0 have impossible beginnings, so walks would miss most of the longer ones."""
    chain = MarkovSequence.from_transitions(torch.ones(2) / 2, torch.ones(2, 2) / 2, stop=0.1)
    model = constrain(chain, lambda x: x.tokens.gather(1, (x.lengths - 1).clamp(min=0)[:, None])[:, 0] == 0)
    whole = model.draw(2000, torch.Generator().manual_seed(0))
    found = length_distribution(model, whole[whole.lengths <= 10], TAIL)
    assert found is not None
    beyond = float(found.probability[found.lengths > 10].sum())
    assert beyond == pytest.approx(0.9**10, rel=0.6)  # 0.35; a walk would find 0.05


def test_bounds_are_as_wide_as_ratios_depend_on_symbols() -> None:
    data = Sequences.of([[0], [1, 0], [1] * 3], 2)
    geometric = length_distribution(independent("geometric"), data, TAIL)
    assert geometric is not None
    assert geometric.bounds is not None
    for bound in geometric.bounds:  # the length alone decides
        torch.testing.assert_close(bound.probability[:40], geometric.probability[:40], rtol=1e-6, atol=0)
    drawn = stop_by_symbol().draw(100, torch.Generator().manual_seed(0))
    known = length_distribution(stop_by_symbol(), drawn, TAIL, drawn=True)
    assert known is not None
    assert known.bounds is None


@pytest.mark.parametrize("symbols", ["random", "the last one"])
def test_bounds_hold_for_data_with_other_symbols_than_the_model_makes(symbols: str) -> None:
    """The model stops after the symbol 3, of which the data have more; all of them, so that they do not show it."""
    model = stop_by_symbol()
    drawn = model.draw(100, torch.Generator().manual_seed(0))
    random = torch.randint(4, drawn.tokens.shape, generator=torch.Generator().manual_seed(1))
    other = random if symbols == "random" else torch.full_like(random, 3)
    found = length_distribution(model, drawn.derived(other * drawn.mask, drawn.lengths), TAIL)
    assert found is not None
    assert found.bounds is not None
    low, high = found.bounds
    mean = float(chain_lengths(*stopping_chain(), STOP, 400) @ torch.arange(401).double())
    assert not 0.5 * mean < found.mean < 2 * mean  # what the estimate says is wrong
    assert low.mean < mean < high.mean


def test_bounds_say_nothing_where_no_other_symbols_are_possible() -> None:
    only = MarkovSequence.from_transitions(torch.eye(20)[0], torch.eye(20), stop=0.2)  # 0, 0, 0, ...
    found = length_distribution(only, Sequences.of([[0] * 5, [0] * 7, [0] * 6], 20), TAIL)
    assert found is not None
    assert found.bounds is not None
    assert found.bounds[0].mean < 2 < found.mean < 20 < found.bounds[1].mean


def test_beyond_draws_there_are_few_lengths() -> None:
    """No more than three in as many sequences as were drawn, by the last ratio."""
    data = Sequences.of([[0] * length for length in (1, 2, 3, 4)] * 25, 2)
    found = length_distribution(independent("geometric"), data, TAIL, drawn=True)
    assert found is not None
    assert found.shortest + len(found.probability) == 5  # one more would have 0.17 of what is there
    more = length_distribution(independent("geometric"), Sequences.of([[0] * 30, [1]], 2), TAIL, drawn=True)
    assert more is not None
    assert more.shortest + len(more.probability) > 31


def test_empty_sequences() -> None:
    model = independent("Poisson")
    exact = torch.tensor(CHAINS["Poisson"][1], dtype=torch.double)
    data = Sequences.of([[], [], [0], [1, 0], [1]], 2)
    few = length_distribution(model, data, TAIL)
    assert few is not None
    assert few.shortest == 0
    many = length_distribution(model, drawn(model), TAIL)
    assert many is not None
    assert many.shortest == 0
    assert distance(many, exact) < 0.01
    kernel = length_kernel(model, Sequences.of([[], []], 2), TAIL, barker)
    assert kernel is not None
    assert stein_features(model, data, kernel, barker).isfinite().all()


def test_sequences_far_longer_and_far_shorter_than_those_of_the_model() -> None:
    """Where the probability of a length is no number any more, features stay finite and still see the length."""
    short = independent("geometric")
    geometric = IndependentSequence(short.probs, dist.Geometric(torch.tensor(0.5, dtype=torch.double)))
    data = Sequences.of([[0] * 5] * 10 + [[1] * 3000], 2)
    kernel = length_kernel(geometric, data, TAIL, barker)
    assert kernel is not None
    psi = stein_features(geometric, data, kernel, barker)
    assert psi.isfinite().all()
    assert float(psi[-1, 0]) < -0.5  # the model makes shorter ones
    assert float(psi.abs().max()) < 100
    poisson = IndependentSequence(short.probs, dist.Poisson(torch.tensor(700.0, dtype=torch.double)))
    few = Sequences.of([[0, 1, 0]] * 10, 2)
    kernel = length_kernel(poisson, drawn(poisson), TAIL, barker)
    assert kernel is not None
    assert kernel.distribution is not None
    assert kernel.distribution.shortest > 300
    assert (stein_features(poisson, few, kernel, barker)[:, 0] > 0.5).all()  # the model makes longer ones


def test_features_are_straight_beyond_both_ends() -> None:
    model = independent("lengths 8 to 12")
    kernel = length_kernel(model, drawn(model), TAIL, barker)
    assert kernel is not None
    values = kernel.feature(torch.arange(40))
    table = smooth_features(distribution_of("lengths 8 to 12"), barker)
    torch.testing.assert_close(values[8:14], table, rtol=1e-8, atol=1e-8)
    steps = values.diff(dim=0)
    torch.testing.assert_close(steps[:8], (table[1] - table[0]).expand(8, 5), rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(steps[12:], (table[-1] - table[-2]).expand(27, 5), rtol=1e-8, atol=1e-8)


def test_no_sequences_have_no_lengths() -> None:
    assert length_distribution(small_mrf(), Sequences.of([[0] * 7], 3)[:0], TAIL) is None


def test_the_tail_before_the_end() -> None:
    model = independent("lengths 8 to 12")
    data = independent("lengths 8 to 12").draw(400, torch.Generator().manual_seed(0))
    found = length_distribution(model, data, BeforeEnd(TAIL))
    assert found is not None
    assert distance(found, torch.tensor([0.0] * 8 + CHAINS["lengths 8 to 12"][1], dtype=torch.double)) < 1e-9


def test_shorter_lengths_than_those_of_the_data() -> None:
    model = independent("Poisson")
    found = length_distribution(model, Sequences.of([[0] * 3, [1] * 4, [0] * 5] * 10, 2), TAIL)
    assert found is not None
    assert found.shortest == 0
    ratio = found.probability[1:4] / found.probability[:3]
    assert ratio[1:].tolist() == pytest.approx([7 / 2, 7 / 3], rel=1e-6)
    assert float(ratio[0]) == pytest.approx(7 / 2)  # the last 1 % is a geometric tail


def test_both_tails_are_equally_precise() -> None:
    """The features of a symmetric distribution are symmetric, also where lengths have the probability 1e-9."""
    p = torch.exp(-(torch.arange(41) - 20).abs().double())
    steps = smooth_features(LengthDistribution(0, p / p.sum()), barker).diff(dim=0)[:40].abs()
    torch.testing.assert_close(steps, steps.flip(0), rtol=1e-11, atol=0)


def test_reported_lengths_are_right_where_stops_depend_on_symbols() -> None:
    """Errors of ratios add up from length to length: what they tell is too long here, in names it was too short."""
    moves = torch.tensor([[0.05, 0.35], [0.55, 0.43]], dtype=torch.double)
    stop = 1 - moves.sum(1)
    initial = torch.full((2,), 0.5, dtype=torch.double)
    chain = MarkovSequence.from_transitions(initial, moves / moves.sum(1, keepdim=True), stop)
    exact = float(initial @ torch.linalg.solve(torch.eye(2) - moves, torch.ones(2, dtype=torch.double)))
    draws = drawn(chain)
    error = float(draws.lengths.double().std()) / math.sqrt(len(draws))
    from_ratios = length_distribution(chain, draws, TAIL, drawn=True)
    kernel = length_kernel(chain, draws, TAIL, barker, drawn=True)
    assert from_ratios is not None
    assert abs(from_ratios.mean - exact) > 2 * error
    assert kernel is not None
    assert kernel.distribution is not None
    assert abs(kernel.distribution.mean - exact) < error
    shares = [float((draws.lengths == length).double().mean()) for length in kernel.distribution.lengths.tolist()]
    assert kernel.distribution.probability.tolist() == pytest.approx(shares)


def test_what_ratios_tell_is_reported_as_long_as_draws_agree() -> None:
    """Ratios that depend on the length alone are exact, and smoother than the frequencies of draws."""
    model = independent("geometric")
    draws = drawn(model)
    kernel = length_kernel(model, draws, TAIL, barker, drawn=True)
    assert kernel is not None
    assert kernel.distribution is not None
    assert distance(kernel.distribution, torch.tensor([0.0, *CHAINS["geometric"][1]], dtype=torch.double)) < 1e-3
    # The same mean and spread, but only two lengths.
    half = [[0] * round(draws.lengths.double().mean().item() + sign * 4) for sign in (-1, 1)] * 500
    two = length_kernel(model, Sequences.of(half, 2), TAIL, barker, drawn=True)
    assert two is not None
    assert two.distribution is not None
    assert [share for share in two.distribution.probability.tolist() if share] == [0.5, 0.5]


def test_one_length_below_those_of_draws_is_found_by_the_ratios() -> None:
    """The empty sequence, which is seldom drawn."""
    p = [0.02, 0.5, 0.48]
    model = IndependentSequence(torch.tensor([0.3, 0.7], dtype=torch.double), torch.tensor(p, dtype=torch.double))
    found = length_distribution(model, Sequences.of([[0], [0, 0]] * 25, 2), TAIL, drawn=True)
    assert found is not None
    assert found.shortest == 0
    assert found.probability.tolist() == pytest.approx(p, rel=1e-6)


def test_of_a_tail_that_hardly_falls_twenty_thousand_lengths_are_taken() -> None:
    slow = IndependentSequence(torch.tensor([0.5, 0.5]).double(), dist.Geometric(torch.tensor(1e-4).double()))
    found = length_distribution(slow, Sequences.of([[0, 1, 0]] * 10, 2), TAIL)
    assert found is not None
    assert 20_000 < len(found.probability) < 20_200  # 200,000 would have more than 1e-9

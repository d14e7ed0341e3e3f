# SPDX-License-Identifier: Apache-2.0
"""One decision from several views, against plain loops."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch
from scipy.stats import binom

from pyro_ksd.fit_tests.combination import harmonic_p
from pyro_ksd.fit_tests.statistics import p_value


def brute_force(observed: list[int], null: list[list[int]], weights: list[int]) -> tuple[list[float], float]:
    """The p-values of the views, and how often the weighted sum of 1 / p is at least that of the data; exact."""
    pool = [observed, *null]
    size, views = len(pool), range(len(observed))
    p = [[Fraction(sum(other[view] >= own[view] for other in pool), size) for view in views] for own in pool]
    harmonic = [sum(weight / value for weight, value in zip(weights, own, strict=True)) for own in p]
    return [float(value) for value in p[0]], sum(value >= harmonic[0] for value in harmonic) / size


def integers(seed: int, *shape: int, most: int = 6) -> torch.Tensor:
    return torch.randint(1, most, shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_against_plain_loops(seed: int, weighted: bool) -> None:
    pool = integers(seed, 12, 3)  # small integers make many ties
    weights = integers(seed + 100, 3, most=10) if weighted else torch.ones(3, dtype=torch.long)
    views, overall = harmonic_p(pool[0].double(), pool[1:].double(), weights.double() if weighted else None)
    expected, together = brute_force(pool[0].tolist(), pool[1:].tolist(), weights.tolist())
    assert views.tolist() == pytest.approx(expected, abs=1e-12)
    assert float(overall) == pytest.approx(together, abs=1e-12)


def test_weights_decide_between_views() -> None:
    """The data are the most extreme in the second view only; one draw is so in the first view only."""
    null = torch.tensor([[9.0, 0.0], [1.0, 1.0], [2.0, 2.0], [3.0, 3.0]], dtype=torch.double)
    observed = torch.tensor([0.0, 9.0], dtype=torch.double)
    for weights, expected in (([1.0, 1.0], 0.4), ([1.0, 3.0], 0.2), ([3.0, 1.0], 0.6), ([1.0, 1e-9], 1.0)):
        _, overall = harmonic_p(observed, null, torch.tensor(weights, dtype=torch.double))
        assert float(overall) == pytest.approx(expected), weights


def test_only_the_ratios_of_weights_count() -> None:
    pool = integers(5, 40, 4, most=30).double()
    weights = torch.tensor([0.25, 1.0, 1 / 3, 0.5], dtype=torch.double)
    found = [float(harmonic_p(pool[0], pool[1:], factor * weights)[1]) for factor in (1, 7, 1 / 3)]
    assert len(set(found)) == 1


@pytest.mark.parametrize("weights", [torch.ones(2), torch.ones(3, 1)])
def test_there_is_one_weight_for_each_view(weights: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="weights: expected"):
        harmonic_p(torch.zeros(3), torch.zeros(5, 3), weights)


def test_one_view_alone_keeps_its_p_value() -> None:
    null = torch.randn(99, 1, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    for value in (-3.0, 0.0, 1.0, 9.0):
        observed = torch.tensor([value], dtype=torch.double)
        each, overall = harmonic_p(observed, null)
        assert float(overall) == pytest.approx(float(each[0]))
        assert float(each[0]) == float(p_value(observed, null)[0])


def test_ties_by_tolerance() -> None:
    # All values are 0.3, but for the last bits: nothing stands out.
    null = torch.full((19, 2), 0.3, dtype=torch.double)
    null[::2] = 0.1 + 0.2
    _, overall = harmonic_p(torch.tensor([0.1 + 0.2, 0.3], dtype=torch.double), null)
    assert float(overall) == 1.0


def test_level_is_exact_for_exchangeable_draws() -> None:
    generator = torch.Generator().manual_seed(0)
    mixing = torch.randn(4, 4, dtype=torch.double, generator=generator)
    runs = 2000
    pools = torch.randn(runs, 500, 4, dtype=torch.double, generator=generator) @ mixing
    low, high = binom.interval(0.999, runs, 0.05)
    for weights in (None, torch.tensor([1.0, 0.25, 3.0, 1.0])):
        rejected = sum(float(harmonic_p(pool[0], pool[1:], weights)[1]) <= 0.05 for pool in pools)
        assert low <= rejected <= high


@pytest.mark.parametrize("seed", range(5))
def test_sums_that_differ_only_in_their_last_bits_are_equal(seed: int) -> None:
    """The same p-values in another order: 1/p₁ + 1/p₂ + 1/p₃ is then rounded otherwise."""
    rows = integers(seed, 6, 3, most=50)
    pool = torch.cat([rows, rows.flip(1)])
    for place in range(len(pool)):
        others = torch.cat([pool[:place], pool[place + 1 :]])
        _, overall = harmonic_p(pool[place].double(), others.double())
        _, expected = brute_force(pool[place].tolist(), others.tolist(), [1, 1, 1])
        assert float(overall) == pytest.approx(expected, abs=1e-12)

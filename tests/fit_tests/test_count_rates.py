# SPDX-License-Identifier: Apache-2.0
"""Intervals of mean counts: known limits, and coverage by simulation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from scipy.stats import binom, gamma, norm
from scipy.stats import t as student
from torch import Tensor

from pyro_ksd.fit_tests.count_rates import Rates, mean_counts


def one(values: list[float], **options: Any) -> list[float]:
    """The mean of some counts and its interval."""
    found = mean_counts(
        torch.tensor(values).double()[:, None], torch.tensor([options.pop("is_share", False)]), **options
    )
    return [float(end) for end in (found.value, found.low, found.high)]


@pytest.mark.parametrize("coverage", [0.95, 0.5])
@pytest.mark.parametrize("times", [1, 3, 12])
def test_single_occurrences_have_the_limits_of_a_poisson_number(times: int, coverage: float) -> None:
    # Among very many sequences; with the quantiles of a t distribution, as the variance is an estimate.
    tail = (1 - coverage) / 2
    wider = student.ppf(1 - tail, 2 * times) / norm.ppf(1 - tail)
    value, low, high = (10_000 * end for end in one([1.0] * times + [0.0] * (10_000 - times), coverage=coverage))
    assert value == pytest.approx(times)
    assert low == pytest.approx(max(times - wider * (times - gamma.ppf(tail, times)), 0.0), rel=0.002, abs=0.001)
    assert high == pytest.approx(times + wider * (gamma.ppf(1 - tail, times + 1) - times), rel=0.002)


def test_nothing_that_occurs_has_the_exact_upper_limit() -> None:
    assert one([0.0] * 50) == pytest.approx([0.0, 0.0, -math.log(0.025) / 50])
    assert one([0.0] * 50, coverage=0.8) == pytest.approx([0.0, 0.0, -math.log(0.1) / 50])


def test_frequent_counts_have_the_usual_interval() -> None:
    counts = torch.randint(0, 9, (20_000,), generator=torch.Generator().manual_seed(0)).double()
    value, low, high = one(counts.tolist())
    error = float(counts.std()) / math.sqrt(20_000)
    assert value == pytest.approx(float(counts.mean()))
    assert [low, high] == pytest.approx([value - 1.96 * error, value + 1.96 * error], rel=1e-3)


def test_clusters_widen_the_interval() -> None:
    apart = one([1.0] * 12 + [0.0] * 188)
    together = one([3.0] * 4 + [0.0] * 196)
    assert apart[0] == together[0]
    assert together[1] < apart[1]
    assert together[2] > 1.5 * apart[2]


@pytest.mark.parametrize("ones", [0, 3, 24, 47, 50])
def test_a_share_and_that_of_the_others(ones: int) -> None:
    value, low, high = one([1.0] * ones + [0.0] * (50 - ones), is_share=True)
    others = one([0.0] * ones + [1.0] * (50 - ones), is_share=True)
    assert [value, low, high] == pytest.approx([1 - others[0], 1 - others[2], 1 - others[1]])
    assert 0 <= low <= value <= high <= 1
    assert low < high


def test_columns_are_independent() -> None:
    counts = torch.randint(0, 3, (40, 4), generator=torch.Generator().manual_seed(1)).double()
    counts[:, 1] = (counts[:, 1] > 0).double()
    counts[:, 2] = 0.0
    is_share = torch.tensor([False, True, False, False])
    found = mean_counts(counts, is_share)
    for place in range(4):
        own = one(counts[:, place].tolist(), is_share=bool(is_share[place]))
        assert [float(end[place]) for end in (found.value, found.low, found.high)] == pytest.approx(own)


def rates(*rows: tuple[float, float, float]) -> Rates:
    return Rates(*torch.tensor(rows).double().T)


def test_ratios() -> None:
    ratio = rates((2.0, 1.0, 4.0), (0.0, 0.0, 0.1), (2.0, 1.0, 4.0), (0.0, 0.0, 0.1)).over(
        rates((8.0, 4.0, 10.0), (8.0, 4.0, 10.0), (0.0, 0.0, 0.5), (0.0, 0.0, 0.5))
    )
    assert ratio.value.tolist()[:3] == [0.25, 0.0, math.inf]
    assert math.isnan(float(ratio.value[3]))
    down = math.hypot(math.log(2), math.log(10 / 8))
    up = math.hypot(math.log(2), math.log(2))
    assert ratio.low.tolist() == pytest.approx([0.25 * math.exp(-down), 0.0, 2.0, 0.0])
    assert ratio.high.tolist() == pytest.approx([0.25 * math.exp(up), 0.1 / 4, math.inf, math.inf])


@pytest.mark.parametrize(
    ("counts", "is_share", "words"),
    [
        (torch.zeros(5), torch.tensor([False]), "counts: expected a floating-point tensor"),
        (torch.zeros(1, 1), torch.tensor([False]), "counts: expected those of at least two sequences, found 1"),
        (torch.zeros(5, 2), torch.tensor([False]), r"is_share: expected a boolean tensor \[2\]"),
        (torch.zeros(5, 1), torch.tensor([0.0]), r"is_share: expected a boolean tensor \[1\]"),
    ],
)
def test_wrong_arguments(counts: Tensor, is_share: Tensor, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        mean_counts(counts, is_share)


def test_wrong_coverage() -> None:
    with pytest.raises(ValueError, match="coverage: expected"):
        mean_counts(torch.zeros(5, 1), torch.tensor([False]), coverage=95)


Draw = Callable[[int, int, torch.Generator], Tensor]


def scattered(total: float, cluster: float) -> Draw:
    """Some sequences have the count, a geometric number of times with a mean; ``total`` occurrences are expected."""

    def draw(size: int, runs: int, generator: torch.Generator) -> Tensor:
        has = torch.rand(size, runs, generator=generator, dtype=torch.double) < total / cluster / size
        if cluster == 1:
            return has.double()
        return has * torch.empty(size, runs, dtype=torch.double).geometric_(1 / cluster, generator=generator)

    return draw


def uniform(size: int, runs: int, generator: torch.Generator) -> Tensor:
    return torch.randint(1, 16, (size, runs), generator=generator).double()


def share(p: float) -> Draw:
    def draw(size: int, runs: int, generator: torch.Generator) -> Tensor:
        return (torch.rand(size, runs, generator=generator) < p).double()

    return draw


KINDS: dict[str, tuple[Draw, Callable[[int], float]]] = {
    **{f"{total} in all": (scattered(total, 1), lambda size, total=total: total / size) for total in (1, 5, 20)},  # type: ignore[misc]
    **{f"{total} in twos": (scattered(total, 2), lambda size, total=total: total / size) for total in (1, 5, 20)},  # type: ignore[misc]
    "20 in fours": (scattered(20, 4), lambda size: 20 / size),
    "lengths": (uniform, lambda _: 8.0),
    "half": (share(0.5), lambda _: 0.5),
    "nearly all": (share(0.97), lambda _: 0.97),
}


@pytest.mark.slow
@pytest.mark.parametrize("size", [50, 200, 1000, 5000])
@pytest.mark.parametrize("kind", KINDS)
def test_coverage(kind: str, size: int) -> None:
    runs = 2000
    draw, mean = KINDS[kind]
    truth = mean(size)
    generator = torch.Generator().manual_seed(size)
    is_share = torch.full((runs,), kind in ("half", "nearly all"))
    data = mean_counts(draw(size, runs, generator), is_share)
    model = mean_counts(draw(1000, runs, generator), is_share)
    ratio = data.over(model)
    covered = int(((data.low <= truth) & (truth <= data.high)).sum())
    true_ratio = truth / mean(1000)
    ratios = int(((ratio.low <= true_ratio) & (true_ratio <= ratio.high)).sum())
    print(f"\n{kind}, n = {size}: mean {covered / runs:.3f}, ratio to 1000 draws {ratios / runs:.3f}")
    # Lowest for five occurrences in twos, 0.91: in 8 % of the data there are none, and nothing tells of the twos then.
    for number in (covered, ratios):
        assert number >= binom.ppf(0.0005, runs, 0.90)
        if size > 50 and kind in ("20 in all", "20 in twos", "lengths", "half"):  # of few occurrences it is larger
            assert number <= binom.ppf(0.9995, runs, 0.97)


def test_two_sequences_are_enough_and_shares_above_one_half_are_those_of_the_others() -> None:
    assert one([1.0, 2.0])[0] == 1.5
    with pytest.raises(ValueError, match="counts: expected those of at least two sequences, found 1"):
        one([1.0])
    plain = one([1.0] * 5 + [0.0] * 5)
    assert one([1.0] * 5 + [0.0] * 5, is_share=True) == pytest.approx([0.5, plain[1], min(plain[2], 1.0)])
    most = one([1.0] * 8 + [0.0] * 2, is_share=True)
    few = one([1.0] * 2 + [0.0] * 8, is_share=True)
    assert most == pytest.approx([1 - few[0], 1 - few[2], 1 - few[1]])

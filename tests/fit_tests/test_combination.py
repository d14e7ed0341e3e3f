# SPDX-License-Identifier: Apache-2.0
"""One decision from several views, against plain loops."""

from __future__ import annotations

import pytest
import torch
from scipy.stats import binom

from pyro_ksd.fit_tests.combination import min_p
from pyro_ksd.fit_tests.statistics import p_value


def brute_force(observed: list[float], null: list[list[float]]) -> float:
    """The share of data sets whose smallest p-value is at most the observed one, in plain loops."""
    pool = [observed, *null]
    smallest = [
        min(sum(other[view] >= own[view] for other in pool) / len(pool) for view in range(len(observed)))
        for own in pool
    ]
    return sum(value <= smallest[0] for value in smallest) / len(pool)


@pytest.mark.parametrize("seed", range(20))
def test_against_plain_loops(seed: int) -> None:
    # Small integers make many ties.
    pool = torch.randint(0, 6, (12, 3), generator=torch.Generator().manual_seed(seed)).double()
    _, overall = min_p(pool[0], pool[1:])
    assert float(overall) == pytest.approx(brute_force(pool[0].tolist(), pool[1:].tolist()), abs=1e-12)


def test_one_view_alone_keeps_its_p_value() -> None:
    null = torch.randn(99, 1, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    for value in (-3.0, 0.0, 1.0, 9.0):
        observed = torch.tensor([value], dtype=torch.double)
        each, overall = min_p(observed, null)
        assert float(overall) == pytest.approx(float(each[0]))
        assert float(each[0]) == float(p_value(observed, null)[0])


def test_ties_by_tolerance() -> None:
    # All values are 0.3, but for the last bits: nothing stands out.
    null = torch.full((19, 2), 0.3, dtype=torch.double)
    null[::2] = 0.1 + 0.2
    _, overall = min_p(torch.tensor([0.1 + 0.2, 0.3], dtype=torch.double), null)
    assert float(overall) == 1.0


def test_level_is_exact_for_exchangeable_draws() -> None:
    generator = torch.Generator().manual_seed(0)
    mixing = torch.randn(4, 4, dtype=torch.double, generator=generator)
    runs = 2000
    pools = torch.randn(runs, 500, 4, dtype=torch.double, generator=generator) @ mixing
    rejected = sum(float(min_p(pool[0], pool[1:])[1]) <= 0.05 for pool in pools)
    low, high = binom.interval(0.999, runs, 0.05)
    assert low <= rejected <= high

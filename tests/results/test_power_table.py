# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from pyro_ksd.results.power_table import PowerTable, tabulated, visibility, wilson_interval


@pytest.mark.parametrize(("successes", "trials"), [(0, 7), (3, 20), (50, 100), (199, 200), (40, 40)])
def test_wilson_intervals_are_those_of_scipy(successes: int, trials: int) -> None:
    lower, upper = wilson_interval(np.array([successes]), trials)
    expected = binomtest(successes, trials).proportion_ci(0.95, "wilson")
    assert lower[0] == pytest.approx(expected.low, abs=1e-12)
    assert upper[0] == pytest.approx(expected.high, abs=1e-12)


def test_wilson_intervals_cover() -> None:
    trials = 200
    counts = np.arange(trials + 1)
    lower, upper = wilson_interval(counts, trials)
    for probability in (0.05, 0.3, 0.8, 0.95):
        covered = binom.pmf(counts, trials, probability)[(lower <= probability) & (probability <= upper)].sum()
        assert 0.93 < covered < 0.97


@pytest.mark.parametrize(
    ("sizes", "power", "words"),
    [
        ([10], [0.5], "visible in 50 % of the checks at n = 10"),
        ([1000], [1.0], "visible in 100 % of the checks at n = 1,000"),
        ([10, 1000], [0.6, 1.0], "visible in 80 % of the checks from about n = 100"),
        ([100, 10_000], [0.7, 0.9], "visible in 80 % of the checks from about n = 1,000"),
        ([50, 200], [0.5, 0.8], "visible in 80 % of the checks from about n = 200"),
        ([50, 200], [0.8, 0.9], "visible in 80 % of the checks from n = 50 on, or fewer"),
        ([50, 200], [0.1, 0.79], "visible in only 79 % of the checks at n = 200, the largest n of the study"),
        ([10, 20, 40], [0.9, 0.7, 0.9], "visible in 80 % of the checks from about n = 28"),  # the last crossing
    ],
)
def test_from_which_size_on_a_fault_is_visible(sizes: list[int], power: list[float], words: str) -> None:
    assert visibility(sizes, power) == words


@pytest.fixture
def table() -> PowerTable:
    seen = {"pairs": [20, 90], "overall": [10, 80]}
    meaning = {"pairs": "pairs <of> neighbors", "overall": "all"}
    return tabulated(seen, 100, meaning, {30: "parametric", 300: "wild"}, 0.01)


def test_power_by_view_and_size(table: PowerTable) -> None:
    assert table["power"].to_dict() == {30: {"pairs": 0.2, "overall": 0.1}, 300: {"pairs": 0.9, "overall": 0.8}}
    lower, upper = wilson_interval(np.array([[20, 90], [10, 80]]), 100)
    np.testing.assert_array_equal(table["lower"].to_numpy(), lower)
    np.testing.assert_array_equal(table["upper"].to_numpy(), upper)
    assert table.attrs["verdict"] == "visible in 80 % of the checks from about n = 300"


def test_the_printed_table(table: PowerTable) -> None:
    lines = [line.split() for line in repr(table).splitlines()]
    assert lines[0] == ["looks", "at", "n", "=", "30", "n", "=", "300"]
    assert lines[1] == ["pairs", "pairs", "<of>", "neighbors", "0.20", "(0.13-0.29)", "0.90", "(0.83-0.94)"]
    assert lines[2] == ["overall", "all", "0.10", "(0.06-0.17)", "0.80", "(0.71-0.87)"]
    caption = repr(table).splitlines()[-1]
    assert caption == (
        "Visible in 80 % of the checks from about n = 300. (100 simulated checks at each n with the parametric "
        "bootstrap at n = 30 and the wild bootstrap at n = 300, level 0.01; in brackets, 95 % intervals)"
    )
    assert "pairs &lt;of&gt; neighbors" in table._repr_html_()
    assert f"<p>{caption}</p>" in table._repr_html_()

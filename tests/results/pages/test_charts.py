# SPDX-License-Identifier: Apache-2.0
"""Pictures of a page as numbers."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from synthetic import changed, length_group, made_up_check

from pyro_ksd.results.pages.charts import LengthChart, length_chart, null_chart


def test_lengths_are_bars_in_percent() -> None:
    check = made_up_check().assign({"ksd_length": xr.DataTree(length_group({2: 0.5, 3: 0.5}, {1: 0.25, 2: 0.75}))})
    chart = length_chart(check)
    assert chart is not None
    third = pytest.approx(100 / 3)
    assert [bar[1:] for bar in chart.bars] == [
        (third, 0.0, third, "1"),
        (third, pytest.approx(200 / 3), 100.0, "2"),
        (third, pytest.approx(200 / 3), 0.0, "3"),
    ]
    assert [bar[0] for bar in chart.bars] == pytest.approx([0, 100 / 3, 200 / 3])
    assert chart.top == 75
    assert (chart.observed_mean, chart.expected_mean, chart.is_estimated) == (2.5, 1.75, False)
    assert [name for _, name in chart.ticks] == ["1", "2", "3"]
    check["ksd_length"].attrs["num_drawn"] = 0
    chart = length_chart(check)
    assert chart is not None
    assert chart.is_estimated


def chart_of(observed: dict[int, float], expected: dict[int, float], num_drawn: int = 1000) -> LengthChart:
    check = made_up_check().assign({"ksd_length": xr.DataTree(length_group(observed, expected))})
    check["ksd_length"].attrs["num_drawn"] = num_drawn
    chart = length_chart(check)
    assert chart is not None
    return chart


def test_the_lengths_that_differ_most_are_named() -> None:
    """The cumulative shares differ most at 0.05 and 0.45 of lengths up to 3, and at 0.1 and 0.55 of those from 6 on."""
    data = {3: 0.05, 4: 0.4, 5: 0.45, 7: 0.1}
    model = {1: 0.35, 3: 0.1, 6: 0.05, 7: 0.25, 8: 0.25}
    assert chart_of(data, model).differences == [
        "45 % of the model's sequences have at most 3 symbols, and 5 % of the data.",
        "55 % of the model's sequences have at least 6 symbols, and 10 % of the data.",
    ]
    assert chart_of({4: 1.0}, {2: 0.5, 4: 0.5}).differences == [
        "50 % of the model's sequences have at most 2 symbols, and none of the data."
    ]
    assert chart_of({4: 1.0}, {4: 0.5, 9: 0.5}).differences == [
        "50 % of the model's sequences have at least 5 symbols, and none of the data."
    ]


def test_lengths_that_differ_by_chance_or_are_estimated_are_not_named() -> None:
    assert chart_of({3: 0.5, 4: 0.5}, {3: 0.55, 4: 0.45}).differences == []
    assert chart_of({3: 0.5, 4: 0.5}, {1: 0.9, 4: 0.1}, num_drawn=0).differences == []


def test_bins_of_several_lengths_are_named_by_both_ends() -> None:
    shares = dict.fromkeys(range(1, 101), 1 / 100)
    chart = length_chart(made_up_check().assign({"ksd_length": xr.DataTree(length_group(shares, shares))}))
    assert chart is not None
    assert [bar[-1] for bar in chart.bars[:2]] == ["1 to 2", "3 to 4"]
    assert len(chart.ticks) <= 9


def test_a_check_without_lengths_has_no_such_picture() -> None:
    assert length_chart(made_up_check(views=["content-2", "Hamming"])) is None


@pytest.mark.parametrize(("statistic", "place", "multiple"), [(0.5, 50.0, 0.0), (2.0, 100.0, 0.0), (50.0, 100.0, 50.0)])
def test_a_statistic_stands_beside_its_null_draws(statistic: float, place: float, multiple: float) -> None:
    check = made_up_check()
    draws = np.repeat(np.linspace(0, 1, 200)[None, :, None], 5, 2)
    check = changed(check, "ksd_null", ksd=draws)
    check = changed(check, "ksd", statistic=np.full(5, statistic))
    chart = null_chart(check, "start")
    assert chart is not None
    assert (chart.place, chart.multiple) == (pytest.approx(place), multiple)
    heights = [height for _, _, height in chart.bars]
    assert max(heights) == 100
    lefts = [left for left, _, _ in chart.bars]
    assert lefts == sorted(lefts)
    assert lefts[0] == 0


def test_null_draws_that_do_not_vary_have_no_picture() -> None:
    assert null_chart(changed(made_up_check(), "ksd_null", ksd=np.zeros((1, 200, 5))), "start") is None

# SPDX-License-Identifier: Apache-2.0
"""The pictures of null draws."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_hex
from pictures import BLUE, VERMILION, as_axes, assert_nothing_overlaps, line
from synthetic import VIEWS, changed, made_up_check, only

from pyro_ksd import plots

plot_null = as_axes(plots.plot_null)


def test_null_draws_every_draw_and_the_observed_value() -> None:
    check = made_up_check()
    axes = plot_null(check)
    assert len(axes) == 5
    for ax, name in zip(axes, VIEWS, strict=True):
        draws, ksd = check["ksd_null"]["ksd"].sel(view=name).values.ravel(), check["ksd"].to_dataset().sel(view=name)
        heights = [bar.get_height() for bar in ax.patches]
        assert heights == np.histogram(draws, 29)[0].tolist()  # 2 √200
        assert set(line(ax, "observed").get_xdata()) == {float(ksd["statistic"])}
        assert ax.get_ylabel() == f"{name}\np = {float(ksd['p_value']):.3f}"
        assert ax.get_xscale() == "linear"
        assert {to_hex(bar.get_facecolor()) for bar in ax.patches} == {VERMILION}
        assert to_hex(line(ax, "observed").get_color()) == BLUE
    assert axes[-1].get_xlabel() == "KSD² estimate"


@pytest.mark.parametrize(("count", "bins"), [(25, 10), (100, 20), (500, 40), (10_000, 40)])
def test_few_null_draws_have_few_bins(count: int, bins: int) -> None:
    check = only(made_up_check(), "content-2")
    draws = check["ksd_null"].to_dataset().isel(draw=np.arange(count) % 200).assign_coords(draw=np.arange(count))
    check["ksd_null"] = xr.DataTree(draws)
    (ax,) = plot_null(check)
    assert len(ax.patches) == bins


def test_null_of_chosen_views() -> None:
    check = made_up_check()
    assert [ax.get_ylabel() for ax in plot_null(check, view="start")] == ["start\np = 1.000"]
    chosen = plot_null(check, view=["length", "content-2"])
    assert [ax.get_ylabel() for ax in chosen] == ["length\np = 0.008", "content-2\np = 0.002"]


@pytest.mark.parametrize("far", ["observed", "null draws", "both"])
def test_null_stays_readable_with_values_far_out(far: str) -> None:
    check = only(made_up_check(), "content-2")
    draws = check["ksd_null"]["ksd"].values
    if far != "observed":
        draws = np.random.default_rng(0).standard_cauchy(draws.shape) ** 3
        check = changed(check, "ksd_null", ksd=draws)
    statistic = 0.5 if far == "null draws" else 100 * np.quantile(np.abs(draws), 0.95)
    (ax,) = plot_null(changed(check, "ksd", statistic=[statistic]), figsize=(4.5, 2))
    assert ax.get_xlabel() == "KSD² estimate, axis compressed far from 0"
    assert sum(bar.get_height() for bar in ax.patches) == draws.size
    ax.figure.draw_without_rendering()
    (left, right), drawn = ax.get_xlim(), np.quantile(draws, [0.05, 0.95])
    assert left < draws.min() < draws.max() < right
    assert left < statistic < right
    middle = np.diff(ax.transAxes.inverted().transform(ax.transData.transform([(x, 0) for x in drawn]))[:, 0])
    assert middle > 0.15
    assert_nothing_overlaps(ax.figure)


def test_null_draws_without_spread() -> None:
    check = only(made_up_check(), "content-2")
    (ax,) = plot_null(changed(check, "ksd_null", ksd=np.ones((1, 200, 1))))
    assert sum(bar.get_height() for bar in ax.patches) == 200


@pytest.mark.parametrize("observed", [-3.0, 5.0])
def test_null_draws_that_are_almost_all_equal_can_be_seen(observed: float) -> None:
    check = changed(made_up_check(views=["repeats"]), "ksd", statistic=[observed])
    draws = np.zeros((1, 200, 1))
    draws[0, :3] = [[-1e-9], [1e-9], [2e-9]]
    (ax,) = plot_null(changed(check, "ksd_null", ksd=draws))
    assert ax.get_xscale() == "linear"
    left, right = ax.get_xlim()
    drawn = [bar for bar in ax.patches if bar.get_height()]
    assert sum(bar.get_height() for bar in drawn) == 200
    assert all(bar.get_width() > 0.02 * (right - left) for bar in drawn)


def test_null_takes_as_many_axes_as_views() -> None:
    check = made_up_check()
    axes = plt.subplots(1, 2)[1]
    assert plot_null(check, view=["start", "length"], ax=axes).tolist() == axes.tolist()
    with pytest.raises(ValueError, match="expected ax to hold 5 axes, one for each view, found 2"):
        plot_null(check, ax=axes)

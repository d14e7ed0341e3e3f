# SPDX-License-Identifier: Apache-2.0
"""The picture of a comparison."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from pictures import GRAY, PURPLE, as_axes, labels
from scipy.special import stdtr
from synthetic import made_up_check
from synthetic_comparison import LONG, THREE, made_up_comparison

from pyro_ksd import plots
from pyro_ksd.results.comparison_table import compare_table
from pyro_ksd.results.containers import to_inference_data

plot_compare = as_axes(plots.plot_compare)


def parts(ax: Axes, label: str) -> tuple[Any, list[list[float]]]:
    """The markers of a series, and the ends of its bars."""
    (found,) = [bars for bars in ax.containers if bars.get_label() == label]
    markers, _, (lines,) = found
    return markers, [segment[:, 0].tolist() for segment in lines.get_segments()]


def test_statistics_have_their_errors_and_the_best_model_a_line() -> None:
    ax = plot_compare(made_up_comparison(THREE))
    assert labels(ax) == ["order 2", "order 1", "order 0"]
    markers, bars = parts(ax, "statistic ± standard error")
    assert markers.get_xdata().tolist() == [0.25, 1.0, 3.0]
    assert markers.get_ydata().tolist() == [0, 1, 2]
    assert bars == [[-0.25, 0.75], [0.5, 1.5], [2.5, 3.5]]
    assert to_hex(markers.get_color()) == "#000000"  # the color of words
    (line,) = [line for line in ax.lines if line.get_linestyle() == "--"]
    assert set(line.get_xdata()) == {0.25}
    assert [text.get_text() for text in ax.texts] == ["best", "p = 0.401", "p = 1e-07"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the best one above


def test_intervals_of_differences_agree_with_the_table() -> None:
    ax = plot_compare(made_up_comparison(THREE))
    half = 0.5 * 2.39398  # the normal quantile at 1 - 0.05 / (2 * 3 pairs)
    for label, x, color, inside in (
        ("difference: worse", 3.0, PURPLE, PURPLE),
        ("difference: may be as good", 1.0, GRAY, "#ffffff"),
    ):
        markers, [(low, high)] = parts(ax, label)
        assert markers.get_xdata().tolist() == [x]
        assert [low, high] == pytest.approx([x - half, x + half], rel=1e-5)
        assert (low > 0.25) == label.endswith("worse")
        assert (to_hex(markers.get_color()), to_hex(markers.get_markerfacecolor())) == (color, inside)
        assert markers.get_marker() == "^"


@pytest.mark.parametrize("z", [1.95, 1.97])
def test_an_interval_meets_the_line_if_the_model_may_be_as_good(z: float) -> None:
    comparison = made_up_comparison({"a": 0.5 * z, "b": 0.0})
    worse = compare_table(comparison).loc["a", "finding"].startswith("worse")
    assert worse == (z > 1.96)
    ax = plot_compare(comparison)
    _, [(low, _)] = parts(ax, f"difference: {'worse' if worse else 'may be as good'}")
    assert (low > 0) == worse
    assert len(ax.containers) == 2  # nothing in the legend that is not in the picture


@pytest.mark.parametrize("z", [2.04, 2.05])
def test_intervals_are_those_of_the_distribution_that_the_p_values_have(z: float) -> None:
    comparison = made_up_comparison({"a": 0.5 * z, "b": 0.0})
    scores = comparison["ksd_compare"]["z"].values
    comparison["ksd_compare"]["p_value"].values[:] = 2 * stdtr(29, -np.abs(scores))  # of 30 sequences
    worse = compare_table(comparison).loc["a", "finding"].startswith("worse")
    assert worse == (z > 2.04523)  # the quantile at 0.975 of a t distribution with 29 degrees of freedom
    _, [(low, high)] = parts(plot_compare(comparison), f"difference: {'worse' if worse else 'may be as good'}")
    assert high - low == pytest.approx(2 * 0.5 * 2.04523, rel=1e-5)
    assert (low > 0) == worse


@pytest.mark.parametrize("figsize", [None, (4, 3), (12, 2.5)])
def test_long_names_are_broken_or_shortened_and_do_not_overlap(figsize: tuple[float, float] | None) -> None:
    ax = plot_compare(made_up_comparison(LONG), figsize=figsize)
    ax.figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in ax.get_yticklabels()]
    assert all(above.y0 >= below.y1 - 1 for above, below in pairwise(boxes))
    assert min(box.x0 for box in boxes) >= -1
    assert ax.get_window_extent().width > 0.4 * ax.figure.bbox.width
    shown = [label.replace("\n", " ") for label in labels(ax)]
    assert shown == list(LONG) if figsize is None else all("…" in text for text in shown)


def test_names_are_no_formulas() -> None:
    ax = plot_compare(made_up_comparison({"$a_": 0.0, "b$\n c": 1.0}))
    assert labels(ax) == ["$a_", "b$ c"]
    ax.figure.draw_without_rendering()


def test_statistics_without_any_spread() -> None:
    ax = plot_compare(made_up_comparison({"a": 0.5, "b": 0.5}))
    ax.figure.draw_without_rendering()
    assert [text.get_text() for text in ax.texts] == ["best", "p = 1.000"]


def test_given_axes_are_used() -> None:
    figure, ax = plt.subplots()
    assert plot_compare(made_up_comparison(THREE), ax=ax) is ax
    assert plt.get_fignums() == [figure.number]
    assert plot_compare(made_up_comparison(THREE), backend_kwargs={"dpi": 50}).figure.dpi == 50


@pytest.mark.parametrize("read", [compare_table, plot_compare])
def test_something_other_than_a_comparison(read: Any) -> None:
    with pytest.raises(ValueError, match=r"expected a comparison with .* found .*; pass what ksd_compare returned"):
        read(made_up_check())


def test_the_container_of_arviz() -> None:
    comparison = made_up_comparison(THREE, impossible=3)
    found = to_inference_data(comparison)
    assert repr(compare_table(found)) == repr(compare_table(comparison))
    assert labels(plot_compare(found)) == labels(plot_compare(comparison))


def test_a_saved_comparison_is_read_and_drawn_without_torch(tmp_path: Path) -> None:
    made_up_comparison(THREE).to_netcdf(tmp_path / "comparison.nc", engine="h5netcdf")
    code = f"""
import sys
sys.modules["torch"] = sys.modules["pyro"] = None  # cannot be imported
import matplotlib.figure, xarray
matplotlib.use("agg")
from pyro_ksd.plots.comparison import plot_compare
from pyro_ksd.results.comparison_table import compare_table
with xarray.open_datatree({str(tmp_path / "comparison.nc")!r}, engine="h5netcdf") as saved:
    ax = matplotlib.figure.Figure().add_subplot()
    plot_compare(saved, ax=ax).figure.savefig({str(tmp_path / "comparison.png")!r})
    print(compare_table(saved))
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "worse (p = 1e-07)" in shown
    assert (tmp_path / "comparison.png").read_bytes().startswith(b"\x89PNG")

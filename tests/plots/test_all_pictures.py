# SPDX-License-Identifier: Apache-2.0
"""What all pictures share."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_rgb
from pictures import as_axes, assert_nothing_overlaps, labels, words
from synthetic import PHONEMES, made_up_check, misfit, only
from synthetic_comparison import made_up_comparison

from pyro_ksd import plots
from pyro_ksd.plots import (
    plot_check,
    plot_gram,
    plot_lengths,
    plot_sequences,
)

plot_compare = as_axes(plots.plot_compare)
plot_ngrams = as_axes(plots.plot_ngrams)
plot_null = as_axes(plots.plot_null)
plot_views = as_axes(plots.plot_views)

ONE_AXES: list[Callable[..., Any]] = [plot_views, plot_null, plot_ngrams, plot_sequences, plot_gram, plot_lengths]


@pytest.mark.parametrize("plot", ONE_AXES, ids=lambda plot: plot.__name__)
def test_nothing_overlaps_in_single_pictures(plot: Callable[..., Any]) -> None:
    ax = plot(misfit(made_up_check(PHONEMES, num_sequences=12)))
    assert_nothing_overlaps(np.ravel(ax)[0].figure)


@pytest.mark.parametrize("plot", ONE_AXES, ids=lambda plot: plot.__name__)
def test_axes_can_be_given(plot: Callable[..., Any]) -> None:
    check = only(made_up_check(), "start")
    figure, ax = plt.subplots()
    assert np.ravel(plot(check, ax=ax))[0] is ax
    assert plt.get_fignums() == [figure.number]


@pytest.mark.parametrize("plot", [*ONE_AXES, plot_check], ids=lambda plot: plot.__name__)
def test_figures_can_be_shaped(plot: Callable[..., Any]) -> None:
    figure = np.ravel(plot(made_up_check(), figsize=(11, 10), backend_kwargs={"dpi": 50}))[0].figure
    assert figure.get_size_inches().tolist() == [11, 10]
    assert figure.dpi == 50
    assert figure.get_layout_engine() is not None


@pytest.mark.parametrize("plot", [plot_null, plot_ngrams, plot_sequences, plot_gram], ids=lambda plot: plot.__name__)
def test_an_unknown_view_is_named_with_the_known_ones(plot: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"one of \['content-1', .*, 'length'\], found 'content-9'"):
        plot(made_up_check(), view="content-9")
    assert plt.get_fignums() == []


def test_no_views_and_no_rows_are_mistakes() -> None:
    with pytest.raises(ValueError, match="expected view to name some of"):
        plot_null(made_up_check(), view=[])
    for plot in (plot_ngrams, plot_sequences, plot_check):
        with pytest.raises(ValueError, match="num: expected an integer of at least 1, found 0"):
            plot(made_up_check(), num=0)
    assert plt.get_fignums() == []


def test_other_containers_are_refused() -> None:
    with pytest.raises(ValueError, match="expected a check with the group 'ksd'"):
        plot_views(xr.DataTree())


def test_inference_data_gives_the_same_pictures() -> None:
    arviz = pytest.importorskip("arviz")
    if not hasattr(arviz, "from_datatree"):
        pytest.skip("ArviZ 1 has only DataTree")
    check = misfit(made_up_check(impossible=1))
    other = arviz.from_datatree(check)
    for one_ax, other_ax in zip(
        [*plot_check(check), plot_gram(check), plot_lengths(check)],
        [*plot_check(other), plot_gram(other), plot_lengths(other)],
        strict=True,
    ):
        assert (labels(one_ax), words(one_ax)) == (labels(other_ax), words(other_ax))


def test_plots_need_neither_torch_nor_pyro() -> None:
    heavy = ("torch", "pyro", "matplotlib", "arviz")
    code = f"import json, sys, pyro_ksd.plots; print(json.dumps([name for name in {heavy} if name in sys.modules]))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert json.loads(output) == []


def brightness(color: Any) -> float:
    return float(np.mean(to_rgb(color)))


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_lines_can_be_told_from_the_background(style: str) -> None:
    with plt.style.context(style):
        views = plot_views(made_up_check())
        compare = plot_compare(made_up_comparison({"a": 1.0, "b": 0.0}))
        for ax in (views, compare):
            ground = brightness(ax.get_facecolor())
            lines = [line for line in ax.lines if line.get_linestyle() == "--"]
            assert lines
            assert all(abs(brightness(line.get_color()) - ground) > 0.5 for line in lines)
        bars = plot_ngrams(made_up_check(), num=30).patches
        assert {brightness(bar.get_facecolor()) for bar in bars} >= {brightness(views.get_facecolor())}


def test_the_color_bar_ends_where_the_values_end() -> None:
    plot_sequences(misfit(made_up_check()), num=5)
    low, high = plt.gcf().axes[-1].get_ylim()
    assert low == 0.0  # all parts of a misfit are positive here
    assert high > 0

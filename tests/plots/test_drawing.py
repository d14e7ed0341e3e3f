# SPDX-License-Identifier: Apache-2.0
"""How pictures are drawn, with and without ``arviz_plots``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from pictures import labels, only_axes, words
from synthetic import made_up_check, made_up_posterior_check
from synthetic_comparison import THREE, made_up_comparison

from pyro_ksd.plots import drawing, plot_compare, plot_discrepancy, plot_ngrams, plot_null, plot_views
from pyro_ksd.plots.drawing import has_arviz_plots, one_or_all, spelled_names

PLOTS: dict[str, tuple[Callable[..., Any], Callable[[], Any], str, int]] = {
    "views": (plot_views, made_up_check, "level", 1),
    "null": (plot_null, made_up_check, "observed", 5),
    "ngrams": (plot_ngrams, made_up_check, "bars", 1),
    "discrepancy": (plot_discrepancy, made_up_posterior_check, "diagonal", 5),
    "compare": (plot_compare, lambda: made_up_comparison(THREE), "best", 1),
}
"""Functions, results to draw, a mark, and the number of panels."""


@pytest.fixture(params=PLOTS)
def case(request: pytest.FixtureRequest) -> tuple[Callable[..., Any], Any, str, int]:
    plot, make, mark, count = PLOTS[request.param]
    result = make()
    return plot, result, mark, count


@pytest.fixture
def without_arviz_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "has_arviz_plots", lambda: False)


@pytest.mark.usefixtures("without_arviz_plots")
def test_without_arviz_plots_axes_are_returned(case: Any) -> None:
    plot, result, _, count = case
    drawn = plot(result)
    assert isinstance(drawn, Axes) or [type(ax) for ax in drawn] == [Axes] * len(drawn)
    assert np.size(drawn) == count or plot is plot_discrepancy


@pytest.mark.usefixtures("without_arviz_plots")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "plotly"}, r"backend: expected 'matplotlib', found 'plotly': other backends come with ArviZ 1\.0"),
        ({"plot_collection": 3}, r"found plot_collection: they need arviz_plots, which comes with ArviZ 1\.0"),
        ({"col_wrap": 2}, r"expected no arguments of a PlotCollection, found col_wrap: they need arviz_plots"),
    ],
)
def test_without_arviz_plots_its_arguments_are_refused(case: Any, options: dict[str, Any], message: str) -> None:
    plot, result, *_ = case
    with pytest.raises(ValueError, match=message):
        plot(result, **options)
    assert plot(result, backend="matplotlib") is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "bokeh"}, "backend: expected 'matplotlib', found 'bokeh': "),
        ({"aes_by_visuals": {}, "cols": ["view"]}, "found aes_by_visuals, cols: "),
    ],
)
def test_axes_take_no_arguments_of_a_plot_collection(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plot_views(made_up_check(), ax=plt.subplots()[1], **options)


def test_marks_can_be_changed_and_left_out(case: Any) -> None:
    plot, result, mark, _ = case
    few = {} if plot in (plot_views, plot_compare) else {"view": "content-2"}

    def artists(**changes: Any) -> list[Any]:
        ax = np.ravel(plot(result, ax=plt.subplots()[1], visuals=changes, **few))[0]
        return [*ax.lines, *ax.patches]

    assert len(artists(**{mark: False})) < len(artists()) == len(artists(**{mark: True}))
    yellow = plt.matplotlib.colors.to_hex("yellow")
    looks = [
        plt.matplotlib.colors.to_hex(drawn.get_edgecolor() if hasattr(drawn, "get_edgecolor") else drawn.get_color())
        for drawn in artists(**{mark: {"color": "yellow"}})
    ]
    assert yellow in looks


@pytest.mark.parametrize("wrong", [{"levels": False}, {3: {}}, {"level": "red"}, "level"])
def test_wrong_visuals_are_named_with_the_known_ones(wrong: Any) -> None:
    with pytest.raises(ValueError, match="visuals: expected"):
        plot_views(made_up_check(), visuals=wrong)
    assert plt.get_fignums() == []


def test_legends_and_notes_can_be_left_out() -> None:
    ax = only_axes(plot_views(made_up_check(), visuals={"legend": False, "notes": False}))
    assert ax.get_legend() is None
    assert not any(text.startswith("p = ") for text in words(ax))


class Shouting:
    """Spells names as a labeller of ArviZ does, in capitals."""

    def sel_to_str(self, sel: dict[str, str], isel: dict[str, int]) -> str:
        ((dimension, name),) = sel.items()
        assert isel.keys() == sel.keys()
        return f"{dimension} {name.upper()}"


def test_a_labeller_spells_the_names(case: Any) -> None:
    plot, result, *_ = case
    few = {} if plot in (plot_views, plot_compare) else {"view": "content-2"}
    ax = np.ravel(plot(result, ax=plt.subplots()[1], labeller=Shouting(), **few))[0]
    shown = " ".join([*labels(ax), ax.get_ylabel(), ax.get_title(), ax.get_title(loc="left")])
    assert ("model ORDER 2" if plot is plot_compare else "view CONTENT-2") in shown
    assert spelled_names(Shouting(), "view", ["a", "b"]) == ["view A", "view B"]


def test_several_views_of_ngrams_have_a_panel_each() -> None:
    check = made_up_check()
    axes = plot_ngrams(check, view=["content-2", "start"], num=3, ax=plt.subplots(2)[1])
    assert [ax.get_title(loc="left").split(",")[0] for ax in axes] == ["content-2", "start"]
    for ax, name in zip(axes, ("content-2", "start"), strict=True):
        alone = plot_ngrams(check, view=name, num=3, ax=plt.subplots()[1])
        assert labels(ax) == labels(alone)
        assert [bar.get_width() for bar in ax.patches] == [bar.get_width() for bar in alone.patches]
    with pytest.raises(ValueError, match="expected ax to hold 2 axes, one for each view, found 1"):
        plot_ngrams(check, view=["content-2", "start"], ax=plt.subplots()[1])
    with pytest.raises(ValueError, match=r"expected view to be one of \[.*\], found 'nothing'"):
        plot_ngrams(check, view=["content-2", "nothing"])
    with pytest.raises(ValueError, match="expected view to name some of"):
        plot_ngrams(check, view=[])


def test_one_axes_or_all_of_them() -> None:
    axes = plt.subplots(2)[1]
    assert one_or_all(axes, single=True) is axes[0]
    assert one_or_all(axes, single=False) is axes
    assert one_or_all("a PlotCollection", single=True) == "a PlotCollection"


def test_arviz_plots_is_found_if_it_is_installed() -> None:
    try:
        import arviz_plots  # noqa: F401
    except ImportError:
        assert not has_arviz_plots()
    else:
        assert has_arviz_plots()

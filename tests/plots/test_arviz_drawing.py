# SPDX-License-Identifier: Apache-2.0
"""Pictures drawn by ``arviz_plots``, with each of its backends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from pictures import PURPLE, axes_of, labels
from synthetic import VIEWS, changed, made_up_check, made_up_posterior_check
from synthetic_comparison import THREE, made_up_comparison

from pyro_ksd.plots import plot_compare, plot_discrepancy, plot_ngrams, plot_null, plot_views

azp = pytest.importorskip("arviz_plots", reason="it comes with ArviZ 1.0")

PLOTS: dict[str, tuple[Callable[..., Any], Callable[[], Any], list[str]]] = {
    "views": (plot_views, made_up_check, ["level", "smallest", "against", "others", "separator"]),
    "null": (plot_null, made_up_check, ["null_draws", "observed"]),
    "ngrams": (plot_ngrams, made_up_check, ["bars", "zero"]),
    "discrepancy": (plot_discrepancy, made_up_posterior_check, ["others", "against", "diagonal"]),
    "compare": (plot_compare, lambda: made_up_comparison(THREE), ["best", "statistics", "worse", "as_good"]),
}


@pytest.fixture(params=["matplotlib", "plotly", "bokeh"])
def backend(request: pytest.FixtureRequest) -> str:
    pytest.importorskip(request.param)
    if request.param == "plotly":
        pytest.importorskip("webcolors", reason="arviz_plots needs it for plotly")
    return str(request.param)


@pytest.fixture
def tumma(backend: str) -> Iterator[None]:
    """A dark style of ArviZ, until the end of the test."""
    with plt.rc_context():
        azp.style.use("arviz-tumma")
        yield
    if backend == "plotly":
        import plotly.io as pio

        pio.templates.default = "plotly"
    if backend == "bokeh":
        from bokeh.io import curdoc
        from bokeh.themes import default

        curdoc().theme = default


def curves(target: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """The coordinates of all lines, points and texts of a panel of plotly or bokeh."""
    if hasattr(target, "renderers"):
        data = [renderer.data_source.data for renderer in target.renderers]
        return [(np.asarray(one["x"], float), np.asarray(one["y"], float)) for one in data if {"x", "y"} <= set(one)]
    traces = target.figure.select_traces(row=target.row, col=target.col)
    return [
        (np.asarray(t.x, float), np.asarray(t.y, float)) for t in traces if t.type == "scatter" and t.x[0] is not None
    ]


def bars(target: Any) -> list[tuple[float, float, float]]:
    """The left end, right end and height of all bars of a panel of plotly or bokeh, the height from 0 or the bottom."""
    found = []
    if hasattr(target, "renderers"):
        for renderer in target.renderers:
            data = renderer.data_source.data
            if "left" in data:
                bottom = data.get("bottom", np.zeros(len(data["left"])))
                found += list(zip(data["left"], data["right"], np.subtract(data["top"], bottom), strict=True))
        return [tuple(map(float, one)) for one in found]
    for trace in target.figure.select_traces(selector={"type": "bar"}, row=target.row, col=target.col):
        left, right = trace.x - np.divide(trace.width, 2), trace.x + np.divide(trace.width, 2)
        found += list(zip(left, right, trace.y, strict=True))
    return [tuple(map(float, one)) for one in found]


@pytest.mark.parametrize("name", PLOTS)
def test_pictures_are_plot_collections_with_a_visual_for_each_mark(name: str, backend: str, tmp_path: Path) -> None:
    plot, make, marks = PLOTS[name]
    picture = plot(make(), backend=backend)
    assert isinstance(picture, azp.PlotCollection)
    assert picture.backend == backend
    assert list(picture.viz.children) == marks
    assert picture.viz["plot"].dims == (("view",) if name in ("null", "discrepancy") else ())
    if name in ("null", "discrepancy"):
        assert picture.viz["plot"]["view"].values.tolist() == VIEWS
        assert all(picture.get_viz(mark, view="start") is not None for mark in marks)
    file = tmp_path / f"picture.{'png' if backend == 'matplotlib' else 'html'}"
    picture.savefig(file)
    assert file.stat().st_size > 1000


def test_the_default_backend_is_that_of_arviz(backend: str) -> None:
    from arviz_base import rc_context

    with rc_context({"plot.backend": backend}):
        assert plot_views(made_up_check()).backend == backend


def test_null_draws_are_the_same_in_all_backends(backend: str) -> None:
    if backend == "matplotlib":
        pytest.skip("the tests of plot_null read them")
    check = changed(made_up_check(), "ksd", statistic=[1.0, 900.0, 1.0, 1.0, 1.0])
    picture = plot_null(check, backend=backend)
    for name in VIEWS:
        draws = check["ksd_null"]["ksd"].sel(view=name).values.ravel()
        observed = float(check["ksd"]["statistic"].sel(view=name))
        if name == "content-2":  # its axis is compressed
            width = np.median(np.abs(draws))
            draws, observed = np.arcsinh(draws / width), np.arcsinh(observed / width)
        target = picture.get_viz("plot", view=name)
        edges = np.array([left for left, _, _ in bars(target)] + [bars(target)[-1][1]])
        counts = np.histogram(draws, edges)[0]
        assert len(draws) - 1 <= counts.sum() <= len(draws)  # the last edge is rounded
        assert np.abs(counts - [height for _, _, height in bars(target)]).sum() <= 2
        assert [x.tolist() for x, _ in curves(target)] == [[observed, observed]]


def test_bars_of_ngrams_are_the_same_in_all_backends(backend: str) -> None:
    if backend == "matplotlib":
        pytest.skip("the tests of plot_ngrams read them")
    check = made_up_check()
    ax = plot_ngrams(check, num=6, ax=plt.subplots()[1])
    target = plot_ngrams(check, num=6, backend=backend).viz["plot"].item()
    expected = sorted((min(bar.get_width(), 0), max(bar.get_width(), 0)) for bar in ax.patches)
    np.testing.assert_allclose(sorted((left, right) for left, right, _ in bars(target)), expected)
    assert [height for _, _, height in bars(target)] == pytest.approx([0.7] * 6)


def test_p_values_are_the_same_in_all_backends(backend: str) -> None:
    if backend == "matplotlib":
        pytest.skip("the tests of plot_views read them")
    check = made_up_check()
    target = plot_views(check, backend=backend).viz["plot"].item()
    values = {round(10**x, 9) for xs, _ in curves(target) for x in xs}
    p_values = {*check["ksd"]["p_value"].values.tolist(), float(check["ksd"]["p_value_overall"])}
    assert {round(p, 9) for p in p_values if p != 1.0} <= values
    rows = {float(y) for _, ys in curves(target) for y in ys}
    assert set(range(6)) <= rows


def test_intervals_of_a_comparison_are_the_same_in_all_backends(backend: str) -> None:
    if backend == "matplotlib":
        pytest.skip("the tests of plot_compare read them")
    target = plot_compare(made_up_comparison(THREE), backend=backend).viz["plot"].item()
    ends = [x.tolist() for x, y in curves(target) if len(x) == 9 and np.isnan(x[2])]
    assert [[x for x in one if not np.isnan(x)] for one in ends] == [[-0.25, 0.75, 0.5, 1.5, 2.5, 3.5]]


def test_lines_and_words_follow_the_style(backend: str, tumma: None) -> None:
    picture = plot_views(made_up_check(), backend=backend)
    level = picture.viz["level"].to_dataset()["panel"].item()
    color = {
        "matplotlib": lambda: plt.matplotlib.colors.to_hex(level.get_color()),
        "plotly": lambda: level.line.color,
        "bokeh": lambda: level.glyph.line_color,
    }[backend]()
    assert np.mean(plt.matplotlib.colors.to_rgb(color)) > 0.8


def test_visuals_change_marks_and_leave_them_out(backend: str) -> None:
    picture = plot_ngrams(made_up_check(), backend=backend, visuals={"zero": False, "bars": {"alpha": 0.25}})
    assert list(picture.viz.children) == ["bars"]
    first = picture.viz["bars"].to_dataset()["panel"].item()[0]
    alpha = {
        "matplotlib": lambda: first.get_alpha(),
        "plotly": lambda: first.opacity,
        "bokeh": lambda: first.glyph.fill_alpha,
    }[backend]()
    assert alpha == 0.25


def test_aesthetics_are_followed_unless_a_mark_is_left_out(backend: str) -> None:
    def color_of(picture: Any, mark: str, view: str) -> str:
        drawn = picture.get_viz(mark, view=view)
        return {
            "matplotlib": lambda: plt.matplotlib.colors.to_hex(drawn.get_color()),
            "plotly": lambda: drawn.line.color.lower(),
            "bokeh": lambda: drawn.glyph.line_color.lower(),
        }[backend]()

    options: dict[str, Any] = {"backend": backend, "view": ["start", "length"], "aes": {"color": ["view"]}}
    options["color"] = ["#ff0000", "#00ff00"]
    followed = plot_null(made_up_check(), **options)
    assert [color_of(followed, "observed", view) for view in ("start", "length")] == ["#ff0000", "#00ff00"]
    ignored = plot_null(made_up_check(), aes_by_visuals={"observed": []}, **options)
    assert {color_of(ignored, "observed", view) for view in ("start", "length")} == {"#0072b2"}


def test_a_plot_collection_can_be_given(backend: str) -> None:
    check = made_up_check()
    first = plot_null(check, backend=backend)
    again = plot_null(check, plot_collection=first, visuals={"null_draws": False})
    assert again is first


def test_options_of_a_plot_collection_are_passed(backend: str) -> None:
    picture = plot_null(made_up_check(), backend=backend, col_wrap=3)
    assert picture.viz["col_index"].values.tolist() == [0, 1, 2, 0, 1]


def test_figures_have_the_size_that_is_asked_for() -> None:
    figure = plot_views(made_up_check(), figsize=(5, 4)).viz["figure"].item()
    assert figure.get_size_inches().tolist() == [5, 4]
    pytest.importorskip("plotly")
    pytest.importorskip("webcolors")
    figure = plot_views(made_up_check(), backend="plotly", figsize=(5, 4)).viz["figure"].item()
    assert (figure.layout.width, figure.layout.height) == (500, 400)


def test_mistakes_are_named() -> None:
    with pytest.raises(
        ValueError, match=r"backend: expected one of \['matplotlib', 'plotly', 'bokeh'\], found 'ggplot'"
    ):
        plot_views(made_up_check(), backend="ggplot")
    with pytest.raises(ValueError, match="colour"):
        plot_views(made_up_check(), colour=3)


def test_hatches_tell_bars_apart(backend: str) -> None:
    check = made_up_check()
    picture = plot_ngrams(check, num=6, backend=backend)
    drawn = picture.viz["bars"].to_dataset()["panel"].item()
    if backend == "matplotlib":
        assert {bool(bar.get_hatch()) for bar in drawn} == {True, False}
        assert labels(axes_of(picture)) == labels(plot_ngrams(check, num=6, ax=plt.subplots()[1]))
        return
    filled, hatched = drawn
    if backend == "plotly":
        assert (filled.marker.color.lower(), filled.marker.pattern.shape) == (PURPLE, None)
        assert hatched.marker.pattern.shape == "/"
    else:
        assert filled.glyph.fill_color.lower() == PURPLE
        assert hatched.glyph.hatch_pattern == "/"


def written(target: Any) -> tuple[dict[float, str], dict[float, str], str, list[str], str]:
    """The labels and notes of a panel of plotly or bokeh, by row, its title, its legend, and what stands below it."""
    if hasattr(target, "renderers"):
        labels_of_rows = {float(place): text for place, text in target.yaxis[0].major_label_overrides.items()}
        texts = [renderer.data_source.data for renderer in target.renderers if "text" in renderer.data_source.data]
        notes = {float(y): text for data in texts for y, text in zip(data["y"], data["text"], strict=True)}
        legend = [item.label.value for box in target.legend for item in box.items]
        title = target.title.text if target.title is not None else ""
        return labels_of_rows, notes, title, legend, target.xaxis[0].axis_label or ""
    figure = target.figure
    [axis] = figure.select_yaxes(row=target.row, col=target.col)
    labels_of_rows = dict(zip(map(float, axis.tickvals or ()), axis.ticktext or (), strict=True))
    traces = list(figure.select_traces(row=target.row, col=target.col))
    texts = [trace for trace in traces if trace.type == "scatter" and trace.mode == "text"]
    notes = {float(y): text for trace in texts for y, text in zip(trace.y, trace.text, strict=True)}
    legend = [trace.name for trace in traces if trace.showlegend]
    suffix = axis.plotly_name.removeprefix("yaxis")
    titles = [note.text for note in figure.layout.annotations if note.xref == f"x{suffix} domain"]
    [below] = figure.select_xaxes(row=target.row, col=target.col)
    return labels_of_rows, notes, (titles or [""])[-1].replace("<br>", "\n"), legend, below.title.text or ""


def test_words_are_the_same_in_all_backends(backend: str) -> None:
    if backend == "matplotlib":
        pytest.skip("the tests of each picture read them")
    check = made_up_check()
    rows, notes, _, legend, below = written(plot_views(check, backend=backend).viz["plot"].item())
    assert list(rows) == list(notes) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert rows[0.0] == "content-1: single symbols"
    assert rows[5.0] == "all views together"
    assert list(notes.values()) == ["p = 0.430", "p = 0.002", "p = 0.080", "p = 1.000", "p = 0.008", "p = 0.004"]
    assert sorted(legend) == ["level 0.05", "p > 0.05", "p ≤ 0.05 by itself", "smallest possible p = 0.005"]
    assert below == "p-value (logarithmic)"
    null = plot_null(check, backend=backend)
    first, second = (written(null.get_viz("plot", view=name)) for name in VIEWS[:2])
    assert (first[2], second[2]) == ("content-1\np = 0.430", "content-2\np = 0.002")
    assert (sorted(first[3]), second[3]) == (["if the model were right", "observed"], [])
    _, _, title, legend, below = written(plot_ngrams(check, backend=backend).viz["plot"].item())
    assert title == "content-2, p = 0.002\npairs of neighbors"
    assert legend == []
    assert "under the model" in below
    empty = dict.fromkeys(("title", "x_label", "ticklabels", "notes", "legend"), False)
    target = plot_ngrams(check, backend=backend, visuals=empty).viz["plot"].item()
    assert written(target)[1:] == ({}, "", [], "")

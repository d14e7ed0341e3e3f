# SPDX-License-Identifier: Apache-2.0
"""Panels on axes of matplotlib."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb
from pictures import BLUE, GRAY, PURPLE, VERMILION, labels, words

from pyro_ksd.plots.matplotlib_drawing import draw_mark, finish, fitting_labels
from pyro_ksd.plots.picture import Histogram, Line, Panel, Points, RowBars, Rows, Rule, Scale

ONE_TWO = np.array([1.0, 2.0])


def axes() -> Any:
    return plt.subplots(figsize=(6, 4), layout="constrained")[1]


@pytest.mark.parametrize(
    ("meaning", "color"),
    [("data", BLUE), ("model", VERMILION), ("against", PURPLE), ("quiet", GRAY), ("words", "#000000")],
)
def test_colors_are_what_they_mean(meaning: str, color: str) -> None:
    drawn = draw_mark(axes(), Line("line", {"color": meaning, "width": 3}, ONE_TWO, ONE_TWO), {})
    assert to_hex(drawn.get_color()) == color
    assert drawn.get_linewidth() == 3


def test_colors_follow_the_style() -> None:
    def brightness(meaning: str) -> float:
        return float(np.mean(to_rgb(draw_mark(axes(), Rule("rule", {"color": meaning}, "x", 0.0), {}).get_color())))

    light = [brightness(meaning) for meaning in ("words", "quiet", "faint", "background")]
    assert light == sorted(light)
    with plt.style.context("dark_background"):
        dark = [brightness(meaning) for meaning in ("words", "quiet", "faint", "background")]
    assert dark == sorted(dark, reverse=True)


def test_looks_can_be_changed_in_the_words_of_arviz() -> None:
    mark = Points("points", {"color": "data", "marker": "diamond", "size": 49}, ONE_TWO, ONE_TWO)
    plain = draw_mark(axes(), mark, {})
    assert (plain.get_marker(), plain.get_markersize()) == ("D", 7)
    changed = draw_mark(axes(), mark, {"color": "B1", "facecolor": "C2", "size": 16, "marker": "s", "width": 2})
    assert (to_hex(changed.get_color()), changed.get_marker(), changed.get_markersize()) == ("#000000", "s", 4)
    assert to_hex(changed.get_markerfacecolor()) == to_hex("C2")
    assert changed.get_markeredgewidth() == 2


def test_all_marks_stand_where_they_are_described() -> None:
    ax = axes()
    intervals = draw_mark(ax, Points("points", {"marker": "circle"}, ONE_TWO, ONE_TWO, np.array([0.5, 0.25])), {})
    ends = [segment[:, 0].tolist() for segment in intervals[2][0].get_segments()]
    assert ends == [[0.5, 1.5], [1.75, 2.25]]
    assert set(draw_mark(ax, Rule("rule", {}, "x", 1.5), {}).get_xdata()) == {1.5}
    assert set(draw_mark(ax, Rule("rule", {}, "y", 1.5), {}).get_ydata()) == {1.5}
    bars = draw_mark(ax, Histogram("bars", {}, np.array([0.0, 1.0, 3.0]), np.array([5.0, 7.0])), {})
    assert [(bar.get_x(), bar.get_width(), bar.get_height()) for bar in bars] == [(0, 1, 5), (1, 2, 7)]
    look = {"color": "against"}
    rows = draw_mark(ax, RowBars("rows", look, np.array([-2.0, 3.0]), np.array([True, False])), {})
    assert [(bar.get_width(), bool(bar.get_hatch())) for bar in rows] == [(-2, False), (3, True)]
    assert [bar.get_y() + bar.get_height() / 2 for bar in rows] == pytest.approx([0, 1])
    red = draw_mark(ax, RowBars("rows", look, np.array([-2.0, 3.0]), np.array([True, False])), {"color": "red"})
    assert [to_hex(bar.get_edgecolor()) for bar in red] == ["#ff0000", "#ff0000"]
    assert to_hex(red[1].get_facecolor()) == "#ffffff"


def test_texts_can_be_left_out_or_changed() -> None:
    panel = Panel(
        [], title=["title", "meaning"], x_label=["x"], y_label=["y"], y_limits=(0.5, -0.5), rows=Rows([["a"]], ["note"])
    )
    full, empty, changed = axes(), axes(), axes()
    finish(full, panel, {}, "above")
    assert (full.get_title(loc="left"), full.get_xlabel(), labels(full)) == ("title\nmeaning", "x", ["a"])
    assert words(full) == ["note"]
    names = ("title", "x_label", "y_label", "ticklabels", "notes", "legend")
    finish(empty, panel, dict.fromkeys(names, False), "above")
    assert (empty.get_title(loc="left"), empty.get_xlabel(), labels(empty), words(empty)) == ("", "", [], [])
    finish(changed, panel, {"title": {"size": 20, "color": "B1"}, "notes": {"color": "red"}}, "above")
    title = changed.title if changed.title.get_text() else changed._left_title
    assert (title.get_fontsize(), to_hex(title.get_color())) == (20, "#000000")
    assert changed.texts[0].get_color() == "red"


def test_scales_are_those_of_matplotlib() -> None:
    for scale in (Scale("log"), Scale("asinh", 0.5), Scale()):
        ax = axes()
        draw_mark(ax, Line("line", {}, np.array([0.01, 2000.0]), ONE_TWO), {})
        finish(ax, Panel([], x_scale=scale), {}, "none")
        assert ax.get_xscale() == scale.kind
        assert ax.get_yticks().size == 0


def test_labels_take_their_share_of_the_axes() -> None:
    ax = axes()
    names = [["a rather long name of a model"], ["b"]]
    assert fitting_labels(ax, Rows(names, [], share=5.0)) == ["a rather long name of a model", "b"]
    shortened = fitting_labels(ax, Rows(names, [], share=0.2))
    assert (shortened[0][-1] == "…" or shortened[0][0] == "…", shortened[1]) == (True, "b")
    ax.set_ylim(1.5, -0.5)
    assert fitting_labels(ax, Rows(names, [], share=0.4, lines=2))[0].count("\n") == 1

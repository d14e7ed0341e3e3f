# SPDX-License-Identifier: Apache-2.0
"""Draws the panels of a picture on axes of matplotlib."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from pyro_ksd.plots.picture import Histogram, Line, Mark, Panel, Points, RowBars, Rows, Rule
from pyro_ksd.plots.style import (
    BLUE,
    LABEL,
    PURPLE,
    VERMILION,
    background,
    faint,
    font_scale,
    foreground,
    legend_above,
    points,
    quiet,
    write_beside,
)
from pyro_ksd.plots.text_fitting import abbreviations, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINES = {"solid": "-", "dashed": "--", "dotted": ":"}
_MARKERS = {"circle": "o", "diamond": "D", "triangle": "^"}
_ROOM_HEIGHT = 28  # points of a row and of the axes from which on the meanings are written
_ROOM_WIDTH = 320
_TWO_LINES = 2.8  # letter heights of a row in which a label may have two lines


def draw_mark(ax: Axes, mark: Mark, changes: Mapping[str, Any]) -> Any:
    """Draws one mark.

    :param changes: of its look, in the words of ``arviz_plots``.
    :returns: what matplotlib has drawn.
    """
    look = {**mark.look, **changes}
    label = mark.label or "_nolegend_"
    match mark:
        case Points(half=None):
            return ax.plot(mark.x, mark.y, label=label, linestyle="none", **_arguments(look))[0]
        case Points():
            keywords = {"linestyle": "none", **_arguments(look)}
            return ax.errorbar(mark.x, mark.y, xerr=mark.half, capsize=3 if mark.caps else 0, label=label, **keywords)
        case Line():
            return ax.plot(mark.x, mark.y, label=label, **_arguments(look))[0]
        case Rule():
            line = ax.axvline if mark.axis == "x" else ax.axhline
            return line(mark.at, label=label, **_arguments(look))
        case Histogram():
            keywords = {"align": "edge", "label": label, **_arguments(look)}
            return ax.bar(mark.edges[:-1], mark.counts, np.diff(mark.edges), **keywords)
        case RowBars():
            return [
                ax.barh(row, value, height=0.7, **_bar_look(look, changes, bool(filled)))[0]
                for row, (value, filled) in enumerate(zip(mark.values, mark.filled, strict=True))
            ]
    raise AssertionError(mark)


def finish(ax: Axes, panel: Panel, changes: Mapping[str, Any], legend: str) -> None:
    """Scales the axes of a panel, and writes all that is written in it.

    :param changes: of texts, by their names; False leaves them out.
    :param legend: where it stands.
    """
    from matplotlib.ticker import MaxNLocator, NullLocator

    if panel.square:
        ax.set_box_aspect(1)
    scale = panel.x_scale
    if scale.kind == "log":
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
    if scale.kind == "asinh":
        ax.set_xscale("asinh", linear_width=scale.width)
        low, high = ax.dataLim.intervalx
        ax.set_xticks(scale.ticks(low, high, LABEL * font_scale() / points(ax)[0]))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_locator(NullLocator())
    least = 4 if panel.square else 2
    if scale.kind == "linear":
        ax.xaxis.set_major_locator(MaxNLocator(max(least, int(points(ax)[0] / (LABEL * font_scale())))))
    if panel.x_limits is not None:
        ax.set_xlim(panel.x_limits)
    if panel.y_limits is not None:
        ax.set_ylim(panel.y_limits)
    ax.spines[["top", "right"] if panel.y_numbers else ["top", "left", "right"]].set_visible(False)
    if panel.y_numbers:
        ax.yaxis.set_major_locator(MaxNLocator(max(least, int(points(ax)[1] / (LABEL * font_scale())))))
    elif panel.rows is None:
        ax.set_yticks([])
    if panel.title and changes.get("title") is not False:
        lines = panel.title if panel.square else [panel.title[0], *_wrapped(ax, panel.title[1:], 20)]
        place = {} if panel.square else {"loc": "left", "wrap": True}
        ax.set_title("\n".join(lines), **{"fontsize": "medium", **place, **_texts(changes, "title")})
    if changes.get("x_label") is not False:
        ax.set_xlabel("\n".join(_wrapped(ax, panel.x_label, 30)), **_texts(changes, "x_label"))
    if changes.get("y_label") is not False:
        upright = {} if panel.y_numbers else {"rotation": 0, "ha": "right", "va": "center"}
        ax.set_ylabel("\n".join(panel.y_label), **{**upright, **_texts(changes, "y_label")})
    if legend != "none" and changes.get("legend") is not False and ax.get_legend_handles_labels()[0]:
        if legend == "above":
            legend_above(ax)
        else:
            ax.legend(loc="best", fontsize="small", frameon=False, borderaxespad=0, handletextpad=0)
    if panel.rows is not None:
        _write_rows(ax, panel.rows, changes)


def _write_rows(ax: Axes, rows: Rows, changes: Mapping[str, Any]) -> None:
    ax.tick_params(axis="y", length=0)
    if rows.grid:
        ax.grid(axis="y", color=foreground(), alpha=0.1)
    if changes.get("notes") is not False:
        write_beside(ax, rows.notes, **_texts(changes, "notes"))
    if changes.get("ticklabels") is False:
        ax.set_yticks([])
        return
    labels = [" ".join(label) for label in rows.labels] if rows.share is None else fitting_labels(ax, rows)
    ax.set_yticks(np.arange(len(labels)), labels, parse_math=False, **_texts(changes, "ticklabels"))
    _write_meanings(ax, rows.meanings)


def fitting_labels(ax: Axes, rows: Rows) -> list[str]:
    """Labels that take no more than a share of the width that the axes have now, abbreviated if need be."""
    figure = ax.figure.canvas.figure
    if rows.lines > 1 and (layout := figure.get_layout_engine()) is not None:
        layout.execute(figure)  # settles how high the rows are
    width, height = points(ax)
    size = float(ax.yaxis.get_ticklabels()[0].get_fontsize())
    lines = rows.lines if height > _TWO_LINES * size * len(rows.labels) else 1
    room = (rows.share or 1) * width / max(map(len, rows.labels))
    texts = abbreviations(chain(*rows.labels), lines * room, size)
    shown = [" ".join(texts[part] or "…" for part in label) for label in rows.labels]
    return shown if lines == 1 else [text if text_width(text, size) <= room else _in_two_lines(text) for text in shown]


def _in_two_lines(text: str) -> str:
    filled = (textwrap.fill(text, width) for width in range(max(1, len(text) // 2), len(text) + 1))
    return next(lines for lines in filled if lines.count("\n") < 2)


def _write_meanings(ax: Axes, meanings: list[str]) -> None:
    """Writes what the rows mean below their names, if there is room."""
    width, height = points(ax)
    if width < _ROOM_WIDTH or height < _ROOM_HEIGHT * (len(meanings) + 1):
        return
    for row, (label, meaning) in enumerate(zip(ax.get_yticklabels(), meanings, strict=False)):
        label.set_verticalalignment("bottom")
        ax.annotate(
            textwrap.shorten(meaning, 60, placeholder=" …"),
            (0, row),
            xycoords=ax.get_yaxis_transform(),
            xytext=(-4, 0),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize="small",
            color=quiet(),
        )


def _wrapped(ax: Axes, lines: list[str], least: int) -> list[str]:
    """Lines that are broken where they would be much wider than the axes.

    :param least: how many letters a line may always have.
    """
    width = points(ax)[0]
    letters = max(least, int(width / (6 * font_scale())))
    fits = [text_width(line, 10 * font_scale()) <= 1.1 * width for line in lines]
    return [line if fit else textwrap.fill(line, letters) for line, fit in zip(lines, fits, strict=True)]


def _bar_look(look: Mapping[str, Any], changes: Mapping[str, Any], filled: bool) -> dict[str, Any]:
    if filled:
        color = _color(look["color"])
        return {"facecolor": color, "edgecolor": color, **_arguments(changes)}
    color = _color(changes.get("color", "quiet"))
    keywords = {"facecolor": background(), "edgecolor": color, "hatch": "////"}
    return {**keywords, **_arguments({name: value for name, value in changes.items() if name != "color"})}


def _texts(changes: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The arguments of a text that the user changed."""
    found = changes.get(name, {})
    keywords = {} if isinstance(found, bool) else dict(found)
    if "size" in keywords:
        keywords["fontsize"] = keywords.pop("size")
    if "color" in keywords:
        keywords["color"] = _color(keywords["color"])
    return keywords


def _arguments(look: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of matplotlib for a look; what it does not know by these names is passed as it is."""
    keywords = dict(look)
    marker = "marker" in keywords
    for name, other in (("color", "color"), ("facecolor", "markerfacecolor"), ("edgecolor", "markeredgecolor")):
        if name in keywords:
            keywords[other if marker else name] = _color(keywords.pop(name))
    if "size" in keywords:
        keywords["markersize"] = math.sqrt(keywords.pop("size"))
    if "width" in keywords:
        keywords["markeredgewidth" if marker else "linewidth"] = keywords.pop("width")
    for name, known in (("linestyle", _LINES), ("marker", _MARKERS)):
        if name in keywords:
            keywords[name] = known.get(keywords[name], keywords[name])
    return keywords


def _color(color: Any) -> Any:
    """The color of matplotlib for what a color means, or for an alias of ``arviz_plots``; other colors as they are."""
    meanings = {"data": BLUE, "model": VERMILION, "against": PURPLE}
    if isinstance(color, str) and color in meanings:
        return meanings[color]
    match color:
        case "words" | "B1":
            return foreground()
        case "quiet" | "B2":
            return quiet()
        case "faint" | "B3":
            return faint()
        case "background" | "B0":
            return background()
    return color

# SPDX-License-Identifier: Apache-2.0
"""Draws a picture with ``arviz_plots``: for matplotlib by our own drawing, for plotly and bokeh by its backends."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from pyro_ksd.common.option_checks import found
from pyro_ksd.plots.matplotlib_drawing import draw_mark, finish
from pyro_ksd.plots.picture import Histogram, Line, Mark, Numbers, Panel, Picture, Points, RowBars, Rule
from pyro_ksd.plots.style import BLUE, PURPLE, VERMILION, figure_options, refused_options

BACKENDS = ("matplotlib", "plotly", "bokeh")
_COLORS = {
    "data": BLUE,
    "model": VERMILION,
    "against": PURPLE,
    "words": "B1",  # aliases of arviz_plots, which depend on the background of the style that is in use
    "quiet": "B2",
    "faint": "B3",
    "background": "B0",
}
_LINES = {"solid": "C0", "dashed": "C1", "dotted": "C2"}
_MARKERS = {"circle": "C0", "triangle": "C2", "diamond": "C4"}
_DOTS = 100  # pixels of an inch
_NOTE = 0.22  # the share of the width of a panel that its notes take
_TICK = 0.12  # and that the label of a tick takes
_BETWEEN = {"plotly": 1.3, "bokeh": 0.5}  # inches between panels one below the other, for a label and a title
_AROUND = {"plotly": 1.8, "bokeh": 0.5}  # inches above and below all panels together
_LEGEND = 0.45  # inches of a legend above a panel
_LARGER = 1.4  # how many pixels a point of a marker has
_SMALL = 12  # pixels of small letters


def plot_collection_of(
    picture: Picture,
    dimension: str | None,
    plot_collection: Any,
    backend: str | None,
    figsize: tuple[float, float] | None,
    backend_kwargs: Mapping[str, Any] | None,
    visuals: Mapping[str, Any],
    aes_by_visuals: Mapping[str, Sequence[str]],
    options: Mapping[str, Any],
) -> Any:
    """Draws a picture by ``arviz_plots``, with one visual for each mark.

    :param dimension: what the names of the panels are names of; None for a picture with one panel.
    :param plot_collection: where to draw, in place of a new figure.
    :param figsize: width and height of a new figure in inches.
    :param backend_kwargs: more arguments of the function that makes it.
    :param visuals: changes of the look of marks and texts, by their names; False leaves one out.
    :param aes_by_visuals: the aesthetics that each mark follows; all of them where a mark is not named.
    :param options: of ``PlotCollection.wrap``.
    :returns: the ``PlotCollection``.
    """
    import xarray as xr

    numbers = xr.Dataset({"panel": 0})
    if dimension is not None:
        names = np.array(list(picture.panels), dtype=object)
        numbers = xr.Dataset({"panel": (dimension, np.arange(len(names)))}, {dimension: names})
    if plot_collection is None:
        plot_collection = _new_collection(picture, numbers, backend, figsize, backend_kwargs, options)
    name = plot_collection.backend
    drawing = _MatplotlibDrawing() if name == "matplotlib" else _BackendDrawing(name)
    panels = list(picture.panels.values())

    def each(draw: Callable[..., Any], data: Any, target: Any, **changes: Any) -> Any:
        drawn = [draw(target, panels[number], number == 0, **changes) for number in np.ravel(data.values)]
        stored = np.empty((), dtype=object)  # a visual may be a list or a tuple, which xarray must not unpack
        stored[()] = drawn[0] if len(drawn) == 1 else drawn
        return stored

    for mark in picture.mark_names():
        change = visuals.get(mark, {})
        if change is False:
            continue
        aesthetics = aes_by_visuals.get(mark, plot_collection.aes_set)
        shown = picture.legend != "none" and visuals.get("legend") is not False
        draw = partial(_draw_marks, drawing, mark, shown)
        plot_collection.map(
            partial(each, draw),
            mark,
            data=numbers,
            ignore_aes=plot_collection.aes_set - set(aesthetics),
            **({} if change is True else change),
        )
    write = partial(_finish, drawing, picture.legend, visuals)
    plot_collection.map(partial(each, write), "texts", data=numbers, ignore_aes="all", store_artist=False)
    return plot_collection


def _new_collection(
    picture: Picture,
    numbers: Any,
    backend: str | None,
    figsize: tuple[float, float] | None,
    backend_kwargs: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> Any:
    from arviz_base import rcParams
    from arviz_plots import PlotCollection

    name = rcParams["plot.backend"] if backend is None else backend
    if name not in BACKENDS:
        raise ValueError(f"backend: expected one of {list(BACKENDS)}, found {found(name)}")
    keywords = {"cols": list(numbers.dims), "col_wrap": picture.columns, **options}
    rows = math.ceil(len(picture.panels) / keywords["col_wrap"])
    width, height = picture.size
    if name != "matplotlib":
        height += _AROUND[name] + _BETWEEN[name] * (rows - 1)
    figure = {**figure_options((width, height), figsize, backend_kwargs), **(options.get("figure_kwargs") or {})}
    if name != "matplotlib":
        figure = _in_pixels(figure)
        if name == "plotly" and rows > 1:
            inner = max(figure["figsize"][1] / _DOTS - _AROUND[name], _BETWEEN[name])
            figure.setdefault("vertical_spacing", min(_BETWEEN[name] / inner, 0.9 / (rows - 1)))
    with refused_options(figure):
        made = PlotCollection.wrap(numbers, backend=name, **{**keywords, "figure_kwargs": figure})
    if name == "matplotlib":
        panels = np.ravel(made.viz["plot"].values)
        for unused in [ax for ax in made.viz["figure"].item().axes if ax not in panels]:
            unused.remove()
    return made


def _in_pixels(figure: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of plotly and bokeh for those of matplotlib."""
    keywords = {name: value for name, value in figure.items() if name != "layout"}
    if keywords.get("figsize_units", "inches") == "inches":
        width, height = keywords["figsize"]
        keywords |= {"figsize": (width * _DOTS, height * _DOTS), "figsize_units": "dots"}
    return keywords


def _draw_marks(drawing: Any, name: str, legend: bool, target: Any, panel: Panel, first: bool, **changes: Any) -> Any:
    marks = [mark for mark in panel.marks if mark.name == name]
    drawn = [drawing.mark(target, panel, mark, first and legend, changes) for mark in marks]
    return drawn[0] if len(drawn) == 1 else drawn or None


def _finish(drawing: Any, legend: str, visuals: Mapping[str, Any], target: Any, panel: Panel, first: bool) -> None:
    drawing.finish(target, panel, visuals, legend if first else "none")


class _MatplotlibDrawing:
    """Axes of matplotlib look the same with and without ``arviz_plots``."""

    def mark(self, target: Any, panel: Panel, mark: Mark, legend: bool, changes: Mapping[str, Any]) -> Any:
        return draw_mark(target, mark, changes)

    def finish(self, target: Any, panel: Panel, changes: Mapping[str, Any], legend: str) -> None:
        finish(target, panel, changes, legend)


class _BackendDrawing:
    """Draws through the functions that all backends of ``arviz_plots`` have.

    They know linear axes only, so that scales are applied to the values, and ticks are written as they were before.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.functions = import_module(f"arviz_plots.backend.{name}")

    def mark(self, target: Any, panel: Panel, mark: Mark, legend: bool, changes: Mapping[str, Any]) -> Any:
        look = {**self._look(mark.look), **changes}
        named = self._named(mark.label) if legend else {}
        forward = panel.x_scale.forward
        match mark:
            case Points():
                line = {key: look[key] for key in ("color", "alpha", "width") if key in look}
                points = {"width": 1.5, **look} if "facecolor" in look else look
                if mark.half is not None:
                    ends = np.stack([mark.x - mark.half, mark.x + mark.half, np.full(len(mark.x), np.nan)], -1)
                    self.functions.line(forward(ends).ravel(), np.repeat(mark.y, 3), target, **line)
                if not len(mark.x):
                    return None
                return self.functions.scatter(forward(mark.x), mark.y, target, **points, **named)
            case Line():
                return self.functions.line(forward(mark.x), mark.y, target, **look, **named)
            case Rule():
                across = self._limits(panel, "y" if mark.axis == "x" else "x")
                along = float(forward(mark.at)) if mark.axis == "x" else mark.at
                x, y = ([along] * 2, across) if mark.axis == "x" else (across, [along] * 2)
                return self.functions.line(np.array(x), np.array(y), target, **look, **named)
            case Histogram():
                edges = forward(mark.edges)
                return self.functions.hist(mark.counts, edges[:-1], edges[1:], target, **look, **named)
            case RowBars():
                rows = np.arange(len(mark.values))
                drawn = []
                for filled in (True, False):
                    if (mark.filled == filled).any():
                        chosen = rows[mark.filled == filled]
                        drawn.append(self._row_bars(target, chosen, mark.values[chosen], filled, look, changes))
                return drawn
        raise AssertionError(mark)

    def finish(self, target: Any, panel: Panel, changes: Mapping[str, Any], legend: str) -> None:
        draw = self.functions
        rows = panel.rows
        low, high = self._limits(panel, "x")
        right = high
        noted = rows is not None and bool(rows.notes) and changes.get("notes") is not False
        if noted:
            right = low + (high - low) / (1 - _NOTE)
        draw.xlim((low, right), target)
        draw.ylim(self._limits(panel, "y"), target)
        if panel.x_scale.kind != "linear":
            ticks = panel.x_scale.ticks(*self._ends(panel), room=_TICK)
            draw.xticks(panel.x_scale.forward(ticks).tolist(), [f"{tick:g}" for tick in ticks], target)
        title = list(panel.title)
        if rows is not None:
            if noted:
                place = high + 0.02 * (right - low)
                texts = {"color": "B1", "size": _SMALL, "horizontal_align": "left", **_arguments(changes, "notes")}
                count = np.arange(len(rows.notes))
                draw.text(np.full(len(count), place), count, np.array(rows.notes), target, **texts)
            if changes.get("ticklabels") is False:
                draw.remove_axis(target, axis="y")
            else:
                labels = [" ".join(label) for label in rows.labels]
                labels[: len(rows.meanings)] = [
                    f"{label}: {meaning}" for label, meaning in zip(labels, rows.meanings, strict=False)
                ]
                draw.yticks(list(range(len(labels))), labels, target, **_arguments(changes, "ticklabels"))
        elif not panel.y_numbers:
            draw.remove_axis(target, axis="y")
            draw.grid(target, axis="y", color=None)
            title = title or panel.y_label
        if title and changes.get("title") is not False:
            draw.title("\n".join(title), target, **{"color": "B1", **_arguments(changes, "title")})
        if panel.x_label and changes.get("x_label") is not False:
            draw.xlabel("\n".join(panel.x_label), target, **_arguments(changes, "x_label"))
        if panel.y_numbers and panel.y_label and changes.get("y_label") is not False:
            draw.ylabel("\n".join(panel.y_label), target, **_arguments(changes, "y_label"))
        if self.name == "plotly":
            around = _AROUND["plotly"] * _DOTS
            target.figure.update_layout(margin={"t": 0.55 * around, "b": 0.45 * around})
        if self.name == "bokeh" and legend != "none" and target.legend:
            _place_legend(target, legend)

    def _row_bars(
        self, target: Any, rows: Any, values: Numbers, filled: bool, look: Mapping[str, Any], changes: Mapping[str, Any]
    ) -> Any:
        keywords = dict(look)
        if not filled:
            keywords["edgecolor"] = changes.get("color", _COLORS["quiet"])
            keywords["facecolor"] = _COLORS["background"]
            keywords.pop("color", None)
            hatch: dict[str, dict[str, Any]] = {
                "plotly": {"marker": {"line": {"width": 1}, "pattern": {"shape": "/", "fgcolor": "gray"}}},
                "bokeh": {"hatch_pattern": "/", "hatch_color": "gray"},
            }
            keywords = {**hatch.get(self.name, {}), **keywords}
        low, high = np.minimum(values, 0), np.maximum(values, 0)
        return self.functions.hist(rows + 0.35, low, high, target, bottom=rows - 0.35, **keywords)

    def _look(self, look: Mapping[str, Any]) -> dict[str, Any]:
        """A look in the words that the backend knows."""
        keywords = dict(look)
        for name, known in (("linestyle", _LINES), ("marker", _MARKERS)):
            if name in keywords:
                keywords[name] = known[keywords[name]]
        for name in ("color", "facecolor", "edgecolor"):
            if name in keywords:
                keywords[name] = _COLORS[keywords[name]]
        if "size" in keywords:
            keywords["size"] *= _LARGER**2
            if self.name == "bokeh":
                keywords["size"] = math.sqrt(keywords["size"])  # its size is a diameter
        return keywords

    def _named(self, label: str) -> dict[str, Any]:
        """The arguments that bring a mark into the legend."""
        if not label:
            return {}
        if self.name == "plotly":
            return {"name": label, "showlegend": True}
        return {"legend_label": label} if self.name == "bokeh" else {}

    def _ends(self, panel: Panel) -> tuple[float, float]:
        """The limits of the horizontal axis before it is scaled, or the ends of what is drawn."""
        if panel.x_limits is not None:
            return panel.x_limits
        low, high = np.inf, -np.inf
        for mark in panel.marks:
            match mark:
                case Points() | Line():
                    half = mark.half if isinstance(mark, Points) and mark.half is not None else 0.0
                    ends = np.concatenate([mark.x - half, mark.x + half])
                case Rule(axis="x"):
                    ends = np.array([mark.at])
                case Histogram():
                    ends = mark.edges
                case _:
                    continue
            low, high = min(low, *ends.tolist()), max(high, *ends.tolist())
        return float(low), float(high)

    def _limits(self, panel: Panel, axis: str) -> tuple[float, float]:
        if axis == "y":
            if panel.y_limits is not None:
                return panel.y_limits
            tops = [float(mark.counts.max()) for mark in panel.marks if isinstance(mark, Histogram)]
            return 0.0, 1.05 * max(tops, default=1.0)
        low, high = (float(panel.x_scale.forward(end)) for end in self._ends(panel))
        margin = 0.0 if panel.x_limits is not None else 0.05 * (high - low) or 1.0
        return low - margin, high + margin


def _place_legend(target: Any, legend: str) -> None:
    """Puts the legend of bokeh, which stands in the panel, above it, or makes it small."""
    box = target.legend[0]
    if legend == "above":
        target.add_layout(box, "above")
        target.height += round(_LEGEND * _DOTS)
        box.update(orientation="horizontal", location="left", padding=2, margin=0, border_line_color=None)
    else:
        box.update(padding=2, label_text_font_size="11px", background_fill_alpha=0, border_line_color=None)


def _arguments(changes: Mapping[str, Any], name: str) -> dict[str, Any]:
    change = changes.get(name, {})
    return {} if isinstance(change, bool) else dict(change)

# SPDX-License-Identifier: Apache-2.0
"""Draws a picture: on axes of matplotlib, or, where ``arviz_plots`` is installed, as one of its plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from pyro_ksd.common.option_checks import check_mapping, found
from pyro_ksd.plots.matplotlib_drawing import draw_mark, finish
from pyro_ksd.plots.picture import Picture
from pyro_ksd.plots.style import axes_for, figure_options

TEXTS = ("title", "x_label", "y_label", "ticklabels", "notes", "legend")
"""What can be changed by ``visuals`` besides the marks of a picture."""


def has_arviz_plots() -> bool:
    """Whether ``arviz_plots`` is installed, which comes with ArviZ 1.0 and later."""
    return find_spec("arviz_plots") is not None


def draw(
    picture: Picture,
    dimension: str | None,
    *,
    ax: Any,
    figsize: Any,
    backend_kwargs: Mapping[str, Any] | None,
    plot_collection: Any,
    backend: str | None,
    visuals: Mapping[str, Any] | None,
    aes_by_visuals: Mapping[str, Sequence[str]] | None,
    pc_kwargs: Mapping[str, Any],
) -> Any:
    """Draws a picture.

    :param dimension: what the names of the panels are names of, such as ``"view"``; None for a picture with one panel.
    :param ax: axes of matplotlib, one for each panel, in place of a new figure.
    :param figsize: width and height of the new figure in inches.
    :param backend_kwargs: more arguments of the function that makes the figure.
    :param plot_collection: a ``PlotCollection`` to draw on.
    :param backend: ``"matplotlib"``, ``"plotly"`` or ``"bokeh"``.
    :param visuals: how marks and texts look, by their names; False leaves one out.
    :param aes_by_visuals: which aesthetics of the ``PlotCollection`` each mark follows.
    :param pc_kwargs: more arguments of ``PlotCollection.wrap``.
    :returns: a ``PlotCollection`` if ``arviz_plots`` is installed and ``ax`` is not given, else an array of axes.
    """
    changes = _checked_visuals(picture, visuals)
    own = {"plot_collection": plot_collection, "aes_by_visuals": aes_by_visuals, **pc_kwargs}
    given = [name for name, value in own.items() if value is not None]
    new = has_arviz_plots()
    if ax is None and new:
        from pyro_ksd.plots.arviz_drawing import plot_collection_of

        figure_options(picture.size, figsize, backend_kwargs)  # refuses what it does not know
        aesthetics = aes_by_visuals or {}
        return plot_collection_of(
            picture, dimension, plot_collection, backend, figsize, backend_kwargs, changes, aesthetics, pc_kwargs
        )
    if backend not in (None, "matplotlib"):
        why = "axes of matplotlib were given" if new else "other backends come with ArviZ 1.0, which needs Python 3.12"
        raise ValueError(f"backend: expected 'matplotlib', found {found(backend)}: {why}")
    if given:
        why = "leave ax out" if new else "they need arviz_plots, which comes with ArviZ 1.0 and Python 3.12"
        raise ValueError(f"expected no arguments of a PlotCollection, found {', '.join(given)}: {why}")
    axes = axes_for(ax, len(picture.panels), picture.size, figsize, backend_kwargs, columns=picture.columns)
    for number, (one_ax, panel) in enumerate(zip(axes, picture.panels.values(), strict=True)):
        for mark in panel.marks:
            change = changes.get(mark.name, {})
            if change is not False:
                draw_mark(one_ax, mark, {} if change is True else change)
        finish(one_ax, panel, changes, picture.legend if number == 0 else "none")
    return axes


def _checked_visuals(picture: Picture, visuals: Any) -> Mapping[str, Any]:
    changes = {} if visuals is None else visuals
    check_mapping("visuals", changes, "the look of marks and texts, by their names")
    known = [*picture.mark_names(), *TEXTS]
    for name, change in changes.items():
        if name not in known:
            raise ValueError(f"visuals: expected some of {known}, found {found(name)}")
        if not isinstance(change, bool | Mapping):
            raise ValueError(
                f"visuals: expected a dict of arguments, True or False for {name!r}, found {found(change)}"
            )
    return changes


def one_or_all(drawn: Any, *, single: bool) -> Any:
    """What a function that draws one panel returns: the axes themselves, not an array of them."""
    return drawn[0] if single and isinstance(drawn, np.ndarray) else drawn


def spelled_names(labeller: Any, dimension: str, names: list[str]) -> list[str]:
    """The names of views or models, as a labeller of ArviZ spells them, if there is one.

    >>> import arviz
    >>> labeller = arviz.labels.DimCoordLabeller()
    >>> spelled_names(labeller, "view", ["length"]), spelled_names(None, "view", ["length"])
    (['view: length'], ['length'])
    """
    if labeller is None:
        return names
    return [str(labeller.sel_to_str({dimension: name}, {dimension: place})) for place, name in enumerate(names)]

# SPDX-License-Identifier: Apache-2.0
"""The statistics against what a true model would give."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyro_ksd.plots.drawing import draw, spelled_names
from pyro_ksd.plots.picture import Histogram, Numbers, Panel, Picture, Rule, Scale
from pyro_ksd.results.containers import dataset
from pyro_ksd.results.p_values import p_text
from pyro_ksd.results.view_choice import chosen_views

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STATISTIC = {"ksd": "KSD² estimate", "mmd": "MMD² estimate", "likelihood ratio": "log-likelihood ratio, twice"}
_BINS = 40  # at most
_FAR = 50  # an axis is compressed if it would reach this many times as far as half of the null draws


def plot_null(
    check: Any,
    *,
    view: str | Sequence[str] | None = None,
    ax: Axes | npt.NDArray[np.object_] | None = None,
    figsize: tuple[float, float] | None = None,
    backend_kwargs: Mapping[str, Any] | None = None,
    plot_collection: Any = None,
    backend: str | None = None,
    labeller: Any = None,
    aes_by_visuals: Mapping[str, Sequence[str]] | None = None,
    visuals: Mapping[str, Mapping[str, Any] | bool] | None = None,
    **pc_kwargs: Any,
) -> Any:
    r"""Draws, for each view, the null draws as a histogram and the observed statistic as a line.

    Where the observed statistic or some null draws lie very far out, the axis is compressed: its coordinate is
    :math:`\operatorname{asinh}(x / w)`, with :math:`w` the median of the null draws' absolute values. It is linear
    among most of the null draws and logarithmic far from them.

    :param check: what :func:`pyro_ksd.ksd_check` gave, as a DataTree or an InferenceData.
    :param view: the name of a view, or several; all views if left out.
    :param ax: axes of matplotlib to draw on, one for each view, in place of a new figure.
    :param figsize: width and height of the new figure in inches.
    :param backend_kwargs: more arguments of the function that makes the figure, for matplotlib those of
        ``matplotlib.pyplot.subplots``.
    :param plot_collection: where ArviZ 1.x is installed, a ``PlotCollection`` to draw on.
    :param backend: where ArviZ 1.x is installed, ``"matplotlib"``, ``"plotly"`` or ``"bokeh"``; left out, the one that
        ``arviz.rcParams["plot.backend"]`` names.
    :param labeller: a labeller of ArviZ, which spells the names of views.
    :param aes_by_visuals: which aesthetics of the ``PlotCollection`` each mark follows; all of them if left out.
    :param visuals: how marks and texts look, such as ``{"observed": {"color": "black"}, "legend": False}``. Marks
        are ``"null_draws"`` and ``"observed"``, texts ``"title"``, ``"x_label"``, ``"y_label"``, ``"ticklabels"``,
        ``"notes"`` and ``"legend"``.
    :param pc_kwargs: where ArviZ 1.x is installed, more arguments of ``PlotCollection.wrap``.
    :returns: a ``PlotCollection`` where ArviZ 1.x is installed, unless ``ax`` is given; else an array of axes, one
        for each view.

    >>> import matplotlib.pyplot as plt
    >>> from pyro_ksd import ksd_check
    >>> from pyro_ksd.examples import random_walk
    >>> data = ["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"]
    >>> check = ksd_check(random_walk(3), data, num_bootstrap=100, progress=False)
    >>> picture = plot_null(check)
    >>> axes = plot_null(check, view=["content-2", "length"], ax=plt.subplots(2)[1])
    >>> [ax.get_ylabel().splitlines()[0] for ax in axes]
    ['content-2', 'length']
    """
    names = chosen_views(check, view)
    picture = _picture(check, names, spelled_names(labeller, "view", names))
    return draw(
        picture,
        "view",
        ax=ax,
        figsize=figsize,
        backend_kwargs=backend_kwargs,
        plot_collection=plot_collection,
        backend=backend,
        visuals=visuals,
        aes_by_visuals=aes_by_visuals,
        pc_kwargs=pc_kwargs,
    )


def _picture(check: Any, names: list[str], shown: list[str]) -> Picture:
    ksd = dataset(check, "ksd")
    null = dataset(check, "ksd_null")["ksd"]
    panels = {}
    for place, (name, words) in enumerate(zip(names, shown, strict=True), 1):
        one = ksd.sel(view=name)
        label = [_STATISTIC[ksd.attrs.get("test", "ksd")]] if place == len(names) else []
        y_label = [words, p_text(float(one["p_value"]))]
        panels[name] = _panel(null.sel(view=name).values.ravel(), float(one["statistic"]), label, y_label)
    return Picture(panels, (7, 0.6 + 1.3 * len(names)))


def _panel(draws: Numbers, observed: float, label: list[str], y_label: list[str]) -> Panel:
    """The null draws and the observed statistic of one view."""
    width = float(np.median(np.abs(draws)))
    low = min(float(draws.min()), observed)
    high = max(float(draws.max()), observed)
    compressed = bool(0 < _FAR * width < max(high, -low) and np.ptp(draws) > 0)
    count = min(_BINS, math.ceil(2 * math.sqrt(len(draws))))  # few draws in many bins would look like noise
    bins: int | list[float] = count
    if compressed:
        bins = _compressed_bins(draws, width, count)
        label = [", ".join([*label, "axis compressed far from 0"])]
    elif np.ptp(draws) < (high - low) / _BINS:  # bins of this width could not be seen
        bins = np.linspace(low, high, _BINS + 1).tolist()
    counts, edges = np.histogram(draws, bins)
    null = {"color": "model", "alpha": 0.75}
    return Panel(
        [
            Histogram("null_draws", null, edges, counts, label="if the model were right"),
            Rule("observed", {"color": "data", "width": 2.5}, "x", observed, label="observed"),
        ],
        x_label=label,
        y_label=y_label,
        x_scale=Scale("asinh", width) if compressed else Scale(),
    )


def _compressed_bins(draws: Numbers, width: float, count: int) -> list[float]:
    """Edges of bins that are equally wide on the compressed axis."""
    low = float(draws.min())
    high = float(draws.max())
    inner = width * np.sinh(np.linspace(np.arcsinh(low / width), np.arcsinh(high / width), count + 1)[1:-1])
    return [low, *inner.tolist(), high]

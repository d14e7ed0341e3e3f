# SPDX-License-Identifier: Apache-2.0
"""The statistics against what a true model would give."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyro_ksd.plots.style import BLUE, VERMILION, axes_for, font_scale, legend_above, points
from pyro_ksd.results.containers import dataset
from pyro_ksd.results.p_values import p_text
from pyro_ksd.results.view_choice import chosen_views

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STATISTIC = {"ksd": "KSD² estimate", "mmd": "MMD² estimate", "likelihood ratio": "log-likelihood ratio, twice"}
_BINS = 40  # at most
_LABEL = 50  # points that the label of a tick takes in letters of 10 points
_FAR = 50  # an axis is compressed if it would reach this many times as far as half of the null draws


def plot_null(
    check: Any,
    *,
    view: str | Sequence[str] | None = None,
    ax: Axes | npt.NDArray[np.object_] | None = None,
    figsize: tuple[float, float] | None = None,
    backend_kwargs: Mapping[str, Any] | None = None,
) -> npt.NDArray[np.object_]:
    r"""Draws, for each view, the null draws as a histogram and the observed statistic as a line.

    Where the observed statistic or some null draws lie very far out, the axis is compressed: its coordinate is
    :math:`\operatorname{asinh}(x / w)`, with :math:`w` the median of the null draws' absolute values. It is linear
    among most of the null draws and logarithmic far from them.

    :param check: what :func:`pyro_ksd.ksd_check` gave, as a DataTree or an InferenceData.
    :param view: the name of a view, or several; all views if left out.
    :param ax: where to draw, one axes for each view, in place of a new figure.
    :param figsize: width and height of the new figure in inches.
    :param backend_kwargs: more arguments of ``matplotlib.pyplot.subplots``.
    :returns: the axes, one for each view.

    >>> from pyro_ksd import ksd_check
    >>> from pyro_ksd.examples import random_walk
    >>> data = ["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"]
    >>> check = ksd_check(random_walk(3), data, num_bootstrap=100, progress=False)
    >>> axes = plot_null(check, view=["content-2", "length"])
    >>> len(axes)
    2
    """
    ksd = dataset(check, "ksd")
    null = dataset(check, "ksd_null")["ksd"]
    names = chosen_views(check, view)
    axes = axes_for(ax, len(names), (7, 0.6 + 1.3 * len(names)), figsize, backend_kwargs)
    for one_ax, name in zip(axes, names, strict=True):
        one = ksd.sel(view=name)
        compressed = _histogram(one_ax, null.sel(view=name).values.ravel(), float(one["statistic"]))
        one_ax.set_ylabel(f"{name}\n{p_text(float(one['p_value']))}", rotation=0, ha="right", va="center")
        words = []
        if one_ax is axes[-1]:
            words.append(_STATISTIC[ksd.attrs.get("test", "ksd")])
        if compressed:
            words.append("axis compressed far from 0")
        one_ax.set_xlabel(", ".join(words))
    legend_above(axes[0])
    return axes


def _histogram(ax: Axes, draws: npt.NDArray[np.float64], observed: float) -> bool:
    """Draws the null draws and the observed statistic of one view; whether the axis had to be compressed."""
    from matplotlib.ticker import MaxNLocator, NullLocator

    width = float(np.median(np.abs(draws)))
    low = min(float(draws.min()), observed)
    high = max(float(draws.max()), observed)
    farthest = max(high, -low)
    compressed = bool(0 < _FAR * width < farthest and np.ptp(draws) > 0)
    if compressed:
        ax.set_xscale("asinh", linear_width=width)
        ax.set_xticks(_decades(low, high, width, points(ax)[0]))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_locator(NullLocator())
    else:
        ax.xaxis.set_major_locator(MaxNLocator(max(2, int(points(ax)[0] / (_LABEL * font_scale())))))
    count = min(_BINS, math.ceil(2 * math.sqrt(len(draws))))  # few draws in many bins would look like noise
    bins: int | list[float] = count
    if compressed:
        bins = _compressed_bins(draws, width, count)
    elif np.ptp(draws) < (high - low) / _BINS:  # bins of this width could not be seen
        bins = np.linspace(low, high, _BINS + 1).tolist()
    ax.hist(draws, bins=bins, color=VERMILION, alpha=0.75, label="if the model were right")
    ax.axvline(observed, color=BLUE, linewidth=2.5, label="observed")
    ax.set_yticks([])
    ax.spines[["top", "left", "right"]].set_visible(False)
    return compressed


def _decades(low: float, high: float, smallest: float, room: float) -> list[float]:
    """0 and powers of 10 of both signs between two values, so many that their labels have room, in points."""
    powers = 10.0 ** np.arange(np.ceil(np.log10(smallest)), np.floor(np.log10(max(high, -low))) + 1)
    scale = room / float(np.arcsinh(high / smallest) - np.arcsinh(low / smallest))
    ticks = [0.0]
    for sign, end in ((1, high), (-1, -low)):
        last = 0.0
        for power in powers[powers <= end].tolist():
            place = scale * float(np.arcsinh(power / smallest))
            if place - last >= _LABEL * font_scale():
                ticks.append(sign * power)
                last = place
    return ticks


def _compressed_bins(draws: npt.NDArray[np.float64], width: float, count: int) -> list[float]:
    """Edges of bins that are equally wide on the compressed axis."""
    low = float(draws.min())
    high = float(draws.max())
    inner = width * np.sinh(np.linspace(np.arcsinh(low / width), np.arcsinh(high / width), count + 1)[1:-1])
    return [low, *inner.tolist(), high]

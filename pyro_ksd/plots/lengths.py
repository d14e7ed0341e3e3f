# SPDX-License-Identifier: Apache-2.0
"""The lengths of the data beside those of the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyro_ksd.plots.style import BLUE, VERMILION, axes_for, font_scale, legend_above, points
from pyro_ksd.results.containers import dataset, has_group
from pyro_ksd.results.length_shares import MOST_BARS, length_bins

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LABEL = 40  # points that the label of a tick takes in letters of 10 points


def plot_lengths(
    check: Any,
    *,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    backend_kwargs: Mapping[str, Any] | None = None,
) -> Axes:
    """Draws how long the sequences of the data are, as bars, and how long those of the model are, as a line.

    Where there are more than 60 lengths, a bar is the mean share of several lengths, and so is the line above it, so
    that the heights of both can be compared. Lengths beyond those of the data are drawn as far as the model gives them
    a probability worth showing, also if it cannot be sampled.

    :param check: what :func:`pyro_ksd.ksd_check` gave, as a DataTree or an InferenceData.
    :param ax: where to draw, in place of a new figure.
    :param figsize: width and height of the new figure in inches.
    :param backend_kwargs: more arguments of ``matplotlib.pyplot.subplots``.

    >>> from pyro_ksd import ksd_check
    >>> from pyro_ksd.examples import random_walk
    >>> data = ["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"]
    >>> check = ksd_check(random_walk(3), data, num_bootstrap=100, progress=False)
    >>> ax = plot_lengths(check)
    >>> [round(float(bar.get_height()), 2) for bar in ax.patches[:5]]  # of the lengths 1 to 5
    [0.0, 0.17, 0.17, 0.5, 0.17]
    """
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    if not has_group(check, "ksd_length"):
        raise ValueError(
            "check: expected one with the group 'ksd_length', found none; run ksd_check with the view 'length', and "
            "edits that change the length"
        )
    lengths = dataset(check, "ksd_length", "observed", "expected")
    edges, observed, expected = length_bins(lengths, MOST_BARS)
    model = "model" if lengths.attrs.get("num_drawn", 0) else "model (estimated)"
    [ax] = axes_for(ax, 1, (7, 3), figsize, backend_kwargs)
    middles = (edges[:-1] + edges[1:]) / 2
    width = float(edges[1] - edges[0])
    ax.bar(middles, observed, width=0.85 * width, color=BLUE, alpha=0.75, label="data")
    marker = "o" if len(middles) <= MOST_BARS / 2 else ""
    ax.plot(middles, expected, color=VERMILION, linewidth=2, marker=marker, markersize=4, label=model)
    ax.set_xlim(edges[0] - 0.1 * width, edges[-1] + 0.1 * width)
    ax.set_ylim(0, 1.08 * max(float(observed.max()), float(expected.max())))
    ax.xaxis.set_major_locator(MaxNLocator(max(2, int(points(ax)[0] / (_LABEL * font_scale()))), integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(max(2, int(points(ax)[1] / (_LABEL * font_scale())))))
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
    ax.set_xlabel("length")
    ax.set_ylabel("share of the sequences" if width == 1 else f"share of a length,\nmean of {width:.0f} lengths")
    ax.spines[["top", "right"]].set_visible(False)
    legend_above(ax)
    return ax

# SPDX-License-Identifier: Apache-2.0
"""The lengths of the data beside those of the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from pyro_ksd.plots.style import BLUE, VERMILION, axes_for, legend_above, points
from pyro_ksd.results.containers import dataset, has_group

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_BARS = 60  # that can be told apart
_NEGLIGIBLE = 0.005  # the probability of lengths that are not drawn, on each side of the data
_LABEL = 40  # points that the label of a tick takes


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
    edges, observed, expected = _binned(_worth_showing(lengths))
    model = "model" if lengths.attrs.get("num_drawn", 0) else "model (estimated)"
    [ax] = axes_for(ax, 1, (7, 3), figsize, backend_kwargs)
    middles = (edges[:-1] + edges[1:]) / 2
    width = float(edges[1] - edges[0])
    ax.bar(middles, observed, width=0.85 * width, color=BLUE, alpha=0.75, label="data")
    marker = "o" if len(middles) <= _MOST_BARS / 2 else ""
    ax.plot(middles, expected, color=VERMILION, linewidth=2, marker=marker, markersize=4, label=model)
    ax.set_xlim(edges[0] - 0.1 * width, edges[-1] + 0.1 * width)
    ax.set_ylim(0, 1.08 * max(float(observed.max()), float(expected.max())))
    ax.xaxis.set_major_locator(MaxNLocator(max(2, int(points(ax)[0] / _LABEL)), integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(max(2, int(points(ax)[1] / _LABEL))))
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
    ax.set_xlabel("length")
    ax.set_ylabel("share of the sequences" if width == 1 else f"share of a length,\nmean of {width:.0f} lengths")
    ax.spines[["top", "right"]].set_visible(False)
    legend_above(ax)
    return ax


def _worth_showing(lengths: xr.Dataset) -> xr.Dataset:
    """The lengths of the data, and others on both sides up to where the model makes hardly any sequences."""
    seen = np.flatnonzero(lengths["observed"].values)
    expected = lengths["expected"].values
    below = np.flatnonzero(np.cumsum(expected) > _NEGLIGIBLE)
    above = np.flatnonzero(np.cumsum(expected[::-1])[::-1] > _NEGLIGIBLE)
    return lengths.isel(length=slice(min(seen[0], below[0]), max(seen[-1], above[-1]) + 1))


def _binned(
    lengths: xr.Dataset,
) -> list[npt.NDArray[np.float64]]:
    """Bins of equally many lengths, few enough to be told apart.

    :returns: their edges, halfway between lengths, ``[M + 1]``, and the mean shares, observed and expected, ``[M]``.
    """
    count = lengths.sizes["length"]
    width = -(-count // _MOST_BARS)
    bins = -(-count // width)
    first = float(lengths["length"].values[0])
    edges: npt.NDArray[np.float64] = first - 0.5 + width * np.arange(bins + 1.0)
    found: list[npt.NDArray[np.float64]] = [edges]
    for name in ("observed", "expected"):
        padded = np.pad(lengths[name].values, (0, bins * width - count))
        found.append(padded.reshape(bins, width).mean(1))
    return found

# SPDX-License-Identifier: Apache-2.0
"""The evidence of a monitor over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyro_ksd.plots.style import GRAY, PURPLE, axes_for, font_scale, points
from pyro_ksd.results.containers import dataset

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_ROOM = 0.1  # of the height, for the word above the dashed line
_LINE_HEIGHT = 12.0  # points between the names of two lines, in letters of 10 points


def plot_evidence(
    result: Any,
    *,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    backend_kwargs: Mapping[str, Any] | None = None,
) -> npt.NDArray[np.object_]:
    """Draws the evidence of a monitor against the number of sequences, of each view and of all together.

    The dashed line is the evidence at which the model is rejected, or the alarm raised. The dotted line is the sequence
    after which the evidence of all views first reached it. Views that ever reached the dashed line by themselves are
    purple, others gray.

    :param result: what :meth:`pyro_ksd.checks.Monitor.result` gave.
    :param ax: where to draw, in place of a new figure.
    :param figsize: width and height of the new figure in inches.
    :param backend_kwargs: more arguments of ``matplotlib.pyplot.subplots``.
    :returns: an array with the axes.

    >>> from pyro_ksd import ksd_monitor
    >>> from pyro_ksd.examples import random_walk
    >>> monitor = ksd_monitor(random_walk(3), "abc")
    >>> monitor.update(["abc", "ba", "cab"])
    >>> [axes] = plot_evidence(monitor.result())
    >>> axes.get_xlabel()
    'sequences'
    """
    found = dataset(result, "ksd_monitor")
    changes = "run_length" in found.attrs
    needed = math.log10(found.attrs["run_length"] if changes else 1 / found.attrs["level"])
    [axes] = drawn = axes_for(ax, 1, (7, 4), figsize, backend_kwargs)
    count = np.concatenate([[0], found["num_sequences"].values])
    decimal = 1 / math.log(10)
    lines = []
    ends = []
    for view in found["view"].values:
        own = np.concatenate([[0], found["log_evidence"].sel(view=view).values * decimal])
        color = PURPLE if own.max() >= needed else GRAY
        lines += axes.plot(count, own, color=color, linewidth=1, label=str(view))
        ends.append(float(own[-1]))
    overall = np.concatenate([[0], found["log_evidence_overall"].values * decimal])
    lines += axes.plot(count, overall, color=PURPLE, linewidth=2.5, label="all together")
    ends.append(float(overall[-1]))
    axes.axhline(needed, color=GRAY, linestyle="--", linewidth=1)
    axes.annotate(
        "alarm" if changes else "rejected",
        (0.01, needed),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        color=GRAY,
    )
    if found.attrs["first_clear"] >= 0:
        axes.axvline(found.attrs["first_clear"], color=GRAY, linestyle=":", linewidth=1)
    axes.set_xlabel("sequences")
    axes.set_ylabel("evidence against the model (log10)")
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom, max(top, needed + _ROOM * (top - bottom)))
    _name_beside(axes, lines, ends)
    return drawn


def _name_beside(axes: Axes, lines: Sequence[Line2D], ends: Sequence[float]) -> None:
    """Writes the names of lines to the right of their ends, one above the other where the ends are close."""
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom, top)
    heights = np.clip((np.array(ends) - bottom) / (top - bottom), 0, 1)
    order = np.argsort(heights, kind="stable")
    places = _spread(heights[order], _LINE_HEIGHT * font_scale() / points(axes)[1])
    for index, height in zip(order.tolist(), places.tolist(), strict=True):
        line = lines[index]
        style = {"color": line.get_color(), "va": "center", "fontsize": "small"}
        axes.text(1.015, height, str(line.get_label()), transform=axes.transAxes, **style)


def _spread(places: npt.NDArray[np.float64], least: float) -> npt.NDArray[np.float64]:
    """Ascending places, moved as little as possible so that they are some distance apart.

    >>> _spread(np.array([0.0, 0.0, 0.5]), 0.1).round(2).tolist()
    [-0.05, 0.05, 0.5]
    """
    moved: list[tuple[float, int]] = []  # mean place and size of the groups that are moved together
    for place in places.tolist():
        moved.append((place, 1))
        while len(moved) > 1 and moved[-1][0] - moved[-2][0] < least * (moved[-1][1] + moved[-2][1]) / 2:
            (right, more), (left, few) = moved.pop(), moved.pop()
            moved.append(((left * few + right * more) / (few + more), few + more))
    parts = [mean + least * (np.arange(size) - (size - 1) / 2) for mean, size in moved]
    return np.concatenate(parts)

# SPDX-License-Identifier: Apache-2.0
"""The p-values of all views."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pyro_ksd.plots.style import GRAY, PURPLE, axes_for, foreground, legend_above, points, write_beside
from pyro_ksd.results.containers import dataset, has_group
from pyro_ksd.results.p_values import p_text
from pyro_ksd.results.view_choice import p_value_of_views, view_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROOM_HEIGHT = 28  # points of a row and of the axes from which on the meanings are written
_ROOM_WIDTH = 320


def plot_views(
    check: Any,
    *,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    backend_kwargs: Mapping[str, Any] | None = None,
) -> Axes:
    r"""Draws the p-value of each view, and below them that of all views together.

    A diamond is a p-value that is by itself at most the level, the dashed line. Among ten views of a true model, one or
    another often is; only the p-value of all views together decides. No p-value is smaller than :math:`1 / (B + 1)`
    with :math:`B` null draws, the dotted line, but that of sequences to which the model gives probability 0, which
    stands at the left end. What a view looks at is written below its name if the axes are large enough.

    :param check: what :func:`pyro_ksd.ksd_check` gave, as a DataTree or an InferenceData.
    :param ax: where to draw, in place of a new figure.
    :param figsize: width and height of the new figure in inches.
    :param backend_kwargs: more arguments of ``matplotlib.pyplot.subplots``.

    >>> from pyro_ksd import ksd_check
    >>> from pyro_ksd.examples import random_walk
    >>> data = ["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"]
    >>> check = ksd_check(random_walk(3), data, num_bootstrap=100, progress=False)
    >>> ax = plot_views(check)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['content-1', 'content-2', 'content-3', 'start', 'length', 'surprise', 'skip', 'position', 'mirror', 'repeats',
     'all views together']
    """
    ksd = dataset(check, "ksd")
    names = view_names(check)
    together = ["all views together", *(["impossible sequences"] if has_group(check, "ksd_impossible") else [])]
    rows = np.arange(len(names) + len(together))
    [ax] = axes_for(ax, 1, (9, 1.4 + 0.5 * len(rows)), figsize, backend_kwargs)
    p_values = np.append(ksd["p_value"].values, [p_value_of_views(ksd), 0.0][: len(together)])
    level = ksd.attrs["level"]
    smallest = 1 / (ksd.attrs["num_bootstrap"] + 1)
    rejects = p_values <= level
    ax.axvline(level, color=foreground(), linestyle="--", linewidth=1, label=f"level {level:g}")
    ax.axvline(smallest, color="0.7", linestyle=":", linewidth=1.2, label=f"smallest possible p = {smallest:.2g}")
    least = min(smallest, p_values[p_values > 0].min()) / 1.5
    shown = np.maximum(p_values, least)  # a p-value of 0 stands at the left end
    ax.plot(shown[rejects], rows[rejects], "D", color=PURPLE, markersize=7, label=f"p ≤ {level:g} by itself")
    ax.plot(p_values[~rejects], rows[~rejects], "o", color=GRAY, markersize=7, label=f"p > {level:g}")
    ax.axhline(len(names) - 0.5, color=foreground(), linewidth=0.8)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_xlim(least if p_values.all() else least / 1.5, 1.3)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_yticks(rows, [*names, *together])
    ax.set_xlabel("p-value (logarithmic)")
    ax.grid(axis="y", color=foreground(), alpha=0.1)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "left", "right"]].set_visible(False)
    legend_above(ax)
    write_beside(ax, map(p_text, p_values))
    _write_meanings(ax, [str(meaning) for meaning in ksd["meaning"].values])
    return ax


def _write_meanings(ax: Axes, meanings: list[str]) -> None:
    """Writes what the views look at below their names, if there is room."""
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
            color=GRAY,
        )

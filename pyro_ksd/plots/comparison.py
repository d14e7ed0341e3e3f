# SPDX-License-Identifier: Apache-2.0
"""The models of a comparison, the best one first."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from pyro_ksd.plots.style import (
    GRAY,
    PURPLE,
    axes_for,
    background,
    foreground,
    legend_above,
    points,
    write_beside,
)
from pyro_ksd.plots.text_fitting import abbreviations, text_width
from pyro_ksd.results.comparison_table import RULED_OUT, compare_table
from pyro_ksd.results.p_values import p_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BELOW = 0.28  # rows, from a model's statistic to the interval of its difference


def plot_compare(
    comparison: Any,
    *,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    backend_kwargs: Mapping[str, Any] | None = None,
) -> Axes:
    """Draws the models of a comparison, in the manner of ``arviz.plot_compare``.

    A dot is the statistic of a model in all views together, with its standard error; the smaller, the better. The
    triangle below it shows the interval of the *difference* to the best model, which is far more certain than either
    statistic if both err on the same sequences. The intervals hold for all pairs of models at once: one ends before the
    dashed line of the best model if and only if :func:`~pyro_ksd.results.compare_table` calls the model worse. A model
    that gives probability zero to some sequences is ruled out, whatever its statistic for the others.

    :param comparison: what :func:`pyro_ksd.ksd_compare` gave, as a DataTree or an InferenceData.
    :param ax: where to draw, in place of a new figure.
    :param figsize: width and height of the new figure in inches.
    :param backend_kwargs: more arguments of ``matplotlib.pyplot.subplots``.

    >>> from pyro_ksd import ksd_compare
    >>> from pyro_ksd.examples import random_walk
    >>> models = {"moves": random_walk(3), "rests": random_walk(3, hold=0.5)}
    >>> data = ["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"]
    >>> ax = plot_compare(ksd_compare(models, data, progress=False))
    >>> [label.get_text() for label in ax.get_yticklabels()]  # the best one first
    ['rests', 'moves']
    """
    table = compare_table(comparison)
    names = [" ".join(name.split()) for name in table.index]
    size = (7.5 + 0.05 * min(max(map(len, names)), 60), 1.6 + 0.5 * len(names))
    [ax] = axes_for(ax, 1, size, figsize, backend_kwargs)
    level = table.attrs["level"]
    rows = np.arange(len(table))
    reach = NormalDist().inv_cdf(1 - level / (2 * table.attrs["pairs"]))
    ksd = table["ksd"].to_numpy()
    p_values = table["p_value"].to_numpy()
    ax.axvline(ksd[0], color=foreground(), linestyle="--", linewidth=1)
    ax.errorbar(ksd, rows, xerr=table["se"], fmt="o", color=foreground(), label="statistic ± standard error")
    ruled_out = table["finding"].str.startswith(RULED_OUT).to_numpy()
    worse = (p_values <= level) & ~ruled_out
    for chosen, color, inside, words in (
        (worse, PURPLE, PURPLE, "worse"),
        (~worse & ~ruled_out & (rows > 0), GRAY, background(), "may be as good"),
    ):
        if chosen.any():
            ax.errorbar(
                ksd[chosen],
                rows[chosen] + _BELOW,
                xerr=reach * table["d_se"][chosen],
                fmt="^",
                capsize=3,
                color=color,
                markerfacecolor=inside,
                label=f"difference: {words}",
            )
    ax.set_ylim(len(rows) - 0.4, -0.6)
    lines = (
        "KSD² estimate, all views together (the smaller, the better)",
        f"triangles: {100 * (1 - level):.4g} % interval of the difference to the best",
    )
    ax.set_xlabel("\n".join(textwrap.fill(line, max(30, int(points(ax)[0] / 6))) for line in lines))
    ax.grid(axis="y", color=foreground(), alpha=0.1)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "left", "right"]].set_visible(False)
    legend_above(ax)
    write_beside(
        ax,
        [
            "best",
            *(RULED_OUT if out else p_text(p) for out, p in zip(ruled_out[1:], p_values[1:], strict=True)),
        ],
    )
    ax.set_yticks(rows, _fitting_names(ax, names), parse_math=False)
    return ax


def _fitting_names(ax: Axes, names: list[str]) -> list[str]:
    """Names that take about a third of the width that the axes have now, in two lines if the rows are high enough."""
    figure = ax.figure.canvas.figure
    if (layout := figure.get_layout_engine()) is not None:
        layout.execute(figure)  # settles how high the rows are
    (width, height) = points(ax)
    size = float(ax.yaxis.get_ticklabels()[0].get_fontsize())
    room = width / 3
    lines = 2 if height > 2.8 * size * len(names) else 1
    texts = abbreviations(names, lines * room, size)
    return [texts[name] if text_width(texts[name], size) <= room else _in_two_lines(texts[name]) for name in names]


def _in_two_lines(text: str) -> str:
    filled = (textwrap.fill(text, width) for width in range(max(1, len(text) // 2), len(text) + 1))
    return next(lines for lines in filled if lines.count("\n") < 2)

# SPDX-License-Identifier: Apache-2.0
"""A check on one page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pyro_ksd.common.option_checks import check_number
from pyro_ksd.plots.ngrams import plot_ngrams, view_of_ngrams
from pyro_ksd.plots.null import plot_null
from pyro_ksd.plots.sequences import plot_sequences
from pyro_ksd.plots.style import MIN_ROWS, new_figure
from pyro_ksd.plots.views import plot_views
from pyro_ksd.results.check_table import verdict
from pyro_ksd.results.containers import dataset
from pyro_ksd.results.view_choice import view_names, worst_first


def plot_check(
    check: Any,
    *,
    num: int = 8,
    figsize: tuple[float, float] | None = None,
    backend_kwargs: Mapping[str, Any] | None = None,
) -> npt.NDArray[np.object_]:
    """Draws a check on one page, under its verdict.

    All p-values, the worst view against its null draws, n-grams, and the sequences of the worst view. The n-grams are
    those of the worst view that has some; they are left out where none has, or where the model does not fit but they
    are not what is wrong with it.

    :param check: what :func:`pyro_ksd.ksd_check` gave, as a DataTree or an InferenceData.
    :param num: how many n-grams and sequences to show.
    :param figsize: width and height of the figure in inches.
    :param backend_kwargs: more arguments of ``matplotlib.pyplot.figure``.
    :returns: the axes of :func:`plot_views`, :func:`plot_null`, :func:`plot_ngrams` (if drawn) and
        :func:`plot_sequences`.

    >>> from pyro_ksd import ksd_check
    >>> from pyro_ksd.examples import random_walk
    >>> data = ["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"]
    >>> check = ksd_check(random_walk(3), data, num_bootstrap=100, progress=False)
    >>> len(plot_check(check))
    4
    """
    check_number("num", num, least=1)
    names = view_names(check)
    ksd = dataset(check, "ksd", "contribution", "attribution")
    worst = worst_first(check, names)[0]
    left = [0.9 + 0.32 * (len(names) + 1), 1.6]
    shown = max(MIN_ROWS, min(num, ksd.sizes["sequence"]))
    heights = [max(sum(left), 1.1 + 0.3 * num), 1.5 + 0.3 * shown]
    figure = new_figure((12.5, sum(heights) + 0.6), figsize, backend_kwargs)
    sentence = verdict(check)
    figure.suptitle(f"{sentence[0].upper()}{sentence[1:]}", wrap=True)
    rows = figure.add_gridspec(2, 1, height_ratios=heights)
    beside = _has_ngrams_to_show(check)
    columns = 2 if beside else 1
    grid = rows[0].subgridspec(2, columns, height_ratios=left)  # its own grid: the color bar has no place beside it
    axes = [plot_views(check, ax=figure.add_subplot(grid[0, 0]))]
    axes.extend(plot_null(check, view=worst, ax=figure.add_subplot(grid[1, 0])))
    if beside:
        axes.append(plot_ngrams(check, num=num, ax=figure.add_subplot(grid[:, 1])))
    axes.append(plot_sequences(check, view=worst, num=num, ax=figure.add_subplot(rows[1])))
    return np.array(axes, dtype=object)


def _has_ngrams_to_show(check: Any) -> bool:
    name = view_of_ngrams(check)
    ksd = dataset(check, "ksd")
    if name is None:
        return False
    level = float(ksd.attrs["level"])
    return float(ksd["p_value_overall"]) > level or float(ksd["p_value"].sel(view=name)) <= level

# SPDX-License-Identifier: Apache-2.0
"""A check on one page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pyro_ksd.common.option_checks import check_number
from pyro_ksd.plots.lengths import plot_lengths
from pyro_ksd.plots.ngrams import plot_ngrams, view_of_ngrams
from pyro_ksd.plots.null import plot_null
from pyro_ksd.plots.sequences import plot_sequences
from pyro_ksd.plots.style import MIN_ROWS, new_figure
from pyro_ksd.plots.views import plot_views
from pyro_ksd.results.containers import dataset, has_group
from pyro_ksd.results.verdicts import reason_views, verdict, worst_view
from pyro_ksd.results.view_choice import feature_kind, num_features, view_names


def plot_check(
    check: Any,
    *,
    num: int = 8,
    figsize: tuple[float, float] | None = None,
    backend_kwargs: Mapping[str, Any] | None = None,
) -> npt.NDArray[np.object_]:
    """Draws a check on one page, under its verdict.

    All p-values, and one view in detail: its statistic against the null draws, its n-grams or other features, and the
    sequences that contribute most to it. The view is the worst one that the verdict names, of several one with n-grams.
    If the model may fit, it is the worst one with n-grams. For the lengths, their distribution is drawn in place of
    features, and nothing for views with a single feature or none.

    :param check: what :func:`pyro_ksd.ksd_check` gave, as a DataTree or an InferenceData.
    :param num: how many n-grams and sequences to show.
    :param figsize: width and height of the figure in inches.
    :param backend_kwargs: more arguments of ``matplotlib.pyplot.figure``.
    :returns: the axes of :func:`plot_views`, :func:`plot_null`, :func:`plot_ngrams` or :func:`plot_lengths` (if
        drawn) and :func:`plot_sequences`.

    >>> from pyro_ksd import ksd_check
    >>> from pyro_ksd.examples import random_walk
    >>> data = ["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"]
    >>> check = ksd_check(random_walk(3), data, progress=False)
    >>> len(plot_check(check))
    4
    """
    check_number("num", num, least=1)
    names = view_names(check)
    ksd = dataset(check, "ksd", "contribution", "attribution")
    chosen = _view_in_detail(check)
    left = [0.9 + 0.32 * (len(names) + 1), 1.6]
    shown = max(MIN_ROWS, min(num, ksd.sizes["shown"]))
    heights = [max(sum(left), 1.1 + 0.3 * num), 1.5 + 0.3 * shown]
    figure = new_figure((12.5, sum(heights) + 0.6), figsize, backend_kwargs)
    sentence = verdict(check)
    figure.suptitle(f"{sentence[0].upper()}{sentence[1:]}", wrap=True)
    rows = figure.add_gridspec(2, 1, height_ratios=heights)
    has_lengths = _kind(check, chosen) == "length" and has_group(check, "ksd_length")
    has_ngrams = not has_lengths and num_features(check, chosen) > 1
    columns = 2 if has_ngrams or has_lengths else 1
    grid = rows[0].subgridspec(2, columns, height_ratios=left)  # its own grid: the color bar has no place beside it
    axes = [plot_views(check, ax=figure.add_subplot(grid[0, 0]))]
    axes.extend(plot_null(check, view=chosen, ax=figure.add_subplot(grid[1, 0])))
    if has_ngrams:
        axes.append(plot_ngrams(check, view=chosen, num=num, ax=figure.add_subplot(grid[:, 1])))
    if has_lengths:
        axes.append(plot_lengths(check, ax=figure.add_subplot(grid[:, 1])))
    axes.append(plot_sequences(check, view=chosen, num=num, ax=figure.add_subplot(rows[1])))
    return np.array(axes, dtype=object)


def _view_in_detail(check: Any) -> str:
    """A view that the verdict names, with n-grams if there is one; any view if the verdict names none."""
    reasons = reason_views(check)
    name = view_of_ngrams(check)
    if name is not None and (name in reasons or not reasons):
        return name
    return worst_view(check, view_names(check))


def _kind(check: Any, name: str) -> str:
    return feature_kind(dataset(check, "ksd").sel(view=name))

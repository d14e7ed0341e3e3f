# SPDX-License-Identifier: Apache-2.0
"""The Stein kernel matrix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pyro_ksd.plots.style import DIVERGING, axes_for, view_title
from pyro_ksd.results.containers import dataset
from pyro_ksd.results.verdicts import worst_view
from pyro_ksd.results.view_choice import known_view, view_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAMED = 25  # so many sequences can be named at an axis


def plot_gram(
    check: Any,
    *,
    view: str | None = None,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    backend_kwargs: Mapping[str, Any] | None = None,
) -> Axes:
    """Draws the Stein kernel matrix of a view, the sequences that contribute most to the statistic first.

    The statistic is the mean of the matrix without its diagonal, so the colors end at the 99 % quantile of the absolute
    values beside the diagonal. A block of purple is a group of sequences that depart from the model in the same way.

    :param check: what ``pyro_ksd.ksd_check(..., gram=True)`` gave, as a DataTree or an InferenceData.
    :param view: the name of a view. Left out, the worst one.
    :param ax: where to draw, in place of a new figure.
    :param figsize: width and height of the new figure in inches.
    :param backend_kwargs: more arguments of ``matplotlib.pyplot.subplots``.

    >>> from pyro_ksd import ksd_check
    >>> from pyro_ksd.examples import random_walk
    >>> data = ["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"]
    >>> check = ksd_check(random_walk(3), data, num_bootstrap=100, gram=True, progress=False)
    >>> ax = plot_gram(check, view="content-2")
    >>> [label.get_text() for label in ax.get_yticklabels()]  # from the sequence that contributes most
    ['1', '0', '5', '4', '3', '2']
    """
    names = view_names(check)
    ksd = dataset(check, "ksd", "contribution")
    if "gram" not in ksd:
        raise ValueError("check: expected one with the Stein kernel matrix, found none; run ksd_check(..., gram=True)")
    name = worst_view(check, names) if view is None else known_view(view, names)
    ksd = ksd.sel(view=name)
    order = np.argsort(-ksd["contribution"].values, kind="stable")
    gram = ksd["gram"].transpose("sequence", "sequence_bis").values[np.ix_(order, order)]
    aside = np.abs(gram[~np.eye(len(gram), dtype=bool)])
    reach = float(np.quantile(aside, 0.99)) or 1.0

    [ax] = axes_for(ax, 1, (6.2, 5.4), figsize, backend_kwargs)
    view_title(ax, check, name)
    image = ax.imshow(gram, cmap=DIVERGING, vmin=-reach, vmax=reach)
    extend = "both" if np.abs(gram).max() > reach else "neither"
    ax.figure.colorbar(
        image, ax=ax, extend=extend, label="Stein kernel of two sequences\n(purple adds to the statistic)"
    )
    if len(gram) <= _NAMED:
        rows = np.arange(len(gram))
        indices = [str(index) for index in ksd["sequence"].values[order]]
        ax.set_xticks(rows, indices, rotation=90 if len(gram) > 10 else 0)
        ax.set_yticks(rows, indices)
        words = "index of the sequence, from 0 (largest contribution first)"
    else:
        words = "rank of the sequence by its contribution"
    ax.set_xlabel(words)
    ax.set_ylabel(words)
    return ax

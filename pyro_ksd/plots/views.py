# SPDX-License-Identifier: Apache-2.0
"""The p-values of all views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyro_ksd.plots.drawing import draw, one_or_all, spelled_names
from pyro_ksd.plots.picture import Mark, Panel, Picture, Points, Rows, Rule, Scale
from pyro_ksd.results.containers import dataset, has_group
from pyro_ksd.results.p_values import p_text
from pyro_ksd.results.view_choice import p_value_of_views, view_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_views(
    check: Any,
    *,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    backend_kwargs: Mapping[str, Any] | None = None,
    plot_collection: Any = None,
    backend: str | None = None,
    labeller: Any = None,
    aes_by_visuals: Mapping[str, Sequence[str]] | None = None,
    visuals: Mapping[str, Mapping[str, Any] | bool] | None = None,
    **pc_kwargs: Any,
) -> Any:
    r"""Draws the p-value of each view, and below them that of all views together.

    A diamond is a p-value that is by itself at most the level, the dashed line. Among ten views of a true model, one or
    another often is; only the p-value of all views together decides. No p-value is smaller than :math:`1 / (B + 1)`
    with :math:`B` null draws, the dotted line, but that of sequences to which the model gives probability 0, which
    stands at the left end. What a view looks at is written below its name if the axes are large enough.

    :param check: what :func:`pyro_ksd.ksd_check` gave, as a DataTree or an InferenceData.
    :param ax: axes of matplotlib to draw on, in place of a new figure.
    :param figsize: width and height of the new figure in inches.
    :param backend_kwargs: more arguments of the function that makes the figure, for matplotlib those of
        ``matplotlib.pyplot.subplots``.
    :param plot_collection: where ArviZ 1.x is installed, a ``PlotCollection`` to draw on.
    :param backend: where ArviZ 1.x is installed, ``"matplotlib"``, ``"plotly"`` or ``"bokeh"``; left out, the one that
        ``arviz.rcParams["plot.backend"]`` names.
    :param labeller: a labeller of ArviZ, which spells the names of views.
    :param aes_by_visuals: which aesthetics of the ``PlotCollection`` each mark follows; all of them if left out.
    :param visuals: how marks and texts look, such as ``{"level": {"color": "black"}, "legend": False}``. Marks are
        ``"level"``, ``"smallest"``, ``"against"``, ``"others"`` and ``"separator"``, texts ``"title"``,
        ``"x_label"``, ``"y_label"``, ``"ticklabels"``, ``"notes"`` and ``"legend"``.
    :param pc_kwargs: where ArviZ 1.x is installed, more arguments of ``PlotCollection.wrap``.
    :returns: a ``PlotCollection`` where ArviZ 1.x is installed, unless ``ax`` is given; else the axes.

    >>> import matplotlib.pyplot as plt
    >>> from pyro_ksd import ksd_check
    >>> from pyro_ksd.examples import random_walk
    >>> data = ["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"]
    >>> check = ksd_check(random_walk(3), data, num_bootstrap=100, progress=False)
    >>> picture = plot_views(check)
    >>> ax = plot_views(check, ax=plt.figure().add_subplot())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['content-1', 'content-2', 'content-3', 'start', 'length', 'surprise', 'skip', 'position', 'mirror', 'repeats',
     'all views together']
    """
    picture = _picture(check, labeller)
    drawn = draw(
        picture,
        None,
        ax=ax,
        figsize=figsize,
        backend_kwargs=backend_kwargs,
        plot_collection=plot_collection,
        backend=backend,
        visuals=visuals,
        aes_by_visuals=aes_by_visuals,
        pc_kwargs=pc_kwargs,
    )
    return one_or_all(drawn, single=True)


def _picture(check: Any, labeller: Any) -> Picture:
    ksd = dataset(check, "ksd")
    names = view_names(check)
    together = ["all views together", *(["impossible sequences"] if has_group(check, "ksd_impossible") else [])]
    rows = np.arange(len(names) + len(together), dtype=float)
    p_values = np.append(ksd["p_value"].values, [p_value_of_views(ksd), 0.0][: len(together)])
    level = float(ksd.attrs["level"])
    smallest = 1 / (ksd.attrs["num_bootstrap"] + 1)
    rejects = p_values <= level
    least = float(min(smallest, p_values[p_values > 0].min())) / 1.5
    shown = np.maximum(p_values, least)  # a p-value of 0 stands at the left end
    against = {"color": "against", "marker": "diamond", "size": 49}
    others = {"color": "quiet", "marker": "circle", "size": 49}
    dashed = {"color": "words", "linestyle": "dashed", "width": 1}
    dotted = {"color": "faint", "linestyle": "dotted", "width": 1.2}
    marks: list[Mark] = [
        Rule("level", dashed, "x", level, label=f"level {level:g}"),
        Rule("smallest", dotted, "x", smallest, label=f"smallest possible p = {smallest:.2g}"),
        Points("against", against, shown[rejects], rows[rejects], label=f"p ≤ {level:g} by itself"),
        Points("others", others, p_values[~rejects], rows[~rejects], label=f"p > {level:g}"),
        Rule("separator", {"color": "words", "width": 0.8}, "y", len(names) - 0.5),
    ]
    panel = Panel(
        marks,
        x_label=["p-value (logarithmic)"],
        x_limits=(least if p_values.all() else least / 1.5, 1.3),
        y_limits=(len(rows) - 0.5, -0.5),
        x_scale=Scale("log"),
        rows=Rows(
            [[name] for name in [*spelled_names(labeller, "view", names), *together]],
            notes=list(map(p_text, p_values)),
            meanings=[str(meaning) for meaning in ksd["meaning"].values],
        ),
    )
    return Picture({"views": panel}, (9, 1.4 + 0.5 * len(rows)))

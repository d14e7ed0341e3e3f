# SPDX-License-Identifier: Apache-2.0
"""The models of a comparison, the best one first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyro_ksd.plots.drawing import draw, one_or_all, spelled_names
from pyro_ksd.plots.picture import Mark, Panel, Picture, Points, Rows, Rule
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
    plot_collection: Any = None,
    backend: str | None = None,
    labeller: Any = None,
    aes_by_visuals: Mapping[str, Sequence[str]] | None = None,
    visuals: Mapping[str, Mapping[str, Any] | bool] | None = None,
    **pc_kwargs: Any,
) -> Any:
    """Draws the models of a comparison, in the manner of ``arviz.plot_compare``.

    A dot is the statistic of a model in all views together, with its standard error; the smaller, the better. The
    triangle below it shows the interval of the *difference* to the best model, which is far more certain than either
    statistic if both err on the same sequences. The intervals hold for all pairs of models at once: one ends before the
    dashed line of the best model if and only if :func:`~pyro_ksd.results.compare_table` calls the model worse. A model
    that gives probability zero to some sequences is ruled out, whatever its statistic for the others.

    :param comparison: what :func:`pyro_ksd.ksd_compare` gave, as a DataTree or an InferenceData.
    :param ax: axes of matplotlib to draw on, in place of a new figure.
    :param figsize: width and height of the new figure in inches.
    :param backend_kwargs: more arguments of the function that makes the figure, for matplotlib those of
        ``matplotlib.pyplot.subplots``.
    :param plot_collection: where ArviZ 1.x is installed, a ``PlotCollection`` to draw on.
    :param backend: where ArviZ 1.x is installed, ``"matplotlib"``, ``"plotly"`` or ``"bokeh"``; left out, the one that
        ``arviz.rcParams["plot.backend"]`` names.
    :param labeller: a labeller of ArviZ, which spells the names of the models.
    :param aes_by_visuals: which aesthetics of the ``PlotCollection`` each mark follows; all of them if left out.
    :param visuals: how marks and texts look, such as ``{"worse": {"color": "black"}, "legend": False}``. Marks are
        ``"best"``, ``"statistics"``, ``"worse"`` and ``"as_good"``, texts ``"title"``, ``"x_label"``,
        ``"y_label"``, ``"ticklabels"``, ``"notes"`` and ``"legend"``.
    :param pc_kwargs: where ArviZ 1.x is installed, more arguments of ``PlotCollection.wrap``.
    :returns: a ``PlotCollection`` where ArviZ 1.x is installed, unless ``ax`` is given; else the axes.

    >>> import matplotlib.pyplot as plt
    >>> from pyro_ksd import ksd_compare
    >>> from pyro_ksd.examples import random_walk
    >>> models = {"moves": random_walk(3), "rests": random_walk(3, hold=0.5)}
    >>> data = ["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"]
    >>> comparison = ksd_compare(models, data, progress=False)
    >>> picture = plot_compare(comparison)
    >>> ax = plot_compare(comparison, ax=plt.figure().add_subplot())
    >>> [label.get_text() for label in ax.get_yticklabels()]  # the best one first
    ['rests', 'moves']
    """
    picture = _picture(comparison, labeller)
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


def _picture(comparison: Any, labeller: Any) -> Picture:
    table = compare_table(comparison)
    names = [" ".join(name.split()) for name in spelled_names(labeller, "model", list(table.index))]
    level = table.attrs["level"]
    rows = np.arange(len(table), dtype=float)
    reach = table.attrs["reach"]
    ksd = table["ksd"].to_numpy()
    p_values = table["p_value"].to_numpy()
    ruled_out = table["finding"].str.startswith(RULED_OUT).to_numpy()
    worse = (p_values <= level) & ~ruled_out
    dots = {"color": "words", "marker": "circle", "size": 36}
    marks: list[Mark] = [
        Rule("best", {"color": "words", "linestyle": "dashed", "width": 1}, "x", float(ksd[0])),
        Points("statistics", dots, ksd, rows, table["se"].to_numpy(), label="statistic ± standard error"),
    ]
    for name, chosen, color, inside, words in (
        ("worse", worse, "against", "against", "worse"),
        ("as_good", ~worse & ~ruled_out & (rows > 0), "quiet", "background", "may be as good"),
    ):
        if chosen.any():
            look = {"color": color, "facecolor": inside, "marker": "triangle", "size": 36}
            half = reach * table["d_se"].to_numpy()[chosen]
            place = rows[chosen] + _BELOW
            marks.append(Points(name, look, ksd[chosen], place, half, caps=True, label=f"difference: {words}"))
    beside = (RULED_OUT if out else p_text(p) for out, p in zip(ruled_out[1:], p_values[1:], strict=True))
    panel = Panel(
        marks,
        x_label=[
            "KSD² estimate, all views together (the smaller, the better)",
            f"triangles: {100 * (1 - level):.4g} % interval of the difference to the best",
        ],
        y_limits=(len(rows) - 0.4, -0.6),
        rows=Rows([[name] for name in names], ["best", *beside], share=1 / 3, lines=2),
    )
    return Picture({"models": panel}, (7.5 + 0.05 * min(max(map(len, names)), 60), 1.6 + 0.5 * len(names)))

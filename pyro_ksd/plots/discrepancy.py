# SPDX-License-Identifier: Apache-2.0
"""The data against replicated data, for every posterior draw."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyro_ksd.plots.drawing import draw, spelled_names
from pyro_ksd.plots.picture import Line, Numbers, Panel, Picture, Points
from pyro_ksd.results.containers import dataset
from pyro_ksd.results.p_values import p_text
from pyro_ksd.results.view_choice import chosen_views

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = 4  # more panels in a row could not be read on a page


def plot_discrepancy(
    check: Any,
    *,
    view: str | Sequence[str] | None = None,
    ax: Axes | npt.NDArray[np.object_] | None = None,
    figsize: tuple[float, float] | None = None,
    backend_kwargs: Mapping[str, Any] | None = None,
    plot_collection: Any = None,
    backend: str | None = None,
    labeller: Any = None,
    aes_by_visuals: Mapping[str, Sequence[str]] | None = None,
    visuals: Mapping[str, Mapping[str, Any] | bool] | None = None,
    **pc_kwargs: Any,
) -> Any:
    """Draws, for each view, two statistics of every posterior draw: of the data, and of data that it drew.

    A point is one posterior draw. Its *realized* statistic is that of the data under the model with the parameters of
    this draw, its *replicated* statistic that of a data set of the same size, drawn from this model.

    Above the diagonal the replicated data fit worse than the real ones; the posterior predictive p-value is the share
    of draws that lie there. Below it, the real data fit worse: points there are evidence against the model.

    :param check: what ``pyro_ksd.ksd_check(..., posterior=...)`` gave, as a DataTree or an InferenceData.
    :param view: the name of a view, or several; all views if left out.
    :param ax: axes of matplotlib to draw on, one for each view, in place of a new figure.
    :param figsize: width and height of the new figure in inches.
    :param backend_kwargs: more arguments of the function that makes the figure, for matplotlib those of
        ``matplotlib.pyplot.subplots``.
    :param plot_collection: where ArviZ 1.x is installed, a ``PlotCollection`` to draw on.
    :param backend: where ArviZ 1.x is installed, ``"matplotlib"``, ``"plotly"`` or ``"bokeh"``; left out, the one that
        ``arviz.rcParams["plot.backend"]`` names.
    :param labeller: a labeller of ArviZ, which spells the names of views.
    :param aes_by_visuals: which aesthetics of the ``PlotCollection`` each mark follows; all of them if left out.
    :param visuals: how marks and texts look, such as ``{"against": {"color": "black"}, "legend": False}``. Marks
        are ``"diagonal"``, ``"others"`` and ``"against"``, texts ``"title"``, ``"x_label"``, ``"y_label"``,
        ``"ticklabels"``, ``"notes"`` and ``"legend"``.
    :param pc_kwargs: where ArviZ 1.x is installed, more arguments of ``PlotCollection.wrap``.
    :returns: a ``PlotCollection`` where ArviZ 1.x is installed, unless ``ax`` is given; else an array of axes, one
        for each view.

    >>> import matplotlib.pyplot as plt
    >>> import pyro, torch
    >>> from pyro_ksd import MarkovSequence, ksd_check
    >>> def program(x=None, num_sequences=None):
    ...     stop = pyro.sample("stop", pyro.distributions.Beta(2.0, 2.0))
    ...     chain = MarkovSequence.from_transitions(torch.ones(2) / 2, torch.ones(2, 2) / 2, stop)
    ...     with pyro.plate("sequences", num_sequences if x is None else len(x)):
    ...         return pyro.sample("x", chain, obs=x)
    >>> posterior = {"stop": torch.tensor([0.3, 0.4, 0.5])}  # the draws of an inference
    >>> check = ksd_check(program, ["ab", "b", "aba", "aa"], posterior=posterior, progress=False)
    >>> picture = plot_discrepancy(check)
    >>> len(plot_discrepancy(check, view="length", ax=plt.figure().add_subplot()))
    1
    """
    names = chosen_views(check, view)
    picture = _picture(check, names, spelled_names(labeller, "view", names))
    return draw(
        picture,
        "view",
        ax=ax,
        figsize=figsize,
        backend_kwargs=backend_kwargs,
        plot_collection=plot_collection,
        backend=backend,
        visuals=visuals,
        aes_by_visuals=aes_by_visuals,
        pc_kwargs=pc_kwargs,
    )


def _picture(check: Any, names: list[str], shown: list[str]) -> Picture:
    ppc = dataset(check, "ksd_ppc", "realized", "replicated")
    p_values = dataset(check, "ksd")["p_value"]
    columns = min(len(names), _COLUMNS)
    panels = {}
    for place, (name, words) in enumerate(zip(names, shown, strict=True)):
        realized, replicated = (ppc[kind].sel(view=name).values.ravel() for kind in ("realized", "replicated"))
        title = [words, "posterior predictive", p_text(float(p_values.sel(view=name)))]
        panels[name] = _panel(realized, replicated, title, labeled=place % columns == 0)
    size = (3.0 * columns, 0.5 + 3.4 * math.ceil(len(names) / columns))
    return Picture(panels, size, columns, legend="inside")


def _panel(realized: Numbers, replicated: Numbers, title: list[str], labeled: bool) -> Panel:
    """The draws of one view.

    :param labeled: whether the vertical axis is labeled.
    """
    against = replicated < realized
    low = min(realized.min(), replicated.min())
    high = max(realized.max(), replicated.max())
    margin = 0.05 * (high - low) or 1.0
    limits = (float(low - margin), float(high + margin))
    look = {"size": 14, "alpha": 0.5, "width": 0}
    others = {**look, "color": "quiet", "marker": "circle"}
    worse = {**look, "color": "against", "marker": "diamond"}
    ends = np.array(limits)
    return Panel(
        [
            Points("others", others, realized[~against], replicated[~against], label="the replicate fits worse"),
            Points("against", worse, realized[against], replicated[against], label="the data fit worse"),
            Line("diagonal", {"color": "words", "width": 1}, ends, ends),
        ],
        title=title,
        x_label=["KSD² of the data", "(realized)"],
        y_label=["KSD² of data drawn from", "the model (replicated)"] if labeled else [],
        x_limits=limits,
        y_limits=limits,
        y_numbers=True,
        square=True,
    )

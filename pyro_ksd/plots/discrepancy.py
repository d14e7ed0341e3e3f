# SPDX-License-Identifier: Apache-2.0
"""The data against replicated data, for every posterior draw."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyro_ksd.plots.style import GRAY, PURPLE, axes_for, foreground
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
) -> npt.NDArray[np.object_]:
    """Draws, for each view, two statistics of every posterior draw: of the data, and of data that it drew.

    A point is one posterior draw. Its *realized* statistic is that of the data under the model with the parameters of
    this draw, its *replicated* statistic that of a data set of the same size, drawn from this model.

    Above the diagonal the replicated data fit worse than the real ones; the posterior predictive p-value is the share
    of draws that lie there. Below it, the real data fit worse: points there are evidence against the model.

    :param check: what ``pyro_ksd.ksd_check(..., posterior=...)`` gave, as a DataTree or an InferenceData.
    :param view: the name of a view, or several; all views if left out.
    :param ax: where to draw, one axes for each view, in place of a new figure.
    :param figsize: width and height of the new figure in inches.
    :param backend_kwargs: more arguments of ``matplotlib.pyplot.subplots``.
    :returns: the axes, one for each view.

    >>> import pyro, torch
    >>> from pyro_ksd import MarkovSequence, ksd_check
    >>> def program(x=None, num_sequences=None):
    ...     stop = pyro.sample("stop", pyro.distributions.Beta(2.0, 2.0))
    ...     chain = MarkovSequence.from_transitions(torch.ones(2) / 2, torch.ones(2, 2) / 2, stop)
    ...     with pyro.plate("sequences", num_sequences if x is None else len(x)):
    ...         return pyro.sample("x", chain, obs=x)
    >>> posterior = {"stop": torch.tensor([0.3, 0.4, 0.5])}  # the draws of an inference
    >>> check = ksd_check(program, ["ab", "b", "aba", "aa"], posterior=posterior, progress=False)
    >>> len(plot_discrepancy(check, view="length"))
    1
    """
    names = chosen_views(check, view)
    ppc = dataset(check, "ksd_ppc", "realized", "replicated")
    ksd = dataset(check, "ksd")
    columns = min(len(names), _COLUMNS)
    size = (3.0 * columns, 0.5 + 3.2 * math.ceil(len(names) / columns))
    axes = axes_for(ax, len(names), size, figsize, backend_kwargs, columns=columns)
    for place, (one_ax, name) in enumerate(zip(axes, names, strict=True)):
        realized, replicated = (ppc[kind].sel(view=name).values.ravel() for kind in ("realized", "replicated"))
        _scatter(one_ax, realized, replicated)
        one_ax.set_title(
            f"{name}\nposterior predictive {p_text(float(ksd['p_value'].sel(view=name)))}", fontsize="medium"
        )
        one_ax.set_xlabel("KSD² of the data\n(realized)")
        if place % columns == 0:
            one_ax.set_ylabel("KSD² of data drawn from\nthe model (replicated)")
    axes[0].legend(loc="best", fontsize="small", frameon=False, borderaxespad=0, handletextpad=0)
    return axes


def _scatter(ax: Axes, realized: npt.NDArray[np.float64], replicated: npt.NDArray[np.float64]) -> None:
    against = replicated < realized
    for chosen, color, marker, words in (
        (~against, GRAY, "o", "the replicate fits worse"),
        (against, PURPLE, "D", "the data fit worse"),
    ):
        ax.scatter(
            realized[chosen], replicated[chosen], s=14, color=color, marker=marker, alpha=0.5, linewidths=0, label=words
        )
    low = min(realized.min(), replicated.min())
    high = max(realized.max(), replicated.max())
    margin = 0.05 * (high - low) or 1.0
    ax.axline((low, low), slope=1, color=foreground(), linewidth=1)
    ax.set_xlim(low - margin, high + margin)
    ax.set_ylim(low - margin, high + margin)
    ax.locator_params(nbins=4)
    ax.set_box_aspect(1)
    ax.spines[["top", "right"]].set_visible(False)

# SPDX-License-Identifier: Apache-2.0
"""The data against replicated data, for every posterior draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyro_ksd.plots.style import BLUE, VERMILION, axes_for
from pyro_ksd.results.containers import dataset
from pyro_ksd.results.p_values import p_text
from pyro_ksd.results.view_choice import chosen_views

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_ppc(
    check: Any,
    *,
    view: str | Sequence[str] | None = None,
    ax: Axes | npt.NDArray[np.object_] | None = None,
    figsize: tuple[float, float] | None = None,
    backend_kwargs: Mapping[str, Any] | None = None,
) -> npt.NDArray[np.object_]:
    """Draws, for each view, the realized statistic of every posterior draw against the replicated one.

    Above the diagonal the replicated data fit worse than the real ones; the posterior predictive p-value is the share
    of draws that lie there. Below it, the real data fit worse: points there speak against the model.

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
    >>> len(plot_ppc(check, view="length"))
    1
    """
    names = chosen_views(check, view)
    ppc = dataset(check, "ksd_ppc", "realized", "replicated")
    ksd = dataset(check, "ksd")
    axes = axes_for(ax, len(names), (3.0 * len(names), 3.4), figsize, backend_kwargs, in_row=True)
    for one_ax, name in zip(axes, names, strict=True):
        realized, replicated = (ppc[kind].sel(view=name).values.ravel() for kind in ("realized", "replicated"))
        _scatter(one_ax, realized, replicated)
        one_ax.set_title(
            f"{name}\nposterior predictive {p_text(float(ksd['p_value'].sel(view=name)))}", fontsize="medium"
        )
        one_ax.set_xlabel("realized: the data")
    axes[0].set_ylabel("replicated: by the model")
    axes[0].legend(loc="upper left", fontsize="small", frameon=False, borderaxespad=0, handletextpad=0)
    return axes


def _scatter(ax: Axes, realized: npt.NDArray[np.float64], replicated: npt.NDArray[np.float64]) -> None:
    against = replicated < realized
    for chosen, color, marker, words in (
        (~against, BLUE, "o", "the replicate fits worse"),
        (against, VERMILION, "D", "the data fit worse"),
    ):
        ax.scatter(
            realized[chosen], replicated[chosen], s=14, color=color, marker=marker, alpha=0.5, linewidths=0, label=words
        )
    low = min(realized.min(), replicated.min())
    high = max(realized.max(), replicated.max())
    margin = 0.05 * (high - low) or 1.0
    ax.axline((low, low), slope=1, color="0.3", linewidth=1)
    ax.set_xlim(low - margin, high + margin)
    ax.set_ylim(low - margin, high + margin)
    ax.locator_params(nbins=4)
    ax.set_box_aspect(1)
    ax.spines[["top", "right"]].set_visible(False)

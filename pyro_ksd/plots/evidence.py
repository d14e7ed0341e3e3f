# SPDX-License-Identifier: Apache-2.0
"""The evidence of a monitor over time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyro_ksd.plots.style import GRAY, PURPLE, axes_for
from pyro_ksd.results.containers import dataset

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_evidence(
    result: Any,
    *,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    backend_kwargs: Mapping[str, Any] | None = None,
) -> npt.NDArray[np.object_]:
    """Draws the evidence of a monitor against the number of sequences, of each view and of all together.

    The dashed line is the evidence at which the model is rejected, or the alarm raised. The dotted line is the sequence
    after which the evidence of all views first reached it.

    :param result: what :meth:`pyro_ksd.checks.Monitor.result` gave.
    :param ax: where to draw, in place of a new figure.
    :param figsize: width and height of the new figure in inches.
    :param backend_kwargs: more arguments of ``matplotlib.pyplot.subplots``.
    :returns: an array with the axes.

    >>> from pyro_ksd import ksd_monitor
    >>> from pyro_ksd.examples import random_walk
    >>> monitor = ksd_monitor(random_walk(3), "abc")
    >>> monitor.update(["abc", "ba", "cab"])
    >>> [axes] = plot_evidence(monitor.result())
    >>> axes.get_xlabel()
    'sequences'
    """
    found = dataset(result, "ksd_monitor")
    [axes] = drawn = axes_for(ax, 1, (7, 4), figsize, backend_kwargs)
    count = np.concatenate([[0], found["num_sequences"].values])
    decimal = 1 / math.log(10)
    for view in found["view"].values:
        own = found["log_evidence"].sel(view=view).values * decimal
        axes.plot(count, np.concatenate([[0], own]), linewidth=1, label=str(view))
    overall = np.concatenate([[0], found["log_evidence_overall"].values * decimal])
    axes.plot(count, overall, color=PURPLE, linewidth=2.5, label="all together")
    changes = "run_length" in found.attrs
    needed = found.attrs["run_length"] if changes else 1 / found.attrs["level"]
    axes.axhline(math.log10(needed), color=GRAY, linestyle="--", linewidth=1)
    axes.annotate(
        "alarm" if changes else "rejected",
        (0.01, math.log10(needed)),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        color=GRAY,
    )
    if found.attrs["first_clear"] >= 0:
        axes.axvline(found.attrs["first_clear"], color=GRAY, linestyle=":", linewidth=1)
    axes.set_xlabel("sequences")
    axes.set_ylabel("evidence against the model (log10)")
    axes.legend(fontsize="small")
    return drawn

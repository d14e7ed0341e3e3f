# SPDX-License-Identifier: Apache-2.0
"""Pictures of results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.paper.experiment import LEVEL
from benchmarks.paper.results import rates, standard_errors

LEGEND: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5), "frameon": False, "fontsize": 9}
_MARKERS = "osD^vPX*<>"


def curves(result: xr.Dataset, top: float = 1.0) -> Figure:
    """The rate of every test against what is varied, with bars of two standard errors; open marks are published."""
    figure, axes = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
    rate = rates(result)
    error = standard_errors(result)
    x = np.asarray(result["point"].values, dtype=float)
    for index, test in enumerate(result["test"].values):
        line(axes, x, rate.sel(test=test), error.sel(test=test), str(test), index, result["published"].sel(test=test))
    finish(axes, str(result["point"].attrs["long_name"]), top)
    return figure


def line(
    axes: Axes,
    x: Sequence[float] | np.ndarray,
    rate: xr.DataArray,
    error: xr.DataArray,
    label: str,
    index: int,
    published: xr.DataArray | None = None,
    linestyle: str = "-",
) -> None:
    """One curve; ``index`` chooses its color and mark."""
    color = f"C{index % 10}"
    marker = _MARKERS[index % len(_MARKERS)]
    axes.errorbar(
        x, rate, 2 * error, color=color, marker=marker, markersize=5, capsize=2, linestyle=linestyle, label=label
    )
    if published is not None and published.notnull().any():
        axes.plot(x, published, linestyle="", marker=marker, markersize=8, markerfacecolor="none", color=color)


def finish(axes: Axes, label: str, top: float = 1.0) -> None:
    """The level, the axes and the legend."""
    axes.axhline(LEVEL, color="0.5", linestyle="--", linewidth=1, label=f"level {LEVEL}")
    axes.set(xlabel=label, ylabel="rejection rate", ylim=(-0.03 * top, 1.03 * top))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(**LEGEND)

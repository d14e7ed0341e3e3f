# SPDX-License-Identifier: Apache-2.0
"""The statistics against what a true model would give."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import xarray as xr

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NULL, _OBSERVED = "#0072B2", "#D55E00"  # blue and vermilion of the Okabe-Ito palette, safe for color-blind readers


def plot_null(check: xr.DataTree) -> npt.NDArray[np.object_]:
    """Draws, for each view, the null draws as a histogram and the observed statistic as a line.

    :param check: what :func:`pyro_ksd.ksd_check` gave, or what was loaded from its file.
    :returns: the axes, one a view.
    """
    import matplotlib.pyplot as plt

    ksd, null = check["ksd"].to_dataset(), check["ksd_null"].to_dataset()
    names = ksd["view"].values.astype(str)
    figure, grid = plt.subplots(len(names), 1, figsize=(7, 0.6 + 1.3 * len(names)), squeeze=False, layout="constrained")
    axes: npt.NDArray[np.object_] = grid[:, 0]
    for ax, name in zip(axes, names, strict=True):
        one = ksd.sel(view=name)
        _histogram(ax, name, null["ksd"].sel(view=name).values.ravel(), float(one["statistic"]), float(one["p_value"]))
    axes[-1].set_xlabel("KSD² estimate")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=2, frameon=False)
    return axes


def _histogram(ax: Axes, name: str, draws: npt.NDArray[np.float64], observed: float, p: float) -> None:
    ax.hist(draws, bins=40, color=_NULL, alpha=0.75, label="if the model were right")
    ax.axvline(observed, color=_OBSERVED, linewidth=2.5, label="observed")
    ax.set_ylabel(f"{name}\np = {p:.3f}", rotation=0, ha="right", va="center")
    ax.set_yticks([])
    ax.spines[["top", "left", "right"]].set_visible(False)

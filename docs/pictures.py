# SPDX-License-Identifier: Apache-2.0
"""Makes the pictures of the README and of these pages: ``python docs/pictures.py``."""

from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import xarray as xr
from matplotlib.figure import Figure

from pyro_ksd.demo import demo_check
from pyro_ksd.plots import plot_check, plot_ngrams, plot_views


def main() -> None:
    matplotlib.use("agg")
    folder = Path(__file__).parent / "images"
    folder.mkdir(exist_ok=True)
    check = demo_check()
    plot_check(check)[0].figure.savefig(folder / "check.png", dpi=200)
    plt.close("all")
    _small(check).savefig(folder / "landing.png", dpi=220)


def _small(check: xr.DataTree) -> Figure:
    """A picture that can be read on a phone: which views see the misfit, and which n-grams are wrong."""
    figure, (above, below) = plt.subplots(2, 1, figsize=(4.8, 5.4), height_ratios=[3, 2], layout="constrained")
    plot_views(check, ax=above)
    plot_ngrams(check, view="content-2", num=5, ax=below)
    return figure


if __name__ == "__main__":
    main()

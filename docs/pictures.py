# SPDX-License-Identifier: Apache-2.0
"""Makes the pictures of the README and of these pages: ``python docs/pictures.py``.

Those of the gallery are drawn by the programs of the page itself: a picture that follows a program shows what it drew.
"""

import re
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import xarray as xr
from matplotlib.figure import Figure

from pyro_ksd.demo import demo_check
from pyro_ksd.plots import plot_check, plot_ngrams, plot_views

DOCS = Path(__file__).parent
IMAGES = DOCS / "images"
DRAWN = re.compile(r"```python\n(?P<program>.*?)```(?:\n\n:::\{image\} images/(?P<picture>\w+\.png))?", re.DOTALL)
DOTS = 160  # of an inch: two for each pixel of the page, so that pictures are sharp on the screens of phones


def main() -> None:
    matplotlib.use("agg")
    IMAGES.mkdir(exist_ok=True)
    check = demo_check()
    plot_check(check)[0].figure.savefig(IMAGES / "check.png", dpi=200)
    plt.close("all")
    _small(check).savefig(IMAGES / "landing.png", dpi=220)
    plt.close("all")
    gallery()


def gallery() -> None:
    """Runs the programs of the gallery, one after the other, and saves what they draw."""
    names: dict[str, Any] = {}
    for found in DRAWN.finditer((DOCS / "gallery.md").read_text()):
        exec(compile(found["program"], "gallery.md", "exec"), names)
        if found["picture"]:
            plt.gcf().savefig(IMAGES / found["picture"], dpi=DOTS)
            plt.close("all")


def _small(check: xr.DataTree) -> Figure:
    """A picture that can be read on a phone: which views see the misfit, and which n-grams are wrong."""
    figure, (above, below) = plt.subplots(2, 1, figsize=(4.8, 5.4), height_ratios=[3, 2], layout="constrained")
    plot_views(check, ax=above)
    plot_ngrams(check, view="content-2", num=5, ax=below)
    return figure


if __name__ == "__main__":
    main()

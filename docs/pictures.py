# SPDX-License-Identifier: Apache-2.0
"""Makes the pictures of the README and of these pages: ``python docs/pictures.py``."""

from pathlib import Path

import matplotlib

from pyro_ksd.demo import demo_check
from pyro_ksd.plots import plot_check


def main() -> None:
    matplotlib.use("agg")
    folder = Path(__file__).parent / "images"
    folder.mkdir(exist_ok=True)
    plot_check(demo_check())[0].figure.savefig(folder / "check.png", dpi=100)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""The main job on a built-in example: ``python -m pyro_ksd.demo``.

The model is a random walk on a ring of 8 places that always moves. The data come from a walk that holds its place in
one step of five. The check finds that out from 30 sequences.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib
import torch

from pyro_ksd.check import ksd_check
from pyro_ksd.examples import random_walk
from pyro_ksd.plots import plot_null
from pyro_ksd.report import summary


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m pyro_ksd.demo", description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("demo"), help="the folder for the picture and the file")
    folder = parser.parse_args().output
    matplotlib.use("agg")
    model = random_walk()
    data = random_walk(hold=0.2).draw(30, torch.Generator().manual_seed(0))
    print("Model: a random walk on a ring of 8 places that always moves.")
    print("Data:  30 walks that hold their place in one step of five, for instance", *data.to_lists()[0])
    check = ksd_check(model, data)
    print(summary(check).to_string(float_format="{:.3f}".format, na_rep=""))
    p = float(check["ksd"]["p_value_overall"])
    print(f"The model {'does not fit' if p <= 0.05 else 'may fit'} (p = {p:.3f}).")
    folder.mkdir(parents=True, exist_ok=True)
    plot_null(check)[0].figure.savefig(folder / "null.png", dpi=150)
    check.to_netcdf(folder / "check.nc")
    print(f"Picture: {folder / 'null.png'}   Results: {folder / 'check.nc'}")


if __name__ == "__main__":
    main()

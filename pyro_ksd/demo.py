# SPDX-License-Identifier: Apache-2.0
"""The main job on a built-in example: ``python -m pyro_ksd.demo``.

The model is a random walk on a ring of 8 places, a to h, that always moves. The data come from a walk that holds its
place in one step of five. The check finds that out from 60 sequences.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib
import torch

from pyro_ksd.checks.model_check import ksd_check
from pyro_ksd.examples import random_walk
from pyro_ksd.plots import plot_check
from pyro_ksd.results.check_table import summary
from pyro_ksd.results.pages.report_file import report
from pyro_ksd.results.result_tree import ResultTree
from pyro_ksd.sequences.container import Sequences


def demo_check() -> ResultTree:
    """The check of the example, which is told on the terminal."""
    model = random_walk()
    drawn = random_walk(hold=0.2).draw(60, torch.Generator().manual_seed(0))
    data = Sequences(drawn.tokens, drawn.lengths, tuple("abcdefgh"))
    print("Model: a random walk on a ring of 8 places, a to h, that always moves.")
    print("Data:  60 walks that stay where they are in one step of five, for instance", *data.to_lists()[0])
    return ksd_check(model, data)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m pyro_ksd.demo", description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("demo"), help="the folder for what it writes")
    folder = parser.parse_args().output
    matplotlib.use("agg")
    check = demo_check()
    print(summary(check))
    folder.mkdir(parents=True, exist_ok=True)
    plot_check(check)[0].figure.savefig(folder / "check.png", dpi=120)
    check.to_netcdf(folder / "check.nc")
    report(check, folder / "report.html")
    print(f"Picture: {folder / 'check.png'}   Report: {folder / 'report.html'}   Results: {folder / 'check.nc'}")


if __name__ == "__main__":
    main()

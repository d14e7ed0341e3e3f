# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks.paper NAME [--quick]``: result as netCDF, figure, table."""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt

from benchmarks.paper.catalog import EXPERIMENTS
from benchmarks.paper.results import DIRECTORY, save, table
from benchmarks.paper.running import run

_QUICK_DIRECTORY = Path("build") / "paper"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper", description="an experiment of the paper")
    parser.add_argument("name", choices=[*EXPERIMENTS, "all"], metavar="NAME", help=f"{', '.join(EXPERIMENTS)} or all")
    parser.add_argument("--quick", action="store_true", help="few runs, to see that it works")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="processes; the result does not depend on them")
    parser.add_argument(
        "--output", type=Path, help=f"directory (default {DIRECTORY.name}, {_QUICK_DIRECTORY} if quick)"
    )
    arguments = parser.parse_args()
    directory = arguments.output or (_QUICK_DIRECTORY if arguments.quick else DIRECTORY)
    for name in EXPERIMENTS if arguments.name == "all" else [arguments.name]:
        experiment = EXPERIMENTS[name]
        started = perf_counter()
        result = run(experiment, quick=arguments.quick, seed=arguments.seed, workers=arguments.workers)
        result.attrs |= {"minutes": round((perf_counter() - started) / 60, 2), "workers": arguments.workers}
        path = save(result, directory)
        figure = experiment.draw(result)
        figure.savefig(path.with_suffix(".png"), dpi=110)
        plt.close(figure)
        print(f"\n{experiment.title}\n\n{table(result)}\n\n{path}, {path.with_suffix('.png')}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""How the time of a check grows: ``python -m benchmarks.growth`` with the size of the data, the alphabet and n-grams.

Seconds of the processor in one thread for whole checks with 500 draws of the wild bootstrap and localization. The model
is a first-order chain with geometric lengths of mean 10; the data come from it.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from itertools import pairwise

import torch

from benchmarks.engine import chain
from pyro_ksd import ksd_check
from pyro_ksd.models import MarkovSequence


def spent(count: int, size: int, views: str | None = None) -> float:
    """The time of a check of ``count`` sequences over ``size`` symbols."""
    table = chain(size).probs
    model = MarkovSequence.from_transitions(table[-1, :-1], table[:-1, :-1] / 0.95, 0.1)
    data = model.draw(count, torch.Generator().manual_seed(0))
    begin = time.process_time()
    ksd_check(model, data, views=views, bootstrap="wild", progress=False)
    return time.process_time() - begin


def told(name: str, values: Sequence[int], seconds: Sequence[float]) -> None:
    """Prints times with the power with which they grow from one value to the next."""
    print(f"\n{name:>10}{'seconds':>10}{'power':>8}\n{values[0]:>10}{seconds[0]:>10.2f}")
    for (before, after), (first, then) in zip(pairwise(values), pairwise(seconds), strict=True):
        print(f"{after:>10}{then:>10.2f}{math.log(then / first) / math.log(after / before):>8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--sequences", type=int, nargs="+", default=[10_000, 30_000, 100_000])
    parser.add_argument("--symbols", type=int, nargs="+", default=[4, 8, 16, 32, 64])
    parser.add_argument("--count", type=int, default=2000, help="of sequences, where something else varies")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    spent(200, 10)  # compiles
    told("sequences", arguments.sequences, [spent(count, 10) for count in arguments.sequences])
    told("t", [3, 4], [spent(arguments.count, 10, f"content-{t}") for t in (3, 4)])
    told("symbols", arguments.symbols, [spent(arguments.count, size) for size in arguments.symbols])


if __name__ == "__main__":
    main()

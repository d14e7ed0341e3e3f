# SPDX-License-Identifier: Apache-2.0
"""Checks given groups or prompts, ``by=``: level and power; ``python -m benchmarks.covariates``.

The model tosses a fair coin until it stops, with the probability 0.2 after each toss. *Level* is how often it is
rejected for data of its own, *power* for data in which heads have the probability 0.65 or 0.35, which depends on the
group or on one code of the prompt.
"""

from __future__ import annotations

import argparse
from typing import Any

import torch

from benchmarks.rejections import LEVEL, band, table
from pyro_ksd import MarkovSequence, Sequences, ksd_check
from pyro_ksd.sequences import PromptContent

SIZE = 90
DRAWS = 99
SHIFT = 0.15
CASES = {"3 groups": 3, "30 groups": 30, "prompts": 2}


def coin(heads: float = 0.5) -> MarkovSequence:
    """Tosses with a probability of heads."""
    tosses = torch.tensor([heads, 1 - heads], dtype=torch.double)
    return MarkovSequence.from_transitions(tosses, tosses.expand(2, 2), stop=0.2)


def simulated(case: str, shift: float, seed: int) -> Sequences:
    """Sequences in groups of one size, or with prompts that are all different.

    :param shift: of the probability of heads, upwards and downwards in turn.
    """
    generator = torch.Generator().manual_seed(seed)
    group = torch.arange(SIZE) % CASES[case]
    drawn = [coin(0.5 + sign * shift).draw(SIZE, generator) for sign in (1, -1)]
    rows = [drawn[number % 2][row : row + 1] for row, number in enumerate(group.tolist())]
    data = Sequences.cat(rows).over("ab")
    if case == "prompts":
        return data.with_covariates([[10 + row, row % 2, 500 + row] for row in range(SIZE)])
    return data.with_covariates({"group": group})


def rate(case: str, shift: float, bootstrap: Any, *, conditional: bool, runs: int) -> float:
    """How often the coin is rejected."""
    by: Any = None
    if conditional:
        by = PromptContent() if case == "prompts" else "group"
    options: dict[str, Any] = {"num_bootstrap": DRAWS, "localize": False, "progress": False}
    rejected = 0
    for seed in range(runs):
        check = ksd_check(coin(), simulated(case, shift, seed), by=by, bootstrap=bootstrap, seed=seed, **options)
        rejected += float(check["ksd"]["p_value_overall"]) <= LEVEL
    return rejected / runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500, help="data sets of each rate")
    runs = parser.parse_args().runs
    rows = []
    for case in CASES:
        for bootstrap in ("parametric", "wild"):
            row = [case, bootstrap]
            for shift in (0.0, SHIFT):
                for conditional in (False, True):
                    row.append(f"{rate(case, shift, bootstrap, conditional=conditional, runs=runs):.3f}")
            rows.append(row)
            print(*row, flush=True)
    lowest, highest = band(runs)
    print(f"\n{runs} data sets each; the 99.9 % band of the level is {lowest:.3f} to {highest:.3f}")
    print(table(["data", "bootstrap", "level", "level with by=", "power", "power with by="], rows))


if __name__ == "__main__":
    main()

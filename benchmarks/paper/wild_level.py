# SPDX-License-Identifier: Apache-2.0
"""How often the wild bootstrap rejects a true model: the paper's multinomial weights against random signs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import torch

from benchmarks.paper.experiment import Cell, Experiment
from benchmarks.paper.figures import curves
from benchmarks.paper.testing import Scale, SteinTest, WildTest, wild_rejections
from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.examples import random_walk
from pyro_ksd.fit_tests.null_draws import multinomial, rademacher
from pyro_ksd.kernels import ContiguousKernel

_WEIGHTS = {"signs": rademacher, "multinomial": multinomial}


@dataclass(frozen=True)
class LevelJob:
    """The true walk of the scenario *random walk I* with another number of sequences."""

    size: int
    scale: Scale

    @property
    def key(self) -> tuple[int, ...]:
        return (self.size,)

    def measure(self, generator: torch.Generator) -> list[Cell]:
        walk = random_walk(8)
        tests: dict[str, WildTest] = {f"CSK t={t}": SteinTest.of(zs(), ContiguousKernel(t)) for t in (1, 2)}
        cells = []
        for name, weights in _WEIGHTS.items():
            found = wild_rejections(
                walk, {float(self.size): walk}, self.size, tests, self.scale, generator, weights=weights
            )
            cells += [replace(cell, test=f"{name}, {cell.test}") for cell in found]
        return cells


def _jobs(quick: bool) -> list[LevelJob]:
    scale = Scale(4, num_bootstrap=19) if quick else Scale(2000, num_bootstrap=500)
    return [LevelJob(size, scale) for size in ((10,) if quick else (10, 15, 30, 100))]


WILD_LEVEL = Experiment(
    name="wild_level",
    title="Weights of the wild bootstrap: how often a true model is rejected",
    axis="number of sequences",
    jobs=_jobs,
    settings={
        "model": "random walk I, which made the data",
        "neighborhood": "ZS, J = ∞",
        "bootstrap": "wild, 500 draws",
        "runs": 2000,
    },
    draw=partial(curves, top=0.15),
)

# SPDX-License-Identifier: Apache-2.0
"""Power for a Markov random field: against its concentration and the number of sequences."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from benchmarks.paper.experiment import Cell, Experiment
from benchmarks.paper.figures import curves
from benchmarks.paper.testing import (
    LikelihoodRatioTest,
    MMDTest,
    Scale,
    SteinTest,
    Test,
    WildTest,
    rejections,
    wild_rejections,
)
from pyro_ksd.edits.neighborhoods import DoubleSubstitutions, zs
from pyro_ksd.kernels import ContiguousKernel
from pyro_ksd.models import LinearChainMRF, SequenceModel

_SYMBOLS = 3
_LONGEST = 20
_KERNEL = ContiguousKernel(2)
_CONCENTRATIONS = tuple(torch.linspace(0.75, 1.25, 9, dtype=torch.double).tolist())
_DOUBLE = 4  # repetitions with double edits, which are slow
_SIZES = (200, 300, 400, 500, 600, 700)


def repeating_field(concentration: float) -> LinearChainMRF:
    r"""Sequences of up to 20 symbols out of 3 with the potential :math:`\theta` for each repeated symbol.

    A term of the length, :math:`-\ell \log(e^\theta + 2)`, makes all lengths from 1 to 20 equally probable, whatever
    the concentration :math:`\theta`.
    """
    pairwise = concentration * torch.eye(_SYMBOLS, dtype=torch.double)
    length = -torch.arange(_LONGEST + 1, dtype=torch.double) * math.log(math.exp(concentration) + _SYMBOLS - 1)
    length[0] = -torch.inf
    return LinearChainMRF(pairwise, length=length)


def _wild_tests() -> dict[str, WildTest]:
    return {
        "KSD": SteinTest.of(zs(), _KERNEL),
        "MMD": MMDTest(_KERNEL),
        "KSD, MPF": SteinTest.of(zs(), _KERNEL, "mpf"),
        "KSD, Metropolis": SteinTest.of(zs(), _KERNEL, "metropolis"),
        "KSD, double edits": SteinTest.of(zs() | DoubleSubstitutions(), _KERNEL),
    }


@dataclass(frozen=True)
class WildJob:
    """Some tests by wild bootstrap at one point."""

    point: float
    concentration: float
    size: int
    scale: Scale
    repetition: int
    names: tuple[str, ...]

    @property
    def key(self) -> tuple[int, ...]:
        return round(1e4 * self.concentration), self.size, self.repetition

    def measure(self, generator: torch.Generator) -> list[Cell]:
        tests = {name: test for name, test in _wild_tests().items() if name in self.names}
        laws = {self.point: repeating_field(self.concentration)}
        return wild_rejections(repeating_field(1.0), laws, self.size, tests, self.scale, generator, self.repetition)


@dataclass(frozen=True)
class RatioJob:
    """Likelihood ratios by parametric bootstrap, for data of several concentrations and one size."""

    points: tuple[tuple[float, float], ...]
    size: int
    scale: Scale

    @property
    def key(self) -> tuple[int, ...]:
        return (self.size,)

    def measure(self, generator: torch.Generator) -> list[Cell]:
        fitted = LikelihoodRatioTest(1)

        def tests(law: SequenceModel) -> dict[str, Test]:
            return {"LR, order 1": fitted, "LR, oracle": LikelihoodRatioTest(law)}

        laws = {point: repeating_field(concentration) for point, concentration in self.points}
        return rejections(repeating_field(1.0), laws, self.size, tests, self.scale, generator)


def _concentration_jobs(quick: bool) -> list[WildJob | RatioJob]:
    points = (0.75, 1.0) if quick else _CONCENTRATIONS
    size, scale = (20, Scale(3, num_bootstrap=19)) if quick else (200, Scale(50, num_bootstrap=1000))
    repetitions = range(1 if quick else 20)
    jobs: list[WildJob | RatioJob] = [
        WildJob(point, point, size, scale, repetition, tuple(_wild_tests())[: 5 if repetition < _DOUBLE else 4])
        for repetition in repetitions
        for point in points
    ]
    own = Scale(3, 20, 19) if quick else Scale(1000, 2000)
    return [*jobs, RatioJob(tuple((point, point) for point in points), size, own)]


def _size_jobs(quick: bool) -> list[WildJob | RatioJob]:
    sizes = (20, 40) if quick else _SIZES
    scale = Scale(3, num_bootstrap=19) if quick else Scale(50, num_bootstrap=1000)
    repetitions = range(1 if quick else 20)
    jobs: list[WildJob | RatioJob] = [
        WildJob(float(size), 0.9, size, scale, repetition, ("KSD", "MMD"))
        for repetition in repetitions
        for size in sizes
    ]
    own = Scale(3, 20, 19) if quick else Scale(1000, 2000)
    return [*jobs, *(RatioJob(((float(size), 0.9),), size, own) for size in sizes)]


_COMMON = {
    "model": "3 symbols, lengths uniform on 1 to 20, concentration 1",
    "kernel": "CSK, t = 2",
    "neighborhood": "ZS, J = ∞",
    "bootstrap": "wild with random signs, 1,000 draws; LR: parametric, 100 of a pool of 2,000 draws",
    "runs": "1,000; 200 with double edits",
    "MMD samples": "as many as data",
}
MRF_CONCENTRATION = Experiment(
    name="mrf_concentration",
    title="A Markov random field with another concentration",
    axis="concentration θ of the data",
    jobs=_concentration_jobs,
    settings={**_COMMON, "sequences": 200},
    draw=curves,
)
MRF_SIZE = Experiment(
    name="mrf_size",
    title="A Markov random field and more sequences",
    axis="number of sequences",
    jobs=_size_jobs,
    settings={**_COMMON, "concentration of the data": 0.9},
    draw=curves,
)

# SPDX-License-Identifier: Apache-2.0
"""Power against a growing fault of a chain: a walk that holds, another second-order chain, longer sequences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import torch

from benchmarks.paper.experiment import Cell, Experiment
from benchmarks.paper.figures import curves
from benchmarks.paper.testing import LikelihoodRatioTest, MMDTest, Scale, SteinTest, Test, rejections
from benchmarks.scenario_models import dirichlet, held_walk, stopping, uniform
from pyro_ksd.edits.neighborhoods import Substitutions, zs
from pyro_ksd.kernels import ContiguousKernel, LengthKernel
from pyro_ksd.models import MarkovSequence, SequenceModel
from pyro_ksd.stein.operators import TailBlockOperator
from pyro_ksd.stein.views import View

_POINTS = 9


@dataclass(frozen=True)
class WalkJob:
    """A walk on a ring of 8 places that should not hold, but may do so in one of them."""

    scale: Scale
    points: tuple[float, ...]
    key: tuple[int, ...] = (0,)

    def measure(self, generator: torch.Generator) -> list[Cell]:
        kernel = ContiguousKernel(2)
        common: dict[str, Test] = {
            "KSD": SteinTest.of(Substitutions(), kernel),
            "KSD, ZS": SteinTest.of(zs(), kernel),
            "MMD": MMDTest(kernel),
            "LR, order 1": LikelihoodRatioTest(1),
        }
        laws = {hold: held_walk(8, 1, hold, mean_length=20) for hold in self.points}
        return rejections(
            held_walk(8, 1, 0.0, mean_length=20), laws, 30, lambda law: _with_oracle(common, law), self.scale, generator
        )


@dataclass(frozen=True)
class LongJob:
    """Two random chains of order 2: the data choose between them anew at every step."""

    scale: Scale
    points: tuple[float, ...]
    symbols: int
    repetition: int

    @property
    def key(self) -> tuple[int, ...]:
        return (self.repetition,)

    def measure(self, generator: torch.Generator) -> list[Cell]:
        size = self.symbols
        first, second = (dirichlet((size + 1, size + 1, size), generator) for _ in range(2))
        kernel = ContiguousKernel(3)
        common: dict[str, Test] = {
            "KSD": SteinTest.of(Substitutions(), kernel),
            "MMD": MMDTest(kernel),
            "LR, order 2": LikelihoodRatioTest(2),
        }
        cells = []
        for mean in self.points:
            model = stopping(first, mean)
            laws = {mean: stopping((first + second) / 2, mean)}
            cells += rejections(
                model, laws, 8, lambda law: _with_oracle(common, law), self.scale, generator, self.repetition
            )
        return cells


@dataclass(frozen=True)
class LengthJob:
    """A random chain of order 1 over 10 symbols with a mean length of 8, and data that are longer."""

    scale: Scale
    points: tuple[float, ...]
    repetition: int

    @property
    def key(self) -> tuple[int, ...]:
        return (self.repetition,)

    def measure(self, generator: torch.Generator) -> list[Cell]:
        moves = dirichlet((10, 10), generator)
        kernel = ContiguousKernel(2)
        common: dict[str, Test] = {
            "KSD": SteinTest.of(zs(), kernel),
            "KSD, length view": SteinTest(View("length", TailBlockOperator(), LengthKernel())),
            "MMD": MMDTest(kernel),
            "LR, order 1": LikelihoodRatioTest(1),
        }
        laws = {mean: MarkovSequence.from_transitions(uniform(10), moves, stop=1 / mean) for mean in self.points}
        model = MarkovSequence.from_transitions(uniform(10), moves, stop=1 / 8)
        return rejections(
            model, laws, 30, lambda law: _with_oracle(common, law), self.scale, generator, self.repetition
        )


def _with_oracle(common: Mapping[str, Test], law: SequenceModel) -> dict[str, Test]:
    return {**common, "LR, oracle": LikelihoodRatioTest(law)}


def _steps(first: float, last: float, quick: bool) -> tuple[float, ...]:
    return tuple(torch.linspace(first, last, 2 if quick else _POINTS, dtype=torch.double).tolist())


def _walk_jobs(quick: bool) -> list[WalkJob]:
    return [WalkJob(Scale(4, 20, 19) if quick else Scale(1000, 4000), _steps(0.0, 0.25, quick))]


def _long_jobs(quick: bool, symbols: int = 4) -> list[LongJob]:
    scale = Scale(4, 20, 19) if quick else Scale(100, 1000)
    return [LongJob(scale, _steps(2.0, 20.0, quick), symbols, repetition) for repetition in range(1 if quick else 10)]


def _length_jobs(quick: bool) -> list[LengthJob]:
    scale = Scale(4, 20, 19) if quick else Scale(100, 1000)
    return [LengthJob(scale, _steps(8.0, 20.0, quick), repetition) for repetition in range(1 if quick else 10)]


PERTURBED_WALK = Experiment(
    name="perturbed_walk",
    title="A random walk that holds in one of eight places",
    axis="probability to hold",
    jobs=_walk_jobs,
    settings={
        "model": "walk on a ring of 8 places, mean length 20",
        "sequences": 30,
        "kernel": "CSK, t = 2",
        "neighborhood": "ZS′, J = ∞; the text has ZS",
        "MMD samples": 100,
        "bootstrap": "parametric, 100 of a pool of 4,000 draws",
    },
    draw=curves,
)
LONG_SEQUENCES = Experiment(
    name="long_sequences",
    title="Few long sequences of a second-order chain",
    axis="mean length",
    jobs=_long_jobs,
    settings={
        "model": "random chains of order 2 over 4 symbols, Dirichlet(1); the data mix two of them",
        "sequences": 8,
        "kernel": "CSK, t = 3",
        "neighborhood": "ZS′, J = ∞",
        "MMD samples": 100,
        "bootstrap": "parametric, 100 of a pool of 1,000 draws",
        "repetitions": "10 pairs of random chains, 100 runs each",
    },
    draw=curves,
)
LONG_SEQUENCES_TEXT = replace(
    LONG_SEQUENCES,
    name="long_sequences_text",
    title="Few long sequences of a second-order chain, over 8 symbols as the text has it",
    jobs=partial(_long_jobs, symbols=8),
    settings=LONG_SEQUENCES.settings
    | {"model": "random chains of order 2 over 8 symbols, Dirichlet(1); the data mix two of them"},
)
LENGTH = Experiment(
    name="length",
    title="Sequences that are longer than the model says",
    axis="mean length of the data",
    jobs=_length_jobs,
    settings={
        "model": "random chains of order 1 over 10 symbols, Dirichlet(1), mean length 8",
        "sequences": 30,
        "kernel": "CSK, t = 2",
        "neighborhood": "ZS, J = ∞",
        "MMD samples": 100,
        "bootstrap": "parametric, 100 of a pool of 1,000 draws",
        "repetitions": "10 random chains, 100 runs each",
    },
    draw=curves,
)

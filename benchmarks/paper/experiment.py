# SPDX-License-Identifier: Apache-2.0
"""What an experiment is: independent jobs, each of which counts how often tests reject."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
import xarray as xr
from matplotlib.figure import Figure

LEVEL = 0.05


@dataclass(frozen=True)
class Cell:
    """How often one test rejected at one point.

    :param repetition: which of several random models, or batches of runs.
    :param point: a scenario, or the value of what is varied.
    :param test: the name of the test.
    :param runs: the number of data sets.
    :param rejected: how many of them led to a rejection at level 0.05.
    :param seconds: the time that one evaluation of the statistic took.
    """

    repetition: int
    point: str | float
    test: str
    runs: int
    rejected: int
    seconds: float


class Job(Protocol):
    """A part of an experiment that a process of its own can do; pickled on its way there."""

    @property
    def key(self) -> tuple[int, ...]:
        """Decides the seed, together with the seed and the name of the experiment: jobs with one key share data."""

    def measure(self, generator: torch.Generator) -> list[Cell]:
        """Does it; the generator makes all random numbers."""


@dataclass(frozen=True)
class Experiment:
    """An experiment of the paper.

    :param name: what the command calls it.
    :param title: what a person calls it.
    :param axis: what the points are.
    :param jobs: gives the jobs of the full run, or of the quick one for ``True``.
    :param settings: what it was done with, in words and numbers, for the result's attributes.
    :param draw: the picture of a result.
    :param published: the figures of the paper by point and test, of :attr:`published_runs` data sets each.
    """

    name: str
    title: str
    axis: str
    jobs: Callable[[bool], Sequence[Job]]
    settings: dict[str, Any]
    draw: Callable[[xr.Dataset], Figure]
    published: Mapping[tuple[str | float, str], float] = field(default_factory=dict)
    published_runs: int = 400

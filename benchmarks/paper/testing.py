# SPDX-License-Identifier: Apache-2.0
r"""The tests that the experiments compare, calibrated by parametric or by wild bootstrap.

The null data sets of a parametric bootstrap come from the model, whatever the data are. So a large *pool* is drawn,
and every run takes its own null draws from it, at random and without replacement. Under a true model the statistics of
the data and of the pool are exchangeable: every run is a test with exactly the level and the power that fresh draws
would give. Only the runs are no longer independent: the pool of :math:`P` draws adds an error of about
:math:`\sqrt{\alpha (1 - \alpha) / P}` to a rate near :math:`\alpha`, and more where the power changes fast with the
threshold (``python -m benchmarks.paper shared_null`` shows the worst case, a pool that is no larger than what a run
takes).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import process_time
from typing import Any, Protocol

import torch
from torch import Tensor

from benchmarks.paper.experiment import LEVEL, Cell
from pyro_ksd.checks.baselines.mmd import mmd_squared, pair_matrix
from pyro_ksd.common.chunk_sizes import PAIR_BYTES
from pyro_ksd.edits.neighborhoods import Neighborhood
from pyro_ksd.fit_tests.null_draws import null_statistics, rademacher
from pyro_ksd.fit_tests.statistics import p_value, u_statistic, weighted_u_statistics
from pyro_ksd.kernels import Kernel
from pyro_ksd.kernels.stein_matrices import SteinMatrix
from pyro_ksd.models import SequenceModel
from pyro_ksd.models.fitting.counting import fitted_log_likelihoods
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.views import View

_TOGETHER = 50  # data sets whose statistics are computed at once


class Test(Protocol):
    """A statistic that is large for data that the model has not made, for the parametric bootstrap."""

    def statistics(self, model: SequenceModel, data: Sequences, size: int, generator: torch.Generator) -> Tensor:
        """The statistics ``[G]`` of data sets of ``size`` sequences that follow each other."""


class WildTest(Protocol):
    """A test whose statistic is the mean of a matrix without its diagonal, for the wild bootstrap."""

    def matrix(self, model: SequenceModel, data: Sequences, generator: torch.Generator) -> SteinMatrix:
        """The matrix ``[n, n]`` of a data set."""


@dataclass(frozen=True, eq=False)
class SteinTest:
    """The kernel Stein discrepancy of one view."""

    view: View

    @staticmethod
    def of(neighborhood: Neighborhood, kernel: Kernel, balancing: str = "barker") -> SteinTest:
        return SteinTest(View("test", ZanellaOperator(neighborhood, balancing), kernel))

    def statistics(self, model: SequenceModel, data: Sequences, size: int, generator: torch.Generator) -> Tensor:
        return null_statistics(model, data, size, [self.view], PAIR_BYTES).statistic[:, 0]

    def matrix(self, model: SequenceModel, data: Sequences, generator: torch.Generator) -> SteinMatrix:
        return stein_matrices(model, data, [self.view])[0]


@dataclass(frozen=True, eq=False)
class MMDTest:
    """The maximum mean discrepancy from sequences that the model draws for each data set.

    :param num_samples: how many; for the wild bootstrap there are as many as data.
    """

    kernel: Kernel
    num_samples: int = 100

    def statistics(self, model: SequenceModel, data: Sequences, size: int, generator: torch.Generator) -> Tensor:
        sets = len(data) // size
        return mmd_squared(self.kernel, data, model.draw(sets * self.num_samples, generator), sets)

    def matrix(self, model: SequenceModel, data: Sequences, generator: torch.Generator) -> SteinMatrix:
        return pair_matrix(self.kernel, data, model.draw(len(data), generator))


@dataclass(frozen=True, eq=False)
class OneSampleMMDTest:
    """The maximum mean discrepancy from a sample of the model that serves all data sets."""

    kernel: Kernel
    sample: Sequences

    def statistics(self, model: SequenceModel, data: Sequences, size: int, generator: torch.Generator) -> Tensor:
        sets = len(data) // size
        return mmd_squared(self.kernel, data, Sequences.cat([self.sample] * sets), sets)


@dataclass(frozen=True, eq=False)
class LikelihoodRatioTest:
    """The likelihood ratio of the model and an alternative.

    :param alternative: a model, the oracle if it made the data; or the order of a Markov chain fitted to the data.
    """

    alternative: SequenceModel | int

    def statistics(self, model: SequenceModel, data: Sequences, size: int, generator: torch.Generator) -> Tensor:
        if isinstance(self.alternative, int):
            other = fitted_log_likelihoods(data, size, self.alternative)
        else:
            other = _sums(self.alternative, data, size)
        return 2 * (other - _sums(model, data, size))


def _sums(model: SequenceModel, data: Sequences, size: int) -> Tensor:
    return model.log_joint(data).view(-1, size).sum(1)


@dataclass(frozen=True)
class Scale:
    """How much is computed.

    :param runs: data sets for each rate.
    :param pool: null draws to choose from, in the parametric bootstrap.
    :param num_bootstrap: null draws of each run.
    """

    runs: int
    pool: int = 0
    num_bootstrap: int = 100


def rejections(
    model: SequenceModel,
    laws: Mapping[Any, SequenceModel],
    size: int,
    tests: Callable[[SequenceModel], Mapping[str, Test]],
    scale: Scale,
    generator: torch.Generator,
    repetition: int = 0,
) -> list[Cell]:
    """How often each test rejects the model for data of each law.

    :param laws: what the data follow, by point (a name or a number).
    :param size: the number of sequences of a data set.
    :param tests: the tests for data of a law, by name. An object that is among the tests of several laws has the same
        null draws for all.
    """
    cells = []
    null: dict[Test, Tensor] = {}
    for point, law in laws.items():
        here = tests(law)
        new = {name: test for name, test in here.items() if test not in null}
        pool, _ = statistics(new, model, model, size, scale.pool, generator)
        null |= {new[name]: found for name, found in pool.items()}
        observed, seconds = statistics(here, model, law, size, scale.runs, generator)
        for name, test in here.items():
            rejected = count_rejections(observed[name], null[test], scale.num_bootstrap, generator)
            cells.append(Cell(repetition, point, name, scale.runs, rejected, seconds[name]))
    return cells


def statistics(
    tests: Mapping[str, Test],
    model: SequenceModel,
    law: SequenceModel,
    size: int,
    num_sets: int,
    generator: torch.Generator,
) -> tuple[dict[str, Tensor], dict[str, float]]:
    """The statistics ``[num_sets]`` of each test for data sets of a law, and the seconds for one of them."""
    parts: dict[str, list[Tensor]] = {name: [] for name in tests}
    seconds = dict.fromkeys(tests, 0.0)
    for begin in range(0, num_sets if tests else 0, _TOGETHER):
        data = law.draw(min(_TOGETHER, num_sets - begin) * size, generator)
        for name, test in tests.items():
            started = process_time()
            parts[name].append(test.statistics(model, data, size, generator))
            seconds[name] += (process_time() - started) / num_sets
    return {name: torch.cat(part) for name, part in parts.items()}, seconds


def count_rejections(observed: Tensor, pool: Tensor, num_bootstrap: int, generator: torch.Generator) -> int:
    """How many of the statistics ``[runs]`` are rejected, each with null draws of its own out of the pool."""
    found = [p_value(one, pool[torch.randperm(len(pool), generator=generator)[:num_bootstrap]]) for one in observed]
    return sum(int(p <= LEVEL) for p in found)


def wild_rejections(
    model: SequenceModel,
    laws: Mapping[Any, SequenceModel],
    size: int,
    tests: Mapping[str, WildTest],
    scale: Scale,
    generator: torch.Generator,
    repetition: int = 0,
    weights: Callable[[int, int, torch.Generator], Tensor] = rademacher,
) -> list[Cell]:
    """How often each test rejects the model for data of each law, by wild bootstrap.

    :param weights: random signs, or those of the paper, :func:`~pyro_ksd.fit_tests.null_draws.multinomial`.
    """
    cells = []
    for point, law in laws.items():
        rejected = dict.fromkeys(tests, 0)
        seconds = dict.fromkeys(tests, 0.0)
        for _ in range(scale.runs):
            data = law.draw(size, generator)
            for name, test in tests.items():
                started = process_time()
                matrix = test.matrix(model, data, generator)
                observed = u_statistic(matrix)
                seconds[name] += (process_time() - started) / scale.runs
                null = weighted_u_statistics(matrix, weights(scale.num_bootstrap, size, generator))
                rejected[name] += int(p_value(observed, null) <= LEVEL)
        cells += [Cell(repetition, point, name, scale.runs, rejected[name], seconds[name]) for name in tests]
    return cells

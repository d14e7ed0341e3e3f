# SPDX-License-Identifier: Apache-2.0
r"""How often views, and all of them together, reject a model: with a pool of null draws, or by the wild bootstrap.

A test by parametric bootstrap draws its null data sets from the model, whatever the data are. So one large *pool* of
them is drawn, and every run takes its own null draws from it, at random and without replacement. Given that the model
is true, the statistics of the data and those of the pool are independent with one distribution; they are therefore
exchangeable, and so are the data and any part of the pool: every single run is a test of exactly the level that fresh
draws would have, and of the same power. Only the runs are no longer independent of each other. To a rate of rejection
near :math:`\alpha`, which has the standard error :math:`\sqrt{\alpha (1 - \alpha) / \text{runs}}`, the common pool of
:math:`P` draws adds a standard error of about :math:`\sqrt{\alpha (1 - \alpha) / P}`, that of the quantile of the pool:
0.0015 beside 0.0069 for 1,000 runs and :math:`P` = 20,000.

The wild bootstrap has no pool: each run is a whole test of its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import torch
from scipy.stats import binom
from torch import Tensor

from pyro_ksd.checks.check_setup import model_and_views
from pyro_ksd.checks.views_argument import views_beside_draws
from pyro_ksd.edits.splices import Edits
from pyro_ksd.fit_tests.absolute import goodness_of_fit
from pyro_ksd.fit_tests.combination import harmonic_p
from pyro_ksd.fit_tests.null_draws import parametric_bootstrap
from pyro_ksd.models import SequenceModel, with_sampler
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.views import View

LEVEL = 0.05
NUM_BOOTSTRAP = 500
WHOLE = "whole check"
"""The name of all views together."""

Sampler = Callable[[int, torch.Generator], Sequences]
"""Takes the number of sequences and the generator of all random numbers."""

MakeViews = Callable[[SequenceModel, Sequences], Sequence[View]]
"""Makes the views of a check from the model and the data."""


def default_check(model: SequenceModel, data: Sequences, balancing: str | None = None) -> Sequence[View]:
    """The views that ``ksd_check`` takes for a model and data, without its warnings.

    For the wild bootstrap, models that can be sampled must tell the distribution of the length, or be
    :class:`WithoutSampler`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        setup = model_and_views(model, data, None, None, balancing)
    return views_beside_draws(setup.views, None, setup.drawn)


@dataclass(frozen=True, eq=False)
class WithoutSampler(SequenceModel):
    """A model that cannot be sampled, as unnormalized ones."""

    model: SequenceModel

    @property
    def alphabet_size(self) -> int:
        return self.model.alphabet_size

    def log_joint(self, sequences: Sequences) -> Tensor:
        return self.model.log_joint(sequences)

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        return self.model.log_ratio(sequences, edits)


def data_set_statistics(
    model: SequenceModel,
    draw: Sampler,
    size: int,
    views: Sequence[View],
    num_data_sets: int,
    generator: torch.Generator,
) -> Tensor:
    """The statistics of a model for data sets of ``size`` sequences that a sampler makes; ``[num_data_sets, V]``."""
    return parametric_bootstrap(with_sampler(model, draw), size, views, num_data_sets, generator).statistic


def weights_of(views: Sequence[View]) -> Tensor:
    """How much the views count, ``[V]``."""
    return torch.tensor([view.weight for view in views], dtype=torch.double)


def p_values(observed: Tensor, pool: Tensor, weights: Tensor, generator: torch.Generator) -> Tensor:
    """The p-values of the views and the overall one, ``[V + 1]``, with null draws out of the pool."""
    chosen = torch.randperm(len(pool), generator=generator)[:NUM_BOOTSTRAP]
    each, overall = harmonic_p(observed, pool[chosen], weights)
    return torch.cat([each, overall[None]])


def rejection_rates(observed: Tensor, pool: Tensor, weights: Tensor, generator: torch.Generator) -> list[float]:
    """How often each view, and then all of them together, reject.

    :param observed: ``[runs, V]``
    :param pool: ``[P, V]``
    :param weights: ``[V]``, how much the views count.
    """
    found = torch.stack([p_values(row, pool, weights, generator) for row in observed])
    rates: list[float] = (found <= LEVEL).double().mean(0).tolist()
    return rates


@dataclass(frozen=True)
class WildRates:
    """What became of several checks by wild bootstrap.

    :ivar rejected: the share of all runs in which each view, and the whole check, rejects, by name.
    :ivar left_out: the share of all runs in which the check left out the view, by name.
    :ivar refused: the share of all runs that ended with an error.
    :ivar reason: the first of these errors.
    """

    rejected: dict[str, float]
    left_out: dict[str, float]
    refused: float
    reason: str


def wild_rates(
    model: SequenceModel,
    draw: Sampler,
    size: int,
    make_views: MakeViews,
    runs: int,
    num_bootstrap: int,
    generator: torch.Generator,
) -> WildRates:
    """How often a model is rejected, by the wild bootstrap, for data sets that a sampler makes.

    The check cannot sample the model. A run that is refused, and a view that is left out, do not reject.
    """
    model = WithoutSampler(model)
    names = [view.name for view in make_views(model, draw(size, generator))]
    rejected = dict.fromkeys([*names, WHOLE], 0)
    left_out = dict.fromkeys(names, 0)
    reasons = []
    for _ in range(runs):
        data = draw(size, generator)
        seed = int(torch.randint(2**31, (), generator=generator))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # about views that are left out, which are counted
                views = make_views(model, data)
                found = goodness_of_fit(model, data, views, bootstrap="wild", num_bootstrap=num_bootstrap, seed=seed)
        except ValueError as error:
            reasons.append(str(error))
            continue
        p_value = dict(zip([view.name for view in found.views], found.p_value.tolist(), strict=True))
        for name in names:
            left_out[name] += name not in p_value
            rejected[name] += p_value.get(name, 1.0) <= LEVEL
        rejected[WHOLE] += found.p_value_overall <= LEVEL
    return WildRates(
        rejected={name: count / runs for name, count in rejected.items()},
        left_out={name: count / runs for name, count in left_out.items()},
        refused=len(reasons) / runs,
        reason=reasons[0] if reasons else "",
    )


def band(runs: int) -> tuple[float, float]:
    """The ends of the 99.9 % binomial band of a rate of rejection at the level."""
    lowest, highest = binom.interval(0.999, runs, LEVEL)
    return lowest / runs, highest / runs


def seeded(seed: int, *key: str | int) -> torch.Generator:
    """The generator of one job, whatever other jobs there are."""
    words = [crc32(str(part).encode()) for part in key]
    state = np.random.SeedSequence([seed, *words]).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state[0] >> np.uint64(1)))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *rows])

# SPDX-License-Identifier: Apache-2.0
r"""Checks of sequences that a posterior has not seen: split predictive checks.

Let :math:`\pi` be the posterior given some sequences, and :math:`y` others. With the statistic :math:`T(y, \theta)` of
:math:`y` under the model with the parameters :math:`\theta`, a check compares

.. math:: \bar T(y) = \frac{1}{E} \sum_{e=1}^{E} T(y, \varphi_e), \qquad \varphi_e \sim \pi,

with that of replicated data :math:`y^{rep}_b` of the same size, each drawn from the model with other parameters
:math:`\theta_b \sim \pi`, :math:`b = 1, \dots, B`. For :math:`\bar T`, the held-out data are one more draw from the
posterior predictive distribution: the parameters that made them are unknown in the same way as :math:`\theta_b` is. So
if the prior and the model are right, :math:`\bar T(y), \bar T(y^{rep}_1), \dots, \bar T(y^{rep}_B)` are exchangeable
given the :math:`\varphi_e`, and the rank of the first one gives a p-value with the exact level, however few sequences
and however wide the posterior. Given fixed true parameters, it has the level in the limit of large data. Li and Huggins
(2022), *Calibrated model criticism using split predictive checks*.

It matters that the replicated data are compared under parameters that have not made them. If
:math:`T(y, \theta_b)` were compared with :math:`T(y^{rep}_b, \theta_b)`, as a posterior predictive check does, every
replicated data set would be seen under the very parameters that made it, the held-out data never: the p-value would be
too small, the more so the wider the posterior is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pyro_ksd.common.block_runs import DrawBlock, draw_blocks, run_blocks
from pyro_ksd.common.checkpoints import Checkpoint, digest
from pyro_ksd.common.chunk_sizes import PAIR_BYTES
from pyro_ksd.common.draw_counts import num_averaged
from pyro_ksd.common.lazy_values import computed_once
from pyro_ksd.common.progress import progress_bar
from pyro_ksd.fit_tests.localization import Localization, localize_under_each, mean_of_sums
from pyro_ksd.fit_tests.null_draws import NullDraws, null_statistics_in_parts, sets_at_once
from pyro_ksd.fit_tests.replicates import check_replicates_differ
from pyro_ksd.fit_tests.statistics import check_sample_size, u_statistics_under_each
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.part_survey import InSession
from pyro_ksd.models.session_state import Session
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.operators import Operator
from pyro_ksd.stein.signs import Signs
from pyro_ksd.stein.summation import sum_views
from pyro_ksd.stein.views import View
from pyro_ksd.stein.visits import Visits

if TYPE_CHECKING:
    from pyro_ksd.models.posterior.posterior_models import PosteriorModels


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What held-out data give, and what replicated data of their size give, by ``V`` views.

    :ivar statistic: double ``[V]``, the statistics of the held-out data, means over ``E`` posterior draws.
    :ivar null: the same of the ``B`` replicated data sets, ``[B, V]``.
    :ivar rates: for each operator, the sums of all weights under each of the ``E`` draws, ``[E]``.
    :ivar places: where the misfit of each view sits, a mean over these draws; nothing unless it was looked for.
    """

    statistic: Tensor
    null: NullDraws
    rates: Mapping[Operator, Tensor]
    places: list[Localization]


def compare_held_out(
    models: PosteriorModels,
    sequences: Sequences,
    views: Sequence[View],
    generator: torch.Generator,
    *,
    checkpoint: Checkpoint | None = None,
    part: str = "held-out data",
    localize: bool = True,
    max_bytes: int = PAIR_BYTES,
    progress: bool = False,
) -> HeldOut:
    """Compares held-out sequences with replicated ones.

    :param models: those of posterior draws, given other sequences.
    :param checkpoint: where finished draws are kept, so that the same call can go on from there.
    :param part: of the work, for the names in the checkpoint and in the progress bar, such as ``"fold 1"``.
    :param localize: whether to find where the misfit sits, which p-values do not need.
    """
    size = len(sequences)
    check_sample_size(size)
    if len(models) < 2:
        raise ValueError(
            f"posterior: expected at least 2 draws, to average over and to replicate data from, found {len(models)}"
        )
    averaged, replicating = _shared_out(models)
    averaged.check_possible(sequences)
    check_replicates_differ(replicating, sequences)
    visits = Visits(averaged.batch, sequences, views)
    summed = sum_views(visits, Signs(seed=0, num_draws=0), max_bytes)
    realized = torch.stack([u_statistics_under_each(states) for states in summed.of_views], 1)
    if checkpoint is not None:
        checkpoint.begin({"views": ", ".join(view.name for view in views), "model or views": digest(realized)}, part)
    task = _ReplicatedStatistics(averaged, replicating, sequences, views, max_bytes)
    replicated = _replicated(task, generator, checkpoint, part, progress)
    places = []
    if localize:
        under_each = localize_under_each(visits, summed.states, replicated["extreme"].unbind(1), max_bytes)
        places = [mean_of_sums([of_view]) for of_view in under_each]
    return HeldOut(
        statistic=realized.mean(0),
        null=NullDraws(replicated["statistic"], replicated["extreme"].mean(1)),
        rates=summed.rates,
        places=places,
    )


def _shared_out(models: PosteriorModels) -> tuple[PosteriorModels, PosteriorModels]:
    """The draws to average over, at even distances, and those to replicate data from."""
    chosen = torch.linspace(0, len(models) - 1, num_averaged(len(models))).round().long()
    others = torch.ones(len(models), dtype=torch.bool)
    others[chosen] = False
    return models.of_draws(chosen), models.of_draws(others.nonzero()[:, 0])


def _replicated(
    task: _ReplicatedStatistics,
    generator: torch.Generator,
    checkpoint: Checkpoint | None,
    part: str,
    progress: bool,
) -> dict[str, Tensor]:
    """The mean statistics of replicated data, ``[B, V]``, and the largest ``|z|`` under each draw, ``[B, E, V]``."""
    num_draws = len(task.replicating)
    with progress_bar(desc=part, unit="draw", total=num_draws, show=progress) as bar:
        found = list(
            run_blocks(
                InSession(task, Session.now()),
                draw_blocks(num_draws, sets_at_once(len(task.sequences)), generator),
                name="model",
                kept_as=f"{part}, replicates",
                what="replicated data sets",
                bar=bar,
                checkpoint=checkpoint,
            )
        )
    return {name: torch.cat([each[name] for each in found]) for name in found[0]}


@dataclass(frozen=True, eq=False)
class _ReplicatedStatistics:
    """The statistics of data sets that a block of the replicating models draws, under those to average over."""

    averaged: PosteriorModels
    replicating: PosteriorModels
    sequences: Sequences
    views: Sequence[View]
    max_bytes: int

    @computed_once
    def each_model(self) -> list[SequenceModel]:
        return list(self.averaged)

    def __call__(self, block: DrawBlock) -> dict[str, Tensor]:
        size = len(self.sequences)
        some = self.replicating.of_draws(slice(block.begin, block.end))
        replicates = some.draw_like(self.sequences, block.generator())
        null = [
            null_statistics_in_parts(model, replicates, size, self.views, self.max_bytes) for model in self.each_model
        ]
        return {
            "statistic": torch.stack([each.statistic for each in null]).mean(0),
            "extreme": torch.stack([each.extreme for each in null], 1),
        }

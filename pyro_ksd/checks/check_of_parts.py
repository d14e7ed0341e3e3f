# SPDX-License-Identifier: Apache-2.0
"""A check of partitioned data, of which only a few parts are in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import torch

from pyro_ksd.checks.check_setup import set_up_check
from pyro_ksd.checks.end_argument import chosen_ends
from pyro_ksd.checks.views_argument import kinds_of_edits, warn_of_constant_features
from pyro_ksd.common.checkpoints import Checkpoint
from pyro_ksd.common.user_warnings import warn_user
from pyro_ksd.edits.neighborhoods import Neighborhood
from pyro_ksd.edits.weighted_edits import even_rows
from pyro_ksd.fit_tests.localization import Localization
from pyro_ksd.fit_tests.misfit_extent import extent
from pyro_ksd.fit_tests.partitioned import localize_parts, partitioned_goodness_of_fit
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.part_survey import Survey, surveyed
from pyro_ksd.results.groups import partitioned_datatree
from pyro_ksd.results.kept_data import KeptData, kept_rows
from pyro_ksd.results.misfit_groups import in_rows
from pyro_ksd.results.result_tree import ResultTree
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.partitions import PartitionedSequences
from pyro_ksd.stein.balancing import Balancing
from pyro_ksd.stein.views import View

SOME_ROWS = 10_000
"""Of so many sequences, at even distances, the check is set up: its views, and whether lengths are given. The model is
compared with its draws and with edits of these."""


def check_for_parts(**others: Any) -> None:
    """Checks that nothing is asked for that needs all data in memory.

    :param others: the arguments of a check by their names, ``None`` if they are left out.
    """
    passed = ", ".join(f"{name}=" for name, value in others.items() if value is not None)
    if passed:
        raise ValueError(
            f"data: expected data in memory for {passed}, found PartitionedSequences; leave out {passed}, or pass "
            "data.load(), or some of the data: data.take(rows)"
        )


def partitioned_check(
    ready_for: Callable[[Sequences, tuple[int, ...]], SequenceModel],
    data: PartitionedSequences,
    *,
    end: Any,
    views: str | View | Sequence[str | View] | None,
    neighborhood: Neighborhood | None,
    balancing: str | Balancing | None,
    num_bootstrap: int,
    level: float,
    tolerance: float | None,
    checkpoint: Checkpoint | None,
    seed: int,
    progress: bool,
) -> ResultTree:
    """What :func:`~pyro_ksd.ksd_check` does for partitioned data.

    :param ready_for: makes the model for some of the data and the codes of the symbols with which sequences end.
    """
    data = data.counted(progress=progress)
    size = len(data)
    some = data.take(even_rows(size, min(size, SOME_ROWS))).narrowed()
    ends = chosen_ends(end, neighborhood, some)
    setup = set_up_check(ready_for(some, ends), some, ends, views, neighborhood, balancing, draws=True)
    model = setup.model
    survey = surveyed(model, data, progress=progress)
    if survey.message:
        if survey.num_possible < 2:
            raise ValueError(f"{survey.message}, and too few others are left to check: widen the model")
        warn_user(f"{survey.message}; the check goes on with the others")
    settings: dict[str, str | int | float] = {"seed": seed, "level": level, "edits": kinds_of_edits(setup.views)}
    if model.ratio_error is not None:
        settings["ratio_error"] = model.ratio_error
    result = partitioned_goodness_of_fit(
        model,
        survey,
        setup.views,
        some[setup.impossible.others],
        num_bootstrap=num_bootstrap,
        seed=seed,
        checkpoint=checkpoint,
        progress=progress,
    )
    warn_of_constant_features(result.views, torch.cat([result.statistic[None], result.null.statistic]))
    started = perf_counter()
    numbered, totals = localize_parts(result, survey, level=level, progress=progress)
    size_of_misfit = extent(
        result,
        numbered,
        totals,
        setup.drawn,
        level=level,
        tolerance=tolerance,
        num_impossible=len(survey.impossible),
        seed=seed,
    )
    settings["seconds_localization"] = perf_counter() - started
    places = in_rows(numbered, survey.rows)
    return partitioned_datatree(result, places, _kept(survey, places), size_of_misfit, settings=settings)


def _kept(survey: Survey, places: Sequence[Localization]) -> KeptData:
    """The sequences that a result refers to."""
    sites = dict(zip(survey.impossible.tolist(), survey.sites, strict=False))
    rows = kept_rows([each for one in places for each in (one.shown.sequence, one.edits.sequence)], list(sites))
    return KeptData(
        sequences=survey.data.take(rows).narrowed(),
        rows=rows,
        num_sequences=len(survey.data),
        num_impossible=len(survey.impossible),
        impossible_sites=sites,
        lengths=survey.lengths,
        is_partial=True,
    )

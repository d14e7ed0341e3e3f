# SPDX-License-Identifier: Apache-2.0
"""A check of partitioned data, of which only a few parts are in memory at a time."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import torch

from pyro_ksd.checks.check_request import CheckRequest
from pyro_ksd.checks.check_setup import set_up_check
from pyro_ksd.checks.end_argument import chosen_ends
from pyro_ksd.checks.fit_options import passed
from pyro_ksd.checks.model_argument import ModelArgument
from pyro_ksd.checks.preparation import report_impossible, settings_of
from pyro_ksd.checks.views_argument import warn_of_constant_features
from pyro_ksd.edits.weighted_edits import even_rows
from pyro_ksd.fit_tests.localization import Localization
from pyro_ksd.fit_tests.misfit_extent import extent
from pyro_ksd.fit_tests.partitioned import localize_parts, partitioned_goodness_of_fit
from pyro_ksd.models.part_survey import Survey, surveyed
from pyro_ksd.results.groups import partitioned_datatree
from pyro_ksd.results.kept_data import KeptData, kept_rows
from pyro_ksd.results.misfit_groups import in_rows
from pyro_ksd.results.result_tree import ResultTree
from pyro_ksd.sequences.partitions import PartitionedSequences

SOME_ROWS = 10_000
"""Of so many sequences, at even distances, the check is set up: its views, and whether lengths are given. The model is
compared with its draws and with edits of these."""


def check_for_parts(request: CheckRequest, **others: Any) -> None:
    """Checks that nothing is asked for that needs all data in memory.

    :param others: the arguments of a check that the request does not have, by their names.
    """
    names = passed(
        **others,
        bootstrap="parametric" if request.bootstrap == "parametric" else None,
        replicates=request.replicates,
        attribution=request.attribution,
        gram=request.gram,
        by=request.by,
        localize=None if request.localize else "False",
    )
    if names:
        raise ValueError(
            f"data: expected data in memory for {names}, found PartitionedSequences; leave out {names}, or pass "
            "data.load(), or some of the data: data.take(rows)"
        )


def partitioned_check(
    argument: ModelArgument, data: PartitionedSequences, end: Any, request: CheckRequest
) -> ResultTree:
    """What :func:`~pyro_ksd.ksd_check` does for partitioned data.

    :param argument: what the user passes as a model.
    :param end: the symbol with which every sequence ends, as the user passes it.
    """
    progress = request.progress
    data = data.counted(progress=progress)
    size = len(data)
    some = data.take(even_rows(size, min(size, SOME_ROWS))).narrowed()
    ends = chosen_ends(end, request.neighborhood, some)
    ready = argument.for_data(some, ends)
    setup = set_up_check(ready, some, ends, request.views, request.neighborhood, request.balancing, draws=True)
    model = setup.model
    survey = surveyed(model, data, progress=progress)
    if survey.message:
        report_impossible(survey.message, survey.num_possible)
    settings = settings_of(setup, request)
    result = partitioned_goodness_of_fit(
        model,
        survey,
        setup.views,
        some[setup.impossible.others],
        num_bootstrap=request.num_bootstrap,
        seed=request.seed,
        checkpoint=request.checkpoint,
        progress=progress,
    )
    warn_of_constant_features(result.views, torch.cat([result.statistic[None], result.null.statistic]))
    started = perf_counter()
    numbered, totals = localize_parts(result, survey, level=request.level, progress=progress)
    size_of_misfit = extent(
        result,
        numbered,
        totals,
        setup.drawn,
        level=request.level,
        tolerance=request.tolerance,
        num_impossible=len(survey.impossible),
        seed=request.seed,
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

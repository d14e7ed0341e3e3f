# SPDX-License-Identifier: Apache-2.0
"""A check of a model whose parameters are given, or were fitted to the same data."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import torch

from pyro_ksd.checks.check_request import CheckRequest
from pyro_ksd.checks.model_argument import ModelArgument
from pyro_ksd.checks.preparation import PreparedCheck, prepared_check, stand_in_used
from pyro_ksd.checks.replication import replicated_data
from pyro_ksd.checks.views_argument import (
    is_read_off_data,
    keep_lengths,
    views_beside_draws,
    warn_of_constant_features,
)
from pyro_ksd.common.progress import one_bar
from pyro_ksd.fit_tests.absolute import Bootstrap, GoodnessOfFit, bootstrap_kind, goodness_of_fit
from pyro_ksd.fit_tests.localization import localize
from pyro_ksd.fit_tests.misfit_extent import extent
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.results.groups import p_value_datatree, to_datatree
from pyro_ksd.results.result_tree import ResultTree
from pyro_ksd.sequences.container import Sequences

Refit = Callable[[Any, Sequences], Any]
"""Takes the user's model and sequences; gives the fitted model, or values of its parameters by name."""


def parameter_check(
    model: ModelArgument, sequences: Sequences, ends: tuple[int, ...], request: CheckRequest, refit: Refit | None
) -> ResultTree:
    """What :func:`~pyro_ksd.ksd_check` does without a posterior.

    :param ends: the codes of the symbols with one of which every sequence ends.
    :param refit: how the parameters were fitted to the data; ``None`` if they are given.
    """
    fit = None
    if refit is not None:
        if model.parameters is not None:
            raise ValueError("refit: expected no parameters= beside it, which it finds itself; leave them out")

        def fit(data: Sequences) -> SequenceModel:
            return model.fitted_to(refit, data, ends)

    ready = model.for_data(sequences, ends) if fit is None else fit(sequences)
    prepared = prepared_check(ready, sequences, ends, request)
    settings = prepared.settings
    setup = prepared.setup
    bootstrap = _bootstrap(prepared, request.bootstrap, refitted=refit is not None)
    views = setup.views
    kind = bootstrap_kind(setup.model, prepared.possible, views, bootstrap, refitted=refit is not None)
    if kind == "parametric":
        views = views_beside_draws(views, request.views, setup.drawn)
    with one_bar(show=request.progress):
        result = goodness_of_fit(
            setup.model,
            prepared.possible,
            views,
            bootstrap=bootstrap,
            refit=fit,
            log_joint=setup.impossible.log_joint[setup.impossible.others],
            num_bootstrap=request.num_bootstrap,
            verified_stand_in=request.allows_stand_in,
            checkpoint=request.checkpoint,
            seed=request.seed,
            progress=request.progress,
        )
        settings |= stand_in_used(result.verified_form)
        warn_of_constant_features(result.views, torch.cat([result.statistic[None], result.null.statistic]))
        if not request.localize:
            return p_value_datatree(result, sequences, prepared.impossible_sites, settings=settings)
        return _localized_datatree(result, prepared, request)


def _bootstrap(prepared: PreparedCheck, wanted: Bootstrap, *, refitted: bool) -> Bootstrap:
    """The kind of bootstrap that the data allow; ``"auto"`` if nothing speaks against drawing data sets."""
    if wanted != "auto":
        return wanted
    if is_read_off_data(prepared.sequences):
        return "wild"  # new data sets would have vectors that the alphabet lacks
    if not refitted and keep_lengths(prepared.setup.views) and _lengths_differ(prepared):
        return "wild"  # the lengths are given, but those of new data sets would be the model's
    return "auto"


def _lengths_differ(prepared: PreparedCheck) -> bool:
    """Whether there are draws, and not all of them and of the data have one length."""
    drawn = prepared.setup.drawn
    return drawn is not None and len(torch.cat([drawn.lengths, prepared.sequences.lengths]).unique()) > 1


def _localized_datatree(result: GoodnessOfFit, prepared: PreparedCheck, request: CheckRequest) -> ResultTree:
    """The groups of a test, with where the misfit is and how large it is."""
    setup = prepared.setup
    started = perf_counter()
    places = localize(result, attribution=request.attribution, progress=request.progress)
    size = extent(
        result,
        places,
        prepared.possible,
        setup.drawn,
        level=request.level,
        tolerance=request.tolerance,
        num_impossible=len(setup.impossible),
        seed=request.seed,
    )
    settings = prepared.settings | {"seconds_localization": perf_counter() - started}
    replicated = None
    if setup.drawn is not None:
        many = result.kind != "wild"
        replicated = replicated_data(setup.model, prepared.possible, request.seed, many=many, tokens=request.replicates)
    return to_datatree(
        result,
        places,
        prepared.sequences,
        prepared.impossible_sites,
        size,
        settings=settings,
        gram=request.gram,
        replicates=replicated,
    )

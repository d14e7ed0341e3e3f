# SPDX-License-Identifier: Apache-2.0
"""A check after an inference: of data that the posterior has seen, has not seen, or of each fold in turn."""

from __future__ import annotations

from time import perf_counter
from typing import Any, Literal

import torch

from pyro_ksd.checks.check_request import CheckRequest
from pyro_ksd.checks.fit_options import passed
from pyro_ksd.checks.held_out_check import FoldPosteriors, check_put_aside
from pyro_ksd.checks.model_argument import ModelArgument
from pyro_ksd.checks.posterior_argument import draws_of, posterior_group
from pyro_ksd.checks.preparation import PreparedCheck, prepared_check, stand_in_used
from pyro_ksd.checks.views_argument import warn_of_constant_features
from pyro_ksd.common.draw_counts import draws_in_all
from pyro_ksd.common.option_checks import check_flag, check_function, check_number
from pyro_ksd.common.progress import one_bar
from pyro_ksd.fit_tests.held_out_decision import SplitPredictive
from pyro_ksd.fit_tests.predictive import posterior_predictive
from pyro_ksd.models.fitting.user_fits import Fit
from pyro_ksd.models.posterior.posterior_models import PosteriorModels
from pyro_ksd.results.held_out_groups import held_out_datatree
from pyro_ksd.results.predictive_groups import predictive_datatree
from pyro_ksd.results.result_tree import ResultTree
from pyro_ksd.sequences.container import Sequences

_FOLDS = 5


def check_inference(posterior: Any, held_out: object, fit: Any, folds: Any) -> None:
    """Checks that it is clear which posterior is meant, before anything is computed."""
    check_flag("held_out", held_out)
    if held_out and posterior is None:
        raise ValueError("held_out: expected posterior= beside it, the draws from the other data, found none")
    if posterior is not None and fit is not None:
        raise ValueError("fit: expected no posterior= beside it, as it finds one for each fold; leave out one of them")
    if fit is not None:
        check_function("fit", fit, "program", "sequences")
    if folds is not None:
        if fit is None:
            raise ValueError("folds: expected fit= beside it, which finds the posterior of each fold, found none")
        check_number("folds", folds, least=3)


def check_alone(name: str, model: ModelArgument, request: CheckRequest, refit: Any) -> None:
    """Checks that nothing is passed beside ``posterior=`` or ``fit=`` that has no meaning there."""
    others = passed(
        parameters=model.parameters,
        sampler=model.sampler,
        refit=refit,
        attribution=request.attribution,
        gram=request.gram,
        bootstrap=request.bootstrap,
        tolerance=request.tolerance,
    )
    if others:
        raise ValueError(f"{name}: expected it alone, found {others} beside it; leave out {others}")


def posterior_check(
    model: ModelArgument, sequences: Sequences, ends: tuple[int, ...], request: CheckRequest, posterior: Any
) -> ResultTree:
    """The posterior predictive check of the data from which the posterior was found.

    :param ends: the codes of the symbols with one of which every sequence ends.
    :param posterior: the draws, as the user passes them.
    """
    order: int | Literal["auto"] | None = "auto" if request.allows_stand_in else model.order
    options = _options(model, ends) | {"order": order}
    draws = PosteriorModels(model.model, sequences, draws_of(posterior), num_draws=request.num_bootstrap, **options)
    prepared = prepared_check(draws[0], sequences, ends, request, several=True)
    with one_bar(show=request.progress):
        found = posterior_predictive(
            draws,
            prepared.possible,
            prepared.setup.views,
            tokens=request.replicates,
            checkpoint=request.checkpoint,
            seed=request.seed,
            progress=request.progress,
        )
    warn_of_constant_features(found.views, torch.cat([found.realized, found.replicated.statistic]))
    settings = prepared.settings | stand_in_used(found.verified_form)
    group = posterior_group(posterior, draws)
    return predictive_datatree(found, sequences, prepared.impossible_sites, settings=settings, posterior=group)


def split_check(
    model: ModelArgument, sequences: Sequences, ends: tuple[int, ...], request: CheckRequest, posterior: Any
) -> ResultTree:
    """The split predictive check of data that the posterior has not seen; parameters as for :func:`posterior_check`."""
    num_draws = draws_in_all(request.num_bootstrap)
    draws = PosteriorModels(model.model, sequences, draws_of(posterior), num_draws=num_draws, **_options(model, ends))
    prepared = prepared_check(draws[0], sequences, ends, request, several=True)
    started = perf_counter()
    found = check_put_aside(
        draws,
        prepared.possible,
        prepared.setup.views,
        checkpoint=request.checkpoint,
        seed=request.seed,
        progress=request.progress,
    )
    return _held_out_datatree(found, prepared, started)


def divided_check(
    model: ModelArgument,
    sequences: Sequences,
    ends: tuple[int, ...],
    request: CheckRequest,
    fit: Fit,
    folds: int | None,
) -> ResultTree:
    """The divided predictive check: each fold of the data with the posterior of the others.

    :param fit: finds a posterior.
    :param folds: the number of folds.
    """
    posteriors = FoldPosteriors(
        model.model,
        sequences,
        fit,
        _FOLDS if folds is None else folds,
        num_replicates=request.num_bootstrap,
        options=_options(model, ends),
        checkpoint=request.checkpoint,
        seed=request.seed,
    )
    prepared = prepared_check(posteriors[0][0], sequences, ends, request, several=True)
    started = perf_counter()
    found = posteriors.check(prepared.possible_rows, prepared.setup.views, progress=request.progress)
    return _held_out_datatree(found, prepared, started)


def _options(model: ModelArgument, ends: tuple[int, ...]) -> dict[str, Any]:
    """How the models of posterior draws read the program."""
    return {"ends": ends, "marginal": model.marginal, "order": model.order}


def _held_out_datatree(found: SplitPredictive, prepared: PreparedCheck, started: float) -> ResultTree:
    """The groups of a check that began at a time of the clock."""
    warn_of_constant_features(found.views, torch.cat([found.statistic[None], found.null.statistic]))
    settings = prepared.settings | {"seconds_posterior": perf_counter() - started}
    return held_out_datatree(found, prepared.sequences, prepared.impossible_sites, settings=settings)

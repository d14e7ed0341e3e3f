# SPDX-License-Identifier: Apache-2.0
"""The one call: does the model fit the data?"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any, Literal

import torch
from torch import Tensor

from pyro_ksd.checks.check_of_parts import check_for_parts, partitioned_check
from pyro_ksd.checks.check_setup import set_up_check
from pyro_ksd.checks.data_argument import as_sequences
from pyro_ksd.checks.end_argument import chosen_ends
from pyro_ksd.checks.fit_options import check_options
from pyro_ksd.checks.held_out_check import FoldPosteriors, check_put_aside
from pyro_ksd.checks.posterior_argument import draws_of, posterior_group
from pyro_ksd.checks.replication import replicated_data
from pyro_ksd.checks.views_argument import (
    is_read_off_data,
    keep_lengths,
    kinds_of_edits,
    warn_of_constant_features,
)
from pyro_ksd.common.checkpoints import Checkpoint
from pyro_ksd.common.draw_counts import draws_in_all
from pyro_ksd.common.option_checks import check_flag, check_function, check_number, check_share
from pyro_ksd.common.progress import one_bar
from pyro_ksd.common.random_numbers import Seed
from pyro_ksd.common.user_warnings import warn_user
from pyro_ksd.edits.neighborhoods import Neighborhood
from pyro_ksd.fit_tests.absolute import Bootstrap, goodness_of_fit
from pyro_ksd.fit_tests.localization import localize as localized
from pyro_ksd.fit_tests.misfit_extent import extent
from pyro_ksd.fit_tests.predictive import posterior_predictive
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.duck_typing import adapted
from pyro_ksd.models.fitting.refits import refitted
from pyro_ksd.models.fitting.user_fits import Fit
from pyro_ksd.models.impossible_sequences import ImpossibleSequences
from pyro_ksd.models.posterior.posterior_models import PosteriorModels
from pyro_ksd.models.programs.marginal import Marginal
from pyro_ksd.models.wrappers.sampler import Sampler
from pyro_ksd.models.wrappers.verified_tables import SHARE
from pyro_ksd.results.groups import p_value_datatree, to_datatree
from pyro_ksd.results.held_out_groups import held_out_datatree
from pyro_ksd.results.predictive_groups import predictive_datatree
from pyro_ksd.results.result_tree import ResultTree
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.partitions import PartitionedSequences
from pyro_ksd.stein.balancing import Balancing
from pyro_ksd.stein.views import View


def ksd_check(
    model: Any,
    data: Any,
    *,
    views: str | View | Sequence[str | View] | None = None,
    neighborhood: Neighborhood | None = None,
    balancing: str | Balancing | None = None,
    parameters: Mapping[str, Tensor] | None = None,
    order: int | Literal["auto"] | None = "auto",
    end: Any = None,
    marginal: Marginal | None = None,
    sampler: Sampler | None = None,
    posterior: Any = None,
    held_out: bool = False,
    fit: Fit | None = None,
    folds: int | None = None,
    refit: Callable[[Any, Sequences], Any] | None = None,
    bootstrap: Bootstrap = "auto",
    num_bootstrap: int = 500,
    level: float = 0.05,
    tolerance: float | None = None,
    localize: bool = True,
    attribution: bool = False,
    gram: bool = False,
    replicates: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    seed: Seed = 0,
    progress: bool = True,
) -> ResultTree:
    """Tests whether the data come from the model, and shows where the model fails if they do not.

    If some sequences have probability 0 under the model, the overall p-value is 0. A warning says so, and the check
    also tests the other sequences.

    :param model: a Pyro program ``model(sequences, lengths)``, ``model(x)`` or ``model()``, a distribution, or an
        object with ``log_joint`` and ``log_ratio``; see :func:`~pyro_ksd.models.as_model`.
    :param data: :class:`~pyro_ksd.sequences.Sequences`, or what :meth:`~pyro_ksd.sequences.Sequences.of` takes. Of
        :class:`~pyro_ksd.sequences.PartitionedSequences` only a few parts are in memory at a time; they may be checked
        on several machines.
    :param views: the aspects to compare: names of :func:`~pyro_ksd.stein.default_views` and
        :func:`~pyro_ksd.stein.further_views`, kinds with a number such as ``"content-4"``, ``"position-3"``,
        ``"skip-5"``, ``"start-2"`` or ``"repeats-6"``, or views of your own. The default is all default views.
        Change it if you care about one aspect only (more power for it), or about one that no default view sees.
    :param neighborhood: the edits of the default views. The default is all substitutions, insertions and deletions. It
        is only substitutions for a program that does not define lengths, and the model's own edits for a model that
        has some, such as :class:`~pyro_ksd.models.AutoregressiveModel`. Fewer edits take less time and have less power.
        With :class:`Substitutions() <pyro_ksd.edits.Substitutions>` the model is checked given the lengths: there is no
        view ``length``.
    :param balancing: the balancing function of the default views, ``"barker"`` by default. ``"mpf"`` has more power
        for small faults in small data, but its weights are unbounded.
    :param parameters: values of a program's global sample sites and ``pyro.param`` sites, by name.
    :param order: the order of a program whose steps depend only on the ``order`` symbols before them. This makes the
        check of long sequences much faster. See :class:`~pyro_ksd.models.TabulatedModel`. ``"auto"`` looks for such an
        order: tables then give the log-ratios of data sets drawn from the model, as long as they agree with it, but
        never those of the data. ``None`` uses no tables.
    :param end: the symbol with which every sequence ends, or a list of such symbols, for a model that draws
        symbols until it draws one of them. The symbol is part of the data, and edits happen before it.
    :param marginal: how to integrate over continuous latents that each sequence has, such as the code of a VAE or a
        random effect: ``Marginal()``, or ``Marginal(guide)``; see :class:`~pyro_ksd.models.Marginal`.
    :param sampler: a function that draws sequences, for a model that has no sampler of its own. It takes the number of
        sequences and a generator, and the covariates if it has a third parameter ``covariates``.
    :param posterior: draws of a program's global sites, for a posterior predictive check: an ``MCMC`` object after its
        run, draws by name, a guide, a ``Predictive``, or an ArviZ container with a group ``posterior``. If
        there are more than ``num_bootstrap`` draws, the check uses ``num_bootstrap`` evenly spaced ones. The p-values
        are posterior predictive p-values.
    :param held_out: whether ``posterior`` was found from other data, so that it has not seen these. The p-values are
        then split predictive p-values, which are calibrated. The check uses four draws more than ``num_bootstrap``.
    :param fit: a function ``fit(program, sequences)`` that finds a posterior, in any form that ``posterior`` takes. A
        fold of the data is checked with the posterior of the others. The p-values are divided predictive
        p-values, which are calibrated. See :class:`~pyro_ksd.models.FitNUTS` and :class:`~pyro_ksd.models.FitSVI`.
    :param folds: the number of folds, and so of fits, 3 or more; 5 by default.
    :param refit: for a model whose parameters were estimated from the same data: ``refit(model, sequences)`` fits it
        and returns a model, or values of its parameters by name. It is applied to the data and to each null draw. See
        :class:`~pyro_ksd.models.RefitMarkov` and :class:`~pyro_ksd.models.RefitSVI`.
    :param bootstrap: where the null draws come from. ``"parametric"`` draws data sets from the model and has the exact
        level. ``"wild"`` needs no samples and is asymptotically valid. ``"auto"`` is parametric if the model can be
        sampled and the data have fewer than 100 sequences, or so few edits that it takes seconds. It is wild if the
        model is a loop that branches on its symbols, if symbols are vectors and the alphabet lacks some of them, or if
        all edits are substitutions and lengths differ, because new data sets would have other lengths.
    :param num_bootstrap: the number ``B`` of null draws. The smallest p-value of a view is ``1 / (B + 1)``. If only
        one view sees a fault, the smallest overall p-value is up to ``1 / (s (B + 1))``, where ``s`` is the share of
        this view in the weight of all views. Use more draws for a smaller level.
    :param level: the verdict is that the model does not fit if the overall p-value is at most this.
    :param tolerance: how much misfit you accept, such as ``0.01``. The check then also says whether more than this
        share of the sequences do not come from the model, whether the data are demonstrably close to the model, and
        which n-grams are off by more than a factor of 1.25. See *How large is it?* on the page about the method.
    :param localize: whether to find where the misfit is and how large it is. ``False`` returns the same p-values and
        nothing else, in less time: no n-grams, sequences, edits, sizes or replicated data.
    :param attribution: whether to keep the share of every position of every sequence. By default, a result keeps those
        of the 1,000 sequences of each view with the largest shares.
    :param gram: whether to keep the Stein kernel matrices, for :func:`~pyro_ksd.plots.plot_gram`. They take
        ``8 n²`` bytes per view.
    :param replicates: whether to keep the symbols of replicated data, ``token`` in the group ``posterior_predictive``;
        their lengths and symbol counts are kept in any case.
    :param checkpoint: a file in which finished null draws are saved, safe against crashes. After an interruption, the
        same call resumes from this file and gives the same result, bit for bit. Delete the file when you have the
        result.
    :param seed: the seed of all random numbers: an integer, or a ``torch.Generator`` from which it is drawn. The same
        seed gives the same result.
    :param progress: whether to show a progress bar, after two seconds, on a terminal or in a notebook.
    :returns: the groups of :func:`~pyro_ksd.results.to_datatree`. Print them with :func:`~pyro_ksd.results.summary`,
        plot them with :func:`~pyro_ksd.plots.plot_check`.

    >>> import torch
    >>> from pyro_ksd import MarkovSequence, verdict
    >>> coin = torch.tensor([0.5, 0.5])
    >>> model = MarkovSequence.from_transitions(coin, coin.expand(2, 2), stop=0.2)
    >>> check = ksd_check(model, ["HTHTHT", "THTH", "HTHTHTHTH", "THTHTHT", "HTH"] * 4, progress=False)
    >>> print(verdict(check))  # too regular for a coin
    the model does not fit (p = 0.002): 'HTH' (weight × 19, 12 to 35) and 'THT' (weight × 12, 7.4 to 18) are too rare
    under the model and 'TTH', 'HTT', 'THH', ... are too frequent under the model; lengths are too variable under the
    model (standard deviation 4.47, in the data 2.14); at least 25 % of the sequences do not come from the model
    (a lower bound)
    """
    num_bootstrap, seed = check_options(num_bootstrap, level, seed, progress, bootstrap=bootstrap, sampler=sampler)
    check_flag("localize", localize)
    check_flag("attribution", attribution)
    check_flag("gram", gram)
    check_flag("replicates", replicates)
    stated = _stated_order(order)
    if tolerance is not None:
        check_share("tolerance", tolerance)
    if refit is not None:
        check_function("refit", refit, "model", "sequences")
    _check_inference(posterior, held_out, fit, folds)
    if replicates and (held_out is True or fit is not None):
        raise ValueError("replicates: expected no held_out= or fit= beside it, which keep no replicated data")
    if not localize:
        _check_localized(
            tolerance=tolerance,
            attribution=attribution or None,
            gram=gram or None,
            replicates=replicates or None,
            posterior=posterior,
            fit=fit,
        )
    kept = None if checkpoint is None else Checkpoint(checkpoint)
    known = adapted(model)
    if isinstance(data, PartitionedSequences):
        parametric = bootstrap if bootstrap == "parametric" else None
        check_for_parts(
            posterior=posterior,
            fit=fit,
            refit=refit,
            bootstrap=parametric,
            replicates=replicates or None,
            attribution=attribution or None,
            gram=gram or None,
            localize=None if localize else False,
        )

        def ready_for(some: Sequences, ends: tuple[int, ...]) -> SequenceModel:
            named = [some.symbols[code] for code in ends] or None
            return as_model(
                model, some, parameters=parameters, order=stated, end=named, marginal=marginal, sampler=sampler
            )

        with one_bar(show=progress):
            return partitioned_check(
                ready_for,
                data,
                end=end,
                views=views,
                neighborhood=neighborhood,
                balancing=balancing,
                num_bootstrap=num_bootstrap,
                level=level,
                tolerance=tolerance,
                checkpoint=kept,
                seed=seed,
                progress=progress,
            )
    sequences = as_sequences(data, known)
    ends = chosen_ends(end, neighborhood, sequences)
    named = [sequences.symbols[code] for code in ends] or None
    if posterior is not None or fit is not None:
        _check_alone(
            "posterior" if fit is None else "fit",
            parameters=parameters,
            sampler=sampler,
            refit=refit,
            attribution=attribution or None,
            gram=gram or None,
            bootstrap=bootstrap,
            tolerance=tolerance,
        )
        options: dict[str, Any] = {"ends": ends, "marginal": marginal}
        options["order"] = stated if held_out or fit is not None else order
        if fit is not None:
            of_folds = FoldPosteriors(
                model,
                sequences,
                fit,
                5 if folds is None else folds,
                num_replicates=num_bootstrap,
                options=options,
                checkpoint=kept,
                seed=seed,
            )
            draws = of_folds[0]
        else:
            num_draws = draws_in_all(num_bootstrap) if held_out else num_bootstrap
            draws = PosteriorModels(model, sequences, draws_of(posterior), num_draws=num_draws, **options)
        ready: SequenceModel = draws[0]
    elif refit is not None:
        if parameters is not None:
            raise ValueError("refit: expected no parameters= beside it, which it finds itself; leave them out")
        refit_to = _refitted(refit, model, order=stated, end=named, marginal=marginal, sampler=sampler)
        ready = refit_to(sequences)
    else:
        ready = as_model(
            model, sequences, parameters=parameters, order=stated, end=named, marginal=marginal, sampler=sampler
        )
    if bootstrap == "auto" and is_read_off_data(sequences):
        bootstrap = "wild"  # new data sets would have vectors that the alphabet lacks
    setup = set_up_check(ready, sequences, ends, views, neighborhood, balancing, draws=True)
    ready = setup.model
    if bootstrap == "auto" and refit is None and keep_lengths(setup.views) and _differ(setup.drawn, sequences):
        bootstrap = "wild"  # the lengths are given, but those of new data sets would be the model's
    impossible = setup.impossible
    possible = sequences
    sites = {}
    if len(impossible):
        _report_impossible(impossible, len(sequences))
        possible = sequences[impossible.others]
        rows = impossible.rows.tolist()
        sites = dict(zip(rows, ready.impossible_sites(sequences[rows]), strict=True))
    settings: dict[str, str | int | float] = {"seed": seed, "level": level, "edits": kinds_of_edits(setup.views)}
    if ready.ratio_error is not None:
        settings["ratio_error"] = ready.ratio_error
    if fit is not None or held_out:
        started = perf_counter()
        if fit is not None:
            split = of_folds.check(impossible.others.nonzero()[:, 0], setup.views, progress=progress)
        else:
            split = check_put_aside(draws, possible, setup.views, checkpoint=kept, seed=seed, progress=progress)
        warn_of_constant_features(split.views, torch.cat([split.statistic[None], split.null.statistic]))
        settings["seconds_posterior"] = perf_counter() - started
        return held_out_datatree(split, sequences, sites, settings=settings)
    if posterior is not None:
        with one_bar(show=progress):
            found = posterior_predictive(
                draws, possible, setup.views, tokens=replicates, checkpoint=kept, seed=seed, progress=progress
            )
        warn_of_constant_features(found.views, torch.cat([found.realized, found.replicated.statistic]))
        settings |= _used_tables(found.verified_order)
        own = posterior_group(posterior, draws)
        return predictive_datatree(found, sequences, sites, settings=settings, posterior=own)
    with one_bar(show=progress):
        result = goodness_of_fit(
            ready,
            possible,
            setup.views,
            bootstrap=bootstrap,
            refit=None if refit is None else refit_to,
            log_joint=impossible.log_joint[impossible.others],
            num_bootstrap=num_bootstrap,
            verified_tables=order == "auto",
            checkpoint=kept,
            seed=seed,
            progress=progress,
        )
        settings |= _used_tables(result.verified_order)
        warn_of_constant_features(result.views, torch.cat([result.statistic[None], result.null.statistic]))
        if not localize:
            return p_value_datatree(result, sequences, sites, settings=settings)
        started = perf_counter()
        places = localized(result, attribution=attribution, progress=progress)
    size = extent(
        result,
        places,
        possible,
        setup.drawn,
        level=level,
        tolerance=tolerance,
        num_impossible=len(impossible),
        seed=seed,
    )
    settings["seconds_localization"] = perf_counter() - started
    replicated = None
    if setup.drawn is not None:
        replicated = replicated_data(ready, possible, seed, many=result.kind != "wild", tokens=replicates)
    return to_datatree(result, places, sequences, sites, size, settings=settings, gram=gram, replicates=replicated)


def _stated_order(order: object) -> int | None:
    """The order that the user states, if any."""
    if order is None or order == "auto":
        return None
    if isinstance(order, str):
        raise ValueError(f"order: expected 'auto', an integer of at least 1, or None, found {order!r}")
    return check_number("order", order, least=1)


def _used_tables(order: int | None) -> dict[str, str | int | float]:
    """The attributes that say of what order verified tables were, if there were any, and what share was verified."""
    return {} if order is None else {"verified_order": order, "verified_share": SHARE}


def _differ(drawn: Sequences | None, sequences: Sequences) -> bool:
    """Whether there are draws, and not all of them and of the data have one length."""
    return drawn is not None and len(torch.cat([drawn.lengths, sequences.lengths]).unique()) > 1


def _check_localized(**others: Any) -> None:
    """Checks that nothing is passed beside ``localize=False`` that needs more than p-values."""
    passed = ", ".join(f"{name}=" for name, value in others.items() if value is not None)
    if passed:
        raise ValueError(f"localize: expected True beside {passed}, found False; leave out localize= or {passed}")


def _check_inference(posterior: Any, held_out: object, fit: Any, folds: Any) -> None:
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


def _check_alone(name: str, **others: Any) -> None:
    """Checks that nothing is passed beside ``posterior=`` or ``fit=`` that has no meaning there."""
    passed = ", ".join(f"{other}=" for other, value in others.items() if value not in (None, "auto"))
    if passed:
        raise ValueError(f"{name}: expected it alone, found {passed} beside it; leave out {passed}")


def _refitted(
    refit: Callable[[Any, Sequences], Any], model: Any, **options: Any
) -> Callable[[Sequences], SequenceModel]:
    """The model as it comes out of a fit to sequences."""

    def fit(sequences: Sequences) -> SequenceModel:
        found = refitted(refit, model, sequences)
        if isinstance(found, Mapping):
            return as_model(model, sequences, parameters=found, **options)
        return as_model(found, sequences, **options)

    return fit


def _report_impossible(impossible: ImpossibleSequences, num_sequences: int) -> None:
    """Warns of sequences that the model calls impossible, or refuses if hardly any others are left."""
    if num_sequences - len(impossible) < 2:
        raise ValueError(f"{impossible.message}, and too few others are left to check: widen the model")
    warn_user(f"{impossible.message}; the check goes on with the others")

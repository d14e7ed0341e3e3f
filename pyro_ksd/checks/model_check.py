# SPDX-License-Identifier: Apache-2.0
"""The one call: does the model fit the data?"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from torch import Tensor

from pyro_ksd.checks.after_inference import check_alone, check_inference, divided_check, posterior_check, split_check
from pyro_ksd.checks.by_argument import By
from pyro_ksd.checks.check_of_parts import check_for_parts, partitioned_check
from pyro_ksd.checks.check_request import CheckRequest
from pyro_ksd.checks.data_argument import as_sequences
from pyro_ksd.checks.end_argument import chosen_ends
from pyro_ksd.checks.fit_options import check_options
from pyro_ksd.checks.given_parameters import parameter_check
from pyro_ksd.checks.model_argument import ModelArgument
from pyro_ksd.common.checkpoints import Checkpoint
from pyro_ksd.common.option_checks import check_function, check_number
from pyro_ksd.common.progress import one_bar
from pyro_ksd.common.random_numbers import Seed
from pyro_ksd.edits.neighborhoods import Neighborhood
from pyro_ksd.fit_tests.absolute import Bootstrap
from pyro_ksd.models.duck_typing import adapted
from pyro_ksd.models.fitting.user_fits import Fit
from pyro_ksd.models.programs.marginal import Marginal
from pyro_ksd.models.wrappers.sampler import Sampler
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
    by: By | None = None,
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
    :param by: also compare sequences with equal or similar covariates only, which sees faults that cancel in the mean
        over all covariates, such as exchanged prompts, and says for which of them the model is wrong. The name of a
        covariate of whole numbers with several sequences for each value, such as ``"prompt"`` or ``"group"``;
        :class:`~pyro_ksd.sequences.PromptContent` for prompts that hardly ever recur; or a function that takes
        the :class:`~pyro_ksd.sequences.covariates.Covariates` of ``N`` sequences and returns features ``[N, G]``. Adds
        views to those of ``views``, such as ``content-1 by prompt``.
    :param parameters: values of a program's global sample sites and ``pyro.param`` sites, by name.
    :param order: the order of a program whose steps depend only on the ``order`` symbols before them. This makes the
        check of long sequences much faster. See :class:`~pyro_ksd.models.TabulatedModel`. ``"auto"`` looks for such an
        order, or else for few hidden states: tables or automata then give the log-ratios of data sets drawn from the
        model, as long as they agree with it, but never those of the data. ``None`` uses neither.
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
    argument = ModelArgument(model, parameters, _stated_order(order), marginal, sampler)
    if refit is not None:
        check_function("refit", refit, "model", "sequences")
    check_inference(posterior, held_out, fit, folds)
    if replicates and (held_out is True or fit is not None):
        raise ValueError("replicates: expected no held_out= or fit= beside it, which keep no replicated data")
    request = CheckRequest(
        views=views,
        neighborhood=neighborhood,
        balancing=balancing,
        by=by,
        bootstrap=bootstrap,
        num_bootstrap=num_bootstrap,
        level=level,
        tolerance=tolerance,
        localize=localize,
        attribution=attribution,
        gram=gram,
        replicates=replicates,
        allows_stand_in=order == "auto",
        checkpoint=None if checkpoint is None else Checkpoint(checkpoint),
        seed=seed,
        progress=progress,
    )
    request.check_localized(posterior=posterior, fit=fit)
    known = adapted(model)
    if isinstance(data, PartitionedSequences):
        check_for_parts(request, posterior=posterior, fit=fit, refit=refit)
        with one_bar(show=progress):
            return partitioned_check(argument, data, end, request)
    sequences = as_sequences(data, known)
    ends = chosen_ends(end, neighborhood, sequences)
    if posterior is None and fit is None:
        return parameter_check(argument, sequences, ends, request, refit)
    check_alone("posterior" if fit is None else "fit", argument, request, refit)
    if fit is not None:
        return divided_check(argument, sequences, ends, request, fit, folds)
    check = split_check if held_out else posterior_check
    return check(argument, sequences, ends, request, posterior)


def _stated_order(order: object) -> int | None:
    """The order that the user states, if any."""
    if order is None or order == "auto":
        return None
    if isinstance(order, str):
        raise ValueError(f"order: expected 'auto', an integer of at least 1, or None, found {order!r}")
    return check_number("order", order, least=1)

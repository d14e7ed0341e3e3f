# SPDX-License-Identifier: Apache-2.0
"""The call for several models: which of them fits best?"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from pyro_ksd.checks.data_argument import as_sequences
from pyro_ksd.checks.end_argument import chosen_ends, unnamed_ends
from pyro_ksd.checks.views_argument import check_keeps_length, chosen_views, kinds_of_edits, warn_of_constant_features
from pyro_ksd.common.option_checks import check_flag, check_level, check_mapping
from pyro_ksd.common.progress import one_bar
from pyro_ksd.common.user_warnings import warn_user
from pyro_ksd.edits.neighborhoods import Neighborhood
from pyro_ksd.fit_tests.relative import RelativeFit, RowSums, check_comparable, relative_fit
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.batch_independence import check_scores_alone
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.duck_typing import adapted
from pyro_ksd.models.impossible_sequences import ImpossibleSequences, checked_log_joint, find_impossible
from pyro_ksd.models.length_distribution import why_given_lengths
from pyro_ksd.models.programs.marginal import Marginal
from pyro_ksd.models.wrappers.given_lengths import GivenLengths
from pyro_ksd.results.arrays import as_numpy, as_strings
from pyro_ksd.results.result_tree import ResultTree
from pyro_ksd.results.sequence_groups import sequences_group
from pyro_ksd.results.shared_groups import stamped
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.assembly import Assembly, allows_few_jumps, assemble
from pyro_ksd.stein.balancing import Balancing
from pyro_ksd.stein.views import View

_OVERALL = "overall"
_TOO_RARE = "repeats"
"""A default view that comparisons leave out. Long runs of one symbol may be so rare that no sequence has one. All of
them then add the same little to the statistic, and the jackknife sees no error: a right model that allows a few long
runs would be called worse than a wrong one that allows none."""


def ksd_compare(
    models: Mapping[str, Any],
    data: Any,
    *,
    views: str | View | Sequence[str | View] | None = None,
    neighborhood: Neighborhood | None = None,
    balancing: str | Balancing | None = None,
    parameters: Mapping[str, Mapping[str, Tensor]] | None = None,
    order: int | Mapping[str, int] | None = None,
    end: Any = None,
    marginal: Mapping[str, Marginal] | None = None,
    level: float = 0.05,
    progress: bool = True,
) -> ResultTree:
    r"""Compares models: which of them is closest to the data, and is the difference larger than chance?

    No model needs a normalizing constant, so you can compare Markov random fields with each other and with programs; a
    likelihood cannot do that. A model is *better* if its squared kernel Stein discrepancy :math:`U` is smaller. All
    models are compared in the same views and edits. The test is the relative test of Kanagawa, Jitkrittum, Mackey,
    Fukumizu and Gretton (2019), "A kernel Stein test for comparing latent variable models": the difference
    :math:`U_p - U_q`, divided by its jackknife standard error, is asymptotically normal if both models fit equally
    well. P-values are those of a t distribution; see :func:`~pyro_ksd.fit_tests.relative_fit`.

    Limits of the test:

    - It does not say that the best model fits. Use :func:`~pyro_ksd.ksd_check` for that.
    - If both models are right, or wrong only in features that no view compares, the limit is not normal. The test is
      then conservative: it says *worse* less often than the level allows. A difference that does not vary at all has
      :math:`z = 0` and the p-value 1.
    - If a model gives hardly any probability to the edits of the data, for example because it has memorized the data,
      its discrepancy is small for this reason alone. A warning names such a model.

    A model is ruled out if it gives probability 0 to some sequences. A warning names them, and in all views together
    the model is worse than any model under which all sequences are possible, with the p-value 0. Statistics are
    computed from the sequences that are possible under all models.

    :param models: at least two, by name; each of them what :func:`~pyro_ksd.ksd_check` takes as ``model``.
    :param data: :class:`~pyro_ksd.sequences.Sequences`, or what :meth:`~pyro_ksd.sequences.Sequences.of` takes.
    :param views: as for :func:`~pyro_ksd.ksd_check`; none may be called ``"overall"``. The default is all default views
        except ``repeats``, whose runs may be too rare to compare.
    :param neighborhood: the edits of the default views. The default is all substitutions, insertions and deletions. It
        is only substitutions if some model does not define lengths, and the models' own edits if models have some, such
        as :class:`~pyro_ksd.models.AutoregressiveModel`.
    :param balancing: the balancing function of the default views, ``"barker"`` by default.
    :param parameters: for each program that needs some, by its name: values of its global sample sites and
        ``pyro.param`` sites, by theirs.
    :param order: as for :func:`~pyro_ksd.ksd_check`; one for all models, or those of some by name.
    :param end: as for :func:`~pyro_ksd.ksd_check`, for all models.
    :param marginal: as for :func:`~pyro_ksd.ksd_check`, for each program that needs it, by its name.
    :param level: a model is called worse if its p-value is at most this.
    :param progress: whether to show a progress bar, after two seconds, on a terminal or in a notebook.
    :returns: ``ksd_compare`` and ``ksd_data``, and ``ksd_compare_impossible`` if some sequences are impossible
        under some model. ``ksd_compare`` has ``statistic``, ``standard_error`` and ``rank`` ``(model, view)``;
        ``difference``, the statistic of ``model`` minus that of ``model_bis``, ``difference_error``, ``z`` and the
        two-sided ``p_value`` of each pair by itself ``(model, model_bis, view)``; ``meaning(view)``. The last view,
        ``overall``, is the weighted sum of the statistics of all views, each on a scale common to all models. The
        scales, and so ``overall``, change slightly with the set of models. Print it with
        :func:`~pyro_ksd.results.compare_table`, plot it with :func:`~pyro_ksd.plots.plot_compare`.

    >>> import torch
    >>> from pyro_ksd import MarkovSequence
    >>> from pyro_ksd.results import compare_table
    >>> coin, turns = torch.tensor([0.5, 0.5]), torch.tensor([[0.2, 0.8], [0.8, 0.2]])
    >>> models = {
    ...     "coin": MarkovSequence.from_transitions(coin, coin.expand(2, 2), stop=0.2),
    ...     "turns": MarkovSequence.from_transitions(coin, turns, stop=0.2),
    ... }
    >>> data = ["HTHTHTT", "THTH", "HTHTHTHTH", "THHTHT", "HTH"] * 4
    >>> compare_table(ksd_compare(models, data, progress=False))["finding"].to_dict()
    {'turns': 'best', 'coin': 'worse (p = ...)'}
    """
    _check_models(models)
    models = {name: adapted(model) for name, model in models.items()}
    parameters = {} if parameters is None else parameters
    check_mapping("parameters", parameters, "values of the parameters of programs, by the name of the model")
    marginals = {} if marginal is None else marginal
    check_mapping("marginal", marginals, "Marginal(...) by the name of the model")
    check_flag("progress", progress)
    orders = order if isinstance(order, Mapping) else dict.fromkeys(models, order)
    for argument, given in (("parameters", parameters), ("order", orders), ("marginal", marginals)):
        unknown = [name for name in given if name not in models]
        if unknown:
            raise ValueError(f"{argument}: expected names of models, out of {list(models)}, found {unknown}")
    check_level(level)
    knowing = [model for model in models.values() if isinstance(model, SequenceModel)]  # the number of symbols
    sequences = as_sequences(data, knowing[0] if knowing else None)
    ends = chosen_ends(end, neighborhood, sequences)
    named = [sequences.symbols[code] for code in ends] or None
    ready: dict[str, SequenceModel] = {}
    log_joint: dict[str, Tensor] = {}
    for name, model in models.items():
        with _named(name):
            ready[name] = as_model(
                model,
                sequences,
                parameters=parameters.get(name),
                order=orders.get(name),
                end=named,
                marginal=marginals.get(name),
            )
            ready[name].check_data(sequences)
            log_joint[name] = checked_log_joint(ready[name], sequences)
            check_scores_alone(ready[name], sequences)
    reasons = {name: why_given_lengths(model, sequences, log_joint[name]) for name, model in ready.items()}
    without_lengths = [name for name, reason in reasons.items() if reason]
    given_lengths = ""
    if without_lengths:
        named_models = ", ".join(f"model {name!r}" for name in without_lengths)
        given_lengths = f"{named_models}: {reasons[without_lengths[0]]}"
    if given_lengths and not ends and neighborhood is None and (message := unnamed_ends(sequences)):
        with _named(without_lengths[0]):
            raise ValueError(message)
    suited = list(ready.values())
    chosen = chosen_views(views, neighborhood, balancing, suited, sequences, given_lengths=given_lengths)
    if views is None:
        chosen = [view for view in chosen if view.name != _TOO_RARE]
    _check_views(chosen)
    if given_lengths:
        with _named(without_lengths[0]):
            check_keeps_length(chosen, sequences[:10], reasons[without_lengths[0]])
        ready = {name: GivenLengths(model) for name, model in ready.items()}
        log_joint = {name: own.masked_fill(sequences.lengths == 0, 0.0) for name, own in log_joint.items()}
    impossible = _find_impossible(ready, sequences, log_joint)
    possible, group = _set_apart(ready, sequences, impossible)
    check_comparable(len(possible))
    sums = []
    with one_bar(show=progress):
        for name, model in ready.items():
            with _named(name):
                found = assemble(model, possible, chosen, progress=progress)
                sums.append(RowSums.of(found.matrices))
            _warn_if_it_hardly_jumps(name, chosen, found, len(possible))
    attributes = {
        "kind": "relative",
        "level": level,
        "num_sequences": len(possible),
        "edits": kinds_of_edits(chosen),
        "without_lengths": json.dumps(without_lengths),
    }
    weights = torch.tensor([view.weight for view in chosen], dtype=torch.double)
    ruled_out = torch.tensor([len(one) > 0 for one in impossible])
    fit = _with_ruled_out(relative_fit(sums, weights), ruled_out)
    warn_of_constant_features(chosen, fit.statistic[:, :-1])
    compared = _as_dataset(fit, list(models), chosen).assign_attrs(attributes)
    return stamped({"ksd_compare": compared, **group, "ksd_data": sequences_group(sequences)})


def _check_models(models: Mapping[str, Any]) -> None:
    if not isinstance(models, Mapping):
        raise ValueError(
            f"models: expected them by name, such as {{'order 1': first, 'order 2': second}}, found "
            f"{type(models).__name__}"
        )
    if not all(isinstance(name, str) and name for name in models):
        raise ValueError(f"models: expected names that are strings and not empty, found {list(models)}; rename them")
    if len(models) < 2:
        raise ValueError(
            f"models: expected at least 2 models to compare, found {list(models) or 'none'}; add another one, or check "
            "one model with ksd_check"
        )


def _check_views(views: Sequence[View]) -> None:
    names = [view.name for view in views]
    if not views or len(set(names)) < len(views) or _OVERALL in names:
        raise ValueError(f"views: expected at least one view and distinct names other than {_OVERALL!r}, found {names}")


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Has errors say which model they are about."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"model {name!r}: {error}") from error


def _find_impossible(
    models: Mapping[str, SequenceModel], sequences: Sequences, log_joint: Mapping[str, Tensor]
) -> list[ImpossibleSequences]:
    """The sequences that each model calls impossible."""
    found = []
    for name, model in models.items():
        with _named(name):
            found.append(find_impossible(model, sequences, log_joint[name]))
    return found


def _set_apart(
    models: Mapping[str, SequenceModel], sequences: Sequences, impossible: Sequence[ImpossibleSequences]
) -> tuple[Sequences, dict[str, xr.Dataset]]:
    """The sequences that all models can make, and a group of those that some model cannot, if there are any."""
    told = [
        found.message.replace("the model", f"the model {name!r}", 1)
        for name, found in zip(models, impossible, strict=True)
        if len(found)
    ]
    if not told:
        return sequences, {}
    others = torch.stack([found.others for found in impossible])
    kept = others.all(0)
    if kept.sum() < 3:
        raise ValueError(f"{'; '.join(told)}, and too few others are left to compare models on: widen the models")
    warn_user(
        f"{'; '.join(told)}; the models are compared on the {int(kept.sum())} sequences that all of them can make"
    )
    rows = (~kept).nonzero().squeeze(1)
    banned = ~others[:, rows]
    sites = np.full(banned.shape, "", dtype=object)
    for own, words, model in zip(banned, sites, models.values(), strict=True):
        if own.any():
            words[as_numpy(own)] = model.impossible_sites(sequences[rows[own]])
    dims = ("model", "sequence")
    group = xr.Dataset(
        {"impossible": (dims, as_numpy(banned)), "site": (dims, sites)},
        coords={"model": as_strings(list(models)), "sequence": as_numpy(rows)},
    )
    return sequences[kept], {"ksd_compare_impossible": group}


def _warn_if_it_hardly_jumps(name: str, views: Sequence[View], found: Assembly, num_sequences: int) -> None:
    """Warns of a small discrepancy that says nothing; the bound is that of the test of one model."""
    blind = [view.name for view in views if allows_few_jumps(found.rates[view.operator], num_sequences)]
    if blind:
        warn_user(
            f"model {name!r} hardly ever allows the edits of the view(s) {', '.join(blind)}: its discrepancy is small "
            "there for that reason, however badly it fits; look at other views, or other edits"
        )


def _with_ruled_out(found: RelativeFit, ruled_out: Tensor) -> RelativeFit:
    """The comparison, in which all views together prefer models that can have made all sequences to the others.

    :param ruled_out: boolean ``[K]``, whether a model gives probability 0 to some sequence.
    """
    worse = ruled_out[:, None].long() - ruled_out.long()
    z = found.z.clone()
    z[..., -1] = torch.where(worse == 0, z[..., -1], worse * torch.inf)
    p_value = found.p_value.clone()
    p_value[..., -1] = p_value[..., -1].masked_fill(worse != 0, 0.0)
    return replace(found, z=z, p_value=p_value, rank=(z > 0).sum(1))


def _as_dataset(found: RelativeFit, names: Sequence[str], views: Sequence[View]) -> xr.Dataset:
    one = ("model", "view")
    pair = ("model", "model_bis", "view")
    return xr.Dataset(
        {
            "statistic": (one, as_numpy(found.statistic)),
            "standard_error": (one, as_numpy(found.standard_error)),
            "rank": (one, as_numpy(found.rank)),
            "difference": (pair, as_numpy(found.difference)),
            "difference_error": (pair, as_numpy(found.difference_error)),
            "z": (pair, as_numpy(found.z)),
            "p_value": (pair, as_numpy(found.p_value)),
            "meaning": ("view", as_strings([*(view.kernel.meaning for view in views), "all of the above together"])),
        },
        coords={
            "model": as_strings(names),
            "model_bis": as_strings(names),
            "view": as_strings([*(view.name for view in views), _OVERALL]),
        },
    )

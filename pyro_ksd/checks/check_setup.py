# SPDX-License-Identifier: Apache-2.0
"""The model and the views of a check, made ready for data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pyro_ksd.checks.by_argument import By, with_conditional_views
from pyro_ksd.checks.end_argument import chosen_ends, unnamed_ends
from pyro_ksd.checks.views_argument import check_keeps_length, chosen_views, is_read_off_data
from pyro_ksd.common.random_numbers import seeded_generator
from pyro_ksd.common.user_warnings import warn_user
from pyro_ksd.edits.neighborhoods import Neighborhood
from pyro_ksd.fit_tests.sampler_agreement import check_drawn_lengths
from pyro_ksd.models.base import SequenceModel, draw_data_sets
from pyro_ksd.models.batch_independence import check_scores_alone
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.impossible_sequences import ImpossibleSequences, check_drawn, checked_log_joint, find_impossible
from pyro_ksd.models.length_distribution import why_given_lengths
from pyro_ksd.models.wrappers.given_lengths import GivenLengths
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.balancing import Balancing, as_balancing
from pyro_ksd.stein.operators import TailBlockOperator
from pyro_ksd.stein.views import View

_SEED = 2_718_281_828  # such as nobody passes, lest the null draws of a check begin with the same sequences
_MOST_DRAWN = 1000
_LEAST_DRAWN = 100
_DRAWN_EACH = 10  # draws for each sequence of the data, so that their error hardly matters beside that of the data


@dataclass(frozen=True, eq=False)
class CheckSetup:
    """What a check looks at, and how.

    :param model: the model; given the lengths, where it does not define their distribution.
    :param views: the views to look at.
    :param impossible: the sequences to which the model gives probability 0, and the log-joints of all of them.
    :param drawn: draws from the model, to compare the data with, over the same alphabet; ``None`` if it cannot be
        sampled, or only at great cost. They are independent of the null draws of a check.
    """

    model: SequenceModel
    views: list[View]
    impossible: ImpossibleSequences
    drawn: Sequences | None


def set_up_check(
    model: SequenceModel,
    sequences: Sequences,
    ends: Sequence[int],
    views: str | View | Sequence[str | View] | None,
    neighborhood: Neighborhood | None,
    balancing: str | Balancing | None,
    *,
    by: By | None = None,
    draws: bool,
    several: bool = False,
) -> CheckSetup:
    """The views for a model and data, and the model as they look at it.

    :param sequences: the data.
    :param ends: the codes of the symbols with which sequences end, see
        :func:`~pyro_ksd.checks.end_argument.chosen_ends`; the model knows them.
    :param views: these and the following as for :func:`~pyro_ksd.ksd_check`.
    :param draws: whether to draw from the model, if it can be sampled.
    :param several: whether the views are for other models, too, such as those of posterior draws.
    :raises ValueError: if the data do not suit the model, or the views do not.
    """
    model.check_data(sequences)
    log_joint = checked_log_joint(model, sequences)
    check_scores_alone(model, sequences)
    given_lengths = why_given_lengths(model, sequences, log_joint)
    if given_lengths and not ends and neighborhood is None and (message := unnamed_ends(sequences)):
        raise ValueError(message)
    inner = model
    if given_lengths:
        model = GivenLengths(model)
        log_joint = log_joint.masked_fill(sequences.lengths == 0, 0.0)
    impossible = find_impossible(model, sequences, log_joint)
    possible = sequences[impossible.others]
    drawn = _drawn(model, possible) if draws else None
    chosen = chosen_views(
        views,
        neighborhood,
        balancing,
        [inner],
        sequences,
        given_lengths=given_lengths,
        possible=possible,
        drawn=drawn,
        lengths=None if several else inner.length_distribution(),
    )
    for view in chosen:
        if drawn is not None and view.name == "length" and isinstance(view.operator, TailBlockOperator):
            check_drawn_lengths(model, drawn, view.operator.neighborhood, as_balancing(view.operator.balancing))
    chosen = with_conditional_views(chosen, by, possible, are_default=views is None)
    if given_lengths:
        check_keeps_length(chosen, sequences[:10], given_lengths)
    return CheckSetup(model, chosen, impossible, drawn)


def model_and_views(
    model: Any,
    sequences: Sequences,
    views: str | View | Sequence[str | View] | None,
    neighborhood: Neighborhood | None,
    balancing: str | Balancing | None,
) -> CheckSetup:
    """The setup of ``ksd_check(model, sequences, views=..., neighborhood=..., balancing=...)``.

    :param model: what :func:`~pyro_ksd.ksd_check` takes.
    :raises ValueError: as ``ksd_check`` does.
    """
    ends = chosen_ends(None, neighborhood, sequences)
    ready = as_model(model, sequences, end=[sequences.symbols[code] for code in ends] or None)
    return set_up_check(ready, sequences, ends, views, neighborhood, balancing, draws=True)


def _drawn(model: SequenceModel, sequences: Sequences) -> Sequences | None:
    """Draws from a model that can be sampled at little cost, with the covariates of the sequences, in turn.

    They are always the same ones, so that the statistics of a check do not depend on its seed.
    """
    if not len(sequences) or not model.can_draw or model.is_costly or is_read_off_data(sequences):
        return None
    size = min(_MOST_DRAWN, max(_LEAST_DRAWN, _DRAWN_EACH * len(sequences)))
    known = sequences[torch.arange(size) % len(sequences)].covariates
    generator = seeded_generator(_SEED)
    try:
        drawn = draw_data_sets(model, 1, size, known, generator).over(sequences.alphabet)
    except ValueError as error:
        warn_user(f"the data are not compared with draws from the model, which failed: {error}")
        return None
    check_drawn(model, drawn)
    return drawn

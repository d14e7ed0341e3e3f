# SPDX-License-Identifier: Apache-2.0
"""The model and the views of a check, made ready for data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from pyro_ksd.checks.end_argument import chosen_ends, unnamed_ends
from pyro_ksd.checks.views_argument import check_keeps_length, chosen_views
from pyro_ksd.edits.neighborhoods import Neighborhood
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.impossible_sequences import checked_log_joint
from pyro_ksd.models.length_distribution import why_given_lengths
from pyro_ksd.models.wrappers.given_lengths import GivenLengths
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.balancing import Balancing
from pyro_ksd.stein.views import View


@dataclass(frozen=True, eq=False)
class CheckSetup:
    """What a check looks at, and how.

    :param model: the model; given the lengths, where it does not define their distribution.
    :param views: the views to look at.
    :param log_joint: double ``[N]``, the log-joint of the data under the model.
    """

    model: SequenceModel
    views: list[View]
    log_joint: Tensor


def set_up_check(
    model: SequenceModel,
    sequences: Sequences,
    ends: Sequence[int],
    views: str | View | Sequence[str | View] | None,
    neighborhood: Neighborhood | None,
    balancing: str | Balancing | None,
) -> CheckSetup:
    """The views for a model and data, and the model as they look at it.

    :param sequences: the data.
    :param ends: the codes of the symbols with which sequences end, see
        :func:`~pyro_ksd.checks.end_argument.chosen_ends`; the model knows them.
    :param views: these and the following as for :func:`~pyro_ksd.ksd_check`.
    :raises ValueError: if the data do not suit the model, or the views do not.
    """
    model.check_data(sequences)
    log_joint = checked_log_joint(model, sequences)
    given_lengths = why_given_lengths(model, sequences, log_joint)
    if given_lengths and not ends and neighborhood is None and (message := unnamed_ends(sequences)):
        raise ValueError(message)
    chosen = chosen_views(views, neighborhood, balancing, [model], sequences, given_lengths=given_lengths)
    if not given_lengths:
        return CheckSetup(model, chosen, log_joint)
    check_keeps_length(chosen, sequences[:10], given_lengths)
    return CheckSetup(GivenLengths(model), chosen, log_joint.masked_fill(sequences.lengths == 0, 0.0))


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
    return set_up_check(ready, sequences, ends, views, neighborhood, balancing)

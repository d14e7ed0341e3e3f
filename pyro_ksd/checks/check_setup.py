# SPDX-License-Identifier: Apache-2.0
"""The model and the views of a check, made ready for data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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


def model_and_views(
    model: Any,
    sequences: Sequences,
    views: str | View | Sequence[str | View] | None,
    neighborhood: Neighborhood | None,
    balancing: str | Balancing | None,
) -> tuple[SequenceModel, list[View]]:
    """What :func:`~pyro_ksd.ksd_check` looks at, and how, when it is called with these arguments.

    :param model: what ``ksd_check`` takes.
    :param sequences: the data.
    :raises ValueError: as ``ksd_check`` does.
    """
    ends = chosen_ends(None, neighborhood, sequences)
    ready = as_model(model, sequences, end=[sequences.symbols[code] for code in ends] or None)
    ready.check_data(sequences)
    given_lengths = why_given_lengths(ready, sequences, checked_log_joint(ready, sequences))
    if given_lengths and not ends and neighborhood is None and (message := unnamed_ends(sequences)):
        raise ValueError(message)
    chosen = chosen_views(views, neighborhood, balancing, [ready], sequences, given_lengths=given_lengths)
    if given_lengths:
        check_keeps_length(chosen, sequences[:10], given_lengths)
        ready = GivenLengths(ready)
    return ready, chosen

# SPDX-License-Identifier: Apache-2.0
"""A check of data in memory up to the point where its null draws are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from pyro_ksd.checks.check_request import CheckRequest
from pyro_ksd.checks.check_setup import CheckSetup, set_up_check
from pyro_ksd.checks.views_argument import kinds_of_edits
from pyro_ksd.common.user_warnings import warn_user
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.wrappers.verified_stand_in import SHARE, Form, found_by
from pyro_ksd.sequences.container import Sequences

Settings = dict[str, str | int | float]
"""What a result says of how it was found."""


@dataclass(frozen=True, eq=False)
class PreparedCheck:
    """What every check needs, whichever way its null draws are made.

    :ivar setup: the model, the views, and draws from the model.
    :ivar sequences: all data.
    :ivar possible: those that the model calls possible, which are tested.
    :ivar impossible_sites: the sites where the model gives probability 0 to one of the others, by its row.
    :ivar settings: what the result says of the check.
    """

    setup: CheckSetup
    sequences: Sequences
    possible: Sequences
    impossible_sites: dict[int, str]
    settings: Settings

    @property
    def possible_rows(self) -> Tensor:
        """The rows of the possible sequences, long, ascending."""
        return self.setup.impossible.others.nonzero()[:, 0]


def prepared_check(
    model: SequenceModel, sequences: Sequences, ends: Sequence[int], request: CheckRequest, *, several: bool = False
) -> PreparedCheck:
    """Sets a check up and puts impossible sequences aside, with a warning.

    :param ends: the codes of the symbols with one of which every sequence ends.
    :param several: whether other models are checked, too, such as those of further posterior draws.
    :raises ValueError: if fewer than two sequences are possible under the model.
    """
    setup = set_up_check(
        model,
        sequences,
        ends,
        request.views,
        request.neighborhood,
        request.balancing,
        by=request.by,
        draws=True,
        several=several,
    )
    impossible = setup.impossible
    sites: dict[int, str] = {}
    possible = sequences
    if len(impossible):
        report_impossible(impossible.message, len(sequences) - len(impossible))
        possible = sequences[impossible.others]
        rows = impossible.rows.tolist()
        sites = dict(zip(rows, setup.model.impossible_sites(sequences[rows]), strict=True))
    return PreparedCheck(setup, sequences, possible, sites, settings_of(setup, request))


def settings_of(setup: CheckSetup, request: CheckRequest) -> Settings:
    """What a result says of a check before it begins."""
    settings: Settings = {"seed": request.seed, "level": request.level, "edits": kinds_of_edits(setup.views)}
    if setup.model.ratio_error is not None:
        settings["ratio_error"] = setup.model.ratio_error
    return settings


def stand_in_used(form: Form | None) -> Settings:
    """What a result says of verified tables or automata, and what share of edits was verified, if there were any."""
    return {} if form is None else {**found_by(form), "verified_share": SHARE}


def report_impossible(message: str, num_possible: int) -> None:
    """Warns of sequences that the model calls impossible, or refuses if hardly any others are left.

    :param message: what is wrong with them.
    :param num_possible: how many others there are.
    """
    if num_possible < 2:
        raise ValueError(f"{message}, and too few others are left to check: widen the model")
    warn_user(f"{message}; the check goes on with the others")

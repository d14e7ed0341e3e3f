# SPDX-License-Identifier: Apache-2.0
"""Runs of a loop program that draw many sequences at once, under vmap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pyro_ksd.models.programs.loop_runs import ForwardRun
from pyro_ksd.models.programs.loop_scoring_runs import masked_log_prob
from pyro_ksd.models.programs.loop_site_names import SiteNames


class CannotDrawAtOnce(Exception):  # noqa: N818
    """The program must draw one sequence at a time."""


class HorizonReached(Exception):  # noqa: N818
    """The program asks for another symbol than are wanted in this run."""


class DrawnSite(NamedTuple):
    """The site of a symbol or a stop in a run of many sequences.

    :ivar name: of the site.
    :ivar is_stop: whether it is a stop site.
    :ivar symbols: the number of symbols before it.
    :ivar dtype: of its samples.
    """

    name: str
    is_stop: bool
    symbols: int
    dtype: torch.dtype


class DrawnTogether(NamedTuple):
    """What a run of ``B`` sequences has drawn. Their control flow is the same, so they have the same ``K`` sites.

    :ivar sites: the sites of symbols and stops, in the order of the program.
    :ivar values: double ``[B, K]``; nothing counts that comes after the first stop of a row.
    :ivar scores: double ``[B, 1 + K]``, the log-probabilities: of all observed sites, then of each value.
    :ivar error: why the run ended early, unless the program ended by itself.
    """

    sites: list[DrawnSite]
    values: Tensor
    scores: Tensor
    error: Exception | None


def drawn_together(
    program: Callable[[], Any], names: SiteNames, horizon: int, sites: Sequence[DrawnSite], known: Tensor
) -> DrawnTogether:
    """Runs a program once under vmap, for ``B`` sequences.

    :param horizon: the number of symbols at which the run ends.
    :param sites: the first ``k`` sites, which have been drawn before.
    :param known: double ``[B, k]``, their values, without any stop.
    """
    runs = []

    def run_program(values: Tensor) -> tuple[Tensor, Tensor]:
        run = SimultaneousRun(names, horizon, sites, values)
        runs.append(run)
        try:
            with run:
                program()
        except Exception as error:  # it means nothing if all sequences are over by then
            run.error = error
        return _stacked(run.values), _stacked([run.constant, *run.scores])

    values, scores = torch.func.vmap(run_program, randomness="different")(known)
    return DrawnTogether(runs[0].sites, values, scores, runs[0].error)


class SimultaneousRun(ForwardRun):
    """A run under vmap that draws and notes every stop, and tells the program to go on.

    :param horizon: the number of symbols at which the run ends.
    :param sites: the first ``k`` sites, which have been drawn before.
    :param known: double ``[k]``, their values.
    """

    def __init__(self, names: SiteNames, horizon: int, sites: Sequence[DrawnSite], known: Tensor) -> None:
        super().__init__(names)
        self._horizon = horizon
        self._before = sites
        self._known = known
        self.sites: list[DrawnSite] = []
        self.values: list[Tensor] = []
        self.scores: list[Tensor] = []
        self.constant = torch.zeros((), dtype=torch.double)
        self.error: Exception | None = None

    def _symbol(self, msg: Any) -> None:
        if self.count == self._horizon:
            raise HorizonReached
        self._draw(msg, is_stop=False)

    def _stop(self, msg: Any) -> None:
        self._draw(msg, is_stop=True)
        # Not a zero for each sequence: Python's control flow must be able to look at it.
        msg["value"] = torch.zeros(msg["fn"].shape(), dtype=msg["value"].dtype)

    def _observed(self, msg: Any) -> None:
        super()._observed(msg)
        self.constant = self.constant + masked_log_prob(msg)

    def _draw(self, msg: Any, *, is_stop: bool) -> None:
        place = len(self.sites)
        value = self._replayed(msg, place) if place < len(self._before) else _sampled(msg)
        msg["value"] = value
        self.sites.append(DrawnSite(msg["name"], is_stop, self.count, value.dtype))
        self.values.append(value.double().reshape(()))
        self.scores.append(masked_log_prob(msg).double().reshape(()))

    def _replayed(self, msg: Any, place: int) -> Tensor:
        site = self._before[place]
        if msg["name"] != site.name:
            raise CannotDrawAtOnce(f"the site {site.name!r} was {msg['name']!r} in the next run")
        return self._known[place].to(site.dtype).expand(msg["fn"].shape())


def _sampled(msg: Any) -> Tensor:
    """A sample for each sequence, by random numbers of torch; those of others would be the same for all sequences."""
    before = torch.get_rng_state()
    value: Tensor = msg["fn"](*msg["args"], **msg["kwargs"])
    if torch.equal(before, torch.get_rng_state()):
        raise CannotDrawAtOnce(f"site {msg['name']!r} is drawn without torch's random numbers")
    return value


def _stacked(values: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(values)) if values else torch.zeros(0, dtype=torch.double)

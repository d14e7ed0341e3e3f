# SPDX-License-Identifier: Apache-2.0
"""The log-joints of sequences under a loop program: many at once where the program allows it, else one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from pyro_ksd.common.user_warnings import warn_user
from pyro_ksd.models.programs.loop_scoring_runs import (
    AccumulatedRun,
    CannotMakeSequence,
    CheckedRun,
    ConditionedRun,
)
from pyro_ksd.models.programs.loop_site_names import SiteNames
from pyro_ksd.models.repeated_runs import repeatable
from pyro_ksd.models.rounding import warn_of_rounding
from pyro_ksd.models.session_state import session_kept, unvalidated

ROUNDING = 1e-4
"""By how much, relative and absolute, log-probabilities of plain and vectorized runs may differ."""


class LoopScoring:
    """Scores sequences by running a program conditioned on their symbols and stops.

    Sequences of one length run at once under :func:`torch.func.vmap`, until a program is found that cannot be
    vectorized. Each such run is compared with a plain one, which checks every site.

    :param program: a callable without arguments.
    :param alphabet_size: the number of symbols ``S``.
    :param names: the names of the sites of symbols and stops.
    :ivar vectorizes: whether sequences run at once, as far as the runs have shown.
    """

    def __init__(self, program: Callable[[], Any], alphabet_size: int, names: SiteNames) -> None:
        self._program = program
        self._alphabet_size = alphabet_size
        self._names = names
        self._dtypes: dict[str, torch.dtype] = {}
        self._ends_anyway: dict[int, bool] = {}  # by length, for programs that are vectorized
        self.vectorizes = True
        self._warned = False  # of rounding

    def of_one_length(self, tokens: Tensor) -> Tensor:
        """``log p``, double ``[B]``, of sequences of one length, long ``[B, l]``."""
        length = tokens.shape[1]
        expected = None
        if length not in self._ends_anyway:
            expected = self._first_look(tokens[0])
        if not self.vectorizes or length not in self._ends_anyway:
            return self.one_by_one(tokens)
        try:
            values = self.at_once(tokens, ends_anyway=self._ends_anyway[length])
        except Exception as error:  # whatever vmap cannot do; a mistake of the user's comes again in the plain run
            values = self.one_by_one(tokens)
            self._give_up(str(error))
            return values
        suspect = (~(values < torch.inf)).nonzero().squeeze(1)
        values[suspect] = self.one_by_one(tokens[suspect])
        if expected is not None and not math.isclose(values[0], expected, rel_tol=ROUNDING, abs_tol=ROUNDING):
            self._give_up(f"a vectorized run gave log p = {float(values[0]):.6g} where a plain run gave {expected:.6g}")
            return self.one_by_one(tokens)
        return values

    def _give_up(self, reason: str) -> None:
        self.vectorizes = False
        warn_user(
            f"the program cannot be vectorized ({reason.splitlines()[0]}); from now on it runs once a sequence, which "
            "is far slower. To vectorize it, use tensors in place of control flow that depends on the symbols: "
            "torch.where(x == 3, a, b) for `if x == 3`, a tensor table[x] for a list or int(x), no x.item()"
        )

    def _first_look(self, tokens: Tensor) -> float:
        """``log p`` of the first sequence of its length, long ``[l]``, with a check of how the program stops."""
        with unvalidated():  # the checks of the plain run name the site
            value = self._single(tokens)
        if value > -math.inf:
            self._look_at_stops(tokens)
            return value
        # What follows an impossible symbol may be nonsense: it is not validated, and an error there means nothing.
        with unvalidated(), suppress(Exception):
            self._look_at_stops(tokens)
        return value

    def _look_at_stops(self, tokens: Tensor) -> None:
        """Learns from a sequence, long ``[l]``, whether the program ends at its length whatever a stop site says."""
        run = self._conditioned(tokens, stop=False)
        anyway = self._ends(run)
        if run.first_stop is not None:
            # A program that heeds no stop before some minimal length is found here, at its first chance to stop.
            self._ends(self._conditioned(tokens[: run.first_stop], stop=True))
        self._ends_anyway[len(tokens)] = anyway

    def one_by_one(self, tokens: Tensor) -> Tensor:
        """``log p``, double ``[B]``, of sequences ``[B, l]``, by plain runs that check every site."""
        with unvalidated():
            values = [self._single(row) for row in tokens]
        return torch.tensor(values, dtype=torch.double)

    def _single(self, tokens: Tensor) -> float:
        """``log p`` of one sequence, long ``[l]``, by plain runs that check every site."""
        both = [repeatable(lambda stop=stop: self._checked(tokens, stop)) for stop in (True, False)]  # type: ignore[misc]
        return float(torch.logaddexp(*both))

    def _checked(self, tokens: Tensor, stop: bool) -> Tensor:
        run = CheckedRun(self._names, self._dtypes, tokens.unbind(), stop, self._alphabet_size)
        ends = self._ends(run)
        if not self._warned and run.rounding > 0:
            self._warned = warn_of_rounding(run.rounding, f"site {run.rounded!r}")
        return torch.tensor(run.total if ends else -math.inf, dtype=torch.double)

    def _conditioned(self, tokens: Tensor, stop: bool) -> ConditionedRun:
        return ConditionedRun(self._names, self._dtypes, tokens.unbind(), stop)

    def _ends(self, run: ConditionedRun) -> bool:
        """Whether the program ends with all symbols of the sequence and no other."""
        try:
            with run:
                self._program()
        except CannotMakeSequence:
            return False
        return run.complete

    def at_once(self, tokens: Tensor, *, ends_anyway: bool) -> Tensor:
        """``log p``, double ``[B]``, of sequences ``[B, l]``, by runs under vmap.

        It is NaN where a plain run must find what is wrong.

        :param ends_anyway: whether the program ends at this length whatever the last stop site says.
        """
        values = self._mapped(tokens, stop=True)
        if ends_anyway:
            values = torch.logaddexp(values, self._mapped(tokens, stop=False))
        return values

    def ends(self, tokens: Tensor) -> bool:
        """Whether a run under vmap for sequences ``[B, l]`` ends where they end."""
        found = []

        def run(symbols: Tensor) -> Tensor:
            found.append(self._ends(self._conditioned(symbols, stop=True)))
            return symbols

        with session_kept(seed=0), unvalidated():
            torch.func.vmap(run)(tokens)
        return found[0]

    def _mapped(self, tokens: Tensor, stop: bool) -> Tensor:
        def total(symbols: Tensor) -> Tensor:
            run = AccumulatedRun(self._names, self._dtypes, symbols.unbind(), stop, self._alphabet_size)
            with run:
                self._program()
            if not run.complete:
                raise CannotMakeSequence
            return run.total

        try:
            with session_kept(seed=0), unvalidated():
                return torch.func.vmap(total)(tokens).clone()  # an expanded tensor, if all sequences are empty
        except CannotMakeSequence:  # the control flow depends on the length alone, or vmap would have refused it
            return tokens.new_full((len(tokens),), -torch.inf, dtype=torch.double)

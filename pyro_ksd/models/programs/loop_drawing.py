# SPDX-License-Identifier: Apache-2.0
"""Draws from a loop program, many at once where the program allows it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from pyro_ksd.common.chunk_sizes import EVALUATED_SEQUENCES
from pyro_ksd.models.programs.loop_drawing_runs import (
    CannotDrawAtOnce,
    DrawnSite,
    DrawnTogether,
    HorizonReached,
    drawn_together,
)
from pyro_ksd.models.programs.loop_runs import ObservedInLoopError, too_long, unknown_symbol
from pyro_ksd.models.programs.loop_scoring import ROUNDING, LoopScoring
from pyro_ksd.models.programs.loop_site_names import SiteNames
from pyro_ksd.models.repeated_runs import same_state
from pyro_ksd.models.session_state import random_states, session_kept, unvalidated
from pyro_ksd.sequences.container import Sequences

_COMPARED = 16  # sequences of a length that are scored again
_SCORED = 4  # lengths of which sequences are scored again, at least, if there are as many
_SHORT = 32  # below this, each length is looked at


class _Finished(NamedTuple):
    """Sequences that are over.

    :ivar rows: long ``[B]``, which of the wanted sequences they are.
    :ivar sequences: ``B`` of them.
    :ivar totals: double ``[B]``, their log-probabilities as summed up while they were drawn.
    :ivar limit: the length at which the program ended whatever the last stop site said, -1 if it did not.
    """

    rows: Tensor
    sequences: Sequences
    totals: Tensor
    limit: int


class LoopDrawing:
    """Draws many sequences in one run of a program under :func:`torch.func.vmap`.

    The run is told at every stop site to go on, and notes which sequences are over. It ends at a horizon. Sequences
    that are not over by then keep what has been drawn, up to the last stop site, and run again to twice the horizon.

    Some of what was drawn runs again, conditioned on its symbols, with a stop where it ends: every short length once,
    and some of the longer ones. If the program does not end there, or if it gives other log-probabilities than those
    with which the symbols and stops were drawn, then it must run once a sequence.

    :param program: a callable without arguments.
    :param alphabet_size: the number of symbols ``S``.
    :param names: the names of the sites of symbols and stops.
    :param scoring: scores sequences under the program.
    """

    def __init__(self, program: Callable[[], Any], alphabet_size: int, names: SiteNames, scoring: LoopScoring) -> None:
        self._program = program
        self._alphabet_size = alphabet_size
        self._names = names
        self._scoring = scoring
        self._confirmed: set[int] = set()  # kinds of lengths at which conditioned runs end as they should

    def at_once(self, count: int, *, horizon: int, max_length: int, seed: int) -> Sequences | None:
        """Independent sequences; ``None`` if the program must run once a sequence.

        :param horizon: the number of symbols to which the first run goes.
        :param max_length: a longer sequence is an error.
        :param seed: of all random states.
        """
        try:
            with session_kept(seed), unvalidated():
                before = random_states()
                parts = [
                    part
                    for rows in torch.arange(count).split(EVALUATED_SEQUENCES)
                    for part in self._drawn(rows, min(horizon, max_length), max_length)
                ]
                after = random_states()
            if not same_state({**before, "torch": after["torch"]}, after):
                return None  # numpy or random, which drew the same for all sequences of a run
            if not self._confirm(parts):
                return None
            order = torch.cat([part.rows for part in parts]).argsort()
            return Sequences.cat([part.sequences for part in parts])[order].narrowed()
        except CannotDrawAtOnce:
            return None

    def _drawn(self, rows: Tensor, horizon: int, max_length: int) -> list[_Finished]:
        """Some of the sequences, by runs to growing horizons."""
        parts = []
        sites: list[DrawnSite] = []
        known = torch.zeros(len(rows), 0, dtype=torch.double)
        while True:
            drawn = drawn_together(self._program, self._names, horizon, sites, known)
            part, over = self._sorted(rows, drawn)
            parts.append(part)
            if over.all():
                return parts
            if isinstance(drawn.error, ObservedInLoopError):
                raise drawn.error
            if not isinstance(drawn.error, HorizonReached):
                raise CannotDrawAtOnce from drawn.error
            if horizon == max_length:
                raise too_long(max_length)
            rows = rows[~over]
            sites = drawn.sites
            known = drawn.values[~over]
            horizon = min(2 * horizon, max_length)

    def _sorted(self, rows: Tensor, drawn: DrawnTogether) -> tuple[_Finished, Tensor]:
        """The sequences that are over, and which these are, boolean ``[B]``."""
        is_stop = torch.tensor([site.is_stop for site in drawn.sites], dtype=torch.bool)
        symbols = drawn.values[:, ~is_stop]
        width = symbols.shape[1]
        limit = width if drawn.error is None else -1
        # Column 0 is that of the observed sites, as in the scores.
        stops = pad((drawn.values != 0) & is_stop, (1, 0))
        counts = torch.tensor([0, *(site.symbols for site in drawn.sites)])
        stop = stops.long().argmax(1)
        lengths = torch.where(stops.any(1), counts[stop], width)
        over = stops.any(1) | (limit >= 0)
        # A stop site after the last symbol does not count if the program ends there anyway.
        last_symbol = max((place for place, site in enumerate(drawn.sites, 1) if not site.is_stop), default=0)
        ends = torch.where(lengths == limit, last_symbol, stop)
        totals = drawn.scores.cumsum(1).gather(1, ends[:, None]).squeeze(1)
        inside = torch.arange(width) < lengths[:, None]
        self._check_symbols(symbols[over], inside[over], [site.name for site in drawn.sites if not site.is_stop])
        tokens = symbols.masked_fill(~inside, 0)[over].long()
        sequences = Sequences(tokens, lengths[over], self._alphabet_size)
        return _Finished(rows[over], sequences, totals[over], limit), over

    def _check_symbols(self, symbols: Tensor, inside: Tensor, names: list[str]) -> None:
        known = (symbols >= 0) & (symbols < self._alphabet_size) & (symbols == symbols.round())
        bad = (inside & ~known).nonzero()
        if len(bad):
            row, position = bad[0].tolist()
            raise unknown_symbol(names[position], symbols[row, position].item(), self._alphabet_size)

    def _confirm(self, parts: list[_Finished]) -> bool:
        """Whether conditioned runs end where the sequences do, with the same log-probabilities."""
        new: dict[int, tuple[_Finished, int]] = {}
        for part in parts:
            for length in part.sequences.lengths.unique().tolist():
                if _kind(length) not in self._confirmed:
                    new.setdefault(_kind(length), (part, length))
        kinds = sorted(new, reverse=True)  # the longest one first: its plain run shows the dtypes of all sites
        scored = kinds[:: max(len(kinds) // _SCORED, 1)]
        try:
            if not all(self._agrees(*new[kind], scored=kind in scored) for kind in kinds):
                return False
        except Exception:  # a mistake of the user's comes again in the plain runs
            return False
        self._confirmed |= new.keys()
        return True

    def _agrees(self, part: _Finished, length: int, *, scored: bool) -> bool:
        """Whether conditioned runs for sequences of a length end there; if scored, with the same log-probabilities."""
        rows = (part.sequences.lengths == length).nonzero().squeeze(1)[:_COMPARED]
        tokens = part.sequences.tokens[rows, :length]
        if not scored:
            return self._scoring.ends(tokens)
        plain = self._scoring.one_by_one(tokens[:1])
        scores = self._scoring.at_once(tokens, ends_anyway=length == part.limit)
        return _close(scores, part.totals[rows]) and _close(scores[:1], plain)


def _kind(length: int) -> int:
    """Lengths of one kind are taken to be alike: each of the short ones is a kind, then a quarter of an octave is."""
    return length if length < _SHORT else _SHORT + int(4 * math.log2(length / _SHORT))


def _close(values: Tensor, others: Tensor) -> bool:
    return torch.allclose(values, others, rtol=ROUNDING, atol=ROUNDING)

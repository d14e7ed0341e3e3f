# SPDX-License-Identifier: Apache-2.0
"""Runs of a loop program that make a given sequence, and sum the log-probabilities of its sites."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from pyro.distributions.util import scale_and_mask
from torch import Tensor
from torch.distributions import constraints

from pyro_ksd.models.programs.exact_probabilities import exact_log_prob
from pyro_ksd.models.programs.loop_runs import LoopRun
from pyro_ksd.models.programs.loop_site_names import SiteNames
from pyro_ksd.models.programs.symbol_sites import missing_symbols
from pyro_ksd.models.rounding import rounding_of_ratios


class CannotMakeSequence(Exception):  # noqa: N818
    """The program cannot make the sequence."""


class ConditionedRun(LoopRun):
    """A run that makes a given sequence.

    :param dtypes: the dtypes of the samples by site, to be filled.
    :param tokens: the symbols, each a long tensor without dimensions.
    :param stop: what the last stop site says: ``True``, except to see whether the program heeds it.
    """

    def __init__(
        self,
        names: SiteNames,
        dtypes: dict[str, torch.dtype],
        tokens: Sequence[Tensor],
        stop: bool,
    ) -> None:
        super().__init__(names)
        self._dtypes = dtypes
        self._tokens = tokens
        self._last = stop

    @property
    def complete(self) -> bool:
        """Whether the run has made the sequence, and, if the last stop site is to say no, had such a site."""
        return self.count == len(self._tokens) and (self._last or self.ended is not None)

    def _symbol(self, msg: Any) -> None:
        if self.count == len(self._tokens):
            raise CannotMakeSequence
        self._set(msg, self._tokens[self.count])
        self._score_symbol(msg)

    def _stop(self, msg: Any) -> None:
        over = self.count == len(self._tokens)
        self.ended = msg["name"] if over else None
        self._set(msg, torch.tensor(float(over and self._last)))
        self._score(msg)

    def _observed(self, msg: Any) -> None:
        self._score(msg)

    def _go_on(self, name: str) -> None:
        if self._last:
            super()._go_on(name)
        raise CannotMakeSequence

    def _set(self, msg: Any, value: Tensor) -> None:
        name = msg["name"]
        fn = msg["fn"]
        if name not in self._dtypes:
            self._dtypes[name] = _sample_dtype(fn, value.dtype)
        value = value.to(self._dtypes[name])
        shape = fn.shape()
        msg["value"] = value.expand(shape) if shape else value
        msg["is_observed"] = True

    def _score_symbol(self, msg: Any) -> None:
        self._score(msg)

    def _score(self, msg: Any) -> None:
        """Nothing: the run only shows how the program stops."""


class ScoredRun(ConditionedRun):
    """A run that sums the log-probabilities.

    :param alphabet_size: the number of symbols ``S``.
    """

    def __init__(
        self,
        names: SiteNames,
        dtypes: dict[str, torch.dtype],
        tokens: Sequence[Tensor],
        stop: bool,
        alphabet_size: int,
    ) -> None:
        super().__init__(names, dtypes, tokens, stop)
        self._alphabet_size = alphabet_size


class CheckedRun(ScoredRun):
    """A plain run that sums the log-probabilities and checks each of them."""

    total = 0.0
    rounding = 0.0  # by how much a ratio may be wrong because of the log-probability of one site
    rounded = ""  # the site

    def _score_symbol(self, msg: Any) -> None:
        support = _support(msg["fn"])
        known = _bounds(support)
        if known is not None and known[1] >= self._alphabet_size:
            raise missing_symbols(msg["name"], known[1] + 1, self._alphabet_size)
        if support is not None and not support.check(msg["value"]).all():
            bounds = _bounds(support)
            expected = str(support) if bounds is None else f"{bounds[0]}..{bounds[1]}"
            raise ValueError(
                f"site {msg['name']!r}: found the symbol {int(msg['value'])} in {self._sequence}, expected {expected}, "
                "the support of its distribution; let it cover the alphabet, with a probability of 0 for symbols that "
                "cannot occur, or fix alphabet_size="
            )
        self._score(msg)

    def _score(self, msg: Any) -> None:
        log_prob = masked_log_prob(msg)
        value = float(log_prob)
        if value == -math.inf:
            raise CannotMakeSequence
        if not value < math.inf:
            raise ValueError(
                f"site {msg['name']!r}: expected a log-probability, found {value} for {self._sequence}; fix the "
                "parameters of its distribution"
            )
        self.total += value
        rounding = rounding_of_ratios(log_prob)
        if rounding > self.rounding:
            self.rounding = rounding
            self.rounded = msg["name"]

    @property
    def _sequence(self) -> str:
        codes = [str(int(token)) for token in self._tokens[:20]]
        more = ", ..." if len(self._tokens) > 20 else ""
        return f"the sequence [{', '.join(codes)}{more}]"


class AccumulatedRun(ScoredRun):
    """A run under vmap that sums the log-probabilities; what a plain run would refuse makes the sum not a number."""

    total = torch.zeros((), dtype=torch.double)

    def _score_symbol(self, msg: Any) -> None:
        support = _support(msg["fn"])
        bounds = _bounds(support)
        covered = bounds is not None and bounds[0] <= 0 and bounds[1] == self._alphabet_size - 1
        if bounds is not None and bounds[1] >= self._alphabet_size:
            self.total = self.total + torch.nan
        elif support is not None and not covered:
            self.total = torch.where(support.check(msg["value"]).all(), self.total, torch.nan)
        self._score(msg)

    def _score(self, msg: Any) -> None:
        self.total = self.total + masked_log_prob(msg)


def masked_log_prob(msg: Any) -> Tensor:
    """The log-probability of the value of a site, 0 where it is masked."""
    log_prob = exact_log_prob(msg["fn"], msg["value"])
    masked: Tensor = scale_and_mask(log_prob, mask=msg["mask"])
    return masked.sum(dtype=torch.double) if masked.ndim else masked


def _sample_dtype(fn: Any, default: torch.dtype) -> torch.dtype:
    with torch.random.fork_rng():
        try:
            return fn.sample().dtype  # type: ignore[no-any-return]
        except (RuntimeError, ValueError):  # wrong parameters, which show in the log-probability
            return default


def _support(fn: Any) -> constraints.Constraint | None:
    try:
        return fn.support  # type: ignore[no-any-return]
    except NotImplementedError:
        return None


def _bounds(support: constraints.Constraint | None) -> tuple[int, int] | None:
    """The smallest and the largest value of a support that is known without looking at tensors."""
    if not isinstance(support, constraints.integer_interval):
        return None
    bounds = support.lower_bound, support.upper_bound
    return bounds if all(isinstance(bound, int) for bound in bounds) else None

# SPDX-License-Identifier: Apache-2.0
"""What happens at the sites of a program that makes one sequence in a loop."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import pyro
import torch
from pyro.distributions.util import scale_and_mask
from pyro.params.param_store import ParamStoreDict
from pyro.poutine.messenger import Messenger
from pyro.poutine.util import site_is_subsample
from torch import Tensor
from torch.distributions import constraints


class Impossible(Exception):  # noqa: N818
    """The program cannot make the sequence."""


class SiteNames:
    """Tells the sites of symbols and stops by their names."""

    def __init__(self, symbol_site: str, stop_site: str) -> None:
        for option, template in (("symbol_site", symbol_site), ("stop_site", stop_site)):
            if not isinstance(template, str) or template.count("{}") != 1:
                raise ValueError(f"{option}: expected a name with one {{}} for the step, found {template!r}")
        if symbol_site == stop_site:
            raise ValueError(f"expected different names for symbols and stops, found {symbol_site!r} for both")
        self.symbol_site = symbol_site
        self._symbol, self._stop = (
            re.compile(r"(\d+)".join(map(re.escape, template.split("{}")))) for template in (symbol_site, stop_site)
        )

    def symbol_step(self, name: str) -> int | None:
        """The step of a symbol's site, ``None`` for other sites."""
        match = self._symbol.fullmatch(name)
        return int(match[1]) if match else None

    def is_stop(self, name: str) -> bool:
        return self._stop.fullmatch(name) is not None


class LoopRun(Messenger, ABC):
    """Runs a program and sorts its sites; what becomes of symbols, stops and others is up to the subclasses."""

    def __init__(self, names: SiteNames, params: ParamStoreDict) -> None:
        super().__init__()
        self._names = names
        self._params = params
        self.count = 0  # symbols so far
        self.first_stop: int | None = None  # symbols before the first stop site
        self.ended: str | None = None  # the site at which the sequence was over

    @abstractmethod
    def _symbol(self, msg: Any) -> None:
        """The site of the next symbol."""

    @abstractmethod
    def _stop(self, msg: Any) -> None:
        """A stop site."""

    @abstractmethod
    def _observed(self, msg: Any) -> None:
        """Another site, which has a value."""

    def _pyro_param(self, msg: Any) -> None:
        if msg["name"] not in pyro.get_param_store():
            msg["fn"] = self._params.get_param

    def _pyro_sample(self, msg: Any) -> None:
        msg["stop"] = True  # handlers around a call of the model are no part of the program
        step = self._names.symbol_step(msg["name"])
        if step is None and not self._names.is_stop(msg["name"]):
            self._other(msg)
            return
        _check_free(msg)
        if self.ended is not None:
            self._go_on(msg["name"])
        if step is None:
            self.first_stop = self.count if self.first_stop is None else self.first_stop
            self._stop(msg)
        else:
            self._check_order(msg["name"], step)
            self._symbol(msg)
            self.count += 1

    def _other(self, msg: Any) -> None:
        if site_is_subsample(msg) and (msg["value"] is not None or msg["fn"].subsample_size in (None, msg["fn"].size)):
            return  # a plate
        if msg["value"] is None:
            raise ValueError(
                f"site {msg['name']!r} has no value; give it one (parameters=...) or marginalize it; if it is a symbol "
                "or a stop, give its name in symbol_site= or stop_site="
            )
        self._observed(msg)

    def _check_order(self, name: str, step: int) -> None:
        if step != self.count:
            expected = self._names.symbol_site.format(self.count)
            raise ValueError(
                f"expected the site {expected!r} for the next symbol, found {name!r}; count the symbols from 0"
            )

    def _go_on(self, name: str) -> None:
        raise ValueError(
            f"the program goes on to site {name!r} after {self.ended!r} said stop, expected the end of the sequence; "
            "sample a stop site only where the program heeds it, and after the last symbol"
        )


class ConditionedRun(LoopRun):
    """A run that makes a given sequence.

    :param dtypes: the dtypes of the samples by site, to be filled.
    :param tokens: the symbols, each a long tensor without dimensions.
    :param stop: what the last stop site says: ``True``, except to see whether the program heeds it.
    """

    def __init__(
        self,
        names: SiteNames,
        params: ParamStoreDict,
        dtypes: dict[str, torch.dtype],
        tokens: Sequence[Tensor],
        stop: bool,
    ) -> None:
        super().__init__(names, params)
        self._dtypes = dtypes
        self._tokens = tokens
        self._last = stop

    @property
    def complete(self) -> bool:
        """Whether the run has made the sequence, and, if the last stop site is to say no, had such a site."""
        return self.count == len(self._tokens) and (self._last or self.ended is not None)

    def _symbol(self, msg: Any) -> None:
        if self.count == len(self._tokens):
            raise Impossible
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
        raise Impossible

    def _set(self, msg: Any, value: Tensor) -> None:
        name, fn = msg["name"], msg["fn"]
        if name not in self._dtypes:
            self._dtypes[name] = _sample_dtype(fn, value.dtype)
        value, shape = value.to(self._dtypes[name]), fn.shape()
        msg["value"] = value.expand(shape) if shape else value
        msg["is_observed"] = True

    def _score_symbol(self, msg: Any) -> None:
        self._score(msg)

    def _score(self, msg: Any) -> None:
        """Nothing: the run only shows how the program stops."""


class CheckedRun(ConditionedRun):
    """A plain run that sums the log-probabilities and checks each of them."""

    total = 0.0

    def _score_symbol(self, msg: Any) -> None:
        support = _support(msg["fn"])
        if support is not None and not support.check(msg["value"]).all():
            bounds = _bounds(support)
            expected = str(support) if bounds is None else f"{bounds[0]}..{bounds[1]}"
            raise ValueError(
                f"site {msg['name']!r}: found the symbol {int(msg['value'])} in {self._sequence}, expected {expected}, "
                "the support of its distribution; let it cover the alphabet, with a probability of 0 for symbols that "
                "cannot occur, or mend alphabet_size="
            )
        self._score(msg)

    def _score(self, msg: Any) -> None:
        value = float(_log_prob(msg))
        if value == -math.inf:
            raise Impossible
        if not value < math.inf:
            raise ValueError(
                f"site {msg['name']!r}: expected a log-probability, found {value} for {self._sequence}; mend the "
                "parameters of its distribution"
            )
        self.total += value

    @property
    def _sequence(self) -> str:
        codes = [str(int(token)) for token in self._tokens[:20]]
        more = ", ..." if len(self._tokens) > 20 else ""
        return f"the sequence [{', '.join(codes)}{more}]"


class AccumulatedRun(ConditionedRun):
    """A run under vmap that sums the log-probabilities; symbols outside of the support make the sum not a number."""

    def __init__(
        self,
        names: SiteNames,
        params: ParamStoreDict,
        dtypes: dict[str, torch.dtype],
        tokens: Sequence[Tensor],
        stop: bool,
        alphabet_size: int,
        device: torch.device,
    ) -> None:
        super().__init__(names, params, dtypes, tokens, stop)
        self._alphabet_size = alphabet_size
        self.total = torch.zeros((), dtype=torch.double, device=device)

    def _score_symbol(self, msg: Any) -> None:
        support = _support(msg["fn"])
        bounds = _bounds(support)
        covered = bounds is not None and bounds[0] <= 0 and bounds[1] >= self._alphabet_size - 1
        if support is not None and not covered:
            self.total = torch.where(support.check(msg["value"]).all(), self.total, torch.nan)
        self._score(msg)

    def _score(self, msg: Any) -> None:
        self.total = self.total + _log_prob(msg)


class DrawnRun(LoopRun):
    """A forward run that keeps the symbols."""

    def __init__(self, names: SiteNames, params: ParamStoreDict, alphabet_size: int, max_length: int) -> None:
        super().__init__(names, params)
        self._alphabet_size = alphabet_size
        self._max_length = max_length
        self.drawn: list[int] = []

    def _symbol(self, msg: Any) -> None:
        if self.count == self._max_length:
            raise ValueError(
                f"the program was still going at max_length={self._max_length}, expected a shorter sequence; raise "
                "max_length, or make the sequences shorter"
            )

    def _stop(self, msg: Any) -> None:
        """Nothing: the program draws it."""

    def _observed(self, msg: Any) -> None:
        begun = self.count > 0 or self.first_stop is not None
        if begun and not msg["infer"].get("_deterministic"):
            raise ValueError(
                f"site {msg['name']!r}: found an observed site or factor within the sequence, which changes the law of "
                "the sequences, so forward runs do not draw from it; give a sampler of your own. If it is a global "
                "parameter, sample it before the loop"
            )

    def _pyro_post_sample(self, msg: Any) -> None:
        name, value = msg["name"], msg["value"]
        if self._names.symbol_step(name) is not None:
            if value.item() not in range(self._alphabet_size):
                raise ValueError(
                    f"site {name!r}: found the symbol {value.item()}, expected 0..{self._alphabet_size - 1}; mend "
                    "alphabet_size= or the program"
                )
            self.drawn.append(int(value))
        elif self._names.is_stop(name) and value:
            self.ended = name


def _check_free(msg: Any) -> None:
    """Checks that a symbol or stop is a single value that the program leaves open."""
    if msg["value"] is not None:
        raise ValueError(f"site {msg['name']!r}: found an observed site, expected one without a value; leave out obs=")
    shape = msg["fn"].shape()
    if shape.numel() != 1:
        raise ValueError(
            f"site {msg['name']!r}: found values of shape {list(shape)}, expected a single value; the program makes "
            "one sequence, outside of any plate"
        )


def _log_prob(msg: Any) -> Tensor:
    log_prob = msg["fn"].log_prob(msg["value"], *msg["args"], **msg["kwargs"])
    masked: Tensor = scale_and_mask(log_prob, mask=msg["mask"])
    return masked.sum() if masked.ndim else masked


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

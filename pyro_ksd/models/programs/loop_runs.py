# SPDX-License-Identifier: Apache-2.0
"""Runs of a program that makes one sequence in a loop: the base of all runs, and forward runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from pyro.poutine.messenger import Messenger
from pyro.poutine.util import site_is_subsample

from pyro_ksd.models.programs.loop_site_names import SiteNames


class LoopRun(Messenger, ABC):
    """Runs a program and sorts its sites; subclasses say what to do with symbols, stops and others."""

    def __init__(self, names: SiteNames) -> None:
        super().__init__()
        self._names = names
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
                "or a stop, name its sites: LoopProgram(program, alphabet_size, symbol_site='x_{}', stop_site='end_{}')"
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


class ObservedInLoopError(ValueError):
    """Forward runs of a program do not draw from its distribution, because of an observed site or a factor."""


class ForwardRun(LoopRun):
    """A run that draws symbols and stops; what is observed must not depend on them."""

    def _observed(self, msg: Any) -> None:
        begun = self.count > 0 or self.first_stop is not None
        if begun and not msg["infer"].get("_deterministic"):
            raise ObservedInLoopError(
                f"site {msg['name']!r}: found an observed site or factor within the sequence, which changes the "
                "distribution of the sequences, so forward runs do not draw from it; pass your own sampler. If it is "
                "a global parameter, sample it before the loop"
            )


class DrawnRun(ForwardRun):
    """A forward run that keeps the symbols."""

    def __init__(self, names: SiteNames, alphabet_size: int, max_length: int) -> None:
        super().__init__(names)
        self._alphabet_size = alphabet_size
        self._max_length = max_length
        self.drawn: list[int] = []

    def _symbol(self, msg: Any) -> None:
        if self.count == self._max_length:
            raise too_long(self._max_length)

    def _stop(self, msg: Any) -> None:
        """Nothing: the program draws it."""

    def _pyro_post_sample(self, msg: Any) -> None:
        name = msg["name"]
        value = msg["value"]
        if self._names.symbol_step(name) is not None:
            if value.item() not in range(self._alphabet_size):
                raise unknown_symbol(name, value.item(), self._alphabet_size)
            self.drawn.append(int(value))
        elif self._names.is_stop(name) and value:
            self.ended = name


def too_long(max_length: int) -> ValueError:
    """The error of a program that draws a sequence of more symbols than it may."""
    return ValueError(
        f"the program was still going at max_length={max_length}, expected a shorter sequence; raise max_length, or "
        "make the sequences shorter"
    )


def unknown_symbol(name: str, value: float, alphabet_size: int) -> ValueError:
    """The error of a program that draws what is no symbol, at the site of a name."""
    return ValueError(
        f"site {name!r}: found the symbol {value}, expected 0..{alphabet_size - 1}; fix alphabet_size= or the program"
    )


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

# SPDX-License-Identifier: Apache-2.0
"""Progress bars and messages, where somebody can see them: on a terminal or in a notebook, not in log files."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from threading import Thread
from types import TracebackType
from typing import Any

from tqdm.auto import tqdm

DELAY = 2.0
"""After how many seconds a bar appears."""

INTERVAL = 0.1
"""How many seconds pass at least before a bar moves."""

BEAT = 1.0
"""After how many seconds the clock of a bar goes on, also if no step was finished."""

_FORMAT = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}{postfix}"
_SOON = 1e-6  # a delay of zero would show the bar at once


class ProgressBar:
    """What was done of a number of things: a bar of its own, or a stage of the bar of a whole call.

    :param bar: counts percent.
    :param items: to go through while the bar moves; left out if ``update`` moves it.
    :param total: how many things there are.
    :param unit: what they are called.
    :param closes: whether the bar ends with these things.
    :ivar done: how many are done.
    """

    def __init__(self, bar: tqdm, items: Collection[Any] | None, total: int, unit: str, *, closes: bool) -> None:
        self._bar = bar
        self._items = items
        self._total = total
        self._unit = unit
        self._closes = closes
        self.done = 0

    def update(self, count: int = 1) -> None:
        """Says that some more are done."""
        self.done += count
        if not self._bar.disable:
            self._bar.set_postfix_str(f"{self.done:,}/{self._total:,} {self._unit}", refresh=False)
            self._bar.update(100 * self.done / max(self._total, 1) - self._bar.n)

    def __iter__(self) -> Iterator[Any]:
        with self:
            for item in self._items or ():
                yield item
                self.update()

    def __enter__(self) -> ProgressBar:
        return self

    def __reduce__(self) -> tuple[Callable[[], ProgressBar], tuple[()]]:
        """In another process it shows nothing."""
        return partial(progress_bar, show=False, desc="", unit=self._unit, total=self._total), ()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._closes:
            self._bar.close()


def progress_bar(
    items: Collection[Any] | None = None, *, show: bool, desc: str, unit: str, total: int | None = None
) -> ProgressBar:
    """A bar on standard error, which stays silent if that is neither a terminal nor the output of a notebook.

    It appears after two seconds. Within :func:`one_bar` it is a stage of that bar.

    :param items: to go through while the bar moves; left out if ``update`` moves it.
    :param show: what the user passed as ``progress=``.
    :param desc: the name of what is done.
    :param unit: of what the bar counts.
    :param total: how far the bar goes, if there are no items.

    >>> [item for item in progress_bar("abc", show=True, desc="letters", unit="letter")]
    ['a', 'b', 'c']
    """
    count = len(items or ()) if total is None else total
    shared = _SHARED.get()
    if shared is None or not show:
        return ProgressBar(_bar(show, desc), items, count, unit, closes=True)
    bar, began = shared
    now = time.time()
    bar.n = bar.last_print_n = 0
    bar.start_t = bar.last_print_t = now
    bar.delay = max(_SOON, DELAY - (now - began))
    bar.set_description_str(desc, refresh=False)
    bar.set_postfix_str("", refresh=False)
    return ProgressBar(bar, items, count, unit, closes=False)


@contextmanager
def one_bar(*, show: bool) -> Iterator[None]:
    """Makes all bars within the stages of a single one, which appears after two seconds and goes at the end.

    :param show: what the user passed as ``progress=``.

    >>> with one_bar(show=True):
    ...     first = list(progress_bar("ab", show=True, desc="first stage", unit="letter"))
    """
    bar = _bar(show, "")
    token = _SHARED.set((bar, time.time()))
    try:
        with bar:
            yield
    finally:
        _SHARED.reset(token)


class PartOfBar:
    """Some steps of a bar, which go by as work of another measure is done.

    :param bar: the bar.
    :param first: the step from which the part begins.
    :param size: how many steps it has; neither need be whole.

    >>> with progress_bar(show=False, desc="rows", unit="row", total=10) as bar:
    ...     PartOfBar(bar, first=0, size=10).part(0.5, 1.0).reach(0.5)
    """

    def __init__(self, bar: ProgressBar, first: float, size: float) -> None:
        self._bar = bar
        self._first = first
        self._size = size

    def reach(self, share: float) -> None:
        """Moves the bar to the last whole step within a share of this part."""
        self._bar.update(max(0, int(self._first + share * self._size) - self._bar.done))

    def part(self, begin: float, end: float) -> PartOfBar:
        """What lies between two shares of this part."""
        return PartOfBar(self._bar, self._first + begin * self._size, (end - begin) * self._size)


def announce(message: str) -> None:
    """Prints a line on standard error, where somebody can see it.

    >>> announce("in a test nobody sees it")
    """
    if _is_seen():
        print(message, file=sys.stderr)


_SHARED: ContextVar[tuple[tqdm, float] | None] = ContextVar("_SHARED", default=None)
"""The bar of a whole call, and when it began."""


def _bar(show: bool, desc: str) -> tqdm:
    bar = tqdm(
        total=100,
        desc=desc,
        delay=DELAY,
        mininterval=INTERVAL,
        leave=False,
        smoothing=0,
        bar_format=_FORMAT,
        disable=not (show and _is_seen()),
    )
    if not bar.disable:
        Thread(target=_keep_clock, args=(bar,), daemon=True).start()
    return bar


def _keep_clock(bar: tqdm) -> None:
    """Shows the time of a bar once a second until it is closed: a step of a slow model may take many seconds."""
    while True:
        time.sleep(BEAT)
        with bar.get_lock():  # a bar that is being closed waits for it, and then cleans its line
            if bar.disable:
                return
            if bar.desc and time.time() >= bar.start_t + bar.delay:
                bar.refresh(nolock=True)


def _is_seen() -> bool:
    """Whether standard error is a terminal, or this process is the kernel of a notebook."""
    # Started without a console, Python has no standard error.
    if sys.stderr is not None and sys.stderr.isatty():
        return True
    interactive = sys.modules.get("IPython")
    shell = None if interactive is None else interactive.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config

# SPDX-License-Identifier: Apache-2.0
"""Inner loops compiled by numba, where it is installed, and threads that share their rows."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

import numpy as np

from pyro_ksd.common.progress import announce
from pyro_ksd.common.torch_threads import chosen_threads

SWITCH = "PYRO_KSD_COMPILED"
"""The environment variable that switches compiled loops off if it is 0."""

_WORK_OF_A_THREAD = 2**15  # edits; starting a thread takes as long as some thousands of them

Function = TypeVar("Function", bound=Callable[..., Any])


def is_compiled() -> bool:
    """Whether the inner loops run compiled: numba is installed, and ``PYRO_KSD_COMPILED`` is not 0.

    The environment variable is read at every call.
    """
    value = os.environ.get(SWITCH, "1")
    if value not in ("0", "1"):
        raise ValueError(
            f"{SWITCH}: expected 0 (torch alone) or 1 (compiled where numba is installed), found {value!r}"
        )
    return value == "1" and _has_numba()


@cache
def _has_numba() -> bool:
    try:
        import numba  # noqa: F401
    except ModuleNotFoundError:
        return False
    except ImportError as error:  # numba refuses versions of numpy that are newer than itself
        announce(f"pyro_ksd: inner loops run in torch, because numba cannot be loaded: {error}")
        return False
    return True


def compiled(function: Function) -> Function:
    """Decorates a loop over arrays that numba compiles at its first call; it stays as it is without numba.

    The machine code is kept on disk. It runs without Python's lock, so that threads can share the work.
    """
    if not _has_numba():
        return function
    import numba

    _listen()
    try:
        dispatcher = numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:  # no folder to keep the code in
        dispatcher = numba.njit(nogil=True)(function)
    return dispatcher  # type: ignore[no-any-return]


def inlined(function: Function) -> Function:
    """Decorates a part of compiled loops that is written into each function that calls it: no call, and no references
    to arrays to be counted for it.
    """
    if not _has_numba():
        return function
    import numba

    return numba.njit(nogil=True, inline="always")(function)  # type: ignore[no-any-return]


@cache
def _listen() -> None:
    """Lets compilations of this package's functions say so."""
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            if str(event.data["dispatcher"].py_func.__module__).startswith("pyro_ksd."):
                _announce_once()

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Listener())


@cache
def _announce_once() -> None:
    announce("pyro_ksd: compiling inner loops; later runs load them from disk")


def num_threads() -> int:
    """How many threads share the rows: one for each processor of this process, but no more than torch has."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on every system
    processors = len(affinity(0)) if affinity else os.cpu_count() or 1
    return min(processors, chosen_threads())


def share_rows(loop: Callable[[int, int], object], work: np.ndarray) -> None:
    """Calls ``loop(first, last)`` for consecutive parts of the rows, in this and other threads, until all are done.

    :param loop: writes the results of the rows ``first .. last - 1``, which depend on no other rows; so they are the
        same for any number of threads.
    :param work: long ``[N + 1]``, the number of edits before each row, and of all.

    >>> found = np.zeros(3)
    >>> share_rows(lambda first, last: found[first:last].fill(1.0), np.array([0, 10, 20, 30]))
    >>> found
    array([1., 1., 1.])
    """
    rows = len(work) - 1
    threads = min(num_threads(), int(work[-1]) // _WORK_OF_A_THREAD)
    if threads <= 1:
        loop(0, rows)
        return
    cuts = np.searchsorted(work, work[-1] * np.arange(1, threads) / threads).tolist()
    parts = list(zip([0, *cuts], [*cuts, rows], strict=True))
    with ThreadPoolExecutor(threads - 1) as pool:
        others = [pool.submit(loop, first, last) for first, last in parts[1:]]
        loop(*parts[0])
        for other in others:
            other.result()

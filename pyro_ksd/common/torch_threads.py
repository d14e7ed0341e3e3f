# SPDX-License-Identifier: Apache-2.0
"""How many threads torch uses: one for the many small tensors of a check, the user's number for the user's models.

Small tensors gain nothing from a second thread. It waits for the next of them without rest, and so takes a processor
away from compiled loops. Each thread of Python has a number of its own, but a new one begins with what was set last in
any of them; so the user's number is the one before the first of all blocks that are running.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_lock = threading.Lock()
_running = 0  # blocks of one_torch_thread in all threads of Python
_chosen = 1  # the user's number, while there are any
_here = threading.local()  # its depth: how many of them lie around this place


def chosen_threads() -> int:
    """The number of threads that the user lets torch have."""
    with _lock:
        return _chosen if _running else torch.get_num_threads()


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Within it torch uses one thread; afterwards as many as before.

    >>> before = torch.get_num_threads()
    >>> with one_torch_thread():
    ...     torch.get_num_threads(), chosen_threads() == before
    (1, True)
    >>> torch.get_num_threads() == before
    True
    """
    global _running, _chosen
    own = torch.get_num_threads()  # only now does torch give this thread a number
    with _lock:
        if not _running:
            _chosen = own
        _running += 1
        before = _chosen
    _here.depth = _depth() + 1
    torch.set_num_threads(1)
    try:
        yield
    finally:
        _here.depth -= 1
        if not _here.depth:
            torch.set_num_threads(before)
        with _lock:
            _running -= 1


@contextmanager
def chosen_torch_threads() -> Iterator[None]:
    """Within it torch uses the user's number of threads again, for what the user wrote.

    >>> before = torch.get_num_threads()
    >>> with one_torch_thread(), chosen_torch_threads():
    ...     torch.get_num_threads() == before
    True
    """
    if _depth():
        torch.set_num_threads(_chosen)
    try:
        yield
    finally:
        if _depth():
            torch.set_num_threads(1)


def _depth() -> int:
    return getattr(_here, "depth", 0)

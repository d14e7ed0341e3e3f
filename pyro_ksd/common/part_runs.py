# SPDX-License-Identifier: Apache-2.0
"""Running a task on parts of the data: in this process, in several threads, or on the workers of a Dask client.

The task is a function of one part. It gives the same bits wherever it runs (torch has one thread within), and results
are added in a tree that depends on the number of parts alone. So the sum is the same, bit for bit, whoever computes it,
and a part that was lost with its worker can be computed again.
"""

from __future__ import annotations

import sys
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from threading import RLock
from typing import Any

import torch

from pyro_ksd.common.sendable import sent

Task = Callable[[Any], Any]
"""A function of one part."""

_GROUPS = 64  # so many sums of neighboring parts come back from the workers at least, if there are as many parts

_ALONE = RLock()


def run_each(task: Task, parts: Sequence[Any], *, name: str, in_threads: bool = False) -> Iterator[Any]:
    """The results of a task for each part, in their order.

    :param name: what the task needs to be sent for, such as ``"model"``; for errors.
    :param in_threads: whether several threads of one process may run the task at once.

    >>> list(run_each(len, ["ab", "", "abc"], name="words"))
    [2, 0, 3]
    """
    return _runner(name, in_threads).sums(task, [[part] for part in parts])


def run_and_add(
    task: Task, parts: Sequence[Any], done: TreeSum, *, name: str, in_threads: bool = False
) -> Iterator[int]:
    """Adds the results of a task for all parts that are not done yet to a sum.

    :param done: the sum so far, which grows.
    :returns: after each step, how many parts were done in it.

    >>> total = TreeSum()
    >>> sum(run_and_add(len, ["ab", "", "abc"], total, name="words")), total.value()
    (3, 5)
    """
    groups = _groups(done.count, len(parts))
    found = _runner(name, in_threads).sums(task, [parts[group.start : group.stop] for group in groups])
    for group, value in zip(groups, found, strict=True):
        done.add(value, len(group))
        yield len(group)


class TreeSum:
    """A sum of results in the order of a balanced binary tree, of which only the finished branches are kept.

    :ivar count: how many results were added.
    :ivar branches: the sums of ``2^k`` neighboring results each, with a different ``k``; the largest first.
    """

    def __init__(self, count: int = 0, branches: Sequence[Any] = ()) -> None:
        self.count = count
        self.branches = list(branches)

    def add(self, value: Any, size: int = 1) -> None:
        """Adds the sum of the next ``size`` results, a power of 2 that divides their first number."""
        before = self.count
        self.count += size
        while before & size:
            value = self.branches.pop() + value
            size *= 2
        self.branches.append(value)

    def value(self) -> Any:
        """The sum of all results."""
        total = self.branches[-1]
        for branch in reversed(self.branches[:-1]):
            total = branch + total
        return total


def _groups(begin: int, end: int) -> list[range]:
    """Neighboring parts whose sums are branches of the tree: powers of 2, each at a multiple of its size."""
    most = 1
    while 2 * most * _GROUPS <= end:
        most *= 2
    groups = []
    while begin < end:
        size = min(most, begin & -begin or most)
        while begin + size > end:
            size //= 2
        groups.append(range(begin, begin + size))
        begin += size
    return groups


def _runner(name: str, in_threads: bool) -> _Runner:
    client = active_client()
    if client is not None:
        return _OnWorkers(client, name, in_threads)
    threads = torch.get_num_threads() if in_threads else 1
    return _InThreads(threads) if threads > 1 else _InTurn()


def active_client() -> Any:
    """The ``distributed.Client`` that is active in this session; ``None`` if there is none.

    >>> active_client() is None
    True
    """
    distributed = sys.modules.get("distributed")  # whoever has a client has imported it
    if distributed is None:
        return None
    try:
        client = distributed.Client.current()
    except ValueError:
        return None
    if client.status != "running":  # it was closed
        return None
    if client.asynchronous:
        raise ValueError("expected a Dask client of Client(...), found one with asynchronous=True; leave that out")
    return client


class _Runner(ABC):
    """Where tasks run."""

    @abstractmethod
    def sums(self, task: Task, groups: Sequence[Sequence[Any]]) -> Iterator[Any]:
        """For each group of parts the sum of their results, in the order of the groups."""


class _InTurn(_Runner):
    """One task after the other."""

    def sums(self, task: Task, groups: Sequence[Sequence[Any]]) -> Iterator[Any]:
        for group in groups:
            total = TreeSum()
            for part in group:
                total.add(_run(part, task))
            yield total.value()


class _InThreads(_Runner):
    """Several tasks at a time in threads of this process."""

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def sums(self, task: Task, groups: Sequence[Sequence[Any]]) -> Iterator[Any]:
        before = torch.get_num_threads()
        with ThreadPoolExecutor(self._threads) as pool:
            waiting: deque[Any] = deque()
            try:
                for group in groups:
                    waiting.append([pool.submit(_run, part, task) for part in group])
                    if len(waiting) > self._threads:
                        yield self._sum(waiting.popleft())
                while waiting:
                    yield self._sum(waiting.popleft())
            finally:
                pool.shutdown(wait=True, cancel_futures=True)
                torch.set_num_threads(before)  # new threads begin with what was set last

    @staticmethod
    def _sum(results: Sequence[Any]) -> Any:
        total = TreeSum()
        for result in results:
            total.add(result.result())
        return total.value()


class _OnWorkers(_Runner):
    """On the workers of a Dask client, which also add the results."""

    def __init__(self, client: Any, name: str, in_threads: bool) -> None:
        self._client = client
        self._name = name
        self._in_threads = in_threads

    def sums(self, task: Task, groups: Sequence[Sequence[Any]]) -> Iterator[Any]:
        blob = sent(self._name, task)
        if groups:
            sent("data", groups[0][0])
        roots = deque(self._submitted(blob, groups))
        try:
            while roots:
                root = roots.popleft()
                yield root.result()
                root.release()
        finally:
            self._client.cancel(list(roots))

    def _submitted(self, blob: bytes, groups: Sequence[Sequence[Any]]) -> Iterator[Any]:
        submit = self._client.submit
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")  # a task is sent to the scheduler once
            # A task of its own makes the object again on any worker, also after all that had it have died.
            task = submit(_received, blob, pure=False)
            alone = not self._in_threads
            roots = []
            for group in groups:
                level = [submit(_run, part, task, alone, pure=False) for part in group]
                while len(level) > 1:
                    level = [submit(_added, *level[at : at + 2], pure=False) for at in range(0, len(level), 2)]
                roots.extend(level)
        return iter(roots)


def _received(blob: bytes) -> Any:
    import cloudpickle

    return cloudpickle.loads(blob)


def _run(part: Any, task: Task, alone: bool = False) -> Any:
    """The result of a task, with one thread of torch.

    :param alone: whether no other thread of this process may run a task in the meantime.
    """
    with _one_thread(), _ALONE if alone else nullcontext():
        return task(part)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Lets torch have one thread, also for models: sums over many numbers depend on how many threads share them."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _added(one: Any, other: Any) -> Any:
    return one + other

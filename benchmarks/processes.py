# SPDX-License-Identifier: Apache-2.0
"""Runs the jobs of a benchmark in several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any, TypeVar

import torch
from tqdm import tqdm

WORKERS = 2
Result = TypeVar("Result")


def as_finished(
    function: Callable[..., Result], jobs: Sequence[tuple[Any, ...]], workers: int, name: str, unit: str
) -> Iterator[tuple[int, Result]]:
    """The index and the result of each job, in the order in which they are finished.

    :param function: one that other processes can import.
    :param jobs: the arguments of each call.
    :param workers: the number of processes, with one thread each; for 1, the jobs are done in this one.
    :param name: what the progress bar says.
    :param unit: what it counts.
    """
    with tqdm(total=len(jobs), desc=name, unit=unit) as bar:
        if workers == 1:
            for index, job in enumerate(jobs):
                yield index, function(*job)
                bar.update()
            return
        with ProcessPoolExecutor(workers, get_context("spawn"), torch.set_num_threads, (1,)) as executor:
            waiting = {executor.submit(function, *job): index for index, job in enumerate(jobs)}
            for done in as_completed(waiting):
                yield waiting[done], done.result()
                bar.update()

# SPDX-License-Identifier: Apache-2.0
"""Time and memory for benchmarks."""

from __future__ import annotations

import re
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path

_STATUS = Path("/proc/self/status")


def seconds(run: Callable[[], object], repeats: int = 7) -> float:
    """The median time of a call, after one call to warm up."""
    return alternating([run], repeats)[0]


def alternating(runs: Sequence[Callable[[], object]], repeats: int = 7) -> list[float]:
    """The median times of several calls, made in turn so that a busy moment of the machine meets them all."""
    times: list[list[float]] = [[] for _ in runs]
    for turn in range(repeats + 1):
        for run, spent in zip(runs, times, strict=True):
            begin = time.perf_counter()
            run()
            if turn:  # the first one warms up
                spent.append(time.perf_counter() - begin)
    return [sorted(spent)[repeats // 2] for spent in times]


def peak_memory() -> float:
    """The largest memory of this process until now, in GiB.

    Where the system says it of the program alone: ``ru_maxrss`` counts what the process that started it had, too.
    """
    if _STATUS.exists() and (found := re.search(r"VmHWM:\s*(\d+) kB", _STATUS.read_text())):
        return int(found.group(1)) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20

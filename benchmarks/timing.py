# SPDX-License-Identifier: Apache-2.0
"""Timing for benchmarks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence


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

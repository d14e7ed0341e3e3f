# SPDX-License-Identifier: Apache-2.0
"""Timing for benchmarks."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds(run: Callable[[], object], repeats: int = 7) -> float:
    """The median time of a call, after one call to warm up."""
    run()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return sorted(times)[repeats // 2]

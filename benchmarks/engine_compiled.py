# SPDX-License-Identifier: Apache-2.0
"""How much compiled inner loops save: ``python -m benchmarks.engine_compiled``.

Torch and compiled loops take turns in one run, and, if there is a C compiler, so does a plain loop in C. Times are
those of the processor, added up over all threads, and those of the clock. The model is a first-order chain; the edits
are all substitutions, insertions and deletions.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from benchmarks.engine import chain
from pyro_ksd.common.compilation import SWITCH, is_compiled
from pyro_ksd.edits.weighted_edits import WeightedEdits, chunk_rows
from pyro_ksd.kernels import ContiguousKernel
from pyro_ksd.kernels.witness import Witness
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.views import View
from pyro_ksd.stein.weighting import weighted_edits

LENGTH = 20
OPERATOR = ZanellaOperator()
Times = tuple[float, float]
"""Seconds of the processor and of the clock."""


def sequences_of(count: int, size: int) -> Sequences:
    """Random sequences of one length."""
    tokens = torch.randint(0, size, (count, LENGTH), generator=torch.Generator().manual_seed(size))
    return Sequences.of(tokens, size)


def one_chunk(size: int) -> WeightedEdits:
    """As many sequences as a check handles at once, with their edits."""
    data = sequences_of(2000, size)
    return weighted_edits(chain(size), OPERATOR, data[chunk_rows(OPERATOR.neighborhood, data)[0]])


def in_turn(runs: Sequence[Callable[[], object]], repeats: int) -> list[Times]:
    """The shortest times of several calls, made in turn; others use the processors, too, so the shortest mean most."""
    times: list[list[Times]] = [[] for _ in runs]
    for turn in range(repeats + 1):
        for run, spent in zip(runs, times, strict=True):
            clock, processor = time.perf_counter(), time.process_time()
            run()
            if turn:  # the first one warms up
                spent.append((time.process_time() - processor, time.perf_counter() - clock))
    return [(min(own[0] for own in spent), min(own[1] for own in spent)) for spent in times]


def switched(run: Callable[[], object], value: str) -> Callable[[], object]:
    """The same call with compiled loops (1) or without (0)."""

    def call() -> object:
        os.environ[SWITCH] = value
        return run()

    return call


def plain_loop() -> Callable[[WeightedEdits, int], Callable[[], object]] | None:
    """What makes the plain loop in C for a chunk and a length of n-grams; ``None`` without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    source = Path(__file__).with_name("plain_loop.c")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "plain_loop.so"
        options = ["-O3", "-march=native", "-shared", "-fPIC"]
        subprocess.run([compiler, *options, str(source), "-o", str(library), "-lm"], check=True)
        add_block = ctypes.CDLL(str(library)).add_block

    def pointer(values: np.ndarray) -> ctypes.c_void_p:
        return ctypes.c_void_p(values.ctypes.data)

    def loop(chunk: WeightedEdits, t: int) -> Callable[[], np.ndarray]:
        size = chunk.sequences.alphabet_size
        tokens = np.ascontiguousarray(chunk.sequences.tokens.numpy())
        lengths = chunk.sequences.lengths.numpy()
        root = np.sqrt(np.arange(LENGTH + 8.0))

        def run() -> np.ndarray:
            psi = np.zeros((len(tokens), size**t))
            counts = np.zeros(size**t, dtype=np.int64)
            for block, weights in zip(chunk.edits.blocks, chunk.edits.split(chunk.weights), strict=True):
                parts = [
                    np.ascontiguousarray(part.numpy()) for part in (block.owner, block.start, block.inserted, weights)
                ]
                owner, start, inserted, own = parts
                numbers = [ctypes.c_int64(n) for n in (block.removed, inserted.shape[1], len(block), t, size, size**t)]
                removed, arrived, num_edits, *codes = numbers
                add_block(
                    *(
                        pointer(tokens),
                        ctypes.c_int64(tokens.shape[1]),
                        pointer(lengths),
                        pointer(owner),
                        pointer(start),
                    ),
                    *(removed, pointer(inserted), arrived, num_edits, pointer(own), *codes),
                    *(pointer(root), pointer(counts), pointer(psi)),
                )
            return psi

        return run

    return loop


def whole_way(repeats: int) -> None:
    size = 10
    model = chain(size)
    data = sequences_of(3000, size)
    views = [View(f"content-{t}", OPERATOR, ContiguousKernel(t)) for t in (1, 2, 3)]
    num_edits = len(OPERATOR.neighborhood.edits(data))
    print(f"\nThe whole way to content-1, content-2 and content-3 together, {size} symbols: million edits per second")
    print(
        f"{'threads':>8}{'torch':>10}{'compiled':>10}{'ratio':>8}{'processor: torch':>20}{'compiled':>10}{'ratio':>8}"
    )
    most = torch.get_num_threads()
    for threads in range(1, most + 1):
        torch.set_num_threads(threads)
        calls = [switched(lambda: stein_matrices(model, data, views), value) for value in "01"]
        (torch_processor, torch_clock), (processor, clock) = in_turn(calls, repeats)
        speeds = [num_edits / seconds / 1e6 for seconds in (torch_clock, clock, torch_processor, processor)]
        print(f"{threads:>8}{speeds[0]:>10.2f}{speeds[1]:>10.2f}{speeds[1] / speeds[0]:>8.1f}", end="")
        print(f"{speeds[2]:>20.2f}{speeds[3]:>10.2f}{speeds[3] / speeds[2]:>8.1f}")


def features(settings: Sequence[tuple[int, int]], repeats: int) -> dict[tuple[int, int], float]:
    """Prints nanoseconds of the processor per edit; gives those of compiled features for each setting."""
    torch.set_num_threads(1)
    make_plain = plain_loop()
    print(f"{'symbols':>8}{'t':>4}{'torch':>10}{'plain C':>10}{'compiled':>10}{'ratio':>8}", end="")
    print(f"{'steps: torch':>16}{'compiled':>10}{'ratio':>8}")
    found = {}
    for size, t in settings:
        chunk = one_chunk(size)
        kernel = ContiguousKernel(t)
        calls = [switched(lambda: kernel.stein_features_each(chunk), value) for value in "01"]  # noqa: B023
        [matrix] = kernel.stein_features_each(chunk)
        witness = Witness.of(matrix, 0, len(chunk.sequences))
        calls += [switched(lambda: kernel.steps_along(chunk, witness), value) for value in "01"]  # noqa: B023
        if make_plain is not None and size**t <= 10**4:
            plain = make_plain(chunk, t)
            assert np.abs(plain() - matrix_by_code(matrix, size**t)).max() < 1e-10
            calls.append(plain)
        by_torch, compiled, steps_by_torch, steps, *c = (
            1e9 * own[0] / len(chunk.edits) for own in in_turn(calls, repeats)
        )
        shown = f"{c[0]:>10.1f}" if c else f"{'':>10}"
        print(f"{size:>8}{t:>4}{by_torch:>10.1f}{shown}{compiled:>10.1f}{by_torch / compiled:>8.1f}", end="")
        print(f"{steps_by_torch:>16.1f}{steps:>10.1f}{steps_by_torch / steps:>8.1f}")
        found[size, t] = compiled
    return found


def matrix_by_code(matrix: object, num_codes: int) -> np.ndarray:
    values = matrix.values.to_dense()  # type: ignore[attr-defined]
    codes = matrix.codes  # type: ignore[attr-defined]
    whole = values if codes is None else values.new_zeros(len(values), num_codes).index_copy_(1, codes, values)
    found: np.ndarray = whole.numpy()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine_compiled", description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    if not is_compiled():
        raise SystemExit('numba is not installed, or switched off; install it with pip install ".[fast]"')
    whole_way(repeats)
    print("\nThe kernel alone, one thread: nanoseconds of the processor per edit")
    by_length = features([(10, t) for t in (1, 2, 3, 4)], repeats)
    print(f"t = 4 takes {by_length[10, 4] / by_length[10, 3]:.1f} times as long as t = 3")
    by_size = features([(size, 3) for size in (4, 8, 16, 24, 32, 64)], repeats)
    growth = by_size[64, 3] * len(one_chunk(64).edits) / len(one_chunk(64).sequences)
    growth /= by_size[4, 3] * len(one_chunk(4).edits) / len(one_chunk(4).sequences)
    print(f"The time of a sequence grows with the power {math.log(growth) / math.log(16):.2f} of the number of symbols")


if __name__ == "__main__":
    main()

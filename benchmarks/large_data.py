# SPDX-License-Identifier: Apache-2.0
"""A check of large data from files: ``python -m benchmarks.large_data`` prints its processor time and its peak memory.

The data are a million sequences over 10 symbols, of geometric length with mean 10, in two ``.npy`` files: all symbols
after one another, and where each sequence begins. The check has the default views, 500 draws of the wild bootstrap and
the localization. ``--in-memory`` loads all of them at once, ``--workers 2`` starts as many processes of Dask.
"""

from __future__ import annotations

import argparse
import time
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from benchmarks.engine import chain
from benchmarks.timing import peak_memory
from pyro_ksd import PartitionedSequences, ksd_check, verdict
from pyro_ksd.models import MarkovSequence

_DRAWN = 50_000  # sequences at a time


def model() -> MarkovSequence:
    """A first-order chain over 10 symbols that stops after each symbol with probability 0.1."""
    table = chain().probs
    return MarkovSequence.from_transitions(table[-1, :-1], table[:-1, :-1] / 0.95, 0.1)


def write_ragged(folder: Path, num_sequences: int) -> tuple[str, str]:
    """Draws sequences from the model into two files, a part at a time, and gives their names."""
    generator = torch.Generator().manual_seed(0)
    symbols, offsets = folder / "symbols", folder / "offsets"
    total = 0
    with symbols.open("wb") as codes, offsets.open("wb") as ends:
        np.zeros(1, dtype=np.int64).tofile(ends)
        for begin in range(0, num_sequences, _DRAWN):
            drawn = model().draw(min(_DRAWN, num_sequences - begin), generator)
            drawn.tokens[drawn.mask].to(torch.int8).numpy().tofile(codes)
            (total + drawn.lengths.cumsum(0)).numpy().tofile(ends)
            total += int(drawn.lengths.sum())
    return _as_npy(symbols, np.int8), _as_npy(offsets, np.int64)


def _as_npy(raw: Path, dtype: type) -> str:
    """Copies plain numbers into an ``.npy`` file, in pieces."""
    path = raw.with_suffix(".npy")
    count = raw.stat().st_size // np.dtype(dtype).itemsize
    file = np.lib.format.open_memmap(path, "w+", dtype, (count,))
    for begin in range(0, count, 2**22):
        size = min(2**22, count - begin)
        file[begin : begin + size] = np.fromfile(raw, dtype, size, offset=begin * np.dtype(dtype).itemsize)
    file.flush()
    raw.unlink()
    return str(path)


def cluster(workers: int) -> Any:
    """A client of as many processes on this machine; nothing if there are none."""
    if not workers:
        return nullcontext()
    from distributed import Client

    return Client(n_workers=workers, threads_per_worker=1, dashboard_address=None)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_data", description=__doc__)
    parser.add_argument("--sequences", type=int, default=1_000_000)
    parser.add_argument("--rows", type=int, default=50_000, help="of a part")
    parser.add_argument("--in-memory", action="store_true", help="load all data at once")
    parser.add_argument("--workers", type=int, default=0, help="processes of Dask")
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder, cluster(arguments.workers):
        symbols, offsets = write_ragged(Path(folder), arguments.sequences)
        before = peak_memory()
        parts = PartitionedSequences.from_ragged(symbols, offsets, 10, rows=arguments.rows)
        began, processor = time.perf_counter(), time.process_time()
        data = parts.load() if arguments.in_memory else parts
        check = ksd_check(model(), data, bootstrap="wild", num_bootstrap=500, progress=True)
        spent, processor = time.perf_counter() - began, time.process_time() - processor
        print(f"{len(data):,} sequences, {len(parts.parts)} parts, 500 draws of the wild bootstrap: {verdict(check)}")
        attributes = check["ksd"].attrs
        seconds = {name: attributes[f"seconds_{name}"] for name in ("kernels", "bootstrap", "localization")}
        print(", ".join(f"{name} {value:.1f} s" for name, value in seconds.items()))
        print(f"processor time {processor:.1f} s in this process, {spent:.1f} s on the clock")
        print(f"peak memory {peak_memory():.2f} GiB, {before:.2f} GiB before the check")


if __name__ == "__main__":
    main()

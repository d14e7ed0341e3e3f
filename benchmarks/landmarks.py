# SPDX-License-Identifier: Apache-2.0
"""Landmarks in place of all pairs, for the Hamming kernel: level, power and time; ``python -m benchmarks.landmarks``.

The model is a chain over four symbols, of 5 to 7 of them, with all substitutions. *Level* is
how often it is rejected at level 0.05 for data of its own, *power* for data of a chain that differs in its transitions,
or in how often the symbols come. The time is that of a wild-bootstrap test of sequences of mean length 10 over 10
symbols, as in ``benchmarks.large_data``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.engine import chain
from benchmarks.fault_models import chain_with_lengths
from benchmarks.rejections import LEVEL, band, seeded, table
from benchmarks.timing import peak_memory
from pyro_ksd.edits import Substitutions, zs
from pyro_ksd.fit_tests.absolute import Bootstrap, goodness_of_fit
from pyro_ksd.kernels import HammingKernel, Kernel, LandmarkKernel
from pyro_ksd.models import LinearChainMRF, MarkovSequence, SequenceDistribution
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.views import View

DRAWS = {"wild": 99, "parametric": 39}
POOL = 2_000  # draws from the model, out of which landmarks are chosen

MakeKernel = Callable[[SequenceDistribution, Sequences, torch.Generator], Kernel[Any]]
"""Makes the kernel of a test from the model and the data."""


def small_chain(evenness: float = 0.0, favored: float = 0.0) -> LinearChainMRF:
    """The chain that is tested, or one with a fault.

    :param evenness: how far the transitions are on the way to even ones.
    :param favored: the probability with which a symbol is the first one, whatever the transitions say.
    """
    moves = torch.tensor([[1, 4, 2, 1], [1, 1, 4, 2], [2, 1, 1, 4], [4, 2, 1, 1]], dtype=torch.double) / 8
    moves = (1 - evenness) * moves + evenness / 4
    moves = (1 - favored) * moves
    moves[:, 0] += favored
    lengths = torch.tensor([0, 0, 0, 0, 0, 1, 1, 1], dtype=torch.double) / 3
    return chain_with_lengths(torch.full((4,), 0.25, dtype=torch.double), moves, lengths)


def exact(model: SequenceDistribution, data: Sequences, generator: torch.Generator) -> Kernel[Any]:
    return HammingKernel()


def of_model(count: int) -> MakeKernel:
    """Landmarks that the model draws."""

    def make(model: SequenceDistribution, data: Sequences, generator: torch.Generator) -> Kernel[Any]:
        return LandmarkKernel.from_sequences(HammingKernel(), model.draw(POOL, generator), count, seed=generator)

    return make


def of_data(count: int) -> MakeKernel:
    """Landmarks out of the data that are tested."""

    def make(model: SequenceDistribution, data: Sequences, generator: torch.Generator) -> Kernel[Any]:
        return LandmarkKernel.from_sequences(HammingKernel(), data, count, seed=generator)

    return make


def rejected(
    source: SequenceDistribution,
    size: int,
    make: MakeKernel,
    bootstrap: Bootstrap,
    runs: int,
    generator: torch.Generator,
) -> tuple[float, float]:
    """How often the chain is rejected for data of another one, and the processor time of a test in seconds."""
    model = small_chain()
    count = 0
    begin = time.process_time()
    for _ in range(runs):
        data = source.draw(size, generator)
        view = View("Hamming", ZanellaOperator(Substitutions()), make(model, data, generator))
        found = goodness_of_fit(
            model,
            data,
            [view],
            bootstrap=bootstrap,
            num_bootstrap=DRAWS[bootstrap],
            seed=int(torch.randint(2**31, (), generator=generator)),
        )
        count += found.p_value_overall <= LEVEL
    return count / runs, (time.process_time() - begin) / runs


def levels(runs: int) -> None:
    """Prints the level with landmarks out of the data; by the parametric bootstrap, others have it exactly."""
    rows = []
    for size, counts in ((50, (25, 50)), (200, (25, 100))):
        for count in counts:
            tests: list[tuple[MakeKernel, Bootstrap]] = [
                (of_model(count), "wild"),
                (of_data(count), "wild"),
                (of_data(count), "parametric"),
            ]
            row = [str(size), str(count)]
            for column, (make, bootstrap) in enumerate(tests):
                generator = seeded(0, "level", size, count, column)
                rate, _ = rejected(small_chain(), size, make, bootstrap, runs, generator)
                row.append(f"{rate:.3f}")
            rows.append(row)
            print(*row, flush=True)
    lowest, highest = band(runs)
    print(f"\n{runs} runs; the 99.9 % band of the level is {lowest:.3f} to {highest:.3f}")
    print(table(["n", "landmarks", "wild, of the model", "wild, of the data", "parametric, of the data"], rows))


def powers(runs: int) -> None:
    """Prints level and power of the wild bootstrap, with all pairs and with landmarks of the model."""
    kernels = [("all pairs", exact), *((f"{count} landmarks", of_model(count)) for count in (25, 100, 400))]
    sources = {"none": small_chain(), "transitions": small_chain(evenness=1.0), "symbols": small_chain(favored=0.1)}
    rows = []
    for fault, source in sources.items():
        for size in (100, 200):
            row = [fault, str(size)]
            for _, make in kernels:
                rate, spent = rejected(source, size, make, "wild", runs, seeded(0, "power", fault, size))
                row.append(f"{rate:.3f} ({spent:.2f} s)")
            rows.append(row)
            print(*row, flush=True)
    print(f"\n{runs} runs")
    print(table(["fault", "n", *(name for name, _ in kernels)], rows))


def times(size: int, count: int, edits: str) -> None:
    """Prints the time of one large test."""
    probs = chain().probs
    model = MarkovSequence.from_transitions(probs[-1, :-1], probs[:-1, :-1] / 0.95, 0.1)
    generator = torch.Generator().manual_seed(0)
    data = model.draw(size, generator)
    kernel = LandmarkKernel.from_sequences(HammingKernel(), model.draw(10 * count, generator), count)
    view = View("Hamming", ZanellaOperator(zs() if edits == "zs" else Substitutions()), kernel)
    wall = time.perf_counter()
    processor = time.process_time()
    found = goodness_of_fit(model, data, [view], bootstrap="wild", num_bootstrap=500, progress=True)
    processor = time.process_time() - processor
    wall = time.perf_counter() - wall
    print(f"{size} sequences of mean length {float(data.lengths.double().mean()):.1f}, {edits}, {count} landmarks")
    print(f"p-value {found.p_value_overall:.3f}, {processor:.0f} s of processor, {wall:.0f} s, {peak_memory():.2f} GiB")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.landmarks", description=__doc__)
    parser.add_argument("what", choices=["levels", "powers", "times"])
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--sequences", type=int, default=100_000)
    parser.add_argument("--landmarks", type=int, default=100)
    parser.add_argument("--edits", choices=["zs", "substitutions"], default="zs")
    arguments = parser.parse_args()
    if arguments.what == "levels":
        levels(arguments.runs)
    elif arguments.what == "powers":
        powers(arguments.runs)
    else:
        times(arguments.sequences, arguments.landmarks, arguments.edits)


if __name__ == "__main__":
    main()

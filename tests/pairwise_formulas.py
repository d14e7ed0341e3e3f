# SPDX-License-Identifier: Apache-2.0
"""Pairwise kernels with their formulas, written as plain loops over two lists, and samples to try them on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import oracle
import torch
from hypothesis import strategies as st
from torch import Tensor

from pyro_ksd.kernels.base import Kernel
from pyro_ksd.kernels.cyclic_gaussian import CyclicGaussianKernel
from pyro_ksd.kernels.dirac import DiracKernel
from pyro_ksd.kernels.gap_weighted import GapWeightedKernel
from pyro_ksd.kernels.hamming import HammingKernel
from pyro_ksd.kernels.imq_hamming import IMQHammingKernel
from pyro_ksd.sequences.container import Sequences

Formula = Callable[[list[int], list[int], int], float]  # of two sequences and the size of their alphabet
Sample = list[list[int]]


def imq(scale: float, exponent: float) -> Formula:
    def kernel(x: list[Any], y: list[Any], size: int) -> float:
        width = max(len(x), len(y))
        pairs = zip(x + ["pad"] * (width - len(x)), y + ["pad"] * (width - len(y)), strict=True)
        return float(((1 + scale) / (scale + sum(a != b for a, b in pairs))) ** exponent)

    return kernel


def gap_weighted(length: int, decay: float) -> Formula:
    def features(x: list[int]) -> dict[tuple[int, ...], float]:
        found: dict[tuple[int, ...], float] = {}
        for index in combinations(range(len(x)), length):
            u = tuple(x[i] for i in index)
            found[u] = found.get(u, 0.0) + decay ** (index[-1] - index[0] + 1)
        return found

    def kernel(x: list[int], y: list[int], size: int) -> float:
        left, right = features(x), features(y)
        if not left or not right:
            return 0.0
        norms = [math.sqrt(sum(value**2 for value in side.values())) for side in (left, right)]
        return sum(value * right.get(u, 0.0) for u, value in left.items()) / norms[0] / norms[1]

    return kernel


PAIRWISE: dict[str, tuple[Kernel[Any], Formula]] = {
    "hamming": (HammingKernel(), lambda x, y, size: oracle.hamming(tuple(x), tuple(y))),
    "imq": (IMQHammingKernel(), imq(1.0, 0.5)),
    "imq-sharp": (IMQHammingKernel(scale=0.1, exponent=2.0), imq(0.1, 2.0)),
    "cyclic": (CyclicGaussianKernel(), lambda x, y, size: oracle.cyclic_gaussian(tuple(x), tuple(y), size)),
    "dirac": (DiracKernel(), lambda x, y, size: float(x == y)),
    "dirac-length": (DiracKernel(on="length"), lambda x, y, size: float(len(x) == len(y))),
    "gap-1": (GapWeightedKernel(length=1), gap_weighted(1, 0.5)),
    "gap-2": (GapWeightedKernel(), gap_weighted(2, 0.5)),
    "gap-3": (GapWeightedKernel(length=3, decay=0.9), gap_weighted(3, 0.9)),
    "gap-4": (GapWeightedKernel(length=4, decay=1.0), gap_weighted(4, 1.0)),
}


def plain_gram(plain: Formula, xs: Sample, ys: Sample, size: int) -> Tensor:
    rows = [[plain(x, y, size) for y in ys] for x in xs]
    return torch.tensor(rows, dtype=torch.double).reshape(len(xs), len(ys))


def check_formula(name: str, samples: tuple[int, Sample, Sample], extra: int) -> None:
    """Checks a kernel against its formula for all pairs of two samples.

    :param extra: how much more padding than needed the second sample has.
    """
    kernel, plain = PAIRWISE[name]
    size, xs, ys = samples
    x, y = Sequences.of(xs, size), widened(Sequences.of(ys, size), extra)
    expected = plain_gram(plain, xs, ys, size)
    assert_same(kernel.gram(x, y), expected)
    assert_same(kernel.gram(y, x), expected.T)


def check_value(kernel: Kernel[Any], x: Sequence[int], y: Sequence[int], size: int, expected: float) -> None:
    """Checks the value for one pair."""
    found = kernel.gram(Sequences.of([x], size), Sequences.of([y], size))
    assert_same(found, torch.tensor([[expected]], dtype=torch.double))


def widened(sequences: Sequences, extra: int) -> Sequences:
    """The same sequences with more padding."""
    tokens = torch.nn.functional.pad(sequences.tokens, (0, extra))
    return Sequences(tokens, sequences.lengths, sequences.alphabet)


def assert_same(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-14)


@st.composite
def two_samples(draw: st.DrawFn) -> tuple[int, Sample, Sample]:
    """An alphabet size and two samples: runs of equal symbols, empty sequences, repeats, all lengths up to 7."""
    size = draw(st.integers(1, 5))
    runs = st.lists(st.tuples(st.integers(0, size - 1), st.integers(1, 3)), max_size=4)
    sequence = runs.map(lambda parts: [symbol for symbol, times in parts for _ in range(times)][:7])
    sample = st.lists(sequence, min_size=1, max_size=5)
    xs, ys = draw(sample), draw(sample)
    return size, xs, ys + draw(st.sampled_from([[], xs[:2]]))


def random_rows(size: int, count: int, width: int, seed: int) -> Sample:
    rng = np.random.default_rng(seed)
    return [rng.integers(size, size=rng.integers(width + 1)).tolist() for _ in range(count)]


def refuse(*arguments: object) -> None:
    raise AssertionError("this way should not be taken here")

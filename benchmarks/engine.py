# SPDX-License-Identifier: Apache-2.0
"""How fast the engine is: ``python -m benchmarks.engine``.

Edits per second, and the ratio to plain Python loops over the same formulas, measured in the same run. The model is a
first-order chain over 10 symbols; the edits are all substitutions, insertions and deletions.
"""

from __future__ import annotations

import argparse
import math
import time
from itertools import pairwise

import torch

from benchmarks.timing import seconds
from pyro_ksd.kernels import ContiguousKernel, HammingKernel
from pyro_ksd.models import MarkovSequence
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.views import View
from pyro_ksd.stein.weighting import weighted_edits
from tests import oracle

SYMBOLS = 10
OPERATOR = ZanellaOperator()


def chain(size: int = SYMBOLS) -> MarkovSequence:
    """A first-order chain with random transitions."""
    moves = torch.rand(size, size, dtype=torch.double, generator=torch.Generator().manual_seed(0)) + 0.1
    uniform = torch.full((size,), 1 / size, dtype=torch.double)
    return MarkovSequence.from_transitions(uniform, moves / moves.sum(-1, keepdim=True), 0.05)


def sequences_of(length: int, count: int) -> Sequences:
    """Random sequences of one length."""
    tokens = torch.randint(0, SYMBOLS, (count, length), generator=torch.Generator().manual_seed(length))
    return Sequences.of(tokens, SYMBOLS)


def loop_log_prob(model: MarkovSequence) -> oracle.LogProb:
    """The chain's log-probability in a plain loop."""
    table = model.probs.log().tolist()

    def log_prob(x: oracle.Codes) -> float:
        path = (SYMBOLS, *x, SYMBOLS)
        return math.fsum(table[a][b] for a, b in pairwise(path)) if x else -math.inf

    return log_prob


def features(length: int, t: int) -> tuple[float, float, float]:
    """Edits per second of the features alone, of the whole way from sequences to features, and of the plain loop."""
    model = chain()
    kernel = ContiguousKernel(t)
    data = sequences_of(length, max(4, 6000 // length))
    found = weighted_edits(model, OPERATOR, data)
    edits = found.edits
    weights = found.weights
    alone = len(edits) / seconds(lambda: kernel.stein_features(data, edits, weights))
    whole = len(edits) / seconds(lambda: stein_matrices(model, data, [View("", OPERATOR, kernel)]))
    x = tuple(data.tokens[0].tolist())
    log_prob = loop_log_prob(model)
    around = oracle.neighbors(x, SYMBOLS)
    begin = time.perf_counter()
    oracle.stein_features(log_prob, x, lambda x: around, oracle.barker, lambda y: oracle.csk_features(y, t, t, "sqrt"))
    return alone, whole, len(around) / (time.perf_counter() - begin)


def pairs(length: int) -> tuple[float, float]:
    """Pairs of neighbors per second for the Hamming kernel, by blocks and in the plain loop."""
    model = chain()
    kernel = HammingKernel()
    data = sequences_of(length, max(2, 60 // length))
    compared = (len(OPERATOR.neighborhood.edits(data)) + len(data)) ** 2
    fast = compared / seconds(lambda: stein_matrices(model, data, [View("", OPERATOR, kernel)]), repeats=3)
    x = tuple(data.tokens[0].tolist())
    few = sorted(oracle.neighbors(x, SYMBOLS))[:: max(1, 20 * length // 400)]
    begin = time.perf_counter()
    oracle.stein_matrix(loop_log_prob(model), [x], lambda x: few, oracle.barker, oracle.hamming)
    return fast, (len(few) + 1) ** 2 / (time.perf_counter() - begin)


def main() -> None:
    argparse.ArgumentParser(prog="python -m benchmarks.engine", description=__doc__).parse_args()
    print(f"{torch.get_num_threads()} threads, {SYMBOLS} symbols")
    print("\nContiguous kernel, million edits per second")
    print(f"{'length':>8}{'t':>4}{'features':>12}{'whole way':>12}{'loop':>12}{'ratio':>10}")
    for length in (8, 20, 30, 200):
        for t in (1, 2, 3):
            alone, whole, loop = features(length, t)
            print(f"{length:>8}{t:>4}{alone / 1e6:>12.2f}{whole / 1e6:>12.2f}{loop / 1e6:>12.4f}{whole / loop:>10.0f}")
    print("\nHamming kernel, million pairs of neighbors per second")
    print(f"{'length':>8}{'whole way':>16}{'loop':>12}{'ratio':>10}")
    for length in (8, 30, 200):
        fast, loop = pairs(length)
        print(f"{length:>8}{fast / 1e6:>16.2f}{loop / 1e6:>12.4f}{fast / loop:>10.0f}")
    print("\nContiguous kernel, t = 3, length 20: nanoseconds an edit against the number of sequences")
    for count in (100, 1000, 10000):
        data = sequences_of(20, count)
        model = chain()
        num_edits = len(OPERATOR.neighborhood.edits(data))
        spent = seconds(lambda: stein_matrices(model, data, [View("", OPERATOR, ContiguousKernel(3))]), 3)  # noqa: B023
        print(f"{count:>8}{1e9 * spent / num_edits:>12.0f}")


if __name__ == "__main__":
    main()

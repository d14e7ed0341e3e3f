# SPDX-License-Identifier: Apache-2.0
"""A test of 100,000 sequences: ``python -m benchmarks.large_data`` prints its time and its peak memory."""

from __future__ import annotations

import argparse
import resource
import time

import torch

from benchmarks.engine import chain
from pyro_ksd.fit_tests.absolute import goodness_of_fit
from pyro_ksd.kernels import ContiguousKernel
from pyro_ksd.models import MarkovSequence
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.views import View, default_views


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_data", description=__doc__)
    parser.add_argument("--sequences", type=int, default=100_000)
    parser.add_argument("--all-views", action="store_true", help="the default views in place of bigrams alone")
    arguments = parser.parse_args()
    table = chain().probs
    model = MarkovSequence.from_transitions(table[-1, :-1], table[:-1, :-1] / 0.95, 0.1)
    data = model.draw(arguments.sequences, torch.Generator().manual_seed(0))
    views = default_views() if arguments.all_views else [View("bigrams", ZanellaOperator(), ContiguousKernel(2))]
    begin = time.perf_counter()
    found = goodness_of_fit(model, data, views, bootstrap="wild", num_bootstrap=1000, progress=True)
    spent = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{len(data)} sequences of mean length {float(data.lengths.double().mean()):.1f}, 1000 wild draws")
    print(f"p-value {found.p_value_overall:.3f}, {spent:.1f} seconds, peak memory {peak:.2f} GiB")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""How long a training step of ``HiddenMarkovSequence`` takes, beside one of Pyro's ``DiscreteHMM``.

``python -m benchmarks.hidden_markov`` prints processor times of the log-likelihood and its gradients, taken in turn.
Both are in double precision. ``DiscreteHMM`` takes sequences of one length only, so all have it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pyro.distributions as dist
import torch
from torch import Tensor

from pyro_ksd import HiddenMarkovSequence

SIZES = [(200, 20, 2, 4), (200, 100, 5, 8), (1000, 50, 4, 26), (2000, 12, 8, 27), (50, 400, 3, 4), (20, 1000, 3, 4)]
"""Numbers of sequences, symbols of each, states, and symbols of the alphabet."""


def processor_seconds(runs: list[Callable[[], Tensor]], repeats: int = 9) -> list[float]:
    """The median processor time of some losses with their gradients, after one run to warm up."""
    times: list[list[float]] = [[] for _ in runs]
    for turn in range(repeats + 1):
        for run, spent in zip(runs, times, strict=True):
            begin = time.process_time()
            run().backward()
            if turn:
                spent.append(time.process_time() - begin)
    return [sorted(spent)[repeats // 2] for spent in times]


def losses(count: int, width: int, states: int, symbols: int) -> list[Callable[[], Tensor]]:
    """The loss of both models for the same data and parameters."""
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(symbols, (count, width), generator=generator)
    shapes = ((states,), (states, states), (states, symbols))
    first, moves, emission = (
        torch.randn(shape, dtype=torch.double, generator=generator).requires_grad_() for shape in shapes
    )

    def ours() -> Tensor:
        model = HiddenMarkovSequence(
            first.softmax(-1), moves.softmax(-1), emission.softmax(-1), 1 / width, validate_args=False
        )
        return -model.log_prob(tokens).sum()

    def theirs() -> Tensor:
        observed = dist.Categorical(logits=emission)
        model = dist.DiscreteHMM(
            first.log_softmax(-1), moves.log_softmax(-1), observed, validate_args=False, duration=width
        )
        total: Tensor = model.log_prob(tokens).sum()
        return -total

    return [ours, theirs]


def main() -> None:
    torch.set_num_threads(1)
    print("sequences  width  states  HiddenMarkovSequence  DiscreteHMM  ratio")
    for count, width, states, symbols in SIZES:
        ours, theirs = processor_seconds(losses(count, width, states, symbols))
        print(f"{count:9}  {width:5}  {states:6}  {ours:17.4f} s  {theirs:9.4f} s  {ours / theirs:5.2f}")


if __name__ == "__main__":
    main()

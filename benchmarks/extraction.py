# SPDX-License-Identifier: Apache-2.0
"""What a check of a Pyro program costs: ``python -m benchmarks.extraction``.

The time of a whole check (200 sequences, 10 symbols, a first-order chain, wild bootstrap) through each style of model,
as a ratio to the same check through the distribution of the package, measured in the same run. Then the sequences that
a loop draws a second, where it draws many at once and where it must run once a sequence.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import pyro
import pyro.distributions as dist
import torch
from pyro import poutine
from torch import Tensor

from benchmarks.timing import alternating, seconds
from pyro_ksd import Sequences, ksd_check
from pyro_ksd.examples import random_walk
from pyro_ksd.models import LoopProgram, MarkovSequence, VectorizedProgram
from pyro_ksd.models.length_distribution import has_length_distribution
from pyro_ksd.models.programs.validation import check_program

SYMBOLS = 10
COUNT = 200
STOP = 0.05
ONE_BY_ONE = 500


class Styles:
    """The same chain, written in several ways."""

    def __init__(self, chain: MarkovSequence) -> None:
        self.chain = chain
        self.table = chain.probs
        self.initial = chain.probs[SYMBOLS, :SYMBOLS]
        self.moves = chain.probs[:SYMBOLS, :SYMBOLS] / (1 - STOP)
        self.stop = torch.tensor(STOP, dtype=torch.double)

    def two_sites_a_step(self, sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    probs = self.initial.expand(len(lengths), -1) if t == 0 else self.moves[sequences[:, t - 1]]
                    pyro.sample(f"x_{t}", dist.Categorical(probs), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", dist.Bernoulli(self.stop), obs=(lengths == t + 1).double())

    def end_symbol(self, sequences: Tensor, lengths: Tensor) -> None:
        count, width = sequences.shape
        end = torch.full((count,), SYMBOLS)
        before = end
        with pyro.plate("sequences", count):
            for t in range(width + 1):
                here = torch.where(t < lengths, sequences[:, t], end) if t < width else end
                with poutine.mask(mask=t <= lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(self.table[before]), obs=here)
                before = here

    def nested_plate(self, sequences: Tensor, lengths: Tensor) -> None:
        count, width = sequences.shape
        inside = torch.arange(width) < lengths[:, None]
        with pyro.plate("sequences", count, dim=-2):
            pyro.sample("first", dist.Categorical(self.initial), obs=sequences[:, :1])
            with pyro.plate("steps", width, dim=-1), poutine.mask(mask=inside):
                last = torch.arange(width) + 1 == lengths[:, None]
                pyro.sample("stop", dist.Bernoulli(self.stop), obs=last.double())
            with pyro.plate("moves", width - 1, dim=-1), poutine.mask(mask=inside[:, 1:]):
                pyro.sample("x", dist.Categorical(self.moves[sequences[:, :-1]]), obs=sequences[:, 1:])

    def one_site(self, x: Tensor) -> None:
        with pyro.plate("sequences", len(x)):
            pyro.sample("x", self.chain, obs=x)

    def loop(self) -> None:
        self._loop(lambda x: x)

    def branching_loop(self) -> None:
        self._loop(int)

    def _loop(self, index: Callable[[Tensor], Any]) -> None:
        t = 0
        stop = False
        before = None
        while not stop:
            law = self.initial if before is None else self.moves[index(before)]
            before = pyro.sample(f"x_{t}", dist.Categorical(law))
            stop = pyro.sample(f"stop_{t}", dist.Bernoulli(self.stop)).bool()
            t += 1


def check(model: Any, data: Sequences, order: int | None = None) -> Callable[[], object]:
    """A whole check, to be timed."""
    return lambda: ksd_check(model, data, order=order, bootstrap="wild", progress=False)


def report_draws(styles: Styles) -> None:
    """Prints how many sequences loops draw a second."""
    print("\ndraws of a loop")
    for size in (1_000, 20_000):
        many = LoopProgram(styles.loop, SYMBOLS)
        single = LoopProgram(styles.branching_loop, SYMBOLS)
        new = seconds(lambda: LoopProgram(styles.loop, SYMBOLS).draw(size), 3)  # noqa: B023
        again, old = alternating([lambda: many.draw(size), lambda: single.draw(ONE_BY_ONE)], 3)  # noqa: B023
        rates = size / new, size / again, ONE_BY_ONE / old
        print(
            f"  {size} sequences: {rates[0]:.0f} a second at first, {rates[1]:.0f} when drawn again, {rates[2]:.0f} "
            f"one at a time; {rates[0] / rates[2]:.1f} and {rates[1] / rates[2]:.1f} times as fast"
        )


def main() -> None:
    argparse.ArgumentParser(prog="python -m benchmarks.extraction", description=__doc__).parse_args()
    warnings.simplefilter("ignore")
    styles = Styles(random_walk(SYMBOLS, mean_length=1 / STOP))
    print(f"{torch.get_num_threads()} threads, {COUNT} sequences over {SYMBOLS} symbols, wild bootstrap")
    for length in (20, 200):
        tokens = torch.randint(0, SYMBOLS, (COUNT, length), generator=torch.Generator().manual_seed(length))
        data = Sequences.of(tokens, SYMBOLS)
        print(f"\nlength {length}")
        programs: list[tuple[str, Any, int | None]] = [
            ("two sites a step, order=1", styles.two_sites_a_step, 1),
            ("end symbol, order=1", styles.end_symbol, 1),
        ]
        if length == 20:
            programs += [
                ("two sites a step", styles.two_sites_a_step, None),
                ("end symbol", styles.end_symbol, None),
                ("nested plate", styles.nested_plate, None),
                ("one site", styles.one_site, None),
                ("loop", styles.loop, None),
            ]
        checks = [check(styles.chain, data), *(check(program, data, order) for _, program, order in programs)]
        base, *spent = alternating(checks)
        print(f"  {'distribution of the package':<28}{base:>8.3f} s")
        for (name, _, _), time in zip(programs, spent, strict=True):
            print(f"  {name:<28}{time:>8.3f} s{time / base:>8.2f} times")
        program = VectorizedProgram(styles.two_sites_a_step, data)
        guards = seconds(lambda: check_program(program, data), 3)  # noqa: B023
        lengths = seconds(lambda: has_length_distribution(program, data), 3)  # noqa: B023
        print(f"  guards: {guards:.3f} s, length distribution: {lengths:.3f} s")
    report_draws(styles)


if __name__ == "__main__":
    main()

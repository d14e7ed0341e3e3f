# SPDX-License-Identifier: Apache-2.0
"""How often a monitor rejects true models, and how soon it finds faults: ``python -m benchmarks.monitors``."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from benchmarks.processes import WORKERS, as_finished
from benchmarks.rejections import LEVEL, WithoutSampler, band, default_check, seeded, table
from benchmarks.true_models import field
from pyro_ksd.checks.monitoring import ksd_monitor
from pyro_ksd.fit_tests.absolute import goodness_of_fit
from pyro_ksd.models import HiddenMarkovSequence, MarkovSequence, SequenceModel

STREAM = 5_000
SIZES = (15, 25, 50, 100, 200, 400, 800, 1600, 3200)
_PAGE = Path(__file__).parents[1] / "docs" / "monitor_levels.md"


def chain(stop: float = 0.2, mixed: float = 0.0, sharpness: float = 1.0) -> MarkovSequence:
    """A chain over four symbols.

    :param mixed: how far the transitions from the first symbol are mixed with shifted ones.
    :param sharpness: the power of the transition probabilities, as of a temperature below 1.
    """
    generator = torch.Generator().manual_seed(5)
    moves = torch.rand(4, 4, dtype=torch.double, generator=generator) + 0.1
    moves /= moves.sum(1, keepdim=True)
    moves[0] = (1 - mixed) * moves[0] + mixed * moves[0].roll(1)
    moves = moves**sharpness
    moves /= moves.sum(1, keepdim=True)
    return MarkovSequence.from_transitions(torch.ones(4).double() / 4, moves, stop=stop)


def hidden_chain() -> HiddenMarkovSequence:
    """A hidden Markov model with two states."""
    stay = torch.tensor([[0.9, 0.1], [0.2, 0.8]]).double()
    emit = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]).double()
    return HiddenMarkovSequence(torch.ones(2).double() / 2, stay, emit, stop=0.2)


TRUE: dict[str, Callable[[], tuple[SequenceModel, SequenceModel]]] = {
    "chain of four symbols": lambda: (chain(), chain()),
    "hidden Markov model": lambda: (hidden_chain(), hidden_chain()),
    "Markov random field, not sampled": lambda: (WithoutSampler(field(8)), field(8)),
}
"""Models to watch, and what makes the streams."""

FAULTS: dict[str, Callable[[], SequenceModel]] = {
    "transitions, large": lambda: chain(mixed=1.0),
    "transitions, medium": lambda: chain(mixed=0.5),
    "transitions, small": lambda: chain(mixed=0.25),
    "temperature 0.5": lambda: chain(sharpness=2.0),
    "temperature 0.8": lambda: chain(sharpness=1.25),
    "stops at 0.3": lambda: chain(stop=0.3),
    "stops at 0.22": lambda: chain(stop=0.22),
}
"""What streams come from where the model is :func:`chain`."""


@dataclass(frozen=True)
class Crossings:
    """How many streams were ever rejected, by each view alone and by all together."""

    model: str
    views: dict[str, int]
    together: int


def crossings(name: str, first: int, count: int) -> Crossings:
    """The rejections of some streams of a true model."""
    model, source = TRUE[name]()
    views: dict[str, int] = {}
    together = 0
    for stream in range(first, first + count):
        data = source.draw(STREAM, seeded(0, name, stream))
        monitor = ksd_monitor(model, data.alphabet_size, level=LEVEL, seed=stream)
        monitor.update(data)
        together += monitor.rejected
        found = monitor.result()["ksd_monitor"].to_dataset()
        for view, p in zip(found["view"].values, found["p_value"].values, strict=True):
            views[view] = views.get(view, 0) + int(p <= LEVEL)
    return Crossings(name, views, together)


def delay(name: str, stream: int) -> int:
    """After how many sequences a fault is found; ``STREAM`` + 1 if it is not."""
    data = FAULTS[name]().draw(STREAM, seeded(1, name, stream))
    monitor = ksd_monitor(chain(), 4, level=LEVEL, seed=stream)
    monitor.update(data)
    first = int(monitor.result()["ksd_monitor"].attrs["first_clear"])
    return first if first >= 0 else STREAM + 1


def power(name: str, size: int, runs: int) -> float:
    """How often a check of so many sequences, chosen beforehand, finds a fault."""
    model = chain()
    found = 0
    for run in range(runs):
        data = FAULTS[name]().draw(size, seeded(2, name, run))
        found += goodness_of_fit(model, data, default_check(model, data), seed=run).p_value_overall <= LEVEL
    return found / runs


def smallest_size(name: str, runs: int) -> str:
    """With how many sequences a check finds a fault in at least 90 % of the runs."""
    return next((str(size) for size in SIZES if power(name, size, runs) >= 0.9), f"above {SIZES[-1]}")


def level_table(streams: int, workers: int, each: int = 10) -> str:
    """How many streams of true models were ever rejected."""
    jobs = [(name, first, each) for name in TRUE for first in range(0, streams, each)]
    done = [found for _, found in as_finished(crossings, jobs, workers, "streams", "part")]
    names = ["content-1", "content-2", "content-3", "start", "surprise", "length"]
    rows = []
    for name in TRUE:
        own = [found for found in done if found.model == name]
        rates = [sum(found.views.get(view, 0) for found in own) / streams for view in names]
        rows.append([name, *(f"{rate:.3f}" for rate in (*rates, sum(found.together for found in own) / streams))])
    return table(["model", *names, "all together"], rows)


def delay_table(streams: int, runs: int, workers: int) -> str:
    """After how many sequences faults are found, beside checks with a fixed number of sequences."""
    jobs = [(name, stream) for name in FAULTS for stream in range(streams)]
    delays: dict[str, list[int]] = {name: [] for name in FAULTS}
    for index, found in as_finished(delay, jobs, workers, "delays", "stream"):
        delays[jobs[index][0]].append(found)
    sizes: dict[str, str] = {}
    for index, size in as_finished(smallest_size, [(name, runs) for name in FAULTS], workers, "checks", "fault"):
        sizes[list(FAULTS)[index]] = size
    rows = []
    for name, own in delays.items():
        late = [f"{value:.0f}" if value <= STREAM else f"above {STREAM}" for value in np.quantile(own, [0.5, 0.9])]
        rows.append([name, *late, sizes[name]])
    return table(["fault", "half of the monitors after", "90 % of them after", "a check finds it in 90 % with"], rows)


def speed() -> str:
    """Sequences a second of processor time, of one thread."""
    model = MarkovSequence.from_transitions(torch.ones(10) / 10, torch.ones(10, 10) / 10, stop=0.1)
    data = model.draw(21_000, seeded(0, "speed", 0))
    monitor = ksd_monitor(model, 10)
    monitor.update(data[:1000])
    begin = time.process_time()
    monitor.update(data[1000:])
    return f"{20_000 / (time.process_time() - begin):,.0f}"


def page(streams: int, delayed: int, runs: int, workers: int, show: Callable[[str], None] = print) -> str:
    """The results in Markdown.

    :param show: is called with each table as soon as it is there.
    """
    levels = level_table(streams, workers)
    show(levels)
    delays = delay_table(delayed, runs, workers)
    show(delays)
    _, highest = band(streams)
    return f"""# How monitors do

Written by `python -m benchmarks.monitors --streams {streams} --delayed {delayed} --runs {runs}`.

## True models

The share of {streams:,} streams of {STREAM:,} sequences that were *ever* rejected at level {LEVEL}, by each view alone
and by all views together. Looks after each sequence count. The guarantee is at most {LEVEL}; chance may take the share
up to {highest:.3f} (99.9 % binomial band).

{levels}

## Faults

How many sequences it takes to find a fault of a chain over four symbols with five symbols a sequence on average:
{delayed} streams of {STREAM:,} sequences, beside the smallest of {", ".join(map(str, SIZES))} with which `ksd_check`
finds the fault in at least 90 % of {runs} data sets. A monitor may be looked at after each sequence, a check only once.

{delays}

## Speed

A chain over ten symbols with ten symbols a sequence on average: {speed()} sequences a second of processor time.
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.monitors", description="levels and delays of monitors")
    parser.add_argument("--streams", type=int, default=1000, help="streams of each true model")
    parser.add_argument("--delayed", type=int, default=100, help="streams of each fault")
    parser.add_argument("--runs", type=int, default=100, help="checks of each fault and size")
    parser.add_argument("--workers", type=int, default=WORKERS, help="processes")
    parser.add_argument("--output", type=Path, default=_PAGE, help="the page to write")
    arguments = parser.parse_args()
    text = page(arguments.streams, arguments.delayed, arguments.runs, arguments.workers)
    arguments.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

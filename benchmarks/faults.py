# SPDX-License-Identifier: Apache-2.0
"""Power of each view and of the default check for eight faults: ``python -m benchmarks.faults``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.fault_models import Fault, faults
from benchmarks.processes import WORKERS, as_finished
from benchmarks.rejections import (
    LEVEL,
    NUM_BOOTSTRAP,
    WHOLE,
    MakeViews,
    Sampler,
    band,
    data_set_statistics,
    default_check,
    rejection_rates,
    seeded,
    table,
    weights_of,
    wild_rates,
)

SIZES = (50, 200)
_SEEN = 0.8
_PAGE = Path(__file__).parents[1] / "docs" / "faults.md"


@dataclass(frozen=True)
class Settings:
    """How much is computed.

    :param runs: data sets for the power, and as many for the level.
    :param bootstrap: ``"parametric"`` or ``"wild"``.
    :param pool: null draws to choose from, in the parametric bootstrap.
    :param seed: of all random numbers.
    """

    runs: int = 400
    bootstrap: str = "parametric"
    pool: int = 5000
    seed: int = 0


@dataclass(frozen=True)
class FaultRates:
    """How often the model of a fault was rejected.

    :ivar fault: its name.
    :ivar size: the number of sequences.
    :ivar power: for the data with the fault; of each view and of the whole check, by name.
    :ivar level: for data of the model itself, likewise.
    """

    fault: str
    size: int
    power: dict[str, float]
    level: dict[str, float]


def measure(name: str, size: int, settings: Settings, make_views: MakeViews) -> FaultRates:
    """The rates of one fault, which depend on nothing but the arguments."""
    [fault] = [fault for fault in faults() if fault.name == name]
    rates = _parametric_rates if settings.bootstrap == "parametric" else _wild_rates
    power, level = rates(fault, size, settings, make_views)
    return FaultRates(name, size, power, level)


def _parametric_rates(
    fault: Fault, size: int, settings: Settings, make_views: MakeViews
) -> tuple[dict[str, float], dict[str, float]]:
    generator = seeded(settings.seed, fault.name, size)
    views = make_views(fault.model, fault.model.draw(size, generator))
    names = [*(view.name for view in views), WHOLE]
    pool = data_set_statistics(fault.model, fault.model.draw, size, views, settings.pool, generator)

    def rates(draw: Sampler) -> dict[str, float]:
        observed = data_set_statistics(fault.model, draw, size, views, settings.runs, generator)
        return dict(zip(names, rejection_rates(observed, pool, weights_of(views), generator), strict=True))

    return rates(fault.draw), rates(fault.model.draw)


def _wild_rates(
    fault: Fault, size: int, settings: Settings, make_views: MakeViews
) -> tuple[dict[str, float], dict[str, float]]:
    generator = seeded(settings.seed, fault.name, size)

    def rates(draw: Sampler) -> dict[str, float]:
        return wild_rates(fault.model, draw, size, make_views, settings.runs, NUM_BOOTSTRAP, generator).rejected

    return rates(fault.draw), rates(fault.model.draw)


def measure_all(
    settings: Settings,
    make_views: MakeViews = default_check,
    sizes: Sequence[int] = SIZES,
    workers: int = WORKERS,
) -> list[FaultRates]:
    """The rates of all faults at all sizes, size by size.

    :param make_views: makes the views; a function that other processes can import.
    """
    jobs = [(fault.name, size, settings, make_views) for size in sizes for fault in faults()]
    found = dict(as_finished(measure, jobs, workers, settings.bootstrap, "fault"))
    return [found[index] for index in range(len(jobs))]


def page(rates: Sequence[FaultRates], settings: Settings) -> str:
    """The result in Markdown."""
    lowest, highest = band(settings.runs)
    inside = sum(lowest <= rate.level[WHOLE] <= highest for rate in rates)
    pool = f" --pool {settings.pool}" if settings.bootstrap == "parametric" else ""
    sections = "\n\n".join(_section(rates, size) for size in dict.fromkeys(rate.size for rate in rates))
    return f"""# Eight faults

How often a check rejects a model if the data differ from it in one respect, at level {LEVEL}, with {NUM_BOOTSTRAP}
draws of the {settings.bootstrap} bootstrap and {settings.runs} data sets each. Written by
`python -m benchmarks.faults --runs {settings.runs} --bootstrap {settings.bootstrap}{pool} --seed {settings.seed}`.

`benchmarks/fault_models.py` defines the faults. Their strengths were chosen so that a check with the views `content-1`,
`content-2`, `content-3`, `start` and `length` misses most of them. Each row has the power of each default view alone
and of the whole check, which is one decision from all views. *Level* is how often the whole check rejects the model on
data drawn from the model.

{sections}

The level of {inside} of {len(rates)} true models lies within the 99.9 % binomial band of {settings.runs} runs, \
{lowest:.3f} to {highest:.3f}.
"""


def _section(rates: Sequence[FaultRates], size: int) -> str:
    here = [rate for rate in rates if rate.size == size]
    seen = sum(rate.power[WHOLE] >= _SEEN for rate in here)
    rows = [[rate.fault, *_cells(rate.power), _cell(rate.level[WHOLE])] for rate in here]
    own = ["*level, the largest*", *(_cell(max(rate.level[name] for rate in here)) for name in here[0].level), ""]
    return f"""## {size} sequences

{table(["fault", *here[0].power, "level"], [*rows, own])}

The whole check finds {seen} of {len(here)} faults with a power of at least {_SEEN}."""


def _cells(rates: dict[str, float]) -> list[str]:
    return [_cell(rate) for rate in rates.values()]


def _cell(rate: float) -> str:
    return f"{rate:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description="power for eight faults")
    parser.add_argument("--runs", type=int, default=Settings.runs, help="data sets for the power and for the level")
    parser.add_argument("--bootstrap", default=Settings.bootstrap, choices=["parametric", "wild"])
    parser.add_argument("--pool", type=int, default=Settings.pool, help="null draws that the runs choose from")
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of sequences")
    parser.add_argument("--workers", type=int, default=WORKERS, help="processes")
    parser.add_argument("--output", type=Path, default=_PAGE, help="the page to write")
    arguments = parser.parse_args()
    if arguments.pool < NUM_BOOTSTRAP:
        parser.error(f"--pool: expected at least {NUM_BOOTSTRAP}, the null draws of one run, found {arguments.pool}")
    settings = Settings(arguments.runs, arguments.bootstrap, arguments.pool, arguments.seed)
    text = page(measure_all(settings, sizes=arguments.sizes, workers=arguments.workers), settings)
    arguments.output.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()

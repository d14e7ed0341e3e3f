# SPDX-License-Identifier: Apache-2.0
"""Power and level of the default check in twelve scenarios: ``python -m benchmarks.scenarios``.

The scenarios, and the published figures to compare with, are those of Baum, Kanagawa and Gretton (2023).

The null draws come out of a pool, see :mod:`benchmarks.rejections`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.processes import WORKERS, as_finished
from benchmarks.rejections import (
    LEVEL,
    NUM_BOOTSTRAP,
    band,
    data_set_statistics,
    default_check,
    rejection_rates,
    seeded,
    table,
    weights_of,
)
from benchmarks.scenario_models import Scenario, redrawn, scenarios
from pyro_ksd.models import SequenceModel
from pyro_ksd.stein.views import View

_PUBLISHED = Path(__file__).with_name("scenarios_published.json")
_PAGE = Path(__file__).parents[1] / "docs" / "scenarios.md"


@dataclass(frozen=True)
class Settings:
    """How much is computed.

    :param runs: data sets for the power, and as many for the level.
    :param pool: null draws to choose from.
    :param balancing: the balancing function of all views.
    :param seed: of all random numbers.
    :param redraws: how often the scenarios with random models are drawn anew.
    """

    runs: int = 1000
    pool: int = 20_000
    balancing: str = "barker"
    seed: int = 0
    redraws: int = 5


@dataclass(frozen=True)
class Rates:
    """How often a scenario's model was rejected.

    :ivar views: the power of each view by itself, by the view's name.
    :ivar power: the power of the default check.
    :ivar level: how often the default check rejects the model on data of its own.
    """

    views: dict[str, float]
    power: float
    level: float


def measure(index: int, settings: Settings) -> Rates:
    """The rates of one scenario, which depend on nothing but its index and the settings."""
    return _rates(scenarios()[index], settings, torch.Generator().manual_seed(settings.seed * len(scenarios()) + index))


def measure_redrawn(redraw: int, index: int, settings: Settings) -> Rates:
    """The rates of one scenario whose random models are drawn anew."""
    models = torch.Generator().manual_seed(settings.seed + 1000 + redraw)
    generator = seeded(settings.seed, "redrawn", redraw, index)
    return _rates(redrawn(models)[index], settings, generator)


def _rates(scenario: Scenario, settings: Settings, generator: torch.Generator) -> Rates:
    data = scenario.model.draw(scenario.num_sequences, torch.Generator().manual_seed(0))
    views = default_check(scenario.model, data, settings.balancing)
    pool = statistics(scenario, scenario.model, views, settings.pool, generator)
    wrong = statistics(scenario, scenario.data_model, views, settings.runs, generator)
    right = statistics(scenario, scenario.model, views, settings.runs, generator)
    *each, power = rejection_rates(wrong, pool, weights_of(views), generator)
    *_, level = rejection_rates(right, pool, weights_of(views), generator)
    return Rates(dict(zip([view.name for view in views], each, strict=True)), power, level)


def statistics(
    scenario: Scenario, source: SequenceModel, views: Sequence[View], num_data_sets: int, generator: torch.Generator
) -> Tensor:
    """The statistics of the scenario's model for data sets of another model, or of its own; ``[num_data_sets, V]``."""
    return data_set_statistics(scenario.model, source.draw, scenario.num_sequences, views, num_data_sets, generator)


def measure_all(settings: Settings) -> list[Rates]:
    """The rates of all scenarios, computed in several processes."""
    jobs = [(index, settings) for index in range(len(scenarios()))]
    found = dict(as_finished(measure, jobs, WORKERS, settings.balancing, "scenario"))
    return [found[index] for index in range(len(jobs))]


def measure_all_redrawn(settings: Settings) -> list[list[Rates]]:
    """The rates of the scenarios with random models, for each redraw."""
    count = len(redrawn(torch.Generator()))
    jobs = [(redraw, index, settings) for redraw in range(settings.redraws) for index in range(count)]
    found = dict(as_finished(measure_redrawn, jobs, WORKERS, "redrawn", "scenario"))
    return [[found[redraw * count + index] for index in range(count)] for redraw in range(settings.redraws)]


def page(rates: Sequence[Rates], anew: Sequence[Sequence[Rates]], settings: Settings) -> str:
    """The result in Markdown.

    :param anew: the rates of the scenarios with random models, for each redraw.
    """
    lowest, highest = band(settings.runs)
    inside = sum(lowest <= rate.level <= highest for rate in rates)
    return f"""# Twelve scenarios

How often the check rejects a wrong model, and how often it rejects the true one, at level {LEVEL}, with {NUM_BOOTSTRAP}
draws of the parametric bootstrap, {settings.runs} data sets each, and the balancing function `{settings.balancing}`.
Written by `python -m benchmarks.scenarios --runs {settings.runs} --pool {settings.pool} --balancing \
{settings.balancing} --seed {settings.seed} --redraws {settings.redraws}`.

The scenarios are those of Baum, Kanagawa and Gretton (2023). `benchmarks/scenario_models.py` defines them.

- *Best in the paper*: the highest power that the paper prints for the scenario among its kernel Stein tests (two
  kernels, three kinds of edits, several ranges of edits; 400 data sets each). In practice, you do not know in advance
  which test this is.
- *CSK*: the paper's test with its contiguous subsequence kernel and all edits, as the paper prints it and as measured
  here. This is the view in italics.
- *content-1* ... *repeats*: each default view alone.
- *Default check*: all views, one decision. This is what `ksd_check` reports.
- *Level*: how often the default check rejects the true model.

{_table(rates)}

The level of {inside} of {len(rates)} true models lies within the 99.9 % binomial band of {settings.runs} runs, \
{lowest:.3f} to {highest:.3f}.
{_redrawn_section(anew, settings)}"""


def _redrawn_section(anew: Sequence[Sequence[Rates]], settings: Settings) -> str:
    if not anew:
        return ""
    lowest, highest = band(settings.runs)
    levels = [rate.level for redraw in anew for rate in redraw]
    inside = sum(lowest <= level <= highest for level in levels)
    rows = []
    for scenario, own in zip(redrawn(torch.Generator()), zip(*anew, strict=True), strict=True):
        powers = [rate.power for rate in own]
        rows.append([scenario.name, *_cells([sum(powers) / len(powers), min(powers), max(powers)])])
    return f"""
## Other random models of the same kind

Six scenarios have random models. With {len(anew)} other draws of these models, the default check has this power:

{table(["scenario", "mean", "smallest", "largest"], rows)}

The level of {inside} of {len(levels)} true models lies within the band.
"""


def _table(rates: Sequence[Rates]) -> str:
    published = json.loads(_PUBLISHED.read_text(encoding="utf-8"))
    names = list(rates[0].views)
    rows = []
    for scenario, rate in zip(scenarios(), rates, strict=True):
        paper = published[scenario.name]
        own = f"content-{scenario.ngram}"
        rows.append([paper["best"], paper["own"], rate.views[own], *rate.views.values(), rate.power, rate.level])
    averages = torch.tensor(rows, dtype=torch.double).mean(0).tolist()
    head = ["scenario", "best in the paper", "CSK, published", "CSK, measured", *names, "default check", "level"]
    lines = []
    for scenario, row in zip(scenarios(), rows, strict=True):
        cells = _cells(row)
        cells[0] += f" ({published[scenario.name]['best_test']})"
        cells[2 + scenario.ngram] = f"*{cells[2 + scenario.ngram]}*"
        lines.append([scenario.name, *cells])
    lines.append(["**average**", *(f"**{cell}**" for cell in _cells(averages))])
    return table(head, lines)


def _cells(row: Sequence[float]) -> list[str]:
    return [f"{value:.3f}" for value in row]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scenarios", description="power in twelve scenarios")
    parser.add_argument("--runs", type=int, default=Settings.runs, help="data sets for the power and for the level")
    parser.add_argument("--pool", type=int, default=Settings.pool, help="null draws that the runs choose from")
    parser.add_argument("--balancing", default=Settings.balancing, choices=["barker", "mpf", "metropolis"])
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--redraws", type=int, default=Settings.redraws, help="draws of other random models")
    parser.add_argument("--output", type=Path, default=_PAGE, help="the page to write")
    arguments = parser.parse_args()
    if arguments.pool < NUM_BOOTSTRAP:
        parser.error(f"--pool: expected at least {NUM_BOOTSTRAP}, the null draws of one run, found {arguments.pool}")
    settings = Settings(arguments.runs, arguments.pool, arguments.balancing, arguments.seed, arguments.redraws)
    text = page(measure_all(settings), measure_all_redrawn(settings), settings)
    arguments.output.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()

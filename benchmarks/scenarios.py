# SPDX-License-Identifier: Apache-2.0
r"""Power and level of the default check in twelve scenarios: ``python -m benchmarks.scenarios``.

The scenarios, and the published figures to compare with, are those of Baum, Kanagawa and Gretton (2023).

A test by parametric bootstrap draws its null data sets from the model, whatever the data are. So for each scenario one
large *pool* of them is drawn, and every run takes its own null draws from it, at random and without replacement. Given
that the model is true, the statistics of the data and those of the pool are independent with one law; they are
therefore exchangeable, and so are the data and any part of the pool: every single run is a test of exactly the level
that fresh draws would have, and of the same power. Only the runs are no longer independent of each other. To a rate of
rejection near :math:`\alpha`, which has the standard error :math:`\sqrt{\alpha (1 - \alpha) / \text{runs}}`, the common
pool of :math:`P` draws adds a standard error of about :math:`\sqrt{\alpha (1 - \alpha) / P}`, that of the quantile of
the pool: 0.0015 beside 0.0069 for 1,000 runs and :math:`P` = 20,000.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import torch
from scipy.stats import binom
from torch import Tensor
from tqdm import tqdm

from benchmarks.scenario_models import Scenario, scenarios
from pyro_ksd.fit_tests.combination import harmonic_p
from pyro_ksd.fit_tests.null_draws import parametric_bootstrap
from pyro_ksd.models import SequenceModel, with_sampler
from pyro_ksd.stein.views import View, default_views

LEVEL = 0.05
NUM_BOOTSTRAP = 500
_WORKERS = 2
_PUBLISHED = Path(__file__).with_name("scenarios_published.json")
_PAGE = Path(__file__).parents[1] / "docs" / "scenarios.md"


@dataclass(frozen=True)
class Settings:
    """How much is computed.

    :param runs: data sets for the power, and as many for the level.
    :param pool: null draws to choose from.
    :param balancing: the balancing function of all views.
    :param seed: of all random numbers.
    """

    runs: int = 1000
    pool: int = 20_000
    balancing: str = "barker"
    seed: int = 0


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
    scenario = scenarios()[index]
    views = default_views(balancing=settings.balancing)
    generator = torch.Generator().manual_seed(settings.seed * len(scenarios()) + index)
    pool = statistics(scenario, scenario.model, views, settings.pool, generator)
    wrong = statistics(scenario, scenario.data_model, views, settings.runs, generator)
    right = statistics(scenario, scenario.model, views, settings.runs, generator)
    *each, power = rejection_rates(wrong, pool, generator)
    *_, level = rejection_rates(right, pool, generator)
    return Rates(dict(zip([view.name for view in views], each, strict=True)), power, level)


def statistics(
    scenario: Scenario, source: SequenceModel, views: Sequence[View], num_data_sets: int, generator: torch.Generator
) -> Tensor:
    """The statistics of the scenario's model for data sets of another model, or of its own; ``[num_data_sets, V]``."""
    model = with_sampler(scenario.model, source.draw)
    return parametric_bootstrap(model, scenario.num_sequences, views, num_data_sets, generator).statistic


def p_values(observed: Tensor, pool: Tensor, generator: torch.Generator) -> Tensor:
    """The p-values of the views and the overall one, ``[V + 1]``, with null draws out of the pool."""
    chosen = torch.randperm(len(pool), generator=generator)[:NUM_BOOTSTRAP]
    each, overall = harmonic_p(observed, pool[chosen])
    return torch.cat([each, overall[None]])


def rejection_rates(observed: Tensor, pool: Tensor, generator: torch.Generator) -> list[float]:
    """How often each view, and then all of them together, reject.

    :param observed: ``[runs, V]``
    :param pool: ``[P, V]``
    """
    found = torch.stack([p_values(row, pool, generator) for row in observed])
    rates: list[float] = (found <= LEVEL).double().mean(0).tolist()
    return rates


def measure_all(settings: Settings) -> list[Rates]:
    """The rates of all scenarios, computed in several processes."""
    found: dict[int, Rates] = {}
    count = len(scenarios())
    with ProcessPoolExecutor(_WORKERS, get_context("spawn"), torch.set_num_threads, (1,)) as executor:
        waiting = {executor.submit(measure, index, settings): index for index in range(count)}
        for done in tqdm(as_completed(waiting), total=count, desc=settings.balancing, unit="scenario"):
            found[waiting[done]] = done.result()
    return [found[index] for index in range(count)]


def page(rates: Sequence[Rates], settings: Settings) -> str:
    """The result in Markdown."""
    lowest, highest = (int(end) for end in binom.interval(0.999, settings.runs, LEVEL))
    inside = sum(lowest <= round(rate.level * settings.runs) <= highest for rate in rates)
    return f"""# Twelve scenarios

How often a wrong model is found, and how often a true one is rejected, at level {LEVEL} with {NUM_BOOTSTRAP} draws of
the parametric bootstrap: {settings.runs} data sets each, balancing function `{settings.balancing}`. Written by
`python -m benchmarks.scenarios --runs {settings.runs} --pool {settings.pool} --balancing {settings.balancing} --seed \
{settings.seed}`.

The scenarios are those of Baum, Kanagawa and Gretton (2023); `benchmarks/scenario_models.py` states them.

- *Best in the paper*: the largest power that the paper prints for the scenario among its kernel Stein tests (two
  kernels, three kinds of edits, several ranges of edits; 400 data sets each). Nobody knows beforehand which it will be.
- *CSK*: the paper's test with its contiguous subsequence kernel and all edits, as the paper prints it, and as measured
  here. It is the view in italics.
- *content-1* ... *length*: each default view by itself.
- *Default check*: all views, one decision. This is what `ksd_check` does.
- *Level*: how often the default check rejects the true model.

{_table(rates)}

The level of {inside} of {len(rates)} true models lies within the 99.9 % binomial band of {settings.runs} runs, \
{lowest / settings.runs:.3f} to {highest / settings.runs:.3f}.
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
    lines = [head, ["---"] * len(head)]
    for scenario, row in zip(scenarios(), rows, strict=True):
        cells = _cells(row)
        cells[0] += f" ({published[scenario.name]['best_test']})"
        cells[2 + scenario.ngram] = f"*{cells[2 + scenario.ngram]}*"
        lines.append([scenario.name, *cells])
    lines.append(["**average**", *(f"**{cell}**" for cell in _cells(averages))])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(row: Sequence[float]) -> list[str]:
    return [f"{value:.3f}" for value in row]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scenarios", description="power in twelve scenarios")
    parser.add_argument("--runs", type=int, default=Settings.runs, help="data sets for the power and for the level")
    parser.add_argument("--pool", type=int, default=Settings.pool, help="null draws that the runs choose from")
    parser.add_argument("--balancing", default=Settings.balancing, choices=["barker", "mpf", "metropolis"])
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--output", type=Path, default=_PAGE, help="the page to write")
    arguments = parser.parse_args()
    if arguments.pool < NUM_BOOTSTRAP:
        parser.error(f"--pool: expected at least {NUM_BOOTSTRAP}, the null draws of one run, found {arguments.pool}")
    settings = Settings(arguments.runs, arguments.pool, arguments.balancing, arguments.seed)
    text = page(measure_all(settings), settings)
    arguments.output.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""The twelve scenarios: neighborhoods, kernels, symbol neighborhoods, balancing functions, random models drawn anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import torch
import xarray as xr
from matplotlib.figure import Figure

from benchmarks.paper.experiment import Cell, Experiment
from benchmarks.paper.figures import LEGEND, finish, line
from benchmarks.paper.results import PUBLISHED, rates, standard_errors
from benchmarks.paper.testing import MMDTest, OneSampleMMDTest, Scale, SteinTest, Test, rejections
from benchmarks.scenario_models import Scenario, redrawn, scenarios, text_variants
from pyro_ksd.edits.neighborhoods import InsertionsDeletions, Neighborhood, Substitutions, zs
from pyro_ksd.kernels import ContiguousKernel, CyclicGaussianKernel, HammingKernel, Kernel

FAMILIES: dict[str, Callable[[int | None], Neighborhood]] = {
    "ZS": zs,
    "ZS′": Substitutions,
    "ZS″": InsertionsDeletions,
}
LOCATIONS = (1, 3, 5, 7, 9, None)
KERNELS: dict[str, Callable[[int], Kernel]] = {
    "CSK": ContiguousKernel,
    "CSK (cosine)": lambda ngram: ContiguousKernel(ngram, form="cosine"),
    "Hamming": lambda _: HammingKernel(),
    "cyclic Gaussian": lambda _: CyclicGaussianKernel(),
}
_QUICK_SCALE = Scale(3, 20, 19)


@dataclass(frozen=True)
class Spec:
    """What a test is made of.

    :param kernel: one of :data:`KERNELS`.
    :param family: one of :data:`FAMILIES`, ``"MMD"``, or ``"MMD, one sample"`` for a sample that serves all data sets.
    :param locations: how many locations from the end are edited, ``J``; ``None`` for all.
    :param radius: how far away a symbol's substitutes may be on the ring of symbols, ``d``; ``None`` for all.
    """

    kernel: str
    family: str
    locations: int | None = None
    radius: int | None = None
    balancing: str = "barker"

    @property
    def name(self) -> str:
        return (
            f"{self.kernel} MMD" if self.family == "MMD" else f"{self.kernel} {self.family} J={_number(self.locations)}"
        )

    def test(self, scenario: Scenario, generator: torch.Generator) -> Test:
        kernel = KERNELS[self.kernel](scenario.ngram)
        if self.family == "MMD":
            return MMDTest(kernel)
        if self.family == "MMD, one sample":
            return OneSampleMMDTest(kernel, scenario.model.draw(MMDTest.num_samples, generator))
        neighborhood = FAMILIES[self.family](self.locations)
        if self.radius is not None and isinstance(neighborhood, Substitutions):
            neighborhood = replace(neighborhood, symbols=self.radius)
        return SteinTest.of(neighborhood, kernel, self.balancing)


@dataclass(frozen=True)
class ScenarioJob:
    """Some tests in one scenario.

    :param source: gives the scenarios; takes a generator, for those with random models.
    :param index: the number of the scenario.
    :param specs: the tests by name.
    """

    source: Callable[[torch.Generator], Sequence[Scenario]]
    index: int
    specs: tuple[tuple[str, Spec], ...]
    scale: Scale
    repetition: int = 0

    @property
    def key(self) -> tuple[int, ...]:
        return self.index, self.repetition

    def measure(self, generator: torch.Generator) -> list[Cell]:
        scenario = self.source(generator)[self.index]
        tests = {name: spec.test(scenario, generator) for name, spec in self.specs}
        laws = {scenario.name: scenario.data_model}
        size = scenario.num_sequences
        return rejections(scenario.model, laws, size, lambda _: tests, self.scale, generator, self.repetition)


def _published(_: torch.Generator) -> list[Scenario]:
    return scenarios()


def _texts(_: torch.Generator) -> list[Scenario]:
    return text_variants()


def _number(number: int | None) -> str:
    return "∞" if number is None else str(number)


def _named(specs: Iterable[Spec]) -> tuple[tuple[str, Spec], ...]:
    return tuple((spec.name, spec) for spec in specs)


def _scale(quick: bool, runs: int, pool: int) -> Scale:
    return _QUICK_SCALE if quick else Scale(runs, pool)


def _scenario_jobs(quick: bool, kernel: str, pool: int) -> list[ScenarioJob]:
    locations = (1, None) if quick else LOCATIONS
    groups = [_named(Spec(kernel, family, locations=place) for place in locations) for family in FAMILIES]
    groups.append(_named([Spec(kernel, "MMD")]))
    indices = (0, 8) if quick else range(len(scenarios()))
    scale = _scale(quick, 400, pool)
    return [ScenarioJob(_published, index, group, scale) for group in groups for index in indices]


def _text_jobs(quick: bool) -> list[ScenarioJob]:
    locations = (None,) if quick else (1, 3, None)
    group = _named(
        [
            *(Spec("CSK", family, locations=place) for family, place in product(("ZS", "ZS′"), locations)),
            *(Spec("CSK (cosine)", family) for family in ("ZS", "ZS′")),
            Spec("CSK", "MMD"),
        ]
    )
    indices = (0, 8) if quick else range(len(text_variants()))
    return [ScenarioJob(_texts, index, group, _scale(quick, 400, 2000)) for index in indices]


def _ring_jobs(quick: bool) -> list[ScenarioJob]:
    places = (None,) if quick else (1, 3, None)
    jobs = []
    for family, index in product(FAMILIES, (2,) if quick else range(2, 6)):
        specs = [Spec("cyclic Gaussian", family, locations=place) for place in places]
        group = tuple((spec.name.replace("cyclic Gaussian", "Hamming"), spec) for spec in specs)
        jobs.append(ScenarioJob(_published, index, group, _scale(quick, 400, 1000)))
    return jobs


def _redrawn_jobs(quick: bool) -> list[ScenarioJob]:
    group = _named([Spec("CSK", "ZS"), Spec("CSK", "ZS′"), Spec("CSK", "MMD")])
    scale = _scale(quick, 100, 500)
    return [
        ScenarioJob(redrawn, index, group, scale, repetition)
        for index, repetition in product(range(1 if quick else 6), range(2 if quick else 20))
    ]


def _one_sample_jobs(quick: bool) -> list[ScenarioJob]:
    group = (("CSK MMD", Spec("CSK", "MMD, one sample")),)
    scale = _scale(quick, 100, 500)
    found = product((2,) if quick else range(len(scenarios())), range(2 if quick else 20))
    return [ScenarioJob(_published, index, group, scale, repetition) for index, repetition in found]


def _shared_null_jobs(quick: bool) -> list[ScenarioJob]:
    places = (None,) if quick else (1, 3, None)
    groups = [_named(Spec("CSK", family, locations=place) for place in places) for family in FAMILIES]
    scale = Scale(3, 19, 19) if quick else Scale(100, 100)  # a pool no larger than what a run takes
    found = product(groups, (8,) if quick else range(len(scenarios())), range(2 if quick else 40))
    return [ScenarioJob(_published, index, group, scale, repetition) for group, index, repetition in found]


def _symbol_specs(quick: bool) -> list[tuple[str, Spec]]:
    found = product(("CSK",) if quick else ("CSK", "Hamming"), (1, 3), (1, 2, 3, None))
    specs = [Spec(kernel, "ZS′", locations=place, radius=radius) for kernel, place, radius in found]
    return [(f"{spec.name} d={_number(spec.radius)}", spec) for spec in specs]


def _symbol_jobs(quick: bool) -> list[ScenarioJob]:
    group = tuple(_symbol_specs(quick))
    indices = (8,) if quick else range(len(scenarios()))
    return [ScenarioJob(_published, index, group, _scale(quick, 200, 500)) for index in indices]


def _balancing_specs(quick: bool) -> list[tuple[str, Spec]]:
    found = product(("ZS", "ZS′"), (None,) if quick else (5, 7, None), ("barker", "mpf", "metropolis"))
    specs = [Spec("CSK", family, locations=place, balancing=balancing) for family, place, balancing in found]
    return [(f"{spec.name} {spec.balancing}", spec) for spec in specs]


def _balancing_jobs(quick: bool) -> list[ScenarioJob]:
    group = tuple(_balancing_specs(quick))
    indices = (8,) if quick else range(len(scenarios()))
    return [ScenarioJob(_published, index, group, _scale(quick, 400, 5000)) for index in indices]


def _draw_neighborhoods(result: xr.Dataset) -> Figure:
    """The mean over the scenarios against ``J`` and against the median time of one statistic."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), sharey=True, layout="constrained")
    mean, error, published = _means(result)
    seconds = 1e3 * result["seconds"].mean("repetition").median("point")  # a process may have had to wait in some
    tests = [str(test) for test in result["test"].values]
    kernel = tests[0].split()[0]
    for index, family in enumerate(FAMILIES):
        specs = [Spec(kernel, family, locations=place) for place in LOCATIONS]
        names = [spec.name for spec in specs if spec.name in tests]
        x = [spec.locations or 11 for spec in specs if spec.name in tests]
        theirs = published.sel(test=names)
        line(left, x, mean.sel(test=names), error.sel(test=names), f"{kernel} {family}", index, theirs)
        line(right, seconds.sel(test=names).values, mean.sel(test=names), error.sel(test=names), "", index)
    name = f"{kernel} MMD"
    left.axhline(float(mean.sel(test=name)), color="C3", linestyle=":", label=name)
    left.set_xticks([1, 3, 5, 7, 9, 11], ["1", "3", "5", "7", "9", "∞"])
    finish(left, "J, locations that are edited", top=0.7)
    finish(right, "median time of one statistic in ms", top=0.7)
    right.set(xscale="log", ylabel="")
    low, high = right.get_xlim()
    ticks = [tick for tick in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200) if low <= tick <= high]
    right.set_xticks(ticks, list(map(str, ticks)))
    right.minorticks_off()
    right.legend(*left.get_legend_handles_labels(), **LEGEND)
    left.get_legend().remove()
    return figure


def _draw_symbols(result: xr.Dataset) -> Figure:
    """The mean over the scenarios against the radius of the symbol neighborhood."""
    figure, axes = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
    mean, error, _ = _means(result)
    specs = [(name, spec) for name, spec in _symbol_specs(False) if name in set(map(str, result["test"].values))]
    for index, group in enumerate(dict.fromkeys(spec.name for _, spec in specs)):
        names = [name for name, spec in specs if spec.name == group]
        x = [spec.radius or 5 for _, spec in specs if spec.name == group]
        theirs = xr.DataArray([PUBLISHED["symbols"].get(name) for name in names])
        line(axes, x, mean.sel(test=names), error.sel(test=names), group, index, theirs)
    axes.set_xticks([1, 2, 3, 5], ["1", "2", "3", "∞"])
    finish(axes, "d, radius of the symbol neighborhood", top=0.7)
    return figure


def _draw_balancing(result: xr.Dataset) -> Figure:
    """The mean over the scenarios against ``J``, a panel for each kind of edits."""
    figure, panels = plt.subplots(1, 2, figsize=(9.5, 4.2), sharey=True, layout="constrained")
    mean, error, _ = _means(result)
    tests = set(map(str, result["test"].values))
    specs = [(name, spec) for name, spec in _balancing_specs(False) if name in tests]
    for axes, family in zip(panels, ("ZS", "ZS′"), strict=True):
        for index, balancing in enumerate(("barker", "mpf", "metropolis")):
            own = [(name, spec) for name, spec in specs if (spec.family, spec.balancing) == (family, balancing)]
            names = [name for name, _ in own]
            x = [spec.locations or 11 for _, spec in own]
            line(axes, x, mean.sel(test=names), error.sel(test=names), balancing, index)
        axes.set_xticks([5, 7, 11], ["5", "7", "∞"])
        axes.set_title(f"CSK {family}", loc="left", fontsize="medium")
        finish(axes, "J, locations that are edited", top=0.7)
    panels[0].get_legend().remove()
    panels[1].set_ylabel("")
    return figure


def _draw_bars(result: xr.Dataset) -> Figure:
    """The rate of each test in each scenario, and small points for repetitions; open marks are published."""
    rate = rates(result)
    error = standard_errors(result)
    figure, axes = plt.subplots(figsize=(11, 4.8), layout="constrained")
    x = np.arange(result.sizes["point"])
    tests = result["test"].values
    for index, test in enumerate(tests):
        shift = (index - (len(tests) - 1) / 2) * 0.7 / len(tests)
        theirs = result["published"].sel(test=test)
        line(axes, x + shift, rate.sel(test=test), error.sel(test=test), str(test), index, theirs, linestyle="")
        if result.sizes["repetition"] > 1:
            each = (result["rejected"] / result["runs"]).sel(test=test).transpose("point", "repetition")
            axes.plot(x + shift, each, ".", color=f"C{index}", alpha=0.3, markersize=4)
    axes.set_xticks(x, list(map(str, result["point"].values)), rotation=35, ha="right")
    finish(axes, "")
    return figure


def _means(result: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
    """Rates, standard errors and published figures of the tests, averaged over the scenarios."""
    error = (standard_errors(result) ** 2).sum("point") ** 0.5 / result.sizes["point"]
    return rates(result).mean("point"), error, result["published"].mean("point", skipna=False)


def _table_of(kernel: str) -> dict[tuple[str | float, str], float]:
    """The published figures of the tests with a kernel."""
    found = PUBLISHED["scenarios"].items()
    return {(point, test): rate for point, row in found for test, rate in row.items() if test.startswith(kernel)}


def _settings(runs: int, pool: int) -> dict[str, str | int]:
    return {
        "models": "those of the printed table",
        "bootstrap": f"parametric, 100 of a pool of {pool:,} draws",
        "runs": runs,
        "MMD samples": MMDTest.num_samples,
    }


SCENARIOS_CSK = Experiment(
    name="scenarios_csk",
    title="Twelve scenarios with the contiguous subsequence kernel",
    axis="scenario",
    jobs=partial(_scenario_jobs, kernel="CSK", pool=10_000),
    settings={**_settings(400, 10_000), "CSK": "square roots of frequencies", "balancing": "barker"},
    draw=_draw_neighborhoods,
    published=_table_of("CSK"),
)
SCENARIOS_HAMMING = Experiment(
    name="scenarios_hamming",
    title="Twelve scenarios with the Hamming kernel",
    axis="scenario",
    jobs=partial(_scenario_jobs, kernel="Hamming", pool=1000),
    settings={**_settings(400, 1000), "balancing": "barker"},
    draw=_draw_neighborhoods,
    published=_table_of("Hamming"),
)
SCENARIOS_TEXT = Experiment(
    name="scenarios_text",
    title="Twelve scenarios as the text has them",
    axis="scenario",
    jobs=_text_jobs,
    settings={**_settings(400, 2000), "models": "those of the printed table, but for what the text says otherwise"},
    draw=_draw_bars,
    published=_table_of("CSK"),
)
RING_KERNEL = Experiment(
    name="ring_kernel",
    title="Random walks with the cyclic Gaussian kernel in place of Hamming",
    axis="scenario",
    jobs=_ring_jobs,
    settings={**_settings(400, 1000), "kernel": "cyclic Gaussian, compared with the published Hamming"},
    draw=_draw_bars,
    published=_table_of("Hamming"),
)
REDRAWN = Experiment(
    name="redrawn",
    title="Six scenarios with random models, drawn anew",
    axis="scenario",
    jobs=_redrawn_jobs,
    settings={**_settings(100, 500), "models": "20 draws"},
    draw=_draw_bars,
    published=_table_of("CSK"),
)
MMD_ONE_SAMPLE = Experiment(
    name="mmd_one_sample",
    title="An MMD whose sample of the model is drawn once",
    axis="scenario",
    jobs=_one_sample_jobs,
    settings={**_settings(100, 500), "samples": 20},
    draw=_draw_bars,
    published=_table_of("CSK"),
)
SHARED_NULL = Experiment(
    name="shared_null",
    title="A hundred runs that share their null draws",
    axis="scenario",
    jobs=_shared_null_jobs,
    settings={**_settings(100, 100), "groups of runs": 40},
    draw=_draw_bars,
    published=_table_of("CSK"),
)
SYMBOLS = Experiment(
    name="symbols",
    title="Symbol neighborhoods of radius 1, 2, 3 and ∞",
    axis="scenario",
    jobs=_symbol_jobs,
    settings={**_settings(200, 500), "neighborhood": "ZS′"},
    draw=_draw_symbols,
)
BALANCING = Experiment(
    name="balancing",
    title="Three balancing functions",
    axis="scenario",
    jobs=_balancing_jobs,
    settings={**_settings(400, 5000), "kernel": "CSK"},
    draw=_draw_balancing,
)

# SPDX-License-Identifier: Apache-2.0
"""The reproduction of the paper: every experiment in its quick form, and what they are made of."""

from __future__ import annotations

import json
import sys
from functools import partial
from math import comb
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
import xarray as xr
from scipy.stats import binom

from benchmarks.paper.__main__ import main
from benchmarks.paper.agreement import added_variance, chance, published_deviations
from benchmarks.paper.catalog import EXPERIMENTS
from benchmarks.paper.discrepancies import discrepancies
from benchmarks.paper.experiment import Cell, Experiment
from benchmarks.paper.mrf import repeating_field
from benchmarks.paper.page import DIRECTORY, reproduction
from benchmarks.paper.results import as_dataset, deviations, is_saved, load, rates, save, standard_errors, table
from benchmarks.paper.running import run, seed_of
from benchmarks.paper.scenarios import SCENARIOS_CSK, SCENARIOS_HAMMING
from benchmarks.paper.testing import (
    LikelihoodRatioTest,
    MMDTest,
    Scale,
    SteinTest,
    count_rejections,
    rejections,
    statistics,
    wild_rejections,
)
from benchmarks.scenario_models import redrawn, scenarios, text_variants
from pyro_ksd import likelihood_ratio_check, mmd_check
from pyro_ksd.edits.neighborhoods import Substitutions, zs
from pyro_ksd.examples import random_walk
from pyro_ksd.fit_tests.absolute import goodness_of_fit
from pyro_ksd.kernels import ContiguousKernel
from pyro_ksd.models import SequenceDistribution, fit_markov
from pyro_ksd.sequences.container import Sequences


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_quick_form_of_every_experiment(name: str, tmp_path: Path) -> None:
    experiment = EXPERIMENTS[name]
    result = run(experiment, quick=True, workers=1, progress=False)
    again = load(name, save(result, tmp_path).parent)
    xr.testing.assert_identical(result, again)
    assert again.attrs["experiment"] == name
    settings = json.loads(again.attrs["settings"])
    assert settings["quick"] == 1
    assert settings["seed"] == 0
    assert (result["runs"].sum("repetition") > 0).all()
    assert ((rates(result) >= 0) & (rates(result) <= 1)).all()
    assert len(table(result).splitlines()) == result.sizes["point"] + 2
    figure = experiment.draw(result)
    figure.savefig(tmp_path / "figure.png")
    plt.close(figure)


def test_results_do_not_depend_on_the_number_of_processes() -> None:
    experiment = EXPERIMENTS["redrawn"]
    alone = run(experiment, quick=True, workers=1, progress=False)
    several = run(experiment, quick=True, workers=2, progress=False)
    xr.testing.assert_equal(alone.drop_vars("seconds"), several.drop_vars("seconds"))
    other = run(experiment, quick=True, workers=1, seed=1, progress=False)
    assert seed_of("redrawn", 0, experiment.jobs(True)[0]) != seed_of("redrawn", 1, experiment.jobs(True)[0])
    assert json.loads(other.attrs["settings"])["seed"] == 1


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["perturbed_walk", "--quick", "--workers", "1", "--output", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["benchmarks.paper", *arguments])
    main()
    assert (tmp_path / "perturbed_walk.nc").exists()
    assert (tmp_path / "perturbed_walk.png").exists()
    assert "| probability to hold | KSD | KSD, ZS | MMD | LR, order 1 | LR, oracle |" in capsys.readouterr().out


def test_every_published_figure_has_its_cell() -> None:
    points = [scenario.name for scenario in scenarios()]
    published = {}
    for experiment in (SCENARIOS_CSK, SCENARIOS_HAMMING):
        measured = {(points[job.index], name) for job in experiment.jobs(False) for name, _ in job.specs}
        assert set(experiment.published) <= measured
        published |= experiment.published
    assert len(published) == 432
    assert published["random walk I", "CSK ZS J=3"] == 0.912
    assert published["length", "Hamming MMD"] == 0.275


def cell(point: str, rejected: int, repetition: int = 0, runs: int = 100) -> Cell:
    return Cell(repetition, point, "KSD", runs, rejected, 0.5)


def made_up(published: dict[tuple[str | float, str], float]) -> Experiment:
    return Experiment("made up", "", "point", lambda _: [], {}, lambda _: plt.figure(), published, published_runs=400)


def test_rates_and_deviations_by_hand() -> None:
    experiment = made_up({("b", "KSD"): 0.25})
    cells = [cell("b", 20), cell("b", 10, repetition=1), cell("a", 5), cell("a", 5, repetition=1)]
    result = as_dataset(cells, experiment, quick=False, seed=3)
    assert result["point"].values.tolist() == ["b", "a"]
    assert rates(result).sel(test="KSD").values.tolist() == [0.15, 0.05]
    pooled = (0.15 * 200 + 0.25 * 400 + 1) / 602
    expected = 0.1 / np.sqrt(pooled * (1 - pooled) * (1 / 200 + 1 / 400))
    assert float(deviations(result)[0, 0]) == pytest.approx(expected)
    assert np.isnan(deviations(result)[1, 0])
    assert standard_errors(result)[:, 0].values == pytest.approx([0.05, np.sqrt(0.05 * 0.95 / 200)])
    assert table(result).splitlines()[2:] == ["| b | 0.150 (0.250) |", "| a | 0.050 |"]


def test_variance_of_groups_by_hand() -> None:
    experiment = made_up({("a", "KSD"): 0.25, ("b", "KSD"): 0.0})
    cells = [cell("a", 10), cell("a", 30, repetition=1), cell("b", 0), cell("b", 0, repetition=1)]
    result = as_dataset(cells, experiment, quick=False, seed=0)
    chance = (0.1 * 0.9 + 0.3 * 0.7) / 2 / 99
    added = added_variance(result)
    assert added.values.ravel() == pytest.approx([0.02 - chance, 0.0])
    middle = (0.2 * 400 + 1) / 402
    expected = 0.05 / np.sqrt(middle * (1 - middle) / 400 + (0.02 - chance) / 4 + 0.02 / 2)
    assert published_deviations(result, added / 4).values.ravel() == pytest.approx([expected, 0.0])


def test_chance_of_a_published_count() -> None:
    """Twenty of 400 published runs, and none, where we had none of a hundred."""
    result = as_dataset(
        [cell("a", 0), cell("b", 0)], made_up({("a", "KSD"): 0.05, ("b", "KSD"): 0.0}), quick=False, seed=0
    )
    weights = np.array([comb(500 - count, 100) for count in range(401)], dtype=float)  # all orders are equally probable
    assert chance(result, "a", "KSD") == pytest.approx(2 * weights[20:].sum() / weights.sum())
    assert chance(result, "b", "KSD") == pytest.approx(2 * weights[0] / weights.sum())


def test_groups_that_share_null_draws_vary_more() -> None:
    """Of 19 shared draws the largest is the threshold, exceeded with a probability that has the law Beta(1, 19)."""
    runs, groups, generator = 40, 400, seeded()
    added = {}
    for pool in (19, 1900):
        statistics_of = partial(torch.rand, generator=generator, dtype=torch.double)
        counts = [count_rejections(statistics_of(runs), statistics_of(pool), 19, generator) for _ in range(groups)]
        cells = [cell("a", count, repetition, runs) for repetition, count in enumerate(counts)]
        added[pool] = added_variance(as_dataset(cells, made_up({}), quick=False, seed=0)).item()
    assert added[19] == pytest.approx(19 / (20**2 * 21), rel=0.3)
    assert added[1900] < added[19] / 10


def test_statistics_are_those_of_the_package() -> None:
    model, law, kernel = random_walk(), random_walk(hold=0.3), ContiguousKernel(2)
    tests = {"stein": SteinTest.of(zs(), kernel), "fitted": LikelihoodRatioTest(1), "oracle": LikelihoodRatioTest(law)}
    found, _ = statistics(tests, model, law, 10, 60, seeded())
    first = law.draw(50 * 10, seeded())[:10]
    checked = goodness_of_fit(model, first, [tests["stein"].view], bootstrap="wild", num_bootstrap=2)
    assert float(found["stein"][0]) == pytest.approx(float(checked.statistic[0]))
    own = model.log_joint(first).sum()
    assert float(found["fitted"][0]) == pytest.approx(2 * float(fit_markov(first, 1).log_joint(first).sum() - own))
    assert float(found["oracle"][0]) == pytest.approx(2 * float(law.log_joint(first).sum() - own))
    check = likelihood_ratio_check(model, first, num_bootstrap=2, progress=False)
    assert float(found["fitted"][0]) == pytest.approx(float(check["ksd"]["statistic"][0]))


def test_rejections_count_small_p_values() -> None:
    pool = torch.arange(100.0)
    # Of the 100 draws, 4 are at least 95.5: p = 5/101, just below the level; 5 are at least 94.5: p = 6/101.
    assert count_rejections(torch.tensor([99.5, 95.5]), pool, 100, seeded()) == 2
    assert count_rejections(torch.tensor([94.5, 50.0]), pool, 100, seeded()) == 0


def test_level_of_the_pooled_parametric_test() -> None:
    walk = random_walk(4)
    common = {"KSD": SteinTest.of(Substitutions(), ContiguousKernel(2)), "MMD": MMDTest(ContiguousKernel(2), 20)}
    cells = rejections(walk, {"true": walk}, 6, lambda _: common, Scale(300, 1000), seeded())
    low, high = binom.interval(0.9999, 300, 0.05)
    assert all(low <= found.rejected <= high for found in cells)


def test_tests_of_several_laws_share_their_null_draws() -> None:
    walk, test = random_walk(4), LikelihoodRatioTest(1)
    calls = []

    class Counted:
        def statistics(self, model: object, data: Sequences, size: int, generator: torch.Generator) -> torch.Tensor:
            calls.append(len(data))
            return test.statistics(walk, data, size, generator)

    counted = Counted()
    rejections(walk, {0.0: walk, 1.0: walk}, 5, lambda _: {"LR": counted}, Scale(10, 40, 19), seeded())
    assert calls == [200, 50, 50]


def test_wild_rejections_find_a_wrong_model_and_keep_the_level() -> None:
    model = random_walk(4)
    tests = {"KSD": SteinTest.of(zs(), ContiguousKernel(2)), "MMD": MMDTest(ContiguousKernel(2))}
    laws = {"true": model, "wrong": random_walk(4, hold=0.5)}
    found = {
        (one.point, one.test): one.rejected
        for one in wild_rejections(model, laws, 40, tests, Scale(100, num_bootstrap=99), seeded())
    }
    assert all(found["true", test] <= binom.ppf(0.9999, 100, 0.05) for test in tests)
    assert found["wrong", "KSD"] == 100
    assert found["wrong", "MMD"] > 90


def test_wild_mmd_is_that_of_the_package() -> None:
    walk, kernel = random_walk(4), ContiguousKernel(2)
    data = walk.draw(20, seeded())
    matrix = MMDTest(kernel).matrix(walk, data, seeded(1))
    sample = walk.draw(20, seeded(1))
    direct = mmd_check(
        walk,
        data,
        kernels={"k": kernel},
        sampler=lambda n, g: sample,
        bootstrap="wild",
        num_bootstrap=2,
        progress=False,
    )
    ones = torch.ones(1, 20, dtype=torch.double)
    assert float(matrix.off_diagonal_form(ones) / 380) == pytest.approx(float(direct["ksd"]["statistic"][0]))


def test_lengths_of_the_field_are_uniform() -> None:
    for concentration in (0.75, 1.25):
        field = repeating_field(concentration)
        total = torch.zeros(21, dtype=torch.double)
        for length in (1, 2, 3, 4):
            grid = torch.cartesian_prod(*[torch.arange(3)] * length).view(-1, length)
            total[length] = field.log_joint(Sequences.of(grid, 3)).exp().sum()
        assert total[1:5].tolist() == pytest.approx([0.05] * 4)
    pair = Sequences.of([[0, 0], [0, 1]], 3)
    assert float(repeating_field(0.8).log_joint(pair).diff()) == pytest.approx(-0.8)


def same_probabilities(one: SequenceDistribution, other: SequenceDistribution) -> bool:
    tokens = torch.tensor([[0, -1, -1], [1, -1, -1], [0, 1, -1], [1, 1, 0], [1, 0, 1]])
    return one.alphabet_size == other.alphabet_size and torch.allclose(one.log_prob(tokens), other.log_prob(tokens))


def test_text_variants_differ_where_the_text_does() -> None:
    differing = [
        ours.name
        for ours, text in zip(scenarios(), text_variants(), strict=True)
        if not same_probabilities(ours.model, text.model)
    ]
    assert differing == ["binary, wrong order", "random walk II", "random walk III", "random walk IV"]
    walk = next(one for one in text_variants() if one.name == "random walk II")
    assert walk.model.alphabet_size == 30
    assert walk.num_sequences == 8
    held = walk.data_model.probs.diagonal()[:30]
    assert held[:8].tolist() == pytest.approx([0.2 * 29 / 30 / 1.027] * 8)
    assert held[8:].tolist() == pytest.approx([0.001 * 29 / 30 / 1.028] * 22)


def test_redrawn_models_are_new_but_shared_between_model_and_data() -> None:
    first, second = redrawn(seeded(0)), redrawn(seeded(1))
    assert not torch.equal(first[0].model.probs, second[0].model.probs)
    start, moves = first[3].model.probs[-1], first[3].model.probs[:-1]
    assert torch.equal(moves, first[3].data_model.probs[:-1])
    assert not torch.equal(start, first[3].data_model.probs[-1])


def test_pages_are_what_the_saved_results_give() -> None:
    results = {name: load(name) for name in EXPERIMENTS if is_saved(name)}
    assert (DIRECTORY / "results.md").read_text(encoding="utf-8") == reproduction(results)
    assert (DIRECTORY / "discrepancies.md").read_text(encoding="utf-8") == discrepancies(results)
    assert all((DIRECTORY / "images" / f"{name}.png").exists() for name in results)

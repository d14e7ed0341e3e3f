# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import math
from collections import Counter
from itertools import product
from pathlib import Path

import pytest
import torch

from benchmarks.levels import Level, Settings, measure, measure_all, page
from benchmarks.rejections import LEVEL, WHOLE, WildRates, band, default_check, seeded, wild_rates
from benchmarks.true_models import field, true_models
from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.fit_tests.absolute import goodness_of_fit
from pyro_ksd.kernels import LengthKernel, StartKernel
from pyro_ksd.models import MarkovSequence, SequenceModel
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.balancing import barker
from pyro_ksd.stein.length_views import known_length_view
from pyro_ksd.stein.operators import TailBlockOperator, ZanellaOperator
from pyro_ksd.stein.views import View

ALL = true_models()
LONG = {"fixed length 200", "fixed length 10", "lengths 8 to 12", "Poisson lengths, two symbols"}
MANY = 20_000


def start_view(model: SequenceModel, data: Sequences) -> list[View]:
    return [View("first", ZanellaOperator(zs()), StartKernel())]


def length_view(model: SequenceModel, data: Sequences) -> list[View]:
    return [View("length", TailBlockOperator(), LengthKernel())]


def both_views(model: SequenceModel, data: Sequences) -> list[View]:
    return [*start_view(model, data), *length_view(model, data)]


def every_sequence(alphabet_size: int, longest: int) -> list[tuple[int, ...]]:
    return [x for length in range(longest + 1) for x in product(range(alphabet_size), repeat=length)]


@pytest.mark.parametrize("name", ALL)
def test_samples_are_possible(name: str) -> None:
    drawn = ALL[name].draw(500, torch.Generator().manual_seed(0))
    assert ALL[name].log_joint(drawn).isfinite().all()


@pytest.mark.parametrize("name", sorted(set(ALL) - LONG))
def test_samples_follow_the_log_joints(name: str) -> None:
    model = ALL[name]
    symbols = min(model.alphabet_size, 10)
    listed = every_sequence(symbols, 3 if symbols < 6 else 2)
    log_joint = model.log_joint(Sequences.of([list(x) for x in listed], model.alphabet_size)).double()
    drawn = model.draw(MANY, torch.Generator().manual_seed(0))
    counts = Counter(tuple(x) for x in drawn[drawn.lengths <= 3].to_lists())
    found = torch.tensor([counts[x] for x in listed], dtype=torch.double)
    assert not found[log_joint == -math.inf].any()
    # Some models are known up to a constant, so the shares among the short sequences are compared.
    expected = found.sum() * log_joint.softmax(0)
    usual = expected >= 5
    assert usual.sum() >= 2
    chi_squared = float(((found - expected)[usual].square() / expected[usual]).sum())
    freedom = int(usual.sum())
    assert chi_squared < freedom + 5 * math.sqrt(2 * freedom)


def test_the_field_of_the_hard_end() -> None:
    model = field(30)
    one = model.log_joint(Sequences.of([[0, 0, 2, 1, 1]], 3))
    other = model.log_joint(Sequences.of([[1]], 3))
    assert float(one - other) == pytest.approx(1 - 1 + 0 + 0.5 - 4 * 1.45)
    lengths = model.draw(MANY, torch.Generator().manual_seed(0)).lengths.bincount()
    assert len(lengths) == 31
    assert not lengths[0]
    assert lengths[30] > 0.005 * MANY  # a hard end: the length would go on


def test_models_are_named_by_what_they_are() -> None:
    assert len(ALL) >= 22
    assert {ALL[name].alphabet_size for name in ALL if name.startswith("200")} == {200}
    for name, length in (("fixed length 10", 10), ("fixed length 200", 200)):
        assert ALL[name].draw(100, torch.Generator().manual_seed(0)).lengths.unique().tolist() == [length]
    short = ALL["lengths 8 to 12"].draw(1000, torch.Generator().manual_seed(0)).lengths
    assert (int(short.min()), int(short.max())) == (8, 12)
    empty = ALL["mean length 1.5, empty allowed"].draw(MANY, torch.Generator().manual_seed(0)).lengths.double()
    assert float(empty.mean()) == pytest.approx(1.5, abs=4 * math.sqrt(3.75 / MANY))
    assert (empty == 0).any()


def test_a_wild_run_counts_what_is_left_out_and_refused() -> None:
    fixed = ALL["fixed length 10"]
    generator = torch.Generator().manual_seed(0)
    found = wild_rates(fixed, fixed.draw, 20, both_views, 5, 19, generator)
    assert found.left_out == {"first": 0.0, "length": 1.0}
    assert found.rejected["length"] == found.refused == 0.0
    refused = wild_rates(fixed, fixed.draw, 20, length_view, 5, 19, generator)
    assert refused.refused == 1.0
    assert "hardly ever allows the edits of the view(s) length" in refused.reason
    assert not any(refused.rejected.values())


def test_a_wrong_model_is_rejected() -> None:
    one_way = MarkovSequence.from_transitions(
        torch.tensor([0.9, 0.1]).double(), torch.full((2, 2), 0.5).double(), stop=0.2
    )
    other = MarkovSequence.from_transitions(
        torch.tensor([0.1, 0.9]).double(), torch.full((2, 2), 0.5).double(), stop=0.2
    )
    found = wild_rates(one_way, other.draw, 100, default_check, 5, 99, torch.Generator().manual_seed(0))
    assert found.rejected["start"] == found.rejected[WHOLE] == 1.0


def test_results_are_kept_and_repeat_themselves(tmp_path: Path) -> None:
    quick = Settings(runs=3, draws=19, seed=2)
    saved = tmp_path / "levels.jsonl"
    names = ["MRF, hard end at 5", "chain of two symbols"]
    first = measure_all(quick, names[:1], (20,), start_view, workers=1, saved=saved)
    both = measure_all(quick, names, (20,), start_view, workers=1, saved=saved)
    assert both[0] == first[0]
    assert both[1] == measure(names[1], 20, quick, start_view)
    assert [json.loads(line)["level"]["model"] for line in saved.read_text().splitlines()] == names
    measure_all(Settings(runs=2, draws=19), names[:1], (20,), start_view, workers=1, saved=saved)
    assert len(saved.read_text().splitlines()) == 3  # other settings are other results


def test_some_of_the_views_are_measured(tmp_path: Path) -> None:
    saved = tmp_path / "levels.jsonl"
    alone = Settings(runs=3, draws=19, views=("length",))
    for turn in range(2):  # the second time from the file
        [found] = measure_all(alone, ["MRF, hard end at 5"], (20,), both_views, workers=1, saved=saved)
        assert list(found.rates.rejected) == ["length", WHOLE]
        assert len(saved.read_text().splitlines()) == 1, turn
    assert "--views length`." in page([found], alone)
    [both] = measure_all(Settings(runs=3, draws=19), ["MRF, hard end at 5"], (20,), both_views, workers=1, saved=saved)
    assert list(both.rates.rejected) == ["first", "length", WHOLE]


def test_jobs_have_random_numbers_of_their_own() -> None:
    keys = [(0, "a", 30), (0, "a", 100), (0, "b", 30), (1, "a", 30)]
    drawn = [float(torch.rand((), generator=seeded(*key))) for key in keys]
    assert len(set(drawn)) == 4
    assert float(torch.rand((), generator=seeded(0, "a", 30))) == drawn[0]


def test_page() -> None:
    fine = WildRates({"a": 0.05, WHOLE: 0.02}, {"a": 0.0}, 0.0, "")
    bad = WildRates({"a": 0.2, WHOLE: 0.1}, {"a": 0.25}, 0.5, "too few")
    text = page([Level("one", 30, fine), Level("two", 100, bad)], Settings())
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    assert rows[0] == ["model", "n", "a", WHOLE, "left out", "refused"]
    assert rows[2][:4] == ["one", "30", "0.050", "0.020"]
    assert rows[3] == ["two", "100", "**0.200**", "**0.100**", "a 25%", "50%"]
    assert rows[4][2:4] == ["**1**", "**1**"]
    assert "0.022 to 0.084" in text
    assert "in 1 of 2 rows" in text
    assert "- two, n = 100: too few" in text


@pytest.mark.slow
@pytest.mark.parametrize("size", [30, 100])
@pytest.mark.parametrize(
    "name", ["MRF, hard end at 100", "chain, stop by symbol", "hidden Markov model", "heavy-tailed lengths"]
)
def test_known_lengths_keep_the_level_of_the_wild_bootstrap(name: str, size: int) -> None:
    distribution = ALL[name].length_distribution()
    assert distribution is not None
    view = known_length_view(distribution, zs(locations=1), barker)
    assert view is not None
    generator = seeded(0, name, size)
    rejected = 0
    for seed in range(500):
        data = ALL[name].draw(size, generator)
        found = goodness_of_fit(ALL[name], data, [view], bootstrap="wild", num_bootstrap=200, seed=seed)
        rejected += found.p_value_overall <= LEVEL
    assert rejected / 500 <= band(500)[1]

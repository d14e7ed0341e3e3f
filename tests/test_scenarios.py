# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from benchmarks.rejections import NUM_BOOTSTRAP, p_values, rejection_rates, weights_of
from benchmarks.scenario_models import (
    Scenario,
    alternating,
    coin,
    poisson_coin,
    redrawn,
    scenarios,
    walk_with_memory,
)
from benchmarks.scenarios import Rates, Settings, main, measure, page, statistics
from pyro_ksd.common.block_runs import draw_blocks
from pyro_ksd.common.random_numbers import seeded_generator
from pyro_ksd.fit_tests.absolute import goodness_of_fit
from pyro_ksd.models import IndependentSequence, MarkovSequence, SequenceDistribution
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.views import default_views

ALL = {scenario.name: scenario for scenario in scenarios()}
FLOOR = 1e-3


def probability(model: SequenceDistribution, sequence: list[int]) -> float:
    return math.exp(model.log_joint(Sequences.of([sequence], model.alphabet_size)))


def moves(model: MarkovSequence) -> Tensor:
    """The law of the next symbol given that there is one, for the contexts without a start."""
    inner = model.probs[(slice(None, -1),) * model.order]
    return inner[..., :-1] / (1 - inner[..., -1:])


def test_sizes_and_lengths_of_subsequences() -> None:
    found = [(scenario.num_sequences, scenario.ngram) for scenario in scenarios()]
    walks, chains = [(30, 2), (10, 2), (30, 3), (8, 3)], [(30, 3), (8, 3), (8, 3), (30, 2), (8, 2), (30, 3)]
    assert found == [(10, 1), (30, 1), *walks, *chains]
    assert len(ALL) == 12


def test_coins() -> None:
    assert probability(poisson_coin(0.6), []) == pytest.approx(math.exp(-20))
    expected = math.exp(-20) * 20**3 / 6 * 0.6**2 * 0.4
    assert probability(poisson_coin(0.6), [1, 1, 0]) == pytest.approx(expected)
    assert probability(poisson_coin(0.4), [0, 0, 1]) == pytest.approx(expected)
    assert probability(coin(0.5), []) == 0
    assert probability(coin(0.5), [0, 0, 1]) == pytest.approx(0.5**3 * 0.95**2 * 0.05)
    assert probability(alternating(), [1, 0, 1]) == pytest.approx(0.5 * (0.95 / 1.001) ** 2 * 0.05)
    assert probability(alternating(), [1, 1]) == pytest.approx(0.5 * 0.95 * FLOOR / 1.001 * 0.05)


def test_walks() -> None:
    plain, holding = ALL["random walk II"].model, ALL["random walk II"].data_model
    assert probability(plain, [7, 0]) == pytest.approx(1 / 8 * 29 / 30 * 0.5 / (1 + 6 * FLOOR) * 1 / 30)
    assert probability(holding, [3, 3]) == pytest.approx(1 / 8 * 29 / 30 * 0.2 / (1 + 5 * FLOOR) * 1 / 30)
    assert probability(ALL["random walk I"].data_model, [5]) == pytest.approx(1 / 8 * 1 / 8)


@pytest.mark.parametrize("both_ways", [False, True])
def test_walk_with_memory_goes_on_or_turns(both_ways: bool) -> None:
    walk, total = walk_with_memory(0.95, mean_length=8, both_ways=both_ways), 1 + 8 * FLOOR

    def after(first: int, second: int, third: int) -> float:
        return total * probability(walk, [first, second, third]) / (probability(walk, [first, second]) * 7 / 8)

    assert probability(walk, [4]) == pytest.approx(1 / 10 * 1 / 8)
    assert probability(walk, [9, 0]) == pytest.approx(1 / 10 * 7 / 8 * 0.5 / total * 1 / 8)
    for first, second, onward in [(4, 5, 6), (8, 9, 0), (9, 0, 1), (5, 4, 3), (1, 0, 9), (0, 9, 8)]:
        remembered = both_ways or (second - first) % 10 == 1
        assert after(first, second, onward) == pytest.approx(0.95 if remembered else 0.5)
        assert after(first, second, first) == pytest.approx(0.05 if remembered else 0.5)
        assert after(first, second, second) == pytest.approx(FLOOR)
    for first, second in [(3, 3), (3, 6)]:
        assert after(first, second, second + 1) == after(first, second, second - 1) == pytest.approx(0.5)


def test_walk_with_memory_is_that_of_the_authors() -> None:
    file = Path(__file__).parent / "golden" / "stein_golden.json"
    case = next(one for one in json.loads(file.read_text()) if one["name"].startswith("walk with memory"))
    table = torch.tensor(case["model"]["table"], dtype=torch.double)  # 0 is before the start, or the stop
    own = walk_with_memory(0.95, mean_length=5, size=6).probs
    assert torch.allclose(own[:-1, :-1], table[1:, 1:].roll(-1, -1))
    assert torch.allclose(own[-1, :-1], table[0, 1:].roll(-1, -1))


@pytest.mark.parametrize("name", ["random walk I", "random walk II", "random walk III", "random walk IV"])
def test_walks_visit_all_places_alike(name: str) -> None:
    for model in (ALL[name].model, ALL[name].data_model):
        assert isinstance(model, MarkovSequence)
        # From a uniform pair of places the next one is uniform, and turning the ring changes nothing.
        table = moves(model)
        everywhere = table.flatten(0, -2).mean(0)
        torch.testing.assert_close(everywhere, torch.full_like(everywhere, 1 / len(everywhere)))
        torch.testing.assert_close(table.roll([1] * table.ndim, list(range(table.ndim))), table)


def test_random_models_are_those_of_the_published_table() -> None:
    model, data = ALL["second-order I"].model, ALL["second-order I"].data_model
    # Three entries of the published tables, which include the stop: two starts, and a 0 after a first symbol 2.
    start, other_start, second = 0.03156940665877792 / 0.875, 0.07635129560688755 / 0.875, 0.06406499
    assert probability(model, [2]) == pytest.approx(start / 8)
    assert probability(data, [0]) == pytest.approx(other_start / 8)
    assert probability(model, [2, 0]) == pytest.approx(start * second / 8, rel=1e-6)


def test_second_order_scenarios_differ_in_length_and_size_only() -> None:
    one, two, three = (ALL[f"second-order {number}"] for number in ("I", "II", "III"))
    for other, stop in [(two, 1 / 20), (three, 1 / 8)]:
        for ours, theirs in [(one.model, other.model), (one.data_model, other.data_model)]:
            assert isinstance(ours, MarkovSequence)
            assert isinstance(theirs, MarkovSequence)
            assert theirs.probs.shape == (11, 11, 11)
            torch.testing.assert_close(moves(ours), moves(theirs))
            torch.testing.assert_close(theirs.probs[:-1, :-1, -1], torch.full((10, 10), stop, dtype=torch.double))


def test_initial_scenarios_differ_at_the_start_only() -> None:
    for name, mean_length in [("initial I", 8), ("initial II", 20)]:
        model, data = ALL[name].model, ALL[name].data_model
        for symbol, expected in [(0, 0.3), (1, 0.3), (2, 0.05), (9, 0.05)]:
            assert probability(model, [symbol]) == pytest.approx(0.1 / mean_length)
            assert probability(data, [symbol]) == pytest.approx(expected / mean_length)
        assert probability(data, [0, 4, 7]) / probability(model, [0, 4, 7]) == pytest.approx(3)


def test_length_scenario_differs_in_the_length_only() -> None:
    model, data = ALL["length"].model, ALL["length"].data_model
    for sequence in ([3], [3, 1, 4], [1, 5, 9, 2, 6]):
        ratio = (19 / 20 / (7 / 8)) ** (len(sequence) - 1) * 8 / 20
        assert probability(data, sequence) / probability(model, sequence) == pytest.approx(ratio)


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda scenario: scenario.name)
def test_no_sequence_is_impossible(scenario: Scenario) -> None:
    for model in (scenario.model, scenario.data_model):
        if isinstance(model, IndependentSequence):
            continue
        assert isinstance(model, MarkovSequence)
        table = moves(model)
        assert table.min() >= FLOOR / (1 + 10 * FLOOR)
        torch.testing.assert_close(table.sum(-1), torch.ones_like(table[..., 0]))
    drawn = scenario.data_model.draw(100, torch.Generator().manual_seed(0))
    assert scenario.model.log_joint(drawn).isfinite().all()


def test_the_pool_gives_the_p_values_of_the_test() -> None:
    scenario, views = ALL["second-order III"], default_views()
    [block] = draw_blocks(1, 1, torch.Generator().manual_seed(3))
    data = scenario.data_model.draw(scenario.num_sequences, block.generator())
    found = goodness_of_fit(scenario.model, data, views, bootstrap="parametric", num_bootstrap=NUM_BOOTSTRAP, seed=4)
    observed = statistics(scenario, scenario.data_model, views, 1, torch.Generator().manual_seed(3))
    pool = statistics(scenario, scenario.model, views, NUM_BOOTSTRAP, seeded_generator(4))
    torch.testing.assert_close(observed[0], found.statistic)
    by_pool = p_values(observed[0], pool, weights_of(views), torch.Generator().manual_seed(5))
    assert by_pool.tolist() == [*found.p_value.tolist(), found.p_value_overall]


def test_null_draws_are_chosen_at_random_without_replacement() -> None:
    pool = torch.arange(2.0 * NUM_BOOTSTRAP, dtype=torch.double)[:, None]
    generator = torch.Generator().manual_seed(0)
    top = torch.tensor([0.9 * len(pool) - 0.5], dtype=torch.double)
    found = torch.stack([p_values(top, pool, torch.ones(1), generator) for _ in range(500)])
    assert found[:, 0].tolist() == found[:, 1].tolist()  # one view alone is all views together
    above = found[:, 0] * (NUM_BOOTSTRAP + 1) - 1
    # Hypergeometric: the mean is 50 and the variance 22.5; with replacement it would be 45.
    assert float(above.mean()) == pytest.approx(50, abs=4 * math.sqrt(22.5 / 500))
    assert 16 < float(above.var()) < 30


def test_rates_count_p_values_up_to_the_level() -> None:
    pool = torch.arange(float(NUM_BOOTSTRAP), dtype=torch.double)[:, None].repeat(1, 2)
    rejected, kept = NUM_BOOTSTRAP - 24.5, NUM_BOOTSTRAP - 25.5  # 24 and 25 draws are larger: p = 25/501 and 26/501
    observed = torch.tensor([[rejected, kept], [rejected, rejected], [kept, kept], [0.0, kept]])
    assert rejection_rates(observed.double(), pool, torch.ones(2), torch.Generator().manual_seed(0))[:2] == [0.5, 0.25]


def test_a_quick_run_finds_the_coin_and_repeats_itself() -> None:
    quick = Settings(runs=40, pool=NUM_BOOTSTRAP, seed=1)
    rates = measure(0, quick)
    assert list(rates.views) == [view.name for view in default_views()]
    assert rates.views["content-1"] > 0.9
    assert rates.power > 0.8
    assert rates.views["length"] < 0.3
    assert rates.level < 0.3
    assert measure(0, quick) == rates


def test_page() -> None:
    names = [view.name for view in default_views()]
    rates = [
        Rates(
            dict(zip(names, [tenths / 10 for tenths in range(1, 11)], strict=True)),
            power=0.7 if index % 2 else 0.9,
            level=0.05,
        )
        for index in range(11)
    ]
    rates.append(Rates(rates[0].views, power=0.8, level=0.075))
    rows = [line.strip("| ").split(" | ") for line in page(rates, [], Settings()).splitlines() if line.startswith("|")]
    head, _, *body = rows
    assert head[4:] == [*names, "default check", "level"]
    assert body[1] == [
        *["binary, wrong order", "0.815 (Hamming, ZS′, J = ∞)", "0.040", "0.100", "*0.100*", "0.200", "0.300"],
        *["0.400", "0.500", "0.600", "0.700", "0.800", "0.900", "1.000", "0.700", "0.050"],
    ]
    assert body[4][3:7] == ["0.300", "0.100", "0.200", "*0.300*"]
    assert [row[0] for row in body[:12]] == list(ALL)
    assert body[12][0] == "**average**"
    assert body[12][-2] == f"**{(6 * 0.9 + 5 * 0.7 + 0.8) / 12:.3f}**"
    assert "level of 11 of 12 true models" in page(rates, [], Settings())
    assert "0.029 to 0.074" in page(rates, [], Settings())
    assert "Other random models" not in page(rates, [], Settings())


def test_page_of_other_random_models() -> None:
    names = [view.name for view in default_views()]
    rate = Rates(dict.fromkeys(names, 0.1), power=0.6, level=0.05)
    count = len(redrawn(torch.Generator()))
    anew = [[replace(rate, power=power, level=level)] * count for power, level in ((0.5, 0.05), (0.9, 0.2))]
    text = page([rate] * 12, anew, Settings())
    section = text.split("## Other random models")[1]
    _, _, *body = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")]
    assert [row[0] for row in body] == [one.name for one in redrawn(torch.Generator())]
    assert all(row[1:] == ["0.700", "0.500", "0.900"] for row in body)
    assert f"level of {count} of {2 * count} true models" in text


def test_redrawn_models_are_others_of_the_same_kind() -> None:
    one, same, other = (redrawn(torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    for first, second, third in zip(one, same, other, strict=True):
        assert first.name in ALL
        assert (first.num_sequences, first.ngram) == (ALL[first.name].num_sequences, ALL[first.name].ngram)
        data = ALL[first.name].data_model.draw(50, torch.Generator().manual_seed(0))
        assert torch.equal(first.model.log_joint(data), second.model.log_joint(data))
        assert not torch.allclose(first.model.log_joint(data), third.model.log_joint(data))


def test_a_pool_too_small_for_one_run_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["scenarios", "--pool", "499"])
    with pytest.raises(SystemExit):
        main()
    assert "--pool: expected at least 500, the null draws of one run, found 499" in capsys.readouterr().err

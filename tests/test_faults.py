# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math
from itertools import product

import pytest
import torch
from torch import Tensor

from benchmarks.fault_models import (
    BURST_LENGTH,
    Fault,
    best_chain,
    even_lengths,
    faults,
    heavy_tailed_lengths,
    mean,
    period_probabilities,
    reversible_chain,
    reversible_moves,
    sticky_hidden_chain,
)
from benchmarks.faults import FaultRates, Settings, measure, measure_all, page
from benchmarks.rejections import NUM_BOOTSTRAP, WHOLE, default_check
from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.kernels import StartKernel
from pyro_ksd.models import HiddenMarkovSequence, SequenceModel
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.views import View

ALL = {fault.name: fault for fault in faults()}
MANY = 20_000


def start_view(model: SequenceModel, data: Sequences) -> list[View]:
    return [View("first", ZanellaOperator(zs()), StartKernel())]


def drawn(name: str) -> Sequences:
    return ALL[name].draw(MANY, torch.Generator().manual_seed(0))


def last(sequences: Sequences) -> Tensor:
    return sequences.tokens.gather(1, sequences.lengths[:, None] - 1)[:, 0]


def frequencies(symbols: Tensor) -> Tensor:
    return symbols.bincount(minlength=4).double() / len(symbols)


def pair_frequencies(sequences: Sequences) -> Tensor:
    inside = sequences.mask[:, 1:]
    codes = (4 * sequences.tokens[:, :-1] + sequences.tokens[:, 1:])[inside]
    return codes.bincount(minlength=16).double() / len(codes)


def longest_runs(sequences: Sequences) -> Tensor:
    run = torch.ones(len(sequences), dtype=torch.long)
    longest = run.clone()
    for position in range(1, sequences.width):
        same = sequences.tokens[:, position] == sequences.tokens[:, position - 1]
        run = torch.where(same & (position < sequences.lengths), run + 1, 1)
        longest = torch.maximum(longest, run)
    return longest


@pytest.mark.parametrize("fault", ALL.values(), ids=ALL)
def test_data_are_possible_repeatable_and_have_the_mean_length_of_the_model(fault: Fault) -> None:
    data = fault.draw(MANY, torch.Generator().manual_seed(1))
    again = fault.draw(MANY, torch.Generator().manual_seed(1))
    assert torch.equal(data.tokens, again.tokens)
    assert fault.model.log_joint(data).isfinite().all()
    assert not data.tokens[~data.mask].any()
    own = fault.model.draw(MANY, torch.Generator().manual_seed(2)).lengths.double()
    error = math.sqrt((data.lengths.double().var() + own.var()) / MANY)
    bursts = 0.02 * (BURST_LENGTH - 1) if fault.name == "rare bursts" else 0.0
    assert float(data.lengths.double().mean() - own.mean()) == pytest.approx(bursts, abs=4 * error)
    assert float(data.lengths.double().mean()) == pytest.approx(10, abs=1.5)


@pytest.mark.parametrize("name", sorted(set(ALL) - {"palindromes", "rare bursts"}))
def test_data_start_as_the_model_says(name: str) -> None:
    expected = ALL[name].model.draw(MANY, torch.Generator().manual_seed(3)).tokens[:, 0]
    assert torch.allclose(frequencies(drawn(name).tokens[:, 0]), frequencies(expected), atol=4 * math.sqrt(0.5 / MANY))


@pytest.mark.parametrize("name", ["hidden states", "mixture of chains", "even lengths"])
def test_pairs_are_those_of_the_model(name: str) -> None:
    expected = pair_frequencies(ALL[name].model.draw(MANY, torch.Generator().manual_seed(4)))
    assert torch.allclose(pair_frequencies(drawn(name)), expected, atol=0.005)


def test_the_best_chain_has_the_expected_pairs_of_the_hidden_one() -> None:
    stop = torch.tensor([0.6, 0.9], dtype=torch.double)
    sticky = sticky_hidden_chain()
    hidden = HiddenMarkovSequence(torch.tensor([0.8, 0.2]).double(), sticky.transition, sticky.emission, stop)
    # The pair expectations of all sequences up to a length that is hardly ever exceeded, by brute force.
    pairs = torch.zeros(4, 4, dtype=torch.double)
    ends = torch.zeros(4, dtype=torch.double)
    for length in range(1, 9):
        every = torch.tensor(list(product(range(4), repeat=length)))
        weight = hidden.log_prob(every).exp()
        ends.index_add_(0, every[:, -1], weight)
        for position in range(1, length):
            pairs.view(-1).index_add_(0, 4 * every[:, position - 1] + every[:, position], weight)
    chain = best_chain(hidden).probs
    going = chain[:-1, :-1] / (1 - chain[:-1, -1:])
    assert torch.allclose(going, pairs / pairs.sum(1, keepdim=True), atol=0.002)
    assert torch.allclose(chain[:-1, -1], ends / (ends + pairs.sum(1)), atol=0.002)
    assert torch.allclose(chain[-1, :-1], hidden.initial @ hidden.emission)


def test_the_chain_is_stationary_and_reversible() -> None:
    start, moves = reversible_moves()
    flow = start[:, None] * moves
    assert torch.allclose(flow, flow.T)
    assert torch.allclose(moves.sum(1), torch.ones(4, dtype=torch.double))


def test_first_equals_last_in_half_of_the_sequences_and_nothing_else_is_forced() -> None:
    data = drawn("first equals last")
    start, moves = reversible_moves()
    # Of three symbols, the last two have the probabilities of the chain, or those given that the last is the first.
    three = data.tokens[data.lengths == 3, :3]
    paths = start[:, None, None] * moves[:, :, None] * moves[None]
    closed = paths * torch.eye(4, dtype=torch.double)[:, None]
    closed = start[:, None, None] * closed / closed.sum((1, 2), keepdim=True)
    expected = (paths + closed) / 2
    found = (16 * three[:, 0] + 4 * three[:, 1] + three[:, 2]).bincount(minlength=64).double() / len(three)
    assert torch.allclose(found, expected.flatten(), atol=4 * math.sqrt(0.1 / len(three)))
    long = data[data.lengths > 10]
    by_chance = float(start.square().sum())
    assert float((last(long) == long.tokens[:, 0]).double().mean()) == pytest.approx((1 + by_chance) / 2, abs=0.03)


def test_lengths_are_even() -> None:
    data = drawn("even lengths")
    assert not (data.lengths % 2).any()
    assert mean(even_lengths()) == pytest.approx(10)
    assert torch.allclose(even_lengths()[[2, 4]], torch.tensor([0.2, 0.16]).double())


def test_a_share_of_the_sequences_are_palindromes() -> None:
    def share(sequences: Sequences) -> float:
        opposite = (sequences.lengths[:, None] - 1 - torch.arange(sequences.width)).clamp(min=0)
        same = (sequences.tokens.gather(1, opposite) == sequences.tokens) | ~sequences.mask
        return float(same.all(1)[sequences.lengths >= 8].double().mean())

    own = share(reversible_chain().draw(MANY, torch.Generator().manual_seed(0)))
    assert own < 0.01
    assert share(drawn("palindromes")) == pytest.approx(0.3, abs=0.03)


def test_a_mixture_turns_one_way_within_a_sequence() -> None:
    def spread(sequences: Sequences) -> float:
        steps = (sequences.tokens[:, 1:10] - sequences.tokens[:, :9]) % 4
        turns = ((steps == 1).sum(1) - (steps == 3).sum(1))[sequences.lengths >= 10]
        return float(turns.double().var())

    model = ALL["mixture of chains"].model.draw(MANY, torch.Generator().manual_seed(0))
    assert spread(drawn("mixture of chains")) > 2 * spread(model)


def test_symbols_depend_on_the_position_modulo_3() -> None:
    data = drawn("period 3")
    for position in range(6):
        here = data.tokens[data.lengths > position, position]
        expected = period_probabilities()[position % 3]
        assert torch.allclose(frequencies(here), expected, atol=4 * math.sqrt(0.25 / len(here)))
    visits = 0.9 ** torch.arange(3, dtype=torch.double)
    average = visits @ period_probabilities() / visits.sum()
    assert torch.allclose(average, torch.full((4,), 0.25, dtype=torch.double))


def test_lengths_have_a_heavy_tail() -> None:
    lengths = heavy_tailed_lengths()
    survives = 1 - lengths.cumsum(0)
    assert float(lengths[:2].sum()) == pytest.approx(1 - 4.5 / 6, rel=1e-2)
    assert float(survives[100] / survives[400]) == pytest.approx(4**1.5, rel=0.4)  # geometric: 10^13
    assert mean(lengths) == pytest.approx(9, abs=0.1)


def test_bursts_are_rare_and_long() -> None:
    own = longest_runs(reversible_chain().draw(MANY, torch.Generator().manual_seed(0)))
    found = longest_runs(drawn("rare bursts"))
    assert (own < BURST_LENGTH).all()
    assert float((found >= BURST_LENGTH).double().mean()) == pytest.approx(0.02, abs=4 * math.sqrt(0.02 / MANY))


@pytest.mark.parametrize("bootstrap", ["parametric", "wild"])
def test_a_quick_run_with_other_views(bootstrap: str) -> None:
    quick = Settings(runs=4, bootstrap=bootstrap, pool=NUM_BOOTSTRAP, seed=1)
    found = measure_all(quick, start_view, sizes=(20,), workers=1)
    assert [rate.fault for rate in found] == list(ALL)
    assert [list(rate.power) for rate in found] == [["first", WHOLE]] * 8
    assert measure("even lengths", 20, quick, start_view) == found[2]
    assert all(rate.power["first"] == rate.power[WHOLE] for rate in found)  # one view alone is all views together


def test_a_wrong_chain_is_found() -> None:
    found = measure("mixture of chains", 200, Settings(runs=20, pool=NUM_BOOTSTRAP), default_check)
    assert found.power["content-3"] > 0.8
    assert found.level[WHOLE] < 0.3


def test_page() -> None:
    rates = [
        FaultRates(name, size, {"a": 0.1, WHOLE: power}, {"a": 0.03, WHOLE: level})
        for size, power, level in ((50, 0.25, 0.05), (200, 0.8, 0.2))
        for name in ALL
    ]
    text = page(rates, Settings())
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    assert rows[0] == ["fault", "a", WHOLE, "level"]
    assert rows[2] == ["hidden states", "0.100", "0.250", "0.050"]
    assert rows[10][:3] == ["*level, the largest*", "0.030", "0.050"]
    assert "finds 0 of 8 faults" in text
    assert "finds 8 of 8 faults" in text
    assert "level of 8 of 16 true models" in text

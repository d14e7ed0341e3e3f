# SPDX-License-Identifier: Apache-2.0
"""Weighted automata against products of their matrices."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from example_automata import hidden_markov, log_of_product

from pyro_ksd.edits.neighborhoods import DoubleSubstitutions, Substitutions, zs
from pyro_ksd.edits.splices import Edits, SpliceBlock
from pyro_ksd.models.distributions.weighted_automaton import WeightedAutomaton
from pyro_ksd.sequences.container import Sequences

SIZE, STATES, MEMBERS = 2, 3, 4
GENERATOR = torch.Generator().manual_seed(3)
FIRST = torch.randn(MEMBERS, STATES, dtype=torch.double, generator=GENERATOR)
BY_SYMBOL = torch.randn(MEMBERS, SIZE, STATES, STATES, dtype=torch.double, generator=GENERATOR)
LAST = torch.randn(MEMBERS, STATES, dtype=torch.double, generator=GENERATOR)
LOG_FACTOR = torch.tensor([0.0, 1.0, -2.0, 700.0], dtype=torch.double)
WORDS = Sequences.of([word for length in range(6) for word in product(range(SIZE), repeat=length)], SIZE)
COMPILED = pytest.mark.parametrize("compiled", ["0", "1"])


def automata() -> WeightedAutomaton:
    return WeightedAutomaton(FIRST, BY_SYMBOL, LAST, LOG_FACTOR)


def expected(member: int, words: Sequences) -> torch.Tensor:
    values = [log_of_product(FIRST[member], BY_SYMBOL[member], LAST[member], word) for word in words.to_lists()]
    return torch.tensor(values, dtype=torch.double)


def same(found: torch.Tensor, values: torch.Tensor) -> None:
    torch.testing.assert_close(found, values, rtol=1e-9, atol=1e-9, equal_nan=True)


@COMPILED
def test_logarithms_are_those_of_products_of_matrices(compiled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYRO_KSD_COMPILED", compiled)
    assert len(automata()) == MEMBERS
    for member in range(MEMBERS):
        values = expected(member, WORDS) + LOG_FACTOR[member]
        assert values.isnan().any()
        assert values.isfinite().any()
        same(automata().log_joint(WORDS.padded(-1), torch.full((len(WORDS),), member)), values)


@COMPILED
@pytest.mark.parametrize("edits", [zs(), Substitutions(), DoubleSubstitutions(2)])
def test_ratios_are_those_of_edited_sequences(
    compiled: str, edits: Substitutions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYRO_KSD_COMPILED", compiled)
    around = edits.edits(WORDS)
    edited = around.apply(WORDS)
    each = torch.stack([expected(m, edited) - expected(m, WORDS)[around.owner] for m in range(MEMBERS)])
    assert each.isfinite().any(1).all()
    same(automata().log_ratios(WORDS, around), each)
    same(automata().log_ratio(WORDS, around), each[0])
    which = torch.arange(len(WORDS)) % MEMBERS
    own = each.gather(0, which[around.owner][None])[0]
    same(automata().log_ratio(WORDS, around, which), own)


@COMPILED
def test_splices_may_insert_many_symbols_and_come_in_any_order(compiled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYRO_KSD_COMPILED", compiled)
    data = Sequences.of([[0, 1, 1, 0], [1, 1]], SIZE)
    rows = torch.tensor([1, 0, 1])  # not in the order of the rows, so that torch computes
    blocks = [SpliceBlock(rows, torch.tensor([0, 3, 1]), 1, torch.tensor([[1, 0, 0], [0, 0, 1], [1, 1, 1]]))]
    blocks += [SpliceBlock(torch.tensor([0, 1]), torch.tensor([4, 2]), 0, torch.tensor([[1, 0], [0, 1]]))]
    for some in (blocks, blocks[1:]):
        edits = Edits(tuple(some), 2)
        values = expected(2, edits.apply(data)) - expected(2, data)[edits.owner]
        same(automata().log_ratio(data, edits, torch.tensor([2, 2])), values)
    assert automata().log_ratio(data, Edits((), 2)).tolist() == []


@COMPILED
def test_long_sequences_neither_underflow_nor_overflow(compiled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYRO_KSD_COMPILED", compiled)
    one = torch.ones(1, 1, dtype=torch.double)
    factors = torch.tensor([1e-9, 1e9], dtype=torch.double).view(1, 2, 1, 1)
    long = Sequences.of([[0] * 100, [1] * 100], 2)
    found = WeightedAutomaton(one, factors, one)
    torch.testing.assert_close(found.log_joint(long.tokens, torch.zeros(2).long()), 100 * factors.log().view(2))
    edits = Substitutions().edits(long)
    torch.testing.assert_close(found.log_ratio(long, edits).abs(), torch.full((200,), 1e18).double().log())


@COMPILED
def test_an_impossible_sequence_has_probability_zero(compiled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYRO_KSD_COMPILED", compiled)
    one = torch.ones(1, 2, dtype=torch.double)
    never = torch.zeros(1, 2, 2, 2, dtype=torch.double)
    never[:, 0] = 0.25
    data = Sequences.of([[0, 0]], 2)
    edits = zs().edits(data)
    ratios = WeightedAutomaton(one, never, one).log_ratio(data, edits)
    banned = (edits.apply(data).tokens == 1).any(1)
    assert (ratios[banned] == -torch.inf).all()
    assert ratios[~banned].isfinite().all()


@COMPILED
@pytest.mark.parametrize("share", [0.0, 1e-12, 1e-6])
def test_what_may_be_a_rounding_error_is_unknown(share: float, compiled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the last product, in a move ahead and in a move back."""
    monkeypatch.setenv("PYRO_KSD_COMPILED", compiled)
    first = torch.tensor([[1.0, -1.0]], dtype=torch.double)
    even = torch.eye(2, dtype=torch.double).expand(1, 2, 2, 2).clone()
    last = torch.tensor([[1.0 + share, 1.0]], dtype=torch.double)
    data = Sequences.of([[0, 0, 0]], 2)
    edits = zs().edits(data)
    is_known = share == 1e-6
    joint = WeightedAutomaton(first, even, last).log_joint(data.tokens, torch.zeros(1).long())
    assert bool(joint.isfinite()) == is_known
    assert bool(WeightedAutomaton(first, even, last).log_ratio(data, edits).isfinite().all()) == is_known
    lost = even.clone()
    lost[0, 1] = 1.0
    lost[0, 1, 0, 0] += share  # its product with (1, -1) nearly vanishes
    one = torch.ones(1, 2, dtype=torch.double)
    ahead, back = (first, lost, one + first), (one + first, lost.mT, first)
    for automaton in (WeightedAutomaton(*ahead), WeightedAutomaton(*back)):
        some = edits.select((edits.apply(data).tokens == 1).any(1).nonzero()[:, 0])
        assert not bool(automaton.log_ratio(data, some).isfinite().all()) or is_known
        word = Sequences.of([[0, 1, 0]], 2)
        assert bool(automaton.log_joint(word.tokens, torch.zeros(1).long()).isfinite()) == is_known


@COMPILED
def test_a_hidden_markov_model_is_one(compiled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYRO_KSD_COMPILED", compiled)
    model = hidden_markov(4)
    stops = model.stop.double()[:, None]
    moves = torch.cat([torch.cat([(1 - stops) * model.transition, stops], 1), torch.zeros(1, 5).double()])
    emission = torch.cat([model.emission, torch.zeros(1, 3).double()])
    final = torch.zeros(1, 5, dtype=torch.double)
    final[0, -1] = 1
    first = torch.nn.functional.pad(model.initial, (0, 1))[None]
    automaton = WeightedAutomaton(first, (emission.mT[:, :, None] * moves)[None], final)
    data = model.draw(20, torch.Generator().manual_seed(1))
    edits = zs().edits(data)
    torch.testing.assert_close(automaton.log_ratio(data, edits), model.log_ratio(data, edits), rtol=1e-9, atol=1e-9)
    found = automaton.log_joint(data.padded(-1), torch.zeros_like(data.lengths))
    torch.testing.assert_close(found, model.log_joint(data), rtol=1e-10, atol=1e-10)

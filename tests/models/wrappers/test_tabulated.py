# SPDX-License-Identifier: Apache-2.0
"""Tables of short sequences in place of whole evaluations."""

from __future__ import annotations

from itertools import product
from typing import Any

import pyro
import pyro_programs as programs
import pytest
import torch
from example_models import Unsampled
from pyro import poutine
from pyro_programs import SIZE
from torch import Tensor

from pyro_ksd.edits.neighborhoods import DoubleSubstitutions, zs
from pyro_ksd.models import LinearChainMRF, MarkovSequence
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.wrappers.tabulated import TabulatedModel, tabulate
from pyro_ksd.sequences.container import Sequences

DATA = Sequences.of([[0, 1, 1, 2], [2], [1, 1, 0], [0, 0], [2, 1, 0, 1, 1], [0, 1, 2, 2, 1, 0, 0, 1]], SIZE)
EDITS = zs().edits(DATA)


def finite(values: Tensor) -> Tensor:
    return values.nan_to_num(neginf=-1e9)


@pytest.mark.parametrize(
    ("program", "order"),
    [
        (programs.chain_with_stop, 1),
        (programs.chain_with_stop, 2),
        (programs.chain_with_end_symbol, 1),
        (programs.second_order, 2),
        (programs.second_order, 3),
        (programs.product_of_experts, 1),
    ],
)
def test_table_gives_the_ratios_of_the_program(program: Any, order: int) -> None:
    data = DATA[[1, 2, 3, 4]] if program is programs.product_of_experts else DATA
    program_model = as_model(program, data)
    model = TabulatedModel(program_model, order, data)
    for edits in (zs().edits(data), DoubleSubstitutions().edits(data)):
        expected = program_model.log_ratio(data, edits)
        torch.testing.assert_close(finite(model.log_ratio(data, edits)), finite(expected), rtol=0, atol=1e-9)
    assert model.is_local
    torch.testing.assert_close(model.log_joint(data), program_model.log_joint(data))


@pytest.mark.parametrize("order", [1, 2])
def test_tables_of_several_models(order: int) -> None:
    probs = programs.simplex(4, *[SIZE + 1] * (order + 1))
    models = [MarkovSequence(own, order=order) for own in probs]
    table = tabulate(lambda words: torch.stack([model.log_joint(words) for model in models]), SIZE, order)
    assert len(table) == 4
    expected = torch.stack([model.log_ratio(DATA, EDITS) for model in models])
    torch.testing.assert_close(table.log_ratios(DATA, EDITS), expected, rtol=1e-10, atol=1e-10)
    which = torch.tensor([3, 0, 2, 2, 1, 0])
    found = table.log_ratio(DATA, EDITS, rows=which)
    torch.testing.assert_close(found, expected.gather(0, which[EDITS.owner][None])[0], rtol=1e-10, atol=1e-10)
    joint = torch.stack([models[k].log_joint(DATA[row : row + 1])[0] for row, k in enumerate(which.tolist())])
    torch.testing.assert_close(table.log_joint(DATA.padded(-1), which), joint, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("program", "order"),
    [(programs.second_order, 1), (programs.length_first, 1), (programs.hmm, 1), (programs.hmm, 2)],
)
def test_a_wrong_order_is_found_out_and_the_program_used_instead(program: Any, order: int) -> None:
    program_model = as_model(program, DATA)
    with pytest.warns(UserWarning, match=f"the model is not of order {order}: its table disagrees") as caught:
        model = TabulatedModel(program_model, order, DATA)
    found = model.log_ratio(DATA, EDITS)
    torch.testing.assert_close(finite(found), finite(program_model.log_ratio(DATA, EDITS)))
    assert len(caught) == 1
    assert not model.is_local


def test_a_long_range_term_of_few_sequences_is_found_out() -> None:
    """A term that only one sequence of the data shows, and only together with its first and its last symbol."""

    def with_rare_term(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    probs = programs.INITIAL.expand(len(lengths), -1) if t == 0 else programs.MOVES[sequences[:, t - 1]]
                    pyro.sample(f"x_{t}", programs.dist.Categorical(probs), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", programs.bernoulli(), obs=programs.stops(lengths, t))
            last = sequences.gather(1, (lengths - 1).clamp(min=0)[:, None])[:, 0]
            pyro.factor("ends meet", ((sequences[:, 0] == 0) & (last == 1) & (lengths > 7)).double())

    with pytest.warns(UserWarning, match="the model is not of order 1"):
        TabulatedModel(as_model(with_rare_term, DATA), 1, DATA)
    assert TabulatedModel(as_model(programs.chain_with_stop, DATA), 1, DATA).is_local


def test_the_table_is_local_for_models_of_the_package_too() -> None:
    chain = MarkovSequence.from_transitions(programs.INITIAL, programs.MOVES, 0.3)
    found = TabulatedModel(chain, 1, DATA).log_ratio(DATA, EDITS)
    torch.testing.assert_close(finite(found), finite(chain.log_ratio(DATA, EDITS)), rtol=0, atol=1e-6)
    bounded = LinearChainMRF(programs.PAIRS, max_length=9)  # every length up to 9: not a stop at each step
    with pytest.warns(UserWarning, match="not of order 1"):
        TabulatedModel(bounded, 1, Sequences.of([[0] * 9, [1]], SIZE))


@pytest.mark.parametrize("order", [0, -1, 1.0, True])
def test_order_is_a_number(order: Any) -> None:
    with pytest.raises(ValueError, match="order: expected an integer of at least 1, found"):
        TabulatedModel(programs.CHAIN, order, DATA)


def test_order_keeps_the_draws_of_the_program() -> None:
    model = as_model(programs.chain_with_stop, DATA, order=1)
    plain = as_model(programs.chain_with_stop, DATA)
    drawn = [m.draw(50, torch.Generator().manual_seed(3)) for m in (model, plain)]  # type: ignore[attr-defined]
    assert torch.equal(drawn[0].tokens, drawn[1].tokens)


def test_table_draws_through_the_model_within() -> None:
    model = TabulatedModel(programs.CHAIN, 1, DATA)
    assert model.can_draw
    expected = programs.CHAIN.draw(30, torch.Generator().manual_seed(2)).to_lists()
    assert model.draw(30, torch.Generator().manual_seed(2)).to_lists() == expected
    without = TabulatedModel(Unsampled(programs.CHAIN), 1, DATA)
    assert without.is_local
    assert not without.can_draw
    with pytest.raises(ValueError, match="expected a model that can be sampled, found Unsampled"):
        without.draw(3)


def test_without_data_the_order_is_taken_on_trust() -> None:
    model = TabulatedModel(as_model(programs.second_order, DATA), 1)
    assert model.is_local
    short = Sequences.of([[0], [1, 2]], SIZE)  # what the table is made of
    torch.testing.assert_close(model.log_joint(short), as_model(programs.second_order, DATA).log_joint(short))
    assert not torch.allclose(model.log_joint(DATA), as_model(programs.second_order, DATA).log_joint(DATA))


def test_the_model_within_is_asked_only_for_the_table() -> None:
    class Counted(Unsampled):
        asked: list[int] = []  # noqa: RUF012

        def log_joint(self, sequences: Sequences) -> Tensor:
            self.asked.append(len(sequences))
            return super().log_joint(sequences)

    model = TabulatedModel(Counted(programs.CHAIN), 1)
    assert Counted.asked == [1, SIZE, SIZE**2]
    model.log_joint(DATA)
    model.log_ratio(DATA, EDITS)
    assert len(Counted.asked) == 3


@pytest.mark.parametrize("order", [1, 2])
def test_symbols_that_cannot_come_first(order: int) -> None:
    """What follows them is found behind another symbol."""
    probs = programs.simplex(2, *[SIZE + 1] * (order + 1))
    start = (0, *[SIZE] * order)
    probs[start] = torch.tensor([0.5, 0.0, 0.5, 0.0])  # 1 cannot come first in the first of two models
    models = [MarkovSequence(own, order=order) for own in probs]
    data = DATA[[0, 1, 3, 4, 5]]
    edits = zs().edits(data)
    table = tabulate(lambda words: torch.stack([model.log_joint(words) for model in models]), SIZE, order)
    expected = torch.stack([model.log_ratio(data, edits) for model in models])
    torch.testing.assert_close(finite(table.log_ratios(data, edits)), finite(expected), rtol=1e-10, atol=1e-10)
    assert TabulatedModel(models[0], order, data).is_local


def test_models_of_single_precision_are_tabulated() -> None:
    thirds = torch.full((SIZE,), 1 / SIZE)
    chain = MarkovSequence.from_transitions(thirds, thirds.expand(SIZE, SIZE), stop=0.3)
    table = TabulatedModel(chain, 1, DATA)
    assert table.is_local
    torch.testing.assert_close(table.log_joint(DATA), chain.log_joint(DATA).double(), rtol=1e-5, atol=1e-5)


def test_tables_that_would_not_fit_into_memory_are_refused() -> None:
    uniform = MarkovSequence(torch.full((61, 61), 1 / 61).double())
    with pytest.raises(ValueError, match=r"order: expected at most 3 for 60 symbols, found 5, .* would take 412 GB"):
        TabulatedModel(uniform, 5)


@pytest.mark.parametrize("together", [1, 4, 1000])
def test_models_are_asked_for_a_bounded_number_of_words(together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = MarkovSequence.from_transitions(programs.INITIAL, programs.MOVES, 0.3)
    asked = []

    def log_joint(words: Sequences) -> Tensor:
        asked.append(len(words))
        return chain.log_joint(words)[None]

    expected = tabulate(log_joint, SIZE, 2).values
    asked.clear()
    monkeypatch.setattr("pyro_ksd.models.wrappers.tabulated._TOGETHER", together)
    assert tabulate(log_joint, SIZE, 2).values.equal(expected)
    assert max(asked) <= together


def test_contexts_that_cannot_come_first_are_found_for_each_of_several_models() -> None:
    # 0 cannot be the first symbol, and follows 1 most often in one model and 2 in the other.
    first = torch.tensor([0.0, 0.5, 0.5]).double()
    often = torch.tensor([0.2, 0.3, 0.5]).double()
    seldom = torch.tensor([0.01, 0.39, 0.6]).double()
    models = [
        MarkovSequence.from_transitions(first, torch.stack([often, *rows]), torch.tensor([0.1, 0.2, 0.3]).double())
        for rows in ([often, seldom], [seldom, often])
    ]
    table = tabulate(lambda words: torch.stack([model.log_joint(words) for model in models]), 3, 1)
    space = Sequences.of([list(x) for length in range(5) for x in product(range(3), repeat=length)], 3)
    for index, model in enumerate(models):
        found = table.log_joint(space.padded(-1), torch.full((len(space),), index))
        torch.testing.assert_close(found, model.log_joint(space), rtol=1e-12, atol=1e-12)


def test_the_global_random_state_stays_as_it_is() -> None:
    model = as_model(programs.chain_with_stop, DATA)
    state = torch.get_rng_state()
    assert TabulatedModel(model, 1, DATA).is_local
    assert torch.get_rng_state().equal(state)


def of_order_2() -> MarkovSequence:
    return MarkovSequence(programs.simplex(*[SIZE + 1] * 3), order=2)


def test_lengths_are_those_of_the_table_if_it_is_used() -> None:
    chain = MarkovSequence.from_transitions(torch.ones(SIZE) / SIZE, torch.ones(SIZE, SIZE) / SIZE, stop=0.25)
    found = TabulatedModel(Unsampled(chain), order=1, data=DATA).length_distribution()
    assert found is not None
    assert found.shortest == 1
    assert found.probability[:5].tolist() == pytest.approx([0.25 * 0.75**k for k in range(5)], rel=1e-6)
    with pytest.warns(UserWarning, match="is not of order 1"):
        assert TabulatedModel(of_order_2(), order=1, data=DATA).length_distribution() is None


def test_ratios_are_quick_if_the_table_is_used_or_the_model_has_quick_ones() -> None:
    slow, late = (as_model(program, DATA) for program in (programs.chain_with_stop, programs.second_order))
    assert not slow.has_quick_ratios
    assert TabulatedModel(slow, 1, DATA).has_quick_ratios
    with pytest.warns(UserWarning, match="is not of order 1"):
        assert TabulatedModel(of_order_2(), 1, DATA).has_quick_ratios
    with pytest.warns(UserWarning, match="is not of order 1"):
        assert not TabulatedModel(late, 1, DATA).has_quick_ratios

# SPDX-License-Identifier: Apache-2.0
"""Automata recovered from short sequences: all sequences of a small space, long ones, and what has no automaton."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pyro_programs as programs
import pytest
import torch
from example_automata import hidden_markov
from torch import Tensor

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.models import HiddenMarkovSequence, MarkovSequence
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.wrappers import recovered_automaton
from pyro_ksd.models.wrappers.recovered_automaton import HankelWords, RecoveredAutomaton, hankel_words, recovered
from pyro_ksd.sequences.container import Sequences

SIZE = 3
WORDS = Sequences.of([word for length in range(1, 7) for word in product(range(SIZE), repeat=length)], SIZE)
ENOUGH = 2000


def of(*models: Any) -> Callable[[Sequences], Tensor]:
    return lambda sequences: torch.stack([model.log_joint(sequences) for model in models])


def zeros(sequences: Sequences) -> Tensor:
    return torch.zeros_like(sequences.lengths)


def recover(*models: Any, size: int = SIZE) -> RecoveredAutomaton:
    words = hankel_words(of(*models), size, ENOUGH)
    assert words is not None
    return recovered(of(*models), size, words)


def same_or_unknown(found: Tensor, expected: Tensor, error: float = 1e-10) -> float:
    """Asserts that numbers are right where they are known, and gives the share of those that are not."""
    known = ~found.isnan()
    torch.testing.assert_close(found[known], expected[known], rtol=0, atol=error)
    return 1 - float(known.double().mean())


@pytest.mark.parametrize("states", [1, 2, 4, 8])
def test_a_hidden_markov_model_has_as_many_states(states: int) -> None:
    model = hidden_markov(states, seed=states)
    found = recover(model)
    assert found.states == states
    assert same_or_unknown(found.log_joint(WORDS.padded(-1), zeros(WORDS)), model.log_joint(WORDS)) == 0
    long = Sequences.cat([model.draw(20, torch.Generator().manual_seed(1)), Sequences.of([[2, 0] * 150], SIZE)])
    edits = zs().edits(long)
    unknown = edits.apply(long).lengths == 0  # nothing is known of the empty sequence
    ratio = found.log_ratio(long, edits)
    assert ratio.isnan().equal(unknown)
    same_or_unknown(ratio, model.log_ratio(long, edits))


@pytest.mark.parametrize(
    ("program", "logarithm", "states"),
    [
        (programs.hmm, programs.log_hmm, 2),
        (programs.coupled_hmm, programs.log_coupled, 4),
        (programs.mixture_of_chains, programs.log_mixture, 6),
        (programs.second_order, programs.log_second_order, 9),
    ],
)
def test_programs_of_several_kinds_have_automata(program: Any, logarithm: Callable[[Any], float], states: int) -> None:
    data = Sequences.of([[0, 1, 2], [1], [2, 2]], SIZE)
    found = recover(as_model(program, data))
    assert found.states <= states
    expected = torch.tensor([logarithm(word) for word in WORDS.to_lists()], dtype=torch.double)
    value = found.log_joint(WORDS.padded(-1), zeros(WORDS))
    assert same_or_unknown(value - value[0], expected - expected[0], 1e-9) == 0


def test_several_models_of_a_kind_have_automata_of_their_own() -> None:
    models = [hidden_markov(4, seed=seed) for seed in range(6)]
    words = hankel_words(of(*models[:3]), SIZE, ENOUGH)
    assert words is not None
    found = recovered(of(*models), SIZE, words)
    data = models[0].draw(12, torch.Generator().manual_seed(2))
    edits = zs().edits(data)
    each = torch.stack([model.log_ratio(data, edits) for model in models])
    assert same_or_unknown(found.log_ratios(data, edits), each, 1e-9) < 0.02
    which = torch.arange(len(data)) % len(models)
    own = each.gather(0, which[edits.owner][None])[0]
    assert same_or_unknown(found.log_ratio(data, edits, which), own, 1e-9) < 0.02
    joint = torch.stack([models[index].log_joint(data[[row]])[0] for row, index in enumerate(which.tolist())])
    assert same_or_unknown(found.log_joint(data.padded(-1), which), joint) == 0


@pytest.mark.parametrize("seed", range(5))
def test_impossible_sequences_are_unknown(seed: int) -> None:
    """Some states never emit some symbols, nor follow each other."""
    plain = hidden_markov(4, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    moves = plain.transition * (torch.rand(4, 4, generator=generator) < 0.5) + 0.1 * torch.eye(4)
    emission = plain.emission * (torch.rand(4, SIZE, generator=generator) < 0.5) + 0.1 * torch.eye(4, SIZE)
    emission[3] = emission[3] + 0.1
    emission, moves = (own / own.sum(1, keepdim=True) for own in (emission, moves))
    model = HiddenMarkovSequence(plain.initial, moves, emission, 0.1)
    expected = model.log_joint(WORDS)
    found = recover(model).log_joint(WORDS.padded(-1), zeros(WORDS))
    same_or_unknown(found, expected, 1e-8)
    assert found[expected == -torch.inf].isnan().all()
    assert found[expected > -20].isfinite().all()
    data = model.draw(30, torch.Generator().manual_seed(seed))
    edits = zs().edits(data)
    ratio, right = recover(model).log_ratio(data, edits), model.log_ratio(data, edits)
    same_or_unknown(ratio, right, 1e-8)
    assert ratio[right == -torch.inf].isnan().all()


@pytest.mark.parametrize("apart", [1e-2, 1e-4, 1e-6, 1e-9, 1e-13, 0.0])
def test_two_states_that_are_nearly_the_same(apart: float) -> None:
    plain = hidden_markov(3, seed=5)
    emission = plain.emission.clone()
    emission[1] = (1 - apart) * emission[0] + apart * emission[1]
    moves = plain.transition.clone()
    moves[1] = (1 - apart) * moves[0] + apart * moves[1]
    model = HiddenMarkovSequence(plain.initial, moves, emission, 0.1)
    found = recover(model)
    assert found.states == (3 if apart > 1e-3 else 2 if apart == 0 else found.states)
    data = model.draw(30, torch.Generator().manual_seed(1))
    edits = zs().edits(data)
    unknown = same_or_unknown(found.log_ratio(data, edits), model.log_ratio(data, edits), 1e-9)
    assert unknown < 0.01 or 1e-9 <= apart <= 1e-4


def test_a_function_that_is_no_small_automaton_has_no_words() -> None:
    def over_factorial(sequences: Sequences) -> Tensor:
        return -(sequences.lengths + 1.0).double().lgamma()[None]

    def squared(sequences: Sequences) -> Tensor:
        return -0.3 * ((sequences.tokens == 1) & sequences.mask).sum(1).double()[None] ** 2

    long = Sequences.of([[1] * 40], SIZE)
    for function in (over_factorial, squared):
        words = hankel_words(function, SIZE, ENOUGH)
        if words is not None:  # an automaton is near enough for all short sequences
            found = recovered(function, SIZE, words).log_joint(long.tokens, zeros(long))
            assert not bool((found - function(long)[0]).abs() < 1)
    assert hankel_words(of(hidden_markov(20, size=5)), 5, ENOUGH) is None
    assert hankel_words(lambda sequences: torch.full((1, len(sequences)), -torch.inf), SIZE, ENOUGH) is None
    assert hankel_words(lambda sequences: torch.full((1, len(sequences)), torch.nan), SIZE, ENOUGH) is None


def test_models_with_other_numbers_of_states_have_no_words_in_common() -> None:
    assert hankel_words(of(hidden_markov(2), hidden_markov(3)), SIZE, ENOUGH) is None


def test_no_more_sequences_are_evaluated_than_are_worthwhile() -> None:
    model = hidden_markov(4)
    asked: list[int] = []

    def counted(sequences: Sequences) -> Tensor:
        asked.append(len(sequences))
        assert len(distinct(sequences)) == len(sequences)
        return of(model)(sequences)

    def distinct(sequences: Sequences) -> set[tuple[int, ...]]:
        return set(map(tuple, sequences.to_lists()))

    assert hankel_words(counted, SIZE, 4 * 4 * SIZE - 1) is None
    assert hankel_words(counted, SIZE, 0) is None
    words = hankel_words(counted, SIZE, 100)
    assert words is not None
    assert words.states == 4
    assert max(asked) <= 100
    hankel_words(of(model), SIZE, 10**6)
    recovered(counted, SIZE, words)
    assert asked[-1] <= 4 * 4 * (SIZE + 1) + 4 * SIZE + 5


def test_a_singular_matrix_leaves_its_model_unknown() -> None:
    """Words that were found for other models; the numbers of the other model stay as they are."""
    one, other = hidden_markov(2), MarkovSequence.from_transitions(torch.ones(3) / 3, torch.ones(3, 3) / 3, stop=0.1)
    words = hankel_words(of(one), SIZE, ENOUGH)
    assert words is not None
    found = recovered(of(one, other), SIZE, words)
    data = WORDS[50:60]
    assert same_or_unknown(found.log_joint(data.padded(-1), zeros(data)), one.log_joint(data)) == 0
    assert found.log_joint(data.padded(-1), zeros(data) + 1).isnan().all()
    singular = torch.stack([torch.zeros(2, 2), torch.eye(2)]).double()
    solved = recovered_automaton._solved(singular, torch.ones(2, 2, 1).double())
    assert solved[0].isnan().all()
    assert solved[1].eq(1).all()


def test_large_alphabets_and_factors_of_any_size() -> None:
    model = hidden_markov(2, size=100)

    def shifted(sequences: Sequences) -> Tensor:
        return model.log_joint(sequences)[None] + 900 - 40.0 * sequences.lengths

    words = hankel_words(shifted, 100, ENOUGH)
    assert words is not None
    found = recovered(shifted, 100, words)
    data = model.draw(10, torch.Generator().manual_seed(0))
    value = found.log_joint(data.padded(-1), zeros(data))
    assert same_or_unknown(value, shifted(data)[0]) == 0


def test_no_twin_no_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    """With large rounding errors of the twin, nothing is certain any more."""
    monkeypatch.setattr(recovered_automaton, "_ROUNDING", 1e-6)
    assert recover(hidden_markov(2)).log_joint(WORDS.padded(-1), zeros(WORDS)).isnan().float().mean() > 0.9


def test_words_say_how_many_states_there_are() -> None:
    assert HankelWords(((0,), (1,)), ((), (1,))).states == 2

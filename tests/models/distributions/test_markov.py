# SPDX-License-Identifier: Apache-2.0
"""Markov chains of any order against loops."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pyro_ksd.models import MarkovSequence
from pyro_ksd.sequences.container import Sequences


def table(order: int, size: int) -> torch.Tensor:
    weights = torch.rand([size + 1] * (order + 1), dtype=torch.double, generator=torch.Generator().manual_seed(order))
    return weights / weights.sum(-1, keepdim=True)


def slow_log_prob(probs: torch.Tensor, order: int, x: list[int]) -> float:
    boundary = probs.shape[-1] - 1
    padded = [boundary] * order + x + [boundary]
    return sum(math.log(probs[tuple(padded[i : i + order + 1])].item()) for i in range(len(x) + 1))


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 3])
def test_log_prob_against_a_loop(order, size):
    probs = table(order, size)
    space = Sequences.of([list(x) for length in range(5) for x in product(range(size), repeat=length)], size)
    target = torch.tensor([slow_log_prob(probs, order, x) for x in space.to_lists()], dtype=torch.double)
    torch.testing.assert_close(MarkovSequence(probs, order=order).log_joint(space), target, rtol=1e-13, atol=1e-13)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 3), st.lists(st.integers(0, 3), max_size=12))
def test_log_prob_of_any_sequence(order, x):
    found = MarkovSequence(table(order, 4), order=order).log_joint(Sequences.of([x], 4))
    assert found.item() == pytest.approx(slow_log_prob(table(order, 4), order, x), rel=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_probabilities_sum_to_that_of_having_stopped(order):
    probs, size, longest = table(order, 2), 2, 7
    alive = {(size,) * order: 1.0}
    stopped = 0.0
    for _ in range(longest + 1):
        following: dict[tuple[int, ...], float] = {}
        for context, mass in alive.items():
            stopped += mass * probs[(*context, size)].item()
            for symbol in range(size):
                key = (*context[1:], symbol)
                following[key] = following.get(key, 0.0) + mass * probs[(*context, symbol)].item()
        alive = following
    space = Sequences.of([list(x) for length in range(longest + 1) for x in product(range(size), repeat=length)], size)
    total = MarkovSequence(probs, order=order).log_joint(space).exp().sum().item()
    assert total == pytest.approx(stopped, abs=1e-12)
    assert 0.8 < total < 1


def test_zero_is_impossible():
    probs = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.double)
    found = MarkovSequence(probs).log_prob(torch.tensor([[-1, -1], [0, -1], [0, 0]]))
    assert found.tolist() == [-math.inf, 0.0, -math.inf]


def test_impossible_contexts_are_ignored():
    probs = table(2, 2)
    spoiled = probs.clone()
    spoiled[:2, 2] = torch.nan
    space = Sequences.of([[], [0], [1, 0], [1, 1, 1]])
    model = MarkovSequence(spoiled, order=2)
    assert torch.equal(model.log_joint(space), MarkovSequence(probs, order=2).log_joint(space))
    assert (model.probs[:2, 2] == 0).all()
    assert torch.equal(model.probs[2], probs[2])


@pytest.mark.parametrize("stop", [0.25, [0.25, 0.5]])
def test_from_transitions(stop):
    initial = torch.tensor([0.1, 0.9], dtype=torch.double)
    transition = torch.tensor([[0.3, 0.7], [0.6, 0.4]], dtype=torch.double)
    model = MarkovSequence.from_transitions(initial, transition, torch.tensor(stop, dtype=torch.double), max_length=9)
    last = 0.25 if stop == 0.25 else 0.5
    found = model.log_prob(torch.tensor([[-1, -1], [1, -1], [0, 1]])).exp().tolist()
    assert found == pytest.approx([0, 0.9 * last, 0.1 * 0.75 * 0.7 * last], abs=1e-15)
    assert model.event_shape == (9,)


def test_from_transitions_in_batches():
    initial = torch.tensor([[0.1, 0.9], [0.5, 0.5], [1.0, 0.0]], dtype=torch.double)
    transition = torch.tensor([[0.3, 0.7], [0.6, 0.4]], dtype=torch.double)
    by_member = MarkovSequence.from_transitions(initial, transition, torch.tensor([0.1, 0.2, 0.3], dtype=torch.double))
    assert by_member.log_prob(torch.tensor([0])).exp().tolist() == pytest.approx([0.01, 0.1, 0.3])
    stop = torch.tensor([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]], dtype=torch.double)
    by_symbol = MarkovSequence.from_transitions(initial, transition, stop)
    assert by_symbol.log_prob(torch.tensor([0])).exp().tolist() == pytest.approx([0.01, 0.15, 0.5])
    assert by_symbol.log_prob(torch.tensor([1])).exp().tolist() == pytest.approx([0.18, 0.2, 0.0])


def test_drawn_sequences_end_as_the_context_says():
    stop_after_b = torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    drawn = MarkovSequence(stop_after_b).draw(2000, torch.Generator().manual_seed(0))
    assert all(x[0] == 0 and x[-1] == 1 and sum(x) == 1 for x in drawn.to_lists())
    assert drawn.lengths.double().mean().item() == pytest.approx(3.0, abs=5 * (2 / 2000) ** 0.5)


def test_drawing_empty_sequences_only():
    drawn = MarkovSequence(torch.tensor([[0.5, 0.5], [0.0, 1.0]])).draw(3)
    assert drawn.to_lists() == [[], [], []]
    assert drawn.width == 0


def test_a_length_of_exactly_max_length_can_be_drawn():
    always_two = torch.zeros(2, 2, 2, dtype=torch.double)
    always_two[1, 1, 0] = always_two[1, 0, 0] = always_two[0, 0, 1] = 1
    drawn = MarkovSequence(always_two, order=2, max_length=2).sample((4,))
    assert drawn.tolist() == [[0, 0]] * 4
    with pytest.raises(ValueError, match="4 of 4 sequences were still alive at max_length=1; raise max_length"):
        MarkovSequence(always_two, order=2, max_length=1).sample((4,))


def test_only_some_alive_at_max_length():
    model = MarkovSequence.from_transitions(torch.tensor([0.5, 0.5]), torch.eye(2), torch.tensor([1.0, 0.0]))
    torch.manual_seed(0)
    with pytest.raises(ValueError, match=r"^\d\d of 100 sequences were still alive at max_length=1000"):
        model.draw(100)


THIRD = torch.full((3, 3), 1 / 3, dtype=torch.double)


@pytest.mark.parametrize(
    ("probs", "order", "message"),
    [
        (THIRD, 0, "order: expected an integer of at least 1, found 0"),
        (THIRD, 2, r"probs: expected a floating-point tensor of shape \[..., 3, 3, 3\], found torch.float64 \[3, 3\]"),
        (THIRD.long(), 1, r"\[..., 3, 3\], found torch.int64 \[3, 3\]"),
        (THIRD[:2], 1, r"found torch.float64 \[2, 3\]"),
        (torch.ones(1, 1), 1, "expected at least one symbol beside the stop"),
        (torch.tensor(1.0), 1, r"probs: expected at least one dimension, .* found \[\]"),
        (0.9 * THIRD, 1, r"probs: .* sum to 1 along the last dimension, found the sum 0.9 at index \[0\]; divide"),
        (THIRD - torch.eye(3, dtype=torch.double), 1, r"probs: .* in 0..1, found -0.666667 at index \[0, 0\]"),
        (THIRD * torch.nan, 1, r"found nan at index \[0, 0\]"),
    ],
)
def test_bad_probs(probs, order, message):
    with pytest.raises(ValueError, match=message):
        MarkovSequence(probs, order=order, validate_args=True)


def test_values_go_unchecked_on_request():
    assert MarkovSequence(0.9 * THIRD, validate_args=False).log_prob(torch.tensor([0])).exp().item() == pytest.approx(
        0.09
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"initial": torch.tensor([0.5, 0.4])}, r"initial: .* found the sum 0.9 at index \[\]"),
        ({"transition": torch.tensor([[1.0, 0.0], [0.5, 0.6]])}, r"transition: .* found the sum 1.1 at index \[1\]"),
        ({"transition": torch.eye(3)}, r"transition: .* shape \[..., 2, 2\], found torch.float32 \[3, 3\]"),
        ({"stop": 1.5}, r"stop: expected probabilities in 0..1, found 1.5 at index \[0\]"),
        ({"stop": torch.ones(3)}, r"stop: .* shape \[..., 2\], found torch.float32 \[3\]"),
        (
            {"initial": torch.full((2, 2), 0.5), "transition": torch.eye(2).expand(3, 2, 2)},
            r"batch shapes that broadcast, found initial \[2\], transition \[3\], stop \[\]; give all",
        ),
    ],
)
def test_bad_transitions(change, message):
    given = {"initial": torch.tensor([0.5, 0.5]), "transition": torch.eye(2), "stop": 0.5}
    with pytest.raises(ValueError, match=message):
        MarkovSequence.from_transitions(**{**given, **change})


def test_sequences_end_at_a_thousand_symbols_unless_stated():
    even = torch.full((3, 3), 1 / 3, dtype=torch.double)
    assert MarkovSequence(even).max_length == 1000
    assert MarkovSequence.from_transitions(even[0, :2] * 1.5, even[:2, :2] * 1.5, stop=0.5).max_length == 1000

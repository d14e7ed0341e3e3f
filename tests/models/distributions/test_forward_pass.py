# SPDX-License-Identifier: Apache-2.0
"""The probability under hidden Markov models by steps and by pieces: against a plain recursion, with gradients."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from pyro_ksd.models import HiddenMarkovSequence
from pyro_ksd.models.distributions import forward_pass


@pytest.fixture
def by_pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Sets the way in which all sequences are evaluated."""
    monkeypatch.setattr(forward_pass, "_LONG", 1 if request.param else math.inf)
    monkeypatch.setattr(forward_pass, "_FEW", math.inf)
    monkeypatch.setattr(forward_pass, "_PIECE", 3)
    return bool(request.param)


BOTH_WAYS = pytest.mark.parametrize("by_pieces", [False, True], indirect=True)


def parameters(states: int, symbols: int, *batch: int, seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shapes = ((states,), (states, states), (states, symbols))
    rows = [torch.randn(*batch, *shape, dtype=torch.double, generator=generator).softmax(-1) for shape in shapes]
    return [*rows, torch.rand(*batch, states, dtype=torch.double, generator=generator)]


def padded(count: int, width: int, symbols: int, seed: int = 0) -> Tensor:
    """Sequences of all lengths from 0 on."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(symbols, (count, width), generator=generator)
    lengths = torch.randint(width + 1, (count,), generator=generator)
    return tokens.masked_fill(torch.arange(width) >= lengths[:, None], -1)


def plain_log_prob(x: list[int], initial: Tensor, transition: Tensor, emission: Tensor, stop: Tensor) -> Tensor:
    """Step by step, in logarithms."""
    symbols = [symbol for symbol in x if symbol >= 0]
    if not symbols:
        return torch.tensor(-math.inf, dtype=torch.double)
    vector = initial.log() + emission[:, symbols[0]].log()
    for symbol in symbols[1:]:
        moved = vector[:, None] + (1 - stop).log()[:, None] + transition.log()
        vector = moved.logsumexp(0) + emission[:, symbol].log()
    return (vector + stop.log()).logsumexp(0)


@BOTH_WAYS
@pytest.mark.parametrize("width", [1, 2, 3, 7, 16, 50])
@pytest.mark.parametrize("states", [1, 2, 4])
def test_values_and_gradients_against_a_plain_recursion(by_pieces: bool, width: int, states: int) -> None:
    parts = parameters(states, 3)
    tokens = padded(12, width, 3)
    leaves = [part.clone().requires_grad_() for part in parts]
    plain_leaves = [part.clone().requires_grad_() for part in parts]
    found = HiddenMarkovSequence(*leaves, validate_args=False).log_prob(tokens)
    expected = torch.stack([plain_log_prob(x, *plain_leaves) for x in tokens.tolist()])
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-11)
    weights = torch.arange(1.0, 13, dtype=torch.double)
    possible = expected.isfinite()
    (found * weights)[possible].sum().backward()
    (expected * weights)[possible].sum().backward()
    for leaf, plain in zip(leaves, plain_leaves, strict=True):
        if plain.grad is not None:
            torch.testing.assert_close(leaf.grad, plain.grad, rtol=1e-9, atol=1e-9)


@BOTH_WAYS
def test_second_derivatives(by_pieces: bool) -> None:
    tokens = padded(4, 9, 2)[1:]

    def value(logits: Tensor) -> Tensor:
        moves = logits.view(2, 2).softmax(-1)
        initial, _, emission, stop = parameters(2, 2)
        return (
            HiddenMarkovSequence(initial, moves, emission, stop, validate_args=False).log_prob(tokens).clamp(min=-1e9)
        )

    logits = torch.tensor([0.3, -0.2, 0.1, 0.4], dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(value, logits)
    assert torch.autograd.gradgradcheck(value, logits)


@BOTH_WAYS
def test_batches_of_models(by_pieces: bool) -> None:
    parts = parameters(3, 4, 5)
    tokens = padded(5, 20, 4)
    found = HiddenMarkovSequence(*parts).log_prob(tokens)
    for member in range(5):
        single = HiddenMarkovSequence(*(part[member] for part in parts))
        torch.testing.assert_close(found[member], single.log_prob(tokens[member]), rtol=1e-12, atol=0)


@BOTH_WAYS
def test_zeros_give_exact_values_and_no_nan(by_pieces: bool) -> None:
    leaves = [
        torch.tensor([1.0, 0.0], dtype=torch.double, requires_grad=True),
        torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.double, requires_grad=True),
        torch.tensor([[1.0, 0.0], [0.5, 0.5]], dtype=torch.double, requires_grad=True),
        torch.tensor([0.5, 0.5], dtype=torch.double, requires_grad=True),
    ]
    tokens = torch.tensor([[0, 0, 0, 1, -1], [0, 1, 0, 1, 0], [1, 0, 0, 0, 0], [0, 1, 1, -1, -1], [-1, -1, -1, -1, -1]])
    values = HiddenMarkovSequence(*leaves).log_prob(tokens)
    assert values.exp().tolist() == pytest.approx([1 / 64, 1 / 128, 0, 0, 0])
    assert values[2:].eq(-math.inf).all()
    values[:2].sum().backward()
    assert all(leaf.grad is not None and leaf.grad.isfinite().all() for leaf in leaves)


@BOTH_WAYS
def test_states_that_are_improbable_within_a_piece_but_certain_in_all(by_pieces: bool) -> None:
    """A chain that stays in its first state, by which each symbol is far less probable than by the other one."""
    rare = 1e-60
    initial = torch.tensor([1.0, 0.0], dtype=torch.double)
    emission = torch.tensor([[rare, 1 - rare], [1.0, 0.0]], dtype=torch.double)
    chain = HiddenMarkovSequence(initial, torch.eye(2, dtype=torch.double), emission, stop=0.5)
    for length in (5, 100, 101):
        found = chain.log_prob(torch.zeros(1, length, dtype=torch.long))
        assert float(found) == pytest.approx(length * math.log(rare / 2), rel=1e-12)
    mixed = torch.tensor([[0] * 100 + [1] + [0] * 50])  # only the first state can emit 1
    assert float(chain.log_prob(mixed)) == pytest.approx(150 * math.log(rare / 2) + math.log(1 / 2), rel=1e-12)


def test_many_sequences_go_by_steps_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    model = HiddenMarkovSequence(*parameters(2, 3))
    tokens = padded(30, 10, 3)
    expected = model.log_prob(tokens)
    monkeypatch.setattr(forward_pass, "ENTRIES", 100)
    assert torch.equal(model.log_prob(tokens), expected)
    assert model.log_prob(tokens[:0]).shape == (0,)


def test_the_way_is_chosen_by_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    for name in ("_by_steps", "_by_pieces"):
        whole = getattr(forward_pass, name)
        monkeypatch.setattr(forward_pass, name, lambda *args, f=whole, name=name: used.append(name) or f(*args))
    model = HiddenMarkovSequence(*parameters(2, 3))
    for count, width in ((20, 400), (20, 20), (5000, 100)):
        model.log_prob(padded(count, width, 3))
    assert used == ["_by_pieces", "_by_steps", "_by_steps"]

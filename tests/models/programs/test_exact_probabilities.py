# SPDX-License-Identifier: Apache-2.0
"""Log-probabilities that are exact at 0 and 1, and outside of the support."""

from __future__ import annotations

import math
from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro import poutine
from pyro.distributions.torch_distribution import ExpandedDistribution
from pyro_programs import stops
from torch import Tensor

from pyro_ksd import MarkovSequence, ksd_check
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.programs.exact_probabilities import exact_log_prob, innermost, own_mask
from pyro_ksd.sequences.container import Sequences

TABLE = torch.tensor([[0.2, 0.8, 0.0], [0.0, 1.0, 0.0], [0.3, 0.3, 0.4]], dtype=torch.double)
CODES = torch.tensor([2, 1, 2])
P = torch.tensor([0.0, 1.0, 0.25], dtype=torch.double)


def same(found: Tensor, expected: list[float]) -> None:
    torch.testing.assert_close(found, torch.tensor(expected, dtype=found.dtype), rtol=1e-14, atol=0)


def test_categorical() -> None:
    expected = [-math.inf, 0.0, math.log(0.4)]
    same(exact_log_prob(dist.Categorical(TABLE), CODES), expected)
    same(exact_log_prob(dist.Categorical(logits=TABLE.log()), CODES), expected)
    one_hot = torch.nn.functional.one_hot(CODES, 3).double()
    same(exact_log_prob(dist.OneHotCategorical(TABLE), one_hot), expected)


def test_zero_or_one_of_two() -> None:
    for value in (0.0, 1.0):
        expected = [-math.inf if p == 1 - value else math.log(p if value else 1 - p) for p in P.tolist()]
        same(exact_log_prob(dist.Bernoulli(P), torch.full((3,), value)), expected)
        same(exact_log_prob(dist.Bernoulli(P), torch.full((3,), bool(value))), expected)


def test_counts() -> None:
    value = torch.tensor([0.0, 0.0, 2.0], dtype=torch.double)
    some = P[1:]
    same(exact_log_prob(dist.Geometric(some), value[1:]), [0.0, 2 * math.log(0.75) + math.log(0.25)])
    same(exact_log_prob(dist.Geometric(some), value[1:] + 1), [-math.inf, 3 * math.log(0.75) + math.log(0.25)])
    three = torch.tensor(3.0, dtype=torch.double)
    found = exact_log_prob(dist.Binomial(three, P), value)
    same(found, [0.0, -math.inf, math.log(3 * 0.25**2 * 0.75)])


@pytest.mark.parametrize("value", [-1, 3, 10])
@pytest.mark.parametrize("kind", ["probs", "logits"])
def test_values_outside_of_the_support_are_impossible(kind: str, value: int) -> None:
    with pyro.validation_enabled(False):
        fn = dist.Categorical(**{kind: torch.ones(3) / 3})
        assert exact_log_prob(fn, torch.tensor(value)) == -torch.inf
        assert exact_log_prob(dist.Geometric(torch.tensor(0.5)), torch.tensor(-1.0)) == -torch.inf
    if kind == "probs":
        with pyro.validation_enabled(True), pytest.raises(ValueError, match="within the support"):
            exact_log_prob(dist.Categorical(torch.ones(3) / 3), torch.tensor(value))


def test_other_distributions_give_their_own() -> None:
    value = torch.tensor([0.5, 1.5])
    assert torch.equal(
        exact_log_prob(dist.Normal(0.0, 1.0), value),
        dist.Normal(0.0, 1.0).log_prob(value),
    )
    # logits that were made from probabilities, and probabilities that were made from logits
    logits = torch.tensor([0.0, -200.0])
    from_logits = dist.Categorical(logits=logits)
    assert from_logits.probs[1] == 0  # looking at them keeps them
    assert exact_log_prob(from_logits, torch.tensor(1)) == pytest.approx(-200.0)


def wrapped() -> dict[str, Any]:
    inner = dist.Bernoulli(torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
    mask = torch.tensor([[True, False], [True, True]])
    return {
        "masked": (inner.mask(mask), [[0.0, 0.0], [math.log(0.5)] * 2]),
        "not masked": (inner.mask(True), [[0.0, -math.inf], [math.log(0.5)] * 2]),
        "all masked": (inner.mask(False), [[0.0, 0.0], [0.0, 0.0]]),
        "event": (inner.to_event(1), [-math.inf, 2 * math.log(0.5)]),
        "masked event": (inner.mask(mask).to_event(1), [0.0, 2 * math.log(0.5)]),
        "expanded": (
            ExpandedDistribution(dist.Bernoulli(torch.tensor([1.0, 0.0])), [2, 2]),
            [[0.0, -math.inf], [0.0, -math.inf]],
        ),
    }


@pytest.mark.parametrize("name", wrapped())
def test_what_is_around_a_distribution_counts(name: str) -> None:
    fn, expected = wrapped()[name]
    found = exact_log_prob(fn, torch.ones(2, 2))
    torch.testing.assert_close(found, torch.tensor(expected, dtype=found.dtype))
    assert isinstance(innermost(fn), dist.Bernoulli)


def test_own_masks() -> None:
    inner = dist.Bernoulli(torch.tensor([[0.3, 0.4], [0.5, 0.5]]))
    mask = torch.tensor([[False, False], [True, False]])
    assert own_mask(inner) is True
    assert own_mask(inner.mask(False)) is False
    assert torch.equal(torch.as_tensor(own_mask(inner.mask(mask))), mask)
    assert torch.as_tensor(own_mask(inner.mask(mask).to_event(1))).tolist() == [False, True]
    assert own_mask(inner.mask(False).to_event(1)) is False
    both = inner.mask(mask).mask(torch.tensor([[True, True], [False, True]]))
    assert not torch.as_tensor(own_mask(both)).any()


def test_formulas_under_vmap() -> None:
    with pyro.validation_enabled(False):
        found = torch.func.vmap(lambda p, x: exact_log_prob(dist.Categorical(p), x))(TABLE, CODES)
    same(found, [-math.inf, 0.0, math.log(0.4)])


# ---------------------------------------------------------------------------------- as a user sees it

MOVES = torch.tensor([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.6, 0.0, 0.4]])
START = torch.tensor([0.5, 0.5, 0.0])


def chain(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                probs = START.expand(len(lengths), -1) if t == 0 else MOVES[sequences[:, t - 1]]
                pyro.sample(f"x_{t}", dist.Categorical(probs), obs=sequences[:, t])
                pyro.sample(f"stop_{t}", dist.Bernoulli(0.3), obs=stops(lengths, t).float())


def left_to_right(sequences: Tensor, lengths: Tensor) -> None:
    """A hidden chain that never goes back: the symbol 0 cannot follow the symbol 1."""
    moves = torch.tensor([[0.5, 0.5], [0.0, 1.0]])
    with pyro.plate("sequences", len(lengths), dim=-1):
        z: Any = torch.tensor(0)
        for t in pyro.markov(range(sequences.shape[1])):
            with poutine.mask(mask=t < lengths):
                z = pyro.sample(f"z_{t}", dist.Categorical(moves[z]), infer={"enumerate": "parallel"})
                pyro.sample(f"x_{t}", dist.Categorical(torch.eye(2)[z]), obs=sequences[:, t])
                pyro.sample(f"stop_{t}", dist.Bernoulli(0.3), obs=stops(lengths, t).float())


def loop() -> None:
    t, stop, x = 0, False, None
    while not stop:
        x = pyro.sample(f"x_{t}", dist.Categorical(START if x is None else MOVES[x]))
        stop = pyro.sample(f"stop_{t}", dist.Bernoulli(0.3)).bool()
        t += 1


@pytest.mark.parametrize("program", [chain, loop])
def test_impossible_symbols_are_reported_as_for_a_distribution(program: Any) -> None:
    truth = MarkovSequence.from_transitions(START, MOVES, stop=0.3)
    data = Sequences.cat([truth.draw(30, torch.Generator().manual_seed(0)), Sequences.of([[0, 2], [1, 2, 1]], 3)])
    found = as_model(program, data).log_joint(data)
    torch.testing.assert_close(found, truth.log_joint(data).double(), rtol=1e-6, atol=1e-6)
    with pytest.warns(UserWarning, match=r"probability zero to 2 of 32 sequences: sequence 30, \[0, 2\]"):
        ksd_check(program, data, bootstrap="wild", num_bootstrap=5, progress=False)


def test_impossible_moves_of_hidden_states_count() -> None:
    data = Sequences.of([[0, 1], [1, 0], [0, 0, 1, 1], [1, 1, 0, 1]], 2)
    found = as_model(left_to_right, data).log_joint(data)
    assert found.isinf().tolist() == [False, True, False, True]

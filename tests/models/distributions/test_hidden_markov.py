# SPDX-License-Identifier: Apache-2.0
"""Hidden Markov models against sums over all paths."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.edits.splices import Edits, SpliceBlock
from pyro_ksd.models import HiddenMarkovSequence, MarkovSequence
from pyro_ksd.sequences.container import Sequences

K, S = 3, 2


def rows(seed: int, *shape: int) -> torch.Tensor:
    weights = torch.rand(shape, dtype=torch.double, generator=torch.Generator().manual_seed(seed))
    return weights / weights.sum(-1, keepdim=True)


INITIAL, TRANSITION, EMISSION = rows(0, K), rows(1, K, K), rows(2, K, S)
STOP = torch.tensor([0.1, 0.5, 0.0], dtype=torch.double)


def brute_force(x: list[int]) -> float:
    """The sum over all paths of hidden states."""
    initial, transition, emission, stop = (t.tolist() for t in (INITIAL, TRANSITION, EMISSION, STOP))
    total = 0.0
    for path in product(range(K), repeat=len(x)):
        p = 1.0
        for i, z in enumerate(path):
            p *= initial[z] if i == 0 else (1 - stop[path[i - 1]]) * transition[path[i - 1]][z]
            p *= emission[z][x[i]]
        total += p * stop[path[-1]] if path else 0.0
    return total


def test_log_prob_against_all_paths():
    space = Sequences.of([list(x) for length in range(6) for x in product(range(S), repeat=length)], S)
    target = torch.tensor([brute_force(x) for x in space.to_lists()], dtype=torch.double)
    found = HiddenMarkovSequence(INITIAL, TRANSITION, EMISSION, STOP).log_joint(space)
    assert found[0] == -math.inf
    torch.testing.assert_close(found[1:], target[1:].log(), rtol=1e-12, atol=1e-12)


def test_all_lengths_sum_to_one():
    model = HiddenMarkovSequence(INITIAL, TRANSITION, torch.ones(K, 1, dtype=torch.double), STOP)
    unary = Sequences.of([[0] * length for length in range(200)], 1)
    assert model.log_joint(unary).exp().sum().item() == pytest.approx(1, abs=1e-12)


def test_states_that_show_are_a_markov_chain():
    shown = HiddenMarkovSequence(INITIAL, TRANSITION, torch.eye(K, dtype=torch.double), STOP)
    chain = MarkovSequence.from_transitions(INITIAL, TRANSITION, STOP)
    data = Sequences.of([list(x) for length in range(5) for x in product(range(K), repeat=length)], K)
    torch.testing.assert_close(shown.log_joint(data), chain.log_joint(data), rtol=1e-12, atol=1e-12)


def test_long_sequences_do_not_underflow():
    model = HiddenMarkovSequence(INITIAL, TRANSITION, rows(3, K, 50), STOP)
    tokens = torch.randint(50, (2, 1500), generator=torch.Generator().manual_seed(4))
    data = Sequences.of(tokens, 50)
    log_joint = model.log_joint(data)
    assert (log_joint < -3000).all()
    assert log_joint.isfinite().all()
    vector = INITIAL.log()
    going = ((1 - STOP)[:, None] * TRANSITION).log()
    for position, symbol in enumerate(tokens[0]):
        vector = vector + rows(3, K, 50)[:, symbol].log()
        if position < 1499:
            vector = (vector[:, None] + going).logsumexp(0)
    target = (vector + STOP.log()).logsumexp(0)
    torch.testing.assert_close(log_joint[0], target, rtol=1e-12, atol=0)


def test_long_inserts_do_not_underflow():
    model = HiddenMarkovSequence(INITIAL, TRANSITION, rows(3, K, 50), STOP)
    data = Sequences.of(torch.randint(50, (1, 600), generator=torch.Generator().manual_seed(4)), 50)
    first = torch.zeros(1, dtype=torch.long)
    widest = Edits((SpliceBlock(first, first, 600, data.tokens.flip(1)),), 1)
    target = model.log_joint(widest.apply(data)) - model.log_joint(data)
    torch.testing.assert_close(model.log_ratio(data, widest), target, rtol=1e-9, atol=1e-9)


def test_impossible_symbols_give_no_nan():
    emission = torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]], dtype=torch.double, requires_grad=True)
    model = HiddenMarkovSequence(INITIAL, TRANSITION, emission, STOP)
    data = Sequences.of([[0, 0], [0, 1, 0]], 2)
    log_prob = model.log_prob(data.padded(-1))
    assert log_prob[0].isfinite()
    assert log_prob[1] == -math.inf
    log_prob[0].backward()
    assert emission.grad.isfinite().all()


def test_one_stop_for_all_states_gives_a_geometric_length():
    model = HiddenMarkovSequence(INITIAL, TRANSITION, EMISSION, 0.25, max_length=200)
    assert model.stop.tolist() == [0.25] * K
    for length in range(1, 5):
        space = Sequences.of([list(x) for x in product(range(S), repeat=length)], S)
        assert model.log_joint(space).exp().sum().item() == pytest.approx(0.25 * 0.75 ** (length - 1), abs=1e-14)
    drawn = model.draw(5000, torch.Generator().manual_seed(0))
    assert drawn.lengths.min() == 1
    assert drawn.lengths.double().mean().item() == pytest.approx(4, abs=5 * (12 / 5000) ** 0.5)


def test_stops_only_where_it_may():
    transition = torch.tensor([[0.5, 0.5], [0.5, 0.5]])
    model = HiddenMarkovSequence(torch.tensor([1.0, 0.0]), transition, torch.eye(2), torch.tensor([0.0, 1.0]))
    assert all(x[-1] == 1 and sum(x) == 1 for x in model.draw(500).to_lists())


def test_still_alive():
    model = HiddenMarkovSequence(INITIAL, TRANSITION, EMISSION, 0.0, max_length=12)
    with pytest.raises(ValueError, match="5 of 5 sequences were still alive at max_length=12; raise max_length"):
        model.sample((5,))


def test_batches_broadcast():
    stop = torch.tensor([[0.1] * K, [0.2] * K], dtype=torch.double)
    model = HiddenMarkovSequence(INITIAL, TRANSITION, EMISSION, stop)
    assert model.batch_shape == (2,)
    assert model.transition.shape == (2, K, K)
    value = torch.tensor([[0, 1, 1], [1, -1, -1]])
    target = [HiddenMarkovSequence(INITIAL, TRANSITION, EMISSION, s).log_prob(value) for s in (0.1, 0.2)]
    torch.testing.assert_close(model.log_prob(value[:, None]), torch.stack(target, 1))


def test_ratios_of_ragged_data():
    model = HiddenMarkovSequence(INITIAL, TRANSITION, EMISSION, 0.1)
    data = model.draw(20, torch.Generator().manual_seed(1))
    edits = zs().edits(data)
    target = model.log_joint(edits.apply(data)) - model.log_joint(data)[edits.owner]
    torch.testing.assert_close(model.log_ratio(data, edits), target, rtol=1e-10, atol=1e-10)
    assert len(set(data.lengths.tolist())) > 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"initial": INITIAL * 2}, r"initial: .* found the sum 2 at index \[\]; divide"),
        ({"initial": INITIAL[0]}, r"initial: expected at least one dimension"),
        ({"transition": EMISSION}, r"transition: .* shape \[..., 3, 3\], found torch.float64 \[3, 2\]"),
        ({"transition": TRANSITION * 0.5}, r"transition: .* found the sum 0.5 at index \[0\]"),
        ({"emission": EMISSION[:2]}, r"emission: .* shape \[..., 3, 2\], found torch.float64 \[2, 2\]"),
        ({"emission": -EMISSION}, r"emission: expected probabilities in 0..1, found -0\.\d+ at index \[0, 0\]"),
        ({"stop": STOP[:2]}, r"stop: .* shape \[..., 3\], found torch.float64 \[2\]"),
        ({"stop": 2.0}, r"stop: expected probabilities in 0..1, found 2 at index \[0\]"),
        (
            {"initial": INITIAL.expand(2, K), "emission": EMISSION.expand(5, K, S)},
            r"found initial \[2\], transition \[\], emission \[5\], stop \[\]",
        ),
    ],
)
def test_bad_parameters(change, message):
    given = {"initial": INITIAL, "transition": TRANSITION, "emission": EMISSION, "stop": STOP}
    with pytest.raises(ValueError, match=message):
        HiddenMarkovSequence(**{**given, **change})


def test_sequences_end_at_a_thousand_symbols_unless_stated() -> None:
    half = torch.full((2,), 0.5)
    assert HiddenMarkovSequence(half, half.expand(2, 2), half.expand(2, 2), half).max_length == 1000

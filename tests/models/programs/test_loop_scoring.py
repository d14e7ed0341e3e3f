# SPDX-License-Identifier: Apache-2.0
"""Scoring sequences under a loop program: how programs end, many at once and one by one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from loop_programs import (
    CHAIN,
    CONTROL_FLOW,
    INITIAL,
    LONGEST,
    STOPS,
    TRANSITION,
    S,
    assert_same,
    chain,
    enumerated,
    limited,
    slow,
    space,
)
from pyro import settings
from torch import nn

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.models import MarkovSequence
from pyro_ksd.models.programs.loop import LoopProgram
from pyro_ksd.models.programs.loop_scoring import LoopScoring
from pyro_ksd.models.programs.loop_site_names import SiteNames
from pyro_ksd.sequences.container import Sequences


@pytest.mark.parametrize("stop_at_the_limit", [False, True])
@pytest.mark.parametrize("vectorized", [False, True])
def test_maximal_length(stop_at_the_limit, vectorized):
    limit = 3
    if vectorized:
        model = LoopProgram(limited(limit, stop_at_the_limit=stop_at_the_limit), S)
    else:
        model = slow(limited(limit, stop_at_the_limit=stop_at_the_limit, index=int))
    truth = MarkovSequence.from_transitions(INITIAL, TRANSITION, STOPS).log_joint(space())
    last = torch.tensor([x[-1] if x else 0 for x in space().to_lists()])
    truth = torch.where(space().lengths == limit, truth - STOPS[last].log(), truth)
    truth = torch.where(space().lengths > limit, -torch.inf, truth)
    found = model.log_joint(space())
    assert_same(found, truth)
    assert found.exp().sum().item() == pytest.approx(1, abs=1e-12)


def test_what_follows_an_unheeded_stop_is_summed_over():
    def program():
        x = pyro.sample("x_0", dist.Categorical(INITIAL))
        stop = pyro.sample("stop_0", dist.Bernoulli(STOPS[x]))
        pyro.factor("f", 2 * stop)

    found = LoopProgram(program, S).log_joint(Sequences.of([[0], [1], [2]], S))
    assert_same(found, (INITIAL * (STOPS * math.exp(2) + 1 - STOPS)).log())


def test_maximal_length_before_the_stop():
    def program():
        for t in range(3):
            if pyro.sample(f"stop_{t}", dist.Bernoulli(torch.tensor(0.3, dtype=torch.double))):
                break
            pyro.sample(f"x_{t}", dist.Categorical(INITIAL))

    found = LoopProgram(program, S).log_joint(space())
    assert found.exp().sum().item() == pytest.approx(1, abs=1e-12)
    assert found.isfinite().tolist() == (space().lengths <= 3).tolist()


def test_minimal_length():
    def program():
        t, stop = 0, False
        while not stop:
            pyro.sample(f"x_{t}", dist.Categorical(INITIAL))
            if t >= 1:
                stop = pyro.sample(f"stop_{t}", dist.Bernoulli(torch.tensor(0.3, dtype=torch.double)))
            t += 1

    def log_prob(x):
        if len(x) < 2:
            return -math.inf
        return sum(INITIAL[symbol].log().item() for symbol in x) + math.log(0.3) + (len(x) - 2) * math.log(0.7)

    assert_same(LoopProgram(program, S).log_joint(space()), enumerated(log_prob, space()))


def test_program_that_ends_by_the_symbol():
    def program():
        t, x = 0, 0
        while x != 2:
            x = pyro.sample(f"x_{t}", dist.Categorical(INITIAL)).item()
            t += 1

    def log_prob(x):
        return sum(INITIAL[symbol].log().item() for symbol in x) if x and x.index(2) == len(x) - 1 else -math.inf

    sequences = Sequences.of([x for x in space().to_lists() if 2 in x or not x], S)
    found = slow(program).log_joint(sequences)
    assert_same(found, enumerated(log_prob, sequences))
    assert 0 < found.isfinite().sum() < len(found)
    assert slow(program).log_joint(Sequences.of([[0, 1]], S)).tolist() == [-math.inf]


@pytest.mark.parametrize("index", [lambda x: x, int])
def test_impossible_symbols_and_what_follows_them(index):
    """After a symbol of probability 0, this filter divides 0 by 0."""

    def program():
        belief, stop, t = torch.tensor([0.5, 0.5], dtype=torch.double), False, 0
        emission = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]], dtype=torch.double)
        while not stop:
            x = pyro.sample(f"x_{t}", dist.Categorical(logits=(belief @ emission).log()))
            belief = belief * emission[:, index(x)]
            belief = belief / belief.sum()
            stop = pyro.sample(f"stop_{t}", dist.Bernoulli(torch.tensor(0.5, dtype=torch.double)))
            t += 1

    def log_prob(x):
        total = 0.5 * (set(x) <= {0}) + 0.5 * (set(x) <= {0, 1}) * 0.5 ** len(x)
        return math.log(total * 0.5 ** len(x)) if total else -math.inf

    sequences = space(3, shortest=1)
    for order in (sequences, Sequences.of(sequences.to_lists()[::-1], S)):
        model = slow(program) if index is int else LoopProgram(program, S)
        found = model.log_joint(order)
        assert_same(found, enumerated(log_prob, order))
        assert 0 < found.isfinite().sum() < len(found)


@pytest.mark.parametrize("name", CONTROL_FLOW)
def test_control_flow_falls_back_and_warns_once(name):
    program = chain(index=CONTROL_FLOW[name], stops=STOPS)
    model = LoopProgram(program, S)
    message = r"cannot be vectorized \(.*\); from now on it runs once a sequence, which is far slower. To vectorize it"
    with pytest.warns(UserWarning, match=message) as caught:
        found = model.log_joint(space(3))
    assert len(caught) == 1
    assert_same(found, LoopProgram(chain(stops=STOPS), S).log_joint(space(3)))
    data = Sequences.of([[0, 1, 2], [2]], S)
    assert_same(
        model.log_ratio(data, zs().edits(data)), LoopProgram(chain(stops=STOPS), S).log_ratio(data, zs().edits(data))
    )


def test_vectorized_programs_run_once_a_length():
    runs = Counter()

    def program():
        runs["program"] += 1
        chain()()

    model = LoopProgram(program, S)
    model.log_joint(space())
    runs.clear()
    assert_same(model.log_joint(space()), CHAIN.log_joint(space()))
    assert runs["program"] == LONGEST + 1


@pytest.mark.parametrize("difference", [1.0, 0.01])
def test_vectorized_run_that_differs(difference):
    def program():
        chain()()
        if torch._C._functorch.maybe_current_level() is not None:
            pyro.factor("f", torch.tensor(difference))

    with pytest.warns(UserWarning, match=r"a vectorized run gave log p = .* where a plain run gave"):
        found = LoopProgram(program, S).log_joint(space(2, shortest=1))
    assert_same(found, CHAIN.log_joint(space(2, shortest=1)))


def test_rounding_of_float32_programs_is_no_difference():
    net = nn.Sequential(nn.Embedding(S, 64), nn.Linear(64, 64), nn.Linear(64, S))

    def program():
        x = torch.tensor(0)
        for t in range(50):
            x = pyro.sample(f"x_{t}", dist.Categorical(logits=net(x)))

    tokens = torch.randint(S, (40, 50), generator=torch.Generator().manual_seed(0))
    before = torch.cat([torch.zeros(40, 1, dtype=torch.long), tokens[:, :-1]], 1)
    truth = net.double()(before).log_softmax(-1).gather(-1, tokens[..., None]).sum((1, 2)).detach()
    net.float()
    assert_same(LoopProgram(program, S).log_joint(Sequences(tokens, torch.full((40,), 50), S)), truth, 1e-3)


def test_first_runs_are_validated():
    def program():
        pyro.sample("x_0", dist.Categorical(torch.tensor([0.5, 0.5, 0.0])))
        dist.Normal(0.0, -1.0)

    model = LoopProgram(program, S)
    for call in (lambda: model.log_joint(Sequences.of([[0]], S)), lambda: model.draw(1)):
        with pytest.raises(ValueError, match="parameter scale"):
            call()
    with settings.context(validate_distributions_torch=False, validate_distributions_pyro=False):
        assert model.log_joint(Sequences.of([[0]], S)).isfinite().all()


def scoring(program: Callable[[], Any]) -> LoopScoring:
    return LoopScoring(program, S, SiteNames("x_{}", "stop_{}"))


@pytest.mark.parametrize("length", [0, 1, 3])
def test_sequences_of_one_length_are_scored_together(length: int) -> None:
    sequences = space(length, shortest=length)
    assert_same(scoring(chain()).of_one_length(sequences.tokens[:, :length]), CHAIN.log_joint(sequences))


def test_a_program_that_cannot_be_vectorized_is_scored_one_by_one_from_then_on() -> None:
    runs = Counter[str]()

    def program() -> None:
        runs["program"] += 1
        chain(index=int)()

    score, tokens = scoring(program), space(2, shortest=2).tokens
    with pytest.warns(UserWarning, match="cannot be vectorized") as caught:
        score.of_one_length(tokens)
    assert len(caught) == 1
    runs.clear()
    assert_same(score.of_one_length(tokens), CHAIN.log_joint(space(2, shortest=2)))
    assert runs["program"] >= 2 * len(tokens)

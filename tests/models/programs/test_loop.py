# SPDX-License-Identifier: Apache-2.0
"""Programs in a loop as models: log-joints, parameters and draws."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
from loop_programs import (
    CHAIN,
    INITIAL,
    STOPS,
    TRANSITION,
    S,
    assert_same,
    chain,
    enumerated,
    space,
    table,
    with_prior,
)
from pyro.nn import PyroModule, PyroParam
from torch import nn
from torch.distributions import constraints

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.models import MarkovSequence
from pyro_ksd.models.programs.loop import LoopProgram
from pyro_ksd.sequences.container import Sequences


@pytest.mark.parametrize("as_stop", [lambda x: x, bool, lambda x: x.item()])
def test_chain_of_order_1(as_stop):
    assert_same(LoopProgram(chain(as_stop=as_stop), S).log_joint(space()), CHAIN.log_joint(space()))


def test_stop_that_depends_on_the_symbol():
    truth = MarkovSequence.from_transitions(INITIAL, TRANSITION, STOPS)
    assert_same(LoopProgram(chain(stops=STOPS), S).log_joint(space()), truth.log_joint(space()))


def test_chain_of_order_2_that_may_be_empty():
    probs = table(S + 1, S + 1, S + 1)

    def program():
        older, old, t = torch.tensor(S), torch.tensor(S), 0
        while not pyro.sample(f"stop_{t}", dist.Bernoulli(probs[older, old, S])):
            older, old = old, pyro.sample(f"x_{t}", dist.Categorical(probs[older, old, :S]))
            t += 1

    found = LoopProgram(program, S).log_joint(space())
    assert_same(found, MarkovSequence(probs, order=2).log_joint(space()))
    assert found[0].isfinite()


def test_program_that_sums_over_its_history():
    def program():
        total, t, stop = torch.tensor(0.0, dtype=torch.double), 0, False
        while not stop:
            total = total + pyro.sample(f"x_{t}", dist.Categorical(logits=torch.arange(S) * total.cos()))
            stop = pyro.sample(f"stop_{t}", dist.Bernoulli(1 / (1 + total.exp())))
            t += 1

    def log_prob(x):
        total, value = 0, 0.0
        for t, symbol in enumerate(x):
            weights = [math.exp(code * math.cos(total)) for code in range(S)]
            value += math.log(weights[symbol] / sum(weights))
            total += symbol
            end = 1 / (1 + math.exp(total))
            value += math.log(end if t == len(x) - 1 else 1 - end)
        return value

    sequences = space(shortest=1)
    assert_same(LoopProgram(program, S).log_joint(sequences), enumerated(log_prob, sequences))


def test_log_ratios():
    data = CHAIN.draw(20, torch.Generator().manual_seed(0))
    edits = zs().edits(data)
    assert_same(LoopProgram(chain(), S).log_ratio(data, edits), CHAIN.log_ratio(data, edits), 1e-10)


def test_it_is_a_model():
    assert LoopProgram(chain(), S).can_draw
    with pytest.raises(ValueError, match="the model's 3 symbols, found an alphabet of 4"):
        LoopProgram(chain(), S).log_joint(Sequences.of([[0]], 4))


def trained(init: Any = None) -> Callable[[], None]:
    """The chain with its initial law and its stop in parameters."""

    def program():
        law = pyro.param("law", INITIAL if init is None else init, constraint=constraints.simplex)
        end = pyro.param("end", torch.tensor(0.3, dtype=torch.double), constraint=constraints.unit_interval)
        stop, t = False, 0
        while not stop:
            x = pyro.sample(f"x_{t}", dist.Categorical(law))
            stop = pyro.sample(f"stop_{t}", dist.Bernoulli(end))
            law, t = TRANSITION[x], t + 1

    return program


def test_initialized_parameters_stay_out_of_the_store():
    model = LoopProgram(trained(), S)
    assert_same(model.log_joint(space()), CHAIN.log_joint(space()))
    model.draw(3)
    assert len(pyro.get_param_store()) == 0


def test_parameters_are_initialized_as_pyro_does():
    uniform = torch.ones(S, dtype=torch.double)
    truth = MarkovSequence.from_transitions(uniform / S, TRANSITION, 0.3)
    assert_same(LoopProgram(trained(uniform), S).log_joint(space()), truth.log_joint(space()))


def test_random_initial_parameters_are_refused():
    model = LoopProgram(trained(lambda: torch.rand(S, dtype=torch.double)), S)
    with pytest.raises(ValueError, match="param 'law': found an initial value that changes from run to run"):
        model.log_joint(space(2))
    with pytest.raises(ValueError, match=r"or pass parameters=\{'law': value\}"):
        model.draw(2)
    given = LoopProgram(trained(lambda: torch.rand(S, dtype=torch.double)), S, {"law": TRANSITION[1]})
    truth = MarkovSequence.from_transitions(TRANSITION[1], TRANSITION, 0.3)
    assert_same(given.log_joint(space()), truth.log_joint(space()))


def test_parameters_of_the_store_are_used_and_left_alone():
    kept = pyro.param("law", TRANSITION[1], constraint=constraints.simplex)
    held = pyro.param("free", torch.tensor(1.0))
    model = LoopProgram(trained(), S)
    truth = MarkovSequence.from_transitions(TRANSITION[1], TRANSITION, 0.3)
    assert_same(model.log_joint(space()), truth.log_joint(space()))
    model.draw(2)
    assert list(pyro.get_param_store().keys()) == ["law", "free"]
    assert torch.equal(pyro.param("law"), kept)
    assert held.unconstrained() is held


def test_pyro_module():
    net = nn.Linear(S, S, bias=False).double()

    def program():
        pyro.module("net", net)
        hidden, stop, t = torch.zeros(S, dtype=torch.double), False, 0
        while not stop:
            x = pyro.sample(f"x_{t}", dist.Categorical(logits=net(hidden)))
            hidden = torch.tanh(hidden + torch.eye(S, dtype=torch.double)[x])
            stop = pyro.sample(f"stop_{t}", dist.Bernoulli(torch.tensor(0.3, dtype=torch.double)))
            t += 1

    def log_prob(x):
        hidden, value = torch.zeros(S, dtype=torch.double), math.log(0.3) + (len(x) - 1) * math.log(0.7)
        for symbol in x:
            value += (net.weight @ hidden).log_softmax(-1)[symbol].item()
            hidden = torch.tanh(hidden + torch.eye(S, dtype=torch.double)[symbol])
        return value

    sequences = space(shortest=1)
    found = LoopProgram(program, S).log_joint(sequences)
    assert_same(found, enumerated(log_prob, sequences))
    assert not found.requires_grad
    assert len(pyro.get_param_store()) == 0


def test_pyro_modules_that_write_to_the_store():
    class Program(PyroModule):
        def __init__(self):
            super().__init__()
            self.end = PyroParam(torch.tensor(0.3, dtype=torch.double), constraints.unit_interval)
            self.law = nn.Parameter(INITIAL.log())

        def forward(self):
            law, stop, t = self.law.softmax(-1), False, 0
            while not stop:
                x = pyro.sample(f"x_{t}", dist.Categorical(law))
                stop = pyro.sample(f"stop_{t}", dist.Bernoulli(self.end))
                law, t = TRANSITION[x], t + 1

    model = LoopProgram(Program(), S)
    assert_same(model.log_joint(space()), CHAIN.log_joint(space()))
    assert_same(model.log_joint(space()), CHAIN.log_joint(space()))
    model.draw(2)
    assert len(pyro.get_param_store()) == 0


def test_conditioned_parameters_cancel():
    model = LoopProgram(pyro.condition(with_prior, {"end": torch.tensor(0.3, dtype=torch.double)}), S)
    found = model.log_joint(space(shortest=1)) - CHAIN.log_joint(space(shortest=1))
    assert_same(found, torch.full_like(found, math.log(2 * 0.3)))
    assert len(model.draw(3)) == 3


@pytest.mark.parametrize("program", [chain(stops=STOPS), chain(stops=STOPS, index=int)])
def test_frequencies_of_draws(program):
    model, count = LoopProgram(program, S), 3000
    truth = MarkovSequence.from_transitions(INITIAL, TRANSITION, STOPS)
    found = Counter(map(tuple, model.draw(count, torch.Generator().manual_seed(1)).to_lists()))
    sequences = space(2, shortest=1)
    for x, p in zip(sequences.to_lists(), truth.log_joint(sequences).exp().tolist(), strict=True):
        assert abs(found[tuple(x)] - count * p) < 4 * math.sqrt(count * p * (1 - p))


def test_draws_follow_the_generator():
    model = LoopProgram(chain(), S)
    first, again, other = (model.draw(20, torch.Generator().manual_seed(seed)).to_lists() for seed in (1, 1, 2))
    assert first == again
    assert first != other
    generator = torch.Generator().manual_seed(1)
    assert model.draw(20, generator).to_lists() == first
    assert model.draw(20, generator).to_lists() != first


def test_draws_without_generator_follow_the_global_state():
    model = LoopProgram(chain(), S)
    torch.manual_seed(3)
    first, second = model.draw(20).to_lists(), model.draw(20).to_lists()
    torch.manual_seed(3)
    assert model.draw(20).to_lists() == first
    assert first != second


def test_draws_seed_numpy_and_random_too():
    def program():
        chain(stops=0.1 + 0.4 * (np.random.random() + random.random()))()  # noqa: NPY002

    model = LoopProgram(program, S)
    first = model.draw(30, torch.Generator().manual_seed(1)).to_lists()
    random.random()
    np.random.random()  # noqa: NPY002
    assert model.draw(30, torch.Generator().manual_seed(1)).to_lists() == first


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"program": 3}, "program: expected a function without arguments, found 3"),
        ({"alphabet_size": 0}, "alphabet_size: expected an integer of at least 1, found 0"),
        ({"max_length": 0}, "max_length: expected an integer of at least 1, found 0"),
        ({"symbol_site": "x"}, r"symbol_site: expected a name with one \{\} for the step, found 'x'"),
        ({"stop_site": "{}_{}"}, r"stop_site: expected a name with one \{\} for the step, found '\{\}_\{\}'"),
        ({"stop_site": "x_{}"}, r"different names for symbols and stops, found 'x_\{\}' for both"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        LoopProgram(**({"program": chain(), "alphabet_size": S} | options))


def test_bad_number_of_draws():
    with pytest.raises(ValueError, match="num_sequences: expected an integer of at least 1, found 0"):
        LoopProgram(chain(), S).draw(0)


@pytest.mark.parametrize("seed", [torch.manual_seed, pyro.set_rng_seed])
def test_a_program_that_sets_a_seed_itself_is_refused(seed):
    def seeded():
        seed(5)
        chain()()

    with pytest.raises(
        ValueError, match="draw: expected other random numbers in each run of the program, found the sa"
    ):
        LoopProgram(seeded, S).draw(4, torch.Generator().manual_seed(0))


def test_a_sequence_of_ten_thousand_symbols_is_the_longest_unless_stated():
    assert LoopProgram(chain(), S).max_length == 10_000


def test_a_factor_that_only_some_runs_reach_is_found() -> None:
    def program(rare: int) -> Callable[[], None]:
        def branching() -> None:
            t, stop = 0, False
            while not stop:
                x = pyro.sample(f"x_{t}", dist.Categorical(torch.ones(3) / 3))
                if x == rare:
                    pyro.factor(f"factor_{t}", torch.tensor(0.3))
                stop = bool(pyro.sample(f"stop_{t}", dist.Bernoulli(0.8)))
                t += 1

        return branching

    assert [LoopProgram(program(rare), 3).can_draw for rare in (0, 1, 2, 3)] == [False, False, False, True]

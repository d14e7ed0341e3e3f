# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro import poutine, settings
from pyro.nn import PyroModule, PyroParam
from torch import Tensor, nn
from torch.distributions import constraints

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.models import MarkovSequence
from pyro_ksd.models.programs.loop import LoopProgram
from pyro_ksd.sequences.container import Sequences

S = 3
LONGEST = 4


@pytest.fixture(autouse=True)
def _clean():
    pyro.clear_param_store()
    torch.manual_seed(0)
    yield
    pyro.clear_param_store()


def table(*sizes: int) -> Tensor:
    weights = torch.rand(sizes, dtype=torch.double, generator=torch.Generator().manual_seed(len(sizes)))
    return weights / weights.sum(-1, keepdim=True)


INITIAL, TRANSITION = table(S), table(S, S)
STOPS = torch.tensor([0.2, 0.4, 0.6], dtype=torch.double)
CHAIN = MarkovSequence.from_transitions(INITIAL, TRANSITION, 0.3)


def space(longest: int = LONGEST, shortest: int = 0) -> Sequences:
    lengths = range(shortest, longest + 1)
    return Sequences.of([list(x) for length in lengths for x in product(range(S), repeat=length)], S)


def chain(
    *,
    index: Callable[[Any], Any] = lambda x: x,
    as_stop: Callable[[Any], Any] = lambda x: x,
    stops: Tensor | float = 0.3,
    symbol: str = "x_{}",
    stop_site: str = "stop_{}",
) -> Callable[[], None]:
    """A chain of order 1 that may stop after each symbol."""
    ends = torch.as_tensor(stops, dtype=torch.double).expand(S)

    def program() -> None:
        law, stop, t = INITIAL, False, 0
        while not stop:
            x = pyro.sample(symbol.format(t), dist.Categorical(law))
            stop = as_stop(pyro.sample(stop_site.format(t), dist.Bernoulli(ends[index(x)])))
            law, t = TRANSITION[index(x)], t + 1

    return program


def enumerated(log_prob: Callable[[tuple[int, ...]], float], sequences: Sequences) -> Tensor:
    return torch.tensor([log_prob(tuple(x)) for x in sequences.to_lists()], dtype=torch.double)


def assert_same(found: Tensor, expected: Tensor, tolerance: float = 1e-12) -> None:
    assert found.dtype == torch.double
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance)


def slow(program: Callable[[], None], **options: Any) -> LoopProgram:
    """A model of a program that cannot be vectorized, past its warning."""
    model = LoopProgram(program, S, **options)
    with pytest.warns(UserWarning, match="cannot be vectorized"):
        model.log_joint(Sequences.of([[0, 1]], S))
    return model


# What the log-joint is


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


def test_other_names():
    model = LoopProgram(chain(symbol="a{}z", stop_site="end.{}"), S, symbol_site="a{}z", stop_site="end.{}")
    assert_same(model.log_joint(space()), CHAIN.log_joint(space()))
    strict = LoopProgram(chain(stop_site="endx{}"), S, stop_site="end.{}")
    with pytest.raises(ValueError, match="site 'endx0' has no value"):
        strict.log_joint(space(1))


def test_names_that_only_begin_like_symbols_and_stops():
    def program():
        for name in ("x_0b", "stop_0b"):
            pyro.sample(name, dist.Normal(0.0, 1.0), obs=torch.tensor(0.0, dtype=torch.double))
        chain()()

    assert_same(LoopProgram(program, S).log_joint(space(2)), CHAIN.log_joint(space(2)) - math.log(2 * math.pi), 1e-6)


def test_sites_of_shape_1():
    def program():
        law, stop, t = INITIAL[None], False, 0
        while not stop:
            x = pyro.sample(f"x_{t}", dist.Categorical(law))
            assert x.shape == (1,)
            stop = pyro.sample(f"stop_{t}", dist.Bernoulli(torch.full((1,), 0.3, dtype=torch.double)))
            law, t = TRANSITION[x], t + 1

    assert_same(LoopProgram(program, S).log_joint(space()), CHAIN.log_joint(space()))


def test_values_have_the_dtypes_of_samples():
    seen: set[tuple[str, torch.dtype]] = set()

    def program():
        stop, t = False, 0
        while not stop:
            x = pyro.sample(f"x_{t}", dist.Binomial(2, torch.tensor(0.5, dtype=torch.double)))
            stop = pyro.sample(f"stop_{t}", dist.Bernoulli(torch.tensor(0.3, dtype=torch.float32)))
            seen.update({("x", x.dtype), ("stop", stop.dtype)})
            t += 1

    def log_prob(x):
        symbols = sum(math.log([0.25, 0.5, 0.25][symbol]) for symbol in x)
        return symbols + math.log(0.3) + (len(x) - 1) * math.log(0.7)

    sequences = space(shortest=1)
    assert_same(LoopProgram(program, S).log_joint(sequences), enumerated(log_prob, sequences), 1e-6)
    assert seen == {("x", torch.double), ("stop", torch.float32)}


def test_factors_observed_and_deterministic_sites():
    def program():
        pyro.factor("constant", torch.tensor(7.0, dtype=torch.double))
        stop, t, total = False, 0, torch.tensor(0.0, dtype=torch.double)
        while not stop:
            x = pyro.sample(f"x_{t}", dist.Categorical(INITIAL))
            total = pyro.deterministic(f"total_{t}", total + x)
            pyro.factor(f"f_{t}", 0.1 * total)
            stop = pyro.sample(f"stop_{t}", dist.Bernoulli(torch.tensor(0.3, dtype=torch.double)))
            t += 1
        pyro.sample("seen", dist.Normal(total, 1.0), obs=torch.tensor(2.0, dtype=torch.double))

    def log_prob(x):
        value = 7.0 + math.log(0.3) + (len(x) - 1) * math.log(0.7)
        value += sum(INITIAL[symbol].log().item() + 0.1 * sum(x[: t + 1]) for t, symbol in enumerate(x))
        return value - (sum(x) - 2) ** 2 / 2 - math.log(2 * math.pi) / 2

    sequences = space(shortest=1)
    assert_same(LoopProgram(program, S).log_joint(sequences), enumerated(log_prob, sequences))


def test_mask_counts_and_scale_does_not():
    def program(mask):
        with poutine.mask(mask=mask), poutine.scale(scale=5.0):
            pyro.factor("f", torch.tensor(2.0, dtype=torch.double))
        chain()()

    for mask, extra in ((True, 2.0), (False, 0.0)):
        model = LoopProgram(lambda mask=mask: program(mask), S)
        assert_same(model.log_joint(space(2)), CHAIN.log_joint(space(2)) + extra)


def test_plates_around_global_parameters_and_steps():
    def program():
        with pyro.plate("rows", S):
            rows = pyro.sample("rows_law", dist.Dirichlet(torch.ones(S, dtype=torch.double)))
        law, stop = INITIAL, False
        for t in pyro.plate("steps", 9):
            if not stop:
                x = pyro.sample(f"x_{t}", dist.Categorical(law))
                stop = pyro.sample(f"stop_{t}", dist.Bernoulli(torch.tensor(0.3, dtype=torch.double)))
                law = rows[x]

    model = LoopProgram(pyro.condition(program, {"rows_law": TRANSITION}), S)
    constant = S * math.lgamma(S)
    assert_same(model.log_joint(space()), CHAIN.log_joint(space()) + constant)
    assert len(model.draw(5)) == 5


def test_handlers_around_the_call_do_not_count():
    model = LoopProgram(chain(), S)
    with poutine.trace() as trace, poutine.mask(mask=False), poutine.condition(data={"x_0": torch.tensor(0)}):
        found = model.log_joint(space(2))
    assert_same(found, CHAIN.log_joint(space(2)))
    assert set(trace.trace.nodes) <= {"_INPUT", "_RETURN"}


def test_it_is_a_model():
    assert LoopProgram(chain(), S).can_draw
    with pytest.raises(ValueError, match="the model's 3 symbols, found an alphabet of 4"):
        LoopProgram(chain(), S).log_joint(Sequences.of([[0]], 4))


# How programs end


def limited(limit: int, *, stop_at_the_limit: bool, index: Callable[[Any], Any] = lambda x: x) -> Callable[[], None]:
    def program():
        law, stop, t = INITIAL, False, 0
        while not stop and t < limit:
            x = pyro.sample(f"x_{t}", dist.Categorical(law))
            if stop_at_the_limit or t < limit - 1:
                stop = pyro.sample(f"stop_{t}", dist.Bernoulli(STOPS[index(x)]))
            law, t = TRANSITION[index(x)], t + 1

    return program


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


@pytest.mark.parametrize("data", [[[0]], [[0, 1, 1, 0]]])
def test_unheeded_stop_in_the_middle(data):
    def program():
        t, stop = 0, False
        while not (stop and t > 2):
            pyro.sample(f"x_{t}", dist.Categorical(INITIAL))
            stop = pyro.sample(f"stop_{t}", dist.Bernoulli(0.3))
            t += 1

    message = (
        r"goes on to site 'x_1' after 'stop_0' said stop, expected the end of the sequence; sample a stop site only"
    )
    with pytest.raises(ValueError, match=message):
        LoopProgram(program, S).log_joint(Sequences.of(data, S))
    with pytest.raises(ValueError, match=r"goes on to site 'x_\d' after 'stop_\d' said stop"):
        LoopProgram(program, S).draw(50)


def test_last_symbol_after_the_stop():
    def program():
        t, stop = 0, False
        while not stop:
            stop = pyro.sample(f"stop_{t}", dist.Bernoulli(0.3))
            pyro.sample(f"x_{t}", dist.Categorical(INITIAL))
            t += 1

    with pytest.raises(ValueError, match="goes on to site 'x_2' after 'stop_2' said stop"):
        LoopProgram(program, S).log_joint(Sequences.of([[0, 1]], S))


# Impossible symbols


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


# Vectorization


CONTROL_FLOW = {
    "int": int,
    "item": lambda x: x.item(),
    "index": lambda x: [0, 1, 2][x],
    "tolist": lambda x: x.tolist(),
    "if": lambda x: 0 if x == 0 else (1 if x == 1 else 2),
}


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


def test_vectorized_run_that_differs():
    def program():
        chain()()
        if torch._C._functorch.maybe_current_level() is not None:
            pyro.factor("f", torch.tensor(1.0))

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


# Parameters


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


def test_random_initial_parameters_are_kept():
    model = LoopProgram(trained(lambda: torch.rand(S, dtype=torch.double)), S)
    first = model.log_joint(space(2))
    torch.rand(5)
    assert_same(model.log_joint(space(2)), first)
    other = LoopProgram(trained(lambda: torch.rand(S, dtype=torch.double)), S)
    assert not torch.equal(first, other.log_joint(space(2)))


def test_later_random_parameters_differ_from_earlier_ones():
    def program():
        for name in "ab":
            stop = pyro.sample(f"stop_{name == 'b':d}", dist.Bernoulli(torch.tensor(0.5, dtype=torch.double)))
            if stop:
                break
            law = pyro.param(name, lambda: torch.rand(S, dtype=torch.double), constraint=constraints.simplex)
            pyro.sample(f"x_{name == 'b':d}", dist.Categorical(law))

    model = LoopProgram(program, S)
    one = model.log_joint(Sequences.of([[symbol] for symbol in range(S)], S)) - 2 * math.log(0.5)
    two = model.log_joint(Sequences.of([[0, symbol] for symbol in range(S)], S)) - 2 * math.log(0.5) - one[0]
    assert one.exp().sum().item() == pytest.approx(1)
    assert two.exp().sum().item() == pytest.approx(1)
    assert (one - two).abs().max() > 0.01


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


def with_prior() -> None:
    end = pyro.sample("end", dist.Beta(torch.tensor(2.0, dtype=torch.double), 1.0))
    chain(stops=end)()


def test_conditioned_parameters_cancel():
    model = LoopProgram(pyro.condition(with_prior, {"end": torch.tensor(0.3, dtype=torch.double)}), S)
    found = model.log_joint(space(shortest=1)) - CHAIN.log_joint(space(shortest=1))
    assert_same(found, torch.full_like(found, math.log(2 * 0.3)))
    assert len(model.draw(3)) == 3


@pytest.mark.parametrize("call", [lambda model: model.log_joint(space(2)), lambda model: model.draw(2)])
def test_parameter_without_value(call):
    message = r"site 'end' has no value; give it one \(parameters=...\) or marginalize it"
    with pytest.raises(ValueError, match=message):
        call(LoopProgram(with_prior, S))


# Draws


@pytest.mark.parametrize("program", [chain(stops=STOPS), chain(stops=STOPS, index=int)])
def test_frequencies_of_draws(program):
    model, count = LoopProgram(program, S), 3000
    truth = MarkovSequence.from_transitions(INITIAL, TRANSITION, STOPS)
    found = Counter(map(tuple, model.draw(count, torch.Generator().manual_seed(1)).to_lists()))
    sequences = space(2, shortest=1)
    for x, p in zip(sequences.to_lists(), truth.log_joint(sequences).exp().tolist(), strict=True):
        assert abs(found[tuple(x)] - count * p) < 4 * math.sqrt(count * p * (1 - p))


def test_draws_may_be_empty():
    def program():
        if not pyro.sample("stop_0", dist.Bernoulli(0.5)):
            pyro.sample("x_0", dist.Bernoulli(1.0))

    drawn = LoopProgram(program, 2).draw(50)
    assert set(map(tuple, drawn.to_lists())) == {(), (1,)}
    assert drawn.alphabet == 2


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


def test_too_long_draws():
    message = r"still going at max_length=5, expected a shorter sequence; raise max_length"
    with pytest.raises(ValueError, match=message):
        LoopProgram(chain(stops=0.0), S, max_length=5).draw(1)
    with pytest.raises(ValueError, match=message):
        LoopProgram(lambda: [pyro.sample(f"x_{t}", dist.Categorical(INITIAL)) for t in range(6)], S, max_length=5).draw(
            1
        )
    assert LoopProgram(limited(5, stop_at_the_limit=False), S, max_length=5).draw(20).width <= 5
    assert LoopProgram(chain(), S).max_length == 10_000


def test_draws_outside_of_the_alphabet():
    with pytest.raises(ValueError, match=r"site 'x_\d+': found the symbol 2, expected 0..1; fix alphabet_size="):
        LoopProgram(chain(), 2).draw(50)


@pytest.mark.parametrize(
    "extra",
    [
        lambda x: pyro.factor("extra", x.double()),
        lambda x: pyro.sample("extra", dist.Normal(x.double(), 1.0), obs=torch.tensor(0.0)),
    ],
)
def test_reweighted_programs_cannot_be_drawn(extra):
    def program():
        x = pyro.sample("x_0", dist.Categorical(INITIAL))
        extra(x)

    model = LoopProgram(program, S)
    assert model.log_joint(Sequences.of([[1]], S)).isfinite().all()
    with pytest.raises(ValueError, match="site 'extra': found an observed site or factor within the sequence"):
        model.draw(1)


def test_deterministic_sites_and_constant_factors_do_not_hinder_draws():
    def program():
        pyro.factor("constant", torch.tensor(1.0))
        pyro.deterministic("twice", 2 * pyro.sample("x_0", dist.Categorical(INITIAL)))

    assert LoopProgram(program, S).draw(4).lengths.tolist() == [1] * 4


# The state of the user


class BrokenError(Exception):
    pass


def breaking() -> None:
    pyro.param("leak", torch.tensor(1.0))
    pyro.sample("x_0", dist.Categorical(INITIAL))
    torch.rand(1)
    np.random.random()  # noqa: NPY002
    random.random()
    raise BrokenError


def states() -> tuple[Any, ...]:
    names = ("validate_distributions_pyro", "validate_distributions_torch", "validate_infer", "validate_poutine")
    return (
        torch.get_rng_state().tolist(),
        np.random.get_state()[1].tolist(),  # noqa: NPY002
        random.getstate(),
        list(pyro.get_param_store().keys()),
        [settings.get(name) for name in names],
        len(pyro.poutine.runtime._PYRO_STACK),
    )


@pytest.mark.parametrize("validate", [True, False])
def test_state_is_left_alone(validate):
    with settings.context(validate_distributions_torch=validate):
        before = states()
        model = LoopProgram(chain(), S)
        model.log_joint(space())
        model.draw(5, torch.Generator().manual_seed(0))
        slow(chain(index=int)).log_joint(space(2))
        assert states() == before


def test_state_is_left_alone_by_programs_that_break():
    before = states()
    model = LoopProgram(breaking, S)
    with pytest.raises(BrokenError):
        model.draw(5, torch.Generator().manual_seed(0))
    assert states() == before
    state = torch.get_rng_state()
    with pytest.raises(BrokenError):
        model.log_joint(space(1))
    assert torch.equal(torch.get_rng_state(), state)
    assert states()[3:] == before[3:]


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


# Mistakes


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            lambda: pyro.sample("x_1", dist.Categorical(INITIAL)),
            "expected the site 'x_0' for the next symbol, found 'x_1'; count the symbols from 0",
        ),
        (
            lambda: pyro.sample("x_0", dist.Categorical(INITIAL), obs=torch.tensor(1)),
            "site 'x_0': found an observed site, expected one without a value; leave out obs=",
        ),
        (
            lambda: pyro.sample("x_0", dist.Categorical(TRANSITION)),
            r"site 'x_0': found values of shape \[3\], expected a single value; the program makes one sequence",
        ),
        (
            lambda: pyro.sample("x_0", dist.OneHotCategorical(INITIAL)),
            r"site 'x_0': found values of shape \[3\], expected a single value",
        ),
        (
            lambda: pyro.plate("data", 10, 5).__enter__(),
            "site 'data' has no value; give it one",
        ),
        (
            lambda: pyro.sample("symbol_0", dist.Categorical(INITIAL)),
            "site 'symbol_0' has no value; .* give its name in symbol_site= or stop_site=",
        ),
    ],
)
def test_misplaced_sites(program, message):
    for call in (lambda model: model.log_joint(Sequences.of([[0]], S)), lambda model: model.draw(1)):
        with pytest.raises(ValueError, match=message):
            call(LoopProgram(program, S))


class Fair(dist.TorchDistribution):
    """1/2 for everything."""

    arg_constraints = {}  # noqa: RUF012

    def sample(self, sample_shape=torch.Size()):  # noqa: B008
        return torch.ones(sample_shape, dtype=torch.long)

    def log_prob(self, value):
        return torch.full_like(value, math.log(0.5), dtype=torch.double)


class FairCoin(Fair):
    support = constraints.integer_interval(0, 1)


def test_laws_without_support():
    model = LoopProgram(lambda: pyro.sample("x_0", Fair(validate_args=False)), S)
    assert_same(model.log_joint(Sequences.of([[0], [2]], S)), torch.full((2,), math.log(0.5), dtype=torch.double))


SMALL_LAWS = {
    "coin": (FairCoin(validate_args=False), "0..1"),
    "categorical": (dist.Categorical(torch.tensor([0.5, 0.5])), "0..1"),
    "bernoulli": (dist.Bernoulli(0.5), "Boolean()"),
    "binomial": (dist.Binomial(1, torch.tensor(0.5)), "IntegerInterval(lower_bound=0, upper_bound=1.0)"),
}


@pytest.mark.parametrize("name", SMALL_LAWS)
@pytest.mark.parametrize("validate", [True, False])
def test_symbols_outside_of_the_support(name, validate):
    law, _ = SMALL_LAWS[name]

    def program():
        for t in range(2):
            pyro.sample(f"x_{t}", law)

    with settings.context(validate_distributions_pyro=validate, validate_distributions_torch=validate):
        model = LoopProgram(program, S)
        inside = model.log_joint(Sequences.of([[0, 1], [1, 1]], S))
        assert_same(inside, torch.full((2,), 2 * math.log(0.5)).double(), 1e-6)
        for first in ([0, 2], [0, 0]):
            with pytest.raises(
                ValueError, match=r"site 'x_1': found the symbol 2 in the sequence \[0, 2\], expected"
            ) as e:
                LoopProgram(program, S).log_joint(Sequences.of([first, [0, 2], [1, 1]], S))
            assert SMALL_LAWS[name][1] in str(e.value)
            assert "fix alphabet_size=" in str(e.value)


@pytest.mark.parametrize("index", [lambda x: x, int])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("first", [0, 1])
def test_log_probabilities_that_are_none(index, bad, first):
    potential = torch.tensor([0.5, bad, 0.5], dtype=torch.double)

    def program():
        for t in range(2):
            x = pyro.sample(f"x_{t}", dist.Categorical(INITIAL))
            pyro.factor(f"f_{t}", potential[index(x)])

    data = Sequences.of([[first, 2], [0, 1], [2, 2]], S)
    site, sequence = ("f_0", r"\[1, 2\]") if first else ("f_1", r"\[0, 1\]")
    message = rf"site '{site}': expected a log-probability, found {bad} for the sequence {sequence}; fix"
    with pytest.raises(ValueError, match=message):
        LoopProgram(program, S).log_joint(data)


@pytest.mark.parametrize("validate", [True, False])
def test_laws_of_nan(validate):
    broken = torch.tensor([[0.2, 0.3, 0.5], [math.nan] * 3, [0.2, 0.3, 0.5]])

    def program():
        law, stop, t = broken[0], False, 0
        while not stop:
            x = pyro.sample(f"x_{t}", dist.Categorical(law))
            stop = pyro.sample(f"stop_{t}", dist.Bernoulli(0.5 * broken[x].sum()))
            law, t = broken[x], t + 1

    with settings.context(validate_distributions_pyro=validate, validate_distributions_torch=validate):
        model = LoopProgram(program, S)
        for data in ([[1, 0]], [[0, 0], [1, 0]]):
            with pytest.raises(ValueError, match=r"site 'stop_0': .* found nan for the sequence \[1, 0\]"):
                model.log_joint(Sequences.of(data, S))


def test_long_sequences_are_cut_in_messages():
    def program():
        for t in range(30):
            pyro.sample(f"x_{t}", dist.Categorical(torch.ones(2)))

    with pytest.raises(ValueError, match=r"the sequence \[(0, ){20}...\], expected 0..1"):
        LoopProgram(program, S).log_joint(Sequences.of([[0] * 29 + [2]], S))


@pytest.mark.parametrize(
    "source",
    [
        lambda: nn.functional.dropout(torch.ones(3)),
        lambda: poutine.block(lambda: pyro.sample("z", dist.Normal(0.0, 1.0)))(),
    ],
)
def test_programs_that_draw_on_their_own(source):
    def program():
        source()
        chain()()

    state = torch.get_rng_state()
    with pytest.raises(ValueError, match="draws random numbers although all its sites have values"):
        LoopProgram(program, S).log_joint(space(1))
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"program": 3}, "program: expected a callable without arguments, found int"),
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

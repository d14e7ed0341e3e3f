# SPDX-License-Identifier: Apache-2.0
"""Runs of a loop program: which sites it may have, and forward runs."""

from __future__ import annotations

import math

import pyro
import pyro.distributions as dist
import pytest
import torch
from loop_programs import (
    CHAIN,
    INITIAL,
    TRANSITION,
    S,
    assert_same,
    chain,
    limited,
    space,
    with_prior,
)
from pyro import poutine

from pyro_ksd.models.programs.loop import LoopProgram
from pyro_ksd.models.programs.loop_runs import DrawnRun
from pyro_ksd.models.programs.loop_site_names import SiteNames
from pyro_ksd.sequences.container import Sequences


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


@pytest.mark.parametrize("call", [lambda model: model.log_joint(space(2)), lambda model: model.draw(2)])
def test_parameter_without_value(call):
    message = r"site 'end' has no value; give it one \(parameters=...\) or marginalize it"
    with pytest.raises(ValueError, match=message):
        call(LoopProgram(with_prior, S))


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
            "site 'symbol_0' has no value; .* name its sites: LoopProgram",
        ),
    ],
)
def test_misplaced_sites(program, message):
    for call in (lambda model: model.log_joint(Sequences.of([[0]], S)), lambda model: model.draw(1)):
        with pytest.raises(ValueError, match=message):
            call(LoopProgram(program, S))


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


def test_draws_may_be_empty():
    def program():
        if not pyro.sample("stop_0", dist.Bernoulli(0.5)):
            pyro.sample("x_0", dist.Bernoulli(1.0))

    drawn = LoopProgram(program, 2).draw(50)
    assert set(map(tuple, drawn.to_lists())) == {(), (1,)}
    assert drawn.alphabet == 2


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
    assert not model.can_draw
    with pytest.raises(ValueError, match="site 'extra': found an observed site or factor within the sequence"):
        model.draw(1)


def test_deterministic_sites_and_constant_factors_do_not_hinder_draws():
    def program():
        pyro.factor("constant", torch.tensor(1.0))
        pyro.deterministic("twice", 2 * pyro.sample("x_0", dist.Categorical(INITIAL)))

    assert LoopProgram(program, S).draw(4).lengths.tolist() == [1] * 4


NAMES = SiteNames("x_{}", "stop_{}")


def two_symbols() -> None:
    pyro.sample("x_0", dist.Categorical(torch.tensor([0.0, 0.0, 1.0])))
    assert not pyro.sample("stop_1", dist.Bernoulli(0.0))
    pyro.sample("x_1", dist.Categorical(torch.tensor([0.0, 1.0, 0.0])))
    pyro.sample("stop_2", dist.Bernoulli(1.0))


def test_a_forward_run_keeps_the_symbols_and_knows_where_it_ended() -> None:
    with DrawnRun(NAMES, S, 10) as run:
        two_symbols()
    assert run.drawn == [2, 1]
    assert run.count == 2
    assert run.first_stop == 1
    assert run.ended == "stop_2"


def test_a_run_goes_no_further_than_the_limit() -> None:
    with pytest.raises(ValueError, match="still going at max_length=1"), DrawnRun(NAMES, S, 1):
        two_symbols()

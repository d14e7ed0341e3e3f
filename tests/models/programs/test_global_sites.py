# SPDX-License-Identifier: Apache-2.0
"""Global parameters: values and posterior draws in all the forms in which Pyro gives them."""

from __future__ import annotations

import re
from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro import poutine
from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from pyro.infer.autoguide import AutoDelta, AutoNormal
from pyro.nn import PyroModule, PyroSample
from pyro_programs import SIZE, bernoulli, stops
from torch import Tensor

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.models import MarkovSequence
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.posterior.program_batch import ProgramBatch
from pyro_ksd.models.posterior.pyro_posteriors import posterior_draws
from pyro_ksd.models.programs.vectorized import VectorizedProgram
from pyro_ksd.sequences.container import Sequences

DATA = Sequences.of([[0, 1, 1, 2], [2], [1, 1, 0], [0, 0], [2, 1, 0, 1, 1]], SIZE)
ARGUMENTS = (DATA.tokens, DATA.lengths)


@pytest.fixture(autouse=True)
def _clear() -> Any:
    pyro.clear_param_store()
    pyro.set_rng_seed(0)
    yield
    pyro.clear_param_store()


def score(sequences: Tensor, lengths: Tensor, initial: Tensor, moves: Tensor) -> None:
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                probs = initial.expand(len(lengths), -1) if t == 0 else moves[sequences[:, t - 1]]
                pyro.sample(f"x_{t}", dist.Categorical(probs), obs=sequences[:, t])
                pyro.sample(f"stop_{t}", bernoulli(), obs=stops(lengths, t))


def bayesian(sequences: Tensor, lengths: Tensor) -> None:
    """A chain with Dirichlet priors, one of them in a plate over the rows."""
    ones = torch.ones(SIZE, dtype=torch.double)
    initial = pyro.sample("initial", dist.Dirichlet(ones))
    with pyro.plate("rows", SIZE):
        moves = pyro.sample("moves", dist.Dirichlet(ones))
    score(sequences, lengths, initial, moves)


def point(seed: int = 0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    initial = torch.rand(SIZE, dtype=torch.double, generator=generator) + 0.1
    moves = torch.rand(SIZE, SIZE, dtype=torch.double, generator=generator) + 0.1
    return {"initial": initial / initial.sum(), "moves": moves / moves.sum(-1, keepdim=True)}


def chain(values: dict[str, Tensor]) -> MarkovSequence:
    return MarkovSequence.from_transitions(values["initial"], values["moves"], torch.tensor(0.2, dtype=torch.double))


def many(count: int = 4) -> dict[str, Tensor]:
    points = [point(seed) for seed in range(count)]
    return {name: torch.stack([values[name] for values in points]) for name in points[0]}


def test_a_point() -> None:
    model, edits = as_model(bayesian, DATA, parameters=point()), zs().edits(DATA)
    torch.testing.assert_close(model.log_ratio(DATA, edits), chain(point()).log_ratio(DATA, edits))


def test_the_param_store() -> None:
    values = point()
    pyro.param("initial", values["initial"])
    pyro.param("moves", values["moves"], constraint=dist.constraints.simplex)

    def program(sequences: Tensor, lengths: Tensor) -> None:
        start = pyro.param("initial", torch.ones(SIZE, dtype=torch.double) / SIZE)
        score(sequences, lengths, start, pyro.param("moves"))

    torch.testing.assert_close(as_model(program, DATA).log_joint(DATA), chain(values).log_joint(DATA))
    other = point(1)
    bound = as_model(program, DATA, parameters=other)
    torch.testing.assert_close(bound.log_joint(DATA), chain(other).log_joint(DATA))
    torch.testing.assert_close(pyro.param("initial"), values["initial"])


@pytest.mark.parametrize("kind", [AutoDelta, AutoNormal])
def test_the_median_of_a_guide(kind: Any) -> None:
    guide = kind(bayesian)
    svi = SVI(bayesian, guide, pyro.optim.Adam({"lr": 0.05}), Trace_ELBO())
    for _ in range(20):
        svi.step(*ARGUMENTS)
    median = {name: value.detach() for name, value in guide.median(*ARGUMENTS).items()}
    model = as_model(bayesian, DATA, parameters=median)
    torch.testing.assert_close(model.log_joint(DATA), chain(median).log_joint(DATA))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"initial": point()["initial"]}, "site 'moves': found a global latent without a value"),
        (point() | {"speed": torch.tensor(1.0)}, "no global site ['speed'], expected some of ['initial', 'moves']"),
        (point() | {"moves": torch.ones(2, 3)}, "site 'moves' has the shape [2, 3], expected [3, 3]; give one value"),
        (many(), "site 'initial' has the shape [4, 3], expected [3]; give one value, not a batch of draws"),
    ],
)
def test_wrong_points(parameters: dict[str, Tensor], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        as_model(bayesian, DATA, parameters=parameters)


def test_parameters_belong_to_programs() -> None:
    with pytest.raises(ValueError, match="parameters: expected a Pyro program to give them to, found MarkovSequence"):
        as_model(chain(point()), DATA, parameters=point())


def test_draws_all_at_once_and_one_by_one() -> None:
    model = VectorizedProgram(bayesian, DATA, point())
    draws = many(6)
    found = ProgramBatch(model, draws).log_joint(DATA)
    assert found.shape == (6, 5)
    for i in range(6):
        torch.testing.assert_close(found[i], chain(point(i)).log_joint(DATA))
    assert model.parameter_shapes == {"initial": torch.Size([3]), "moves": torch.Size([3, 3])}


def test_draws_of_a_program_that_cannot_be_vectorized_come_one_by_one() -> None:
    def looks_at_values(sequences: Tensor, lengths: Tensor) -> None:
        initial = pyro.sample("initial", dist.Dirichlet(torch.ones(SIZE, dtype=torch.double)))
        moves = pyro.sample("moves", dist.Dirichlet(torch.ones(SIZE, SIZE, dtype=torch.double)).to_event(1))
        if initial[0] > 2:
            raise AssertionError("not a probability")
        score(sequences, lengths, initial, moves)

    found = ProgramBatch(VectorizedProgram(looks_at_values, DATA, point()), many(3)).log_joint(DATA)
    for i in range(3):
        torch.testing.assert_close(found[i], chain(point(i)).log_joint(DATA))


def test_draws_of_an_enumerated_program() -> None:
    def mixture(sequences: Tensor, lengths: Tensor) -> None:
        weight = pyro.sample("weight", dist.Beta(torch.tensor(1.0).double(), 1.0))
        with pyro.plate("sequences", len(lengths), dim=-1):
            c = pyro.sample("c", dist.Bernoulli(weight), infer={"enumerate": "parallel"}).long()
            tables = torch.stack([point(0)["initial"], point(1)["initial"]])
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(tables[c]), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", bernoulli(), obs=stops(lengths, t))

    weights = torch.tensor([0.1, 0.5, 0.9], dtype=torch.double)
    program = VectorizedProgram(mixture, DATA, {"weight": weights[0]})
    found = ProgramBatch(program, {"weight": weights}).log_joint(DATA)
    for i in range(3):
        alone = VectorizedProgram(mixture, DATA, {"weight": weights[i]}).log_joint(DATA)
        torch.testing.assert_close(found[i], alone)
    assert not torch.allclose(found[0], found[2])


SHAPES = {"initial": torch.Size([3]), "moves": torch.Size([3, 3])}


def test_draws_from_mcmc_in_all_forms() -> None:
    mcmc = MCMC(NUTS(bayesian, jit_compile=False), num_samples=3, warmup_steps=2, disable_progbar=True)
    mcmc.run(*ARGUMENTS)
    from_object = posterior_draws(mcmc, SHAPES)
    from_dict = posterior_draws(mcmc.get_samples(), SHAPES)
    from_chains = posterior_draws(mcmc.get_samples(group_by_chain=True), SHAPES)
    for name in SHAPES:
        assert from_object[name].shape == (1, 3, *SHAPES[name])
        assert torch.equal(from_object[name], from_dict[name])
        assert torch.equal(from_object[name], from_chains[name])


def test_draws_from_a_guide_and_from_predictive() -> None:
    guide = AutoNormal(bayesian)
    guide(*ARGUMENTS)
    state = torch.get_rng_state()
    draws = posterior_draws(guide, SHAPES, *ARGUMENTS, num_draws=7)
    assert torch.equal(torch.get_rng_state(), state)
    assert draws["moves"].shape == (1, 7, 3, 3)
    again = posterior_draws(Predictive(bayesian, guide=guide, num_samples=7), SHAPES, *ARGUMENTS)
    assert again["moves"].shape == (1, 7, 3, 3)
    torch.testing.assert_close(draws["moves"].sum(-1), torch.ones(1, 7, 3, dtype=torch.double))


def test_singleton_dimensions_of_predictive_go() -> None:
    values = {"initial": torch.rand(5, 1, 3), "moves": torch.rand(5, 1, 3, 3)}
    assert posterior_draws(values, SHAPES)["initial"].shape == (1, 5, 3)
    chains = {name: value.expand(2, *value.shape).squeeze(2) for name, value in values.items()}
    assert posterior_draws(chains, SHAPES)["initial"].shape == (2, 5, 3)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"initial": torch.rand(5, 4)}, "site 'initial' has draws of shape [5, 4], expected [draws, 3] or [chains, dr"),
        ({"speed": torch.rand(5)}, "the program has no global site ['speed'], expected some of ['initial', 'moves']"),
        (many(2) | {"initial": torch.rand(3, 3)}, "chains and draws for all sites, found {'initial': [1, 3], 'mov"),
        (3, "posterior: expected draws by name, an MCMC object, a Predictive or a guide, found int"),
    ],
)
def test_wrong_draws(source: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        posterior_draws(source, SHAPES)


class NextSymbol(PyroModule):
    """A small recurrent model: each symbol, and whether it is the last one, from the state of a GRU."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.cell = torch.nn.GRUCell(SIZE, 8, dtype=torch.double)
        self.head = torch.nn.Linear(8, SIZE + 1, dtype=torch.double)

    def forward(self, sequences: Tensor, lengths: Tensor) -> None:
        pyro.module("next", self)
        state = torch.zeros(len(lengths), 8, dtype=torch.double)
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                out = self.head(state)
                state = self.cell(torch.nn.functional.one_hot(sequences[:, t], SIZE).double(), state)
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(logits=out[:, :SIZE]), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", dist.Bernoulli(logits=out[:, SIZE]), obs=stops(lengths, t))


def test_a_neural_model() -> None:
    module = NextSymbol()
    model = as_model(module, DATA)
    with torch.no_grad():
        for x, value in zip(DATA.to_lists(), model.log_joint(DATA).tolist(), strict=True):
            assert value == pytest.approx(_loop_log_prob(module, x), abs=1e-10)
    assert len(pyro.get_param_store()) == 0


def _loop_log_prob(module: NextSymbol, x: list[Any]) -> float:
    state, total = torch.zeros(8, dtype=torch.double), 0.0
    for t, symbol in enumerate(x):
        out = module.head(state)
        total += float(out[:SIZE].log_softmax(0)[symbol])
        total += float(torch.nn.functional.logsigmoid(out[SIZE] if t == len(x) - 1 else -out[SIZE]))
        state = module.cell(torch.eye(SIZE, dtype=torch.double)[symbol], state)
    return total


class BayesianSymbols(PyroModule):
    """Independent symbols with a weight that has a prior."""

    def __init__(self) -> None:
        super().__init__()
        self.logits = PyroSample(dist.Normal(torch.zeros(SIZE, dtype=torch.double), 1.0).to_event(1))

    def forward(self, sequences: Tensor, lengths: Tensor) -> None:
        logits = self.logits
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(logits=logits), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", bernoulli(), obs=stops(lengths, t))


def test_pyro_sample_weights() -> None:
    with pytest.raises(ValueError, match="site 'logits': found a global latent without a value"):
        as_model(BayesianSymbols(), DATA)
    logits = torch.tensor([0.3, -1.0, 0.5], dtype=torch.double)
    found = as_model(BayesianSymbols(), DATA, parameters={"logits": logits}).log_joint(DATA)
    probs = logits.softmax(0)
    truth = MarkovSequence.from_transitions(probs, probs.expand(SIZE, -1), torch.tensor(0.2, dtype=torch.double))
    torch.testing.assert_close(found, truth.log_joint(DATA))

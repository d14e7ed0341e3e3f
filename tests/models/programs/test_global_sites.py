# SPDX-License-Identifier: Apache-2.0
"""Values for the global sites of a program."""

from __future__ import annotations

import re
from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from bayesian_chain import bayesian, chain, many, point, score
from pyro import poutine
from pyro.infer import SVI, Trace_ELBO
from pyro.infer.autoguide import AutoDelta, AutoNormal
from pyro.nn import PyroModule, PyroSample
from pyro_programs import FEW_SEQUENCES as DATA
from pyro_programs import SIZE, bernoulli, chain_with_stop, stops
from torch import Tensor

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.models import MarkovSequence
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.programs.global_sites import as_value, bind, check_names, checked_point, global_sites

ARGUMENTS = (DATA.tokens, DATA.lengths)


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
        (point() | {"moves": torch.ones(2, 3)}, "site 'moves' has the shape [2, 3], expected [3, 3]; pass one value"),
        (many(), "site 'initial' has the shape [4, 3], expected [3]; pass one value, not a batch of draws"),
    ],
)
def test_wrong_points(parameters: dict[str, Tensor], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        as_model(bayesian, DATA, parameters=parameters)


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


def parametric(sequences: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    scale = pyro.param("scale", torch.ones(2))
    shift = pyro.sample("shift", dist.Normal(0.0, 1.0))
    pyro.sample("seen", dist.Normal(0.0, 1.0), obs=torch.tensor(3.0))
    with pyro.plate("groups", 4):
        pyro.sample("group", dist.Normal(0.0, 1.0))
    return scale, shift


def test_shapes_of_global_sites_and_parameters() -> None:
    assert global_sites(parametric, *ARGUMENTS).shapes == {"shift": (), "group": (4,), "scale": (2,)}
    assert global_sites(bayesian, *ARGUMENTS).shapes == {"initial": (3,), "moves": (3, 3)}
    assert global_sites(chain_with_stop, *ARGUMENTS).shapes == {}
    assert len(pyro.get_param_store()) == 0


def test_bound_values_reach_latent_sites_and_parameters_alone() -> None:
    values = {"scale": torch.tensor([5.0, 6.0]), "shift": torch.tensor(0.5), "seen": torch.tensor(9.0)}
    bound = bind(parametric, values)
    trace = poutine.trace(bound).get_trace(*ARGUMENTS)
    scale, shift = trace.nodes["_RETURN"]["value"]
    assert scale.equal(values["scale"])
    assert shift.item() == 0.5
    assert trace.nodes["shift"]["is_observed"]
    assert trace.nodes["seen"]["value"].item() == 3.0
    assert not trace.nodes["group"]["is_observed"]
    assert "scale" not in pyro.get_param_store()


def test_a_point_is_checked_against_the_shapes() -> None:
    shapes = {"a": torch.Size([2]), "b": torch.Size([])}
    found = checked_point({"b": 3.0}, shapes)  # type: ignore[dict-item]
    assert found["b"].item() == 3.0
    with pytest.raises(ValueError, match=r"site 'a' has the shape \[3\], expected \[2\]; pass one value, not a batch"):
        checked_point({"a": torch.ones(3)}, shapes)
    check_names({"a": None}, shapes)
    with pytest.raises(ValueError, match=r"no global site \['c', 'd'\], expected some of \['a', 'b'\]"):
        check_names({"d": None, "a": None, "c": None}, shapes)

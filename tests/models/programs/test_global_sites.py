# SPDX-License-Identifier: Apache-2.0
"""Values for the global sites of a program."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
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
from pyro_programs import SIZE, bernoulli, chain_with_stop, hmm, stops
from torch import Tensor

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.models import MarkovSequence
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.programs.global_sites import (
    bind,
    check_names,
    check_supports,
    checked_point,
    other_values,
    sites_of,
)
from pyro_ksd.models.programs.repeatability import MODULE_WEIGHT

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
    assert sites_of(parametric, *ARGUMENTS).shapes == {"shift": (), "group": (4,), "scale": (2,)}
    assert sites_of(bayesian, *ARGUMENTS).shapes == {"initial": (3,), "moves": (3, 3)}
    assert sites_of(chain_with_stop, *ARGUMENTS).shapes == {}
    assert len(pyro.get_param_store()) == 0
    assert sites_of(parametric, *ARGUMENTS).local == {}


def test_another_seed_may_find_other_sites() -> None:
    def branching() -> None:
        heads = pyro.sample("heads", dist.Bernoulli(0.5))
        pyro.sample("one" if heads else "other", dist.Normal(0.0, 1.0))

    found = [sorted(sites_of(branching, seed=seed).sites) for seed in range(20)]
    assert sorted(map(tuple, found))[0] == ("heads", "one")
    assert sorted(map(tuple, found))[-1] == ("heads", "other")
    assert found == [sorted(sites_of(branching, seed=seed).sites) for seed in range(20)]


def test_sites_in_the_plate_of_the_sequences_are_local() -> None:
    steps = {f"{name}_{t}" for name in ("z", "x", "stop") for t in range(DATA.width)}
    assert set(sites_of(hmm, *ARGUMENTS).local) == steps

    def grid(sequences: Tensor, lengths: Tensor) -> None:  # as many steps as sequences
        over_steps = pyro.plate("steps", sequences.shape[1], dim=-1)
        with over_steps:
            pyro.sample("weight", dist.Normal(0.0, 1.0))
        with pyro.plate("sequences", len(lengths), dim=-2):
            pyro.factor("length", -lengths[:, None])
            pyro.sample("mood", dist.Normal(0.0, 1.0))
            with over_steps:
                pyro.sample("x", dist.Categorical(torch.ones(SIZE)), obs=sequences)

    square = torch.zeros(4, 4, dtype=torch.long)
    found = sites_of(grid, square, torch.full((4,), 4))
    assert set(found.local) == {"x", "length", "mood"}
    assert found.shapes == {"weight": (4,)}


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
    sites = sites_of(parametric, *ARGUMENTS)
    found = checked_point({"shift": 3.0}, sites, parametric, ARGUMENTS)
    assert found["shift"].item() == 3.0
    with pytest.raises(ValueError, match=r"site 'scale' has the shape \[3\], expected \[2\]; pass one value, not a"):
        checked_point({"scale": torch.ones(3)}, sites, parametric, ARGUMENTS)
    shapes = {"a": torch.Size([2]), "b": torch.Size([])}
    check_names("posterior", {"a": None}, shapes, {})
    with pytest.raises(ValueError, match=r"posterior: .* no global site \['c', 'd'\], expected some of \['a', 'b'\]"):
        check_names("posterior", {"d": None, "a": None, "c": None}, shapes, {})


def supported(sequences: Tensor, lengths: Tensor) -> None:
    scale = pyro.param("scale", torch.ones(2), constraint=dist.constraints.positive)
    top = pyro.sample("top", dist.Uniform(0.0, 10.0))
    pyro.sample("below", dist.Uniform(0.0, top))
    pyro.sample("count", dist.Poisson(scale[0]))
    with pyro.plate("rows", SIZE):
        pyro.sample("moves", dist.Dirichlet(torch.ones(SIZE)))
    with pyro.plate("sequences", len(lengths)):
        pyro.sample("mood", dist.Normal(0.0, 1.0))
        pyro.factor("length", -lengths)


def rounded(rows: int = SIZE) -> Tensor:
    """Probabilities whose sum is 1 up to rounding."""
    return torch.full((rows, SIZE), (1 + 1e-5) / SIZE)


@pytest.mark.parametrize(
    "values",
    [
        {"top": 9.99, "below": 9.98},  # more than most draws of the prior allow
        {"moves": rounded(), "count": 3},
        {"moves": torch.eye(SIZE), "scale": np.array([0.5, 2.0])},
        {"scale": torch.tensor([0.0, 1.0])},  # a positive number that was rounded to 0
        {"count": np.int64(2), "below": False},
    ],
)
def test_values_in_the_supports(values: dict[str, Any]) -> None:
    found = checked_point(values, sites_of(supported, *ARGUMENTS), supported, ARGUMENTS)
    assert set(found) == set(values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"top": 10.5},
            "'top': expected values in the support of Uniform, Interval(lower_bound=0.0, upper_bound=10.0), f",
        ),
        (
            {"top": 5.0, "below": 6.0},
            "site 'below': expected values in the support of Uniform, Interval(lower_bound=0.0, ",
        ),
        (
            {"moves": 0.9 * torch.eye(SIZE)},
            "support of Dirichlet, Simplex(), found values from 0 to 0.9; transform uncon",
        ),
        ({"moves": torch.full((SIZE, SIZE), 1.002 / SIZE)}, "support of Dirichlet, Simplex(), found values"),
        ({"moves": torch.full((SIZE, SIZE), torch.nan)}, "support of Dirichlet, Simplex(), found NaN"),
        ({"count": 1.5}, "support of Poisson, IntegerGreaterThan(lower_bound=0), found 1.5"),
        ({"count": "many"}, "support of Poisson, IntegerGreaterThan(lower_bound=0), found 'many'"),
        ({"count": None}, "support of Poisson, IntegerGreaterThan(lower_bound=0), found None"),
        (
            {"scale": [-1.0, 1.0]},
            "'scale': expected values in the support of pyro.param, GreaterThan(lower_bound=0.0), f",
        ),
        (
            {"mood": torch.zeros(5)},
            "site 'mood' belongs to each sequence, expected values of global sites alone, ['below'",
        ),
        (
            {"mood": torch.zeros(5)},
            'out, and sum it out if it is discrete, infer={"enumerate": "parallel"}, or integrate it out if',
        ),
    ],
)
def test_values_outside_of_the_supports(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        checked_point(values, sites_of(supported, *ARGUMENTS), supported, ARGUMENTS)
    assert str(caught.value).startswith("parameters: site ")


def test_wrong_draws_are_counted() -> None:
    sites = sites_of(supported, *ARGUMENTS)
    draws = {"top": torch.tensor([5.0, torch.nan, torch.nan, 11.0])}
    message = "posterior: site 'top': expected values .*, found NaN in 2 of 4 draws; remove them"
    with pytest.raises(ValueError, match=message):
        check_supports("posterior", draws, sites, supported, ARGUMENTS)
    draws = {"top": torch.tensor([5.0, 12.0, -1.0, 11.0])}
    message = "posterior: site 'top': expected values in the support of Uniform, .*, found 12 in 3 of 4 draws; transf"
    with pytest.raises(ValueError, match=message):
        check_supports("posterior", draws, sites, supported, ARGUMENTS)
    check_supports("posterior", {"moves": rounded().expand(4, -1, -1)}, sites, supported, ARGUMENTS)


def test_rounded_probabilities_are_no_mistake() -> None:
    values = {name: (value * (1 + 1e-5)).float() for name, value in point().items()}
    torch.testing.assert_close(
        as_model(bayesian, DATA, parameters=values).log_joint(DATA),
        chain(point()).log_joint(DATA),
        rtol=1e-3,
        atol=1e-3,
    )


def test_a_distribution_without_a_support_takes_any_number() -> None:
    class Silent(dist.Normal):
        @property
        def support(self) -> Any:
            raise NotImplementedError

    def program(sequences: Tensor, lengths: Tensor) -> None:
        pyro.sample("a", Silent(0.0, 1.0))

    sites = sites_of(program, *ARGUMENTS)
    assert checked_point({"a": -7.0}, sites, program, ARGUMENTS)["a"].item() == -7.0
    with pytest.raises(ValueError, match="parameters: site 'a': expected real numbers, found 'low'"):
        checked_point({"a": "low"}, sites, program, ARGUMENTS)


def test_other_values_have_the_names_and_shapes_of_those_before() -> None:
    known = {"a": torch.ones(2), "b": torch.tensor(1.0)}
    assert other_values({"b": 3.0}, known)["b"].item() == 3.0
    for values, message in (
        ({"c": 1.0}, r"values: expected some of the sites \['a', 'b'\], found \['c'\]"),
        ({"a": 1.0}, r"values: site 'a' has the shape \[\], expected \[2\]"),
        ([1.0], r"values: expected values by the names of the sites, found \[1.0\]; pass a dictionary"),
    ):
        with pytest.raises(ValueError, match=message):
            other_values(values, known)  # type: ignore[arg-type]


def test_values_in_double_precision_beside_a_prior_in_single_precision() -> None:
    table = torch.eye(SIZE).double()

    def program(sequences: Tensor, lengths: Tensor) -> None:
        weights = pyro.sample("weights", dist.Normal(torch.zeros(SIZE), 1.0).to_event(1))
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("score", (table @ weights)[0] * lengths)

    value = torch.tensor([-1.5, 0.0, 0.0]).double()
    model = as_model(program, DATA, parameters={"weights": value})
    assert model.log_joint(DATA).tolist() == [-1.5 * length for length in DATA.lengths.tolist()]
    with pytest.raises(ValueError, match="the program failed with RuntimeError"):
        as_model(program, DATA, parameters={"weights": value.float()})
    with pytest.raises(ValueError, match=r"site 'weights': expected values in the support of Normal.*found NaN"):
        as_model(program, DATA, parameters={"weights": value * torch.nan})


@pytest.mark.parametrize(
    ("draws", "end"),
    [
        ([torch.nan], "found NaN"),
        ([torch.nan, 1.0], "found NaN in 1 of 2 draws; remove them, and see why the sampler fails"),
        ([torch.nan, 1.0, torch.nan], "found NaN in 2 of 3 draws; remove them, and see why the sampler fails"),
    ],
)
def test_draws_that_are_nan_are_counted(draws: list[float], end: str) -> None:
    values = {"top": torch.tensor(draws)}
    with pytest.raises(ValueError, match=f"posterior: site 'top': .*, {end}$"):
        check_supports("posterior", values, sites_of(supported, *ARGUMENTS), supported, ARGUMENTS)


def test_values_of_the_weights_of_modules_are_refused() -> None:
    name = f"net{MODULE_WEIGHT}weight"
    with pytest.raises(ValueError, match=r"parameters: site .* is a weight of a module, which pyro"):
        check_names("parameters", {name: torch.ones(1)}, {name: torch.Size([1])}, {})
    check_names("parameters", {"weight": torch.ones(1)}, {"weight": torch.Size([1])}, {})

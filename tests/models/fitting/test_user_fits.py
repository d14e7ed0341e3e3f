# SPDX-License-Identifier: Apache-2.0
"""Posteriors that a user's function finds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro.infer import SVI, Trace_ELBO
from pyro.infer.autoguide import AutoDelta, AutoNormal
from pyro.optim import Adam
from torch import Tensor
from torch.distributions import constraints

from pyro_ksd import MarkovSequence, Sequences
from pyro_ksd.models.fitting.user_fits import fitted_posterior
from pyro_ksd.models.posterior.posterior_models import PosteriorModels

EVEN = torch.full((2, 2), 0.5, dtype=torch.double)
DATA = Sequences.of(["ab", "b", "aba", "aa", "bbbb"])


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    pyro.clear_param_store()
    yield
    pyro.clear_param_store()


def with_stop(stop: Any, x: Any, num_sequences: int | None) -> Any:
    chain = MarkovSequence.from_transitions(EVEN[0], EVEN, stop)
    with pyro.plate("sequences", num_sequences if x is None else len(x)):
        return pyro.sample("x", chain, obs=x)


def program(x: Any = None, num_sequences: int | None = None) -> Any:
    return with_stop(pyro.sample("stop", dist.Beta(2.0, 2.0)), x, num_sequences)


def by_param(x: Any = None, num_sequences: int | None = None) -> Any:
    """The stop of odd sequences is drawn, that of all is learned."""
    factor = pyro.sample("factor", dist.Beta(2.0, 2.0))
    stop = pyro.param("stop", torch.tensor(0.5), constraint=constraints.unit_interval)
    return with_stop(factor * stop, x, num_sequences)


def fitted(fit: Any, model: Any = program, seed: int = 3, **options: Any) -> PosteriorModels:
    return fitted_posterior(fit, model, DATA, {"num_draws": 6, **options}, seed)


def test_it_sees_the_program_and_the_data() -> None:
    seen: list[Any] = []

    def fit(model: Any, sequences: Sequences) -> dict[str, Tensor]:
        seen.extend([model, sequences])
        return {"stop": torch.tensor([0.3, 0.4])}

    found = fitted(fit)
    assert seen[0] is program
    assert seen[1] is DATA
    assert found.values["stop"].tolist() == pytest.approx([0.3, 0.4])


def test_random_numbers_are_those_of_the_seed_and_the_users_stay() -> None:
    def fit(model: Any, sequences: Sequences) -> dict[str, Tensor]:
        return {"stop": torch.rand(4)}

    pyro.set_rng_seed(7)
    expected = torch.rand(3)
    pyro.set_rng_seed(7)
    one, again, other = (fitted(fit, seed=seed).values["stop"] for seed in (1, 1, 2))
    assert one.equal(again)
    assert not one.equal(other)
    assert torch.rand(3).equal(expected)


def trained(model: Any, guide: Any, sequences: Sequences, steps: int = 3) -> None:
    optimizer = SVI(model, guide, Adam({"lr": 0.1}), Trace_ELBO())
    for _ in range(steps):
        optimizer.step(sequences.padded(-1))


def test_a_guide_may_have_its_parameters_in_the_parameter_store() -> None:
    def guide(*arguments: Any, **options: Any) -> None:
        high = pyro.param("high", torch.tensor(5.0), constraint=constraints.positive)
        pyro.sample("stop", dist.Beta(high, 2.0))

    def fit(model: Any, sequences: Sequences) -> Any:
        trained(model, guide, sequences)
        return guide

    found = fitted(fit)
    assert found.values["stop"].shape == (6,)
    assert len(found.values["stop"].unique()) == 6
    assert not fitted(fit, seed=4).values["stop"].equal(found.values["stop"])  # another noise for each fold
    assert list(pyro.get_param_store()) == []


def test_every_fit_starts_from_the_parameters_of_the_user_which_stay() -> None:
    pyro.param("start", torch.tensor(0.5), constraint=constraints.unit_interval)
    found: list[float] = []

    def fit(model: Any, sequences: Sequences) -> dict[str, Tensor]:
        found.append(pyro.param("start").item())
        with torch.no_grad():
            pyro.get_param_store().get_state()["params"]["start"].add_(1.0)  # as optimizers do
        assert pyro.param("start").item() > 0.7
        return {"stop": torch.tensor([0.3, 0.4])}

    fitted(fit)
    fitted(fit)
    assert found == [0.5, 0.5]
    assert pyro.param("start").item() == 0.5


def test_what_the_program_learns_must_be_among_the_draws() -> None:
    def fit(model: Any, sequences: Sequences) -> Any:
        guide = AutoNormal(pyro.poutine.block(model, expose=["factor"]))
        trained(model, guide, sequences)
        return guide

    def complete(model: Any, sequences: Sequences) -> dict[str, Tensor]:
        guide = fit(model, sequences)
        draws = pyro.infer.Predictive(guide, num_samples=6)(sequences.padded(-1))
        return {"factor": draws["factor"].detach(), "stop": pyro.param("stop").detach().expand(6)}

    with pytest.raises(
        ValueError, match=r"^fit: expected values of all parameters that it trains, found that \['stop'\]"
    ):
        fitted(fit, by_param)
    stop = fitted(complete, by_param).values["stop"]
    assert float(stop[0]) != 0.5
    assert (stop == stop[0]).all()


def test_a_network_that_is_trained_in_place_is_refused() -> None:
    network = torch.nn.Linear(1, 1)

    def with_network(x: Any = None, num_sequences: int | None = None) -> Any:
        pyro.module("network", network)
        factor = pyro.sample("factor", dist.Beta(2.0, 2.0))
        return with_stop(factor * network(torch.ones(1))[0].sigmoid(), x, num_sequences)

    def fit(model: Any, sequences: Sequences) -> Any:
        guide = AutoNormal(pyro.poutine.block(model, expose=["factor"]))
        trained(model, guide, sequences)
        return guide

    with pytest.raises(ValueError, match=r"found that \['network\$\$\$bias', 'network\$\$\$weight'\] of the program"):
        fitted(fit, with_network)


def test_parameters_that_nobody_trains_stay_as_they_are() -> None:
    found = fitted(lambda model, sequences: {"factor": torch.tensor([0.3, 0.4])}, by_param)
    assert list(found.values) == ["factor"]


@pytest.mark.parametrize(
    ("posterior", "message"),
    [
        (
            None,
            "^fit: expected a function that gives what posterior= takes; posterior: expected draws by name, an MCMC",
        ),
        ({"speed": torch.rand(5)}, r"^fit: .*; posterior: the program has no global site \['speed'\]"),
        ({}, "^fit: .*; posterior: expected draws of some of the sites"),
    ],
)
def test_refuses_what_is_no_posterior(posterior: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fitted(lambda model, sequences: posterior)


def test_refuses_a_model_without_sites_before_it_is_fitted() -> None:
    def fit(model: Any, sequences: Sequences) -> Any:
        raise AssertionError

    with pytest.raises(ValueError, match=r"^fit: expected a Pyro program with global sample sites .* MarkovSequence"):
        fitted(fit, MarkovSequence.from_transitions(EVEN[0], EVEN, 0.5))


def test_a_point_is_no_posterior() -> None:
    def fit(model: Any, sequences: Sequences) -> Any:
        guide = AutoDelta(model)
        trained(model, guide, sequences)
        return guide

    with pytest.warns(UserWarning, match="posterior: expected draws that differ, found 6 times the same point"):
        fitted(fit)

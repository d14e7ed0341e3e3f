# SPDX-License-Identifier: Apache-2.0
"""Ready-made inferences find the posterior, and leave the session as it was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro.infer.autoguide import AutoNormal
from torch.distributions import constraints

from pyro_ksd import MarkovSequence, Sequences
from pyro_ksd.models import FitNUTS, FitSVI

EVEN = torch.full((2, 2), 0.5, dtype=torch.double)
DATA = MarkovSequence.from_transitions(EVEN[0], EVEN, 0.25).draw(60, torch.Generator().manual_seed(0))


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
    prior = dist.Beta(torch.tensor(2.0, dtype=torch.double), 2.0)
    return with_stop(pyro.sample("stop", prior), x, num_sequences)


def by_param(x: Any = None, num_sequences: int | None = None) -> Any:
    """The stop is learned; another site is there to be drawn."""
    pyro.sample("other", dist.Normal(torch.zeros((), dtype=torch.double), 1.0))
    half = torch.tensor(0.5, dtype=torch.double)
    return with_stop(pyro.param("stop", half, constraint=constraints.unit_interval), x, num_sequences)


def posterior() -> torch.distributions.Beta:
    """Every sequence stops once, after all of its symbols but the last it goes on."""
    return torch.distributions.Beta(2.0 + len(DATA), 2.0 + float((DATA.lengths - 1).sum()))


@pytest.mark.parametrize(
    "fit", [FitNUTS(num_samples=300, warmup_steps=50), FitSVI(num_samples=2000, num_steps=400)], ids=["NUTS", "SVI"]
)
def test_draws_follow_the_posterior(fit: FitNUTS | FitSVI) -> None:
    stop = fit(program, DATA)["stop"]
    truth = posterior()
    assert float(stop.mean()) == pytest.approx(float(truth.mean), abs=0.25 * float(truth.stddev))
    assert float(stop.std()) == pytest.approx(float(truth.stddev), rel=0.25)


@pytest.mark.parametrize(
    "fit", [FitNUTS(num_samples=5, warmup_steps=5), FitSVI(num_samples=5, num_steps=5)], ids=["NUTS", "SVI"]
)
def test_the_session_stays_as_it_was_and_the_same_call_gives_the_same_draws(fit: FitNUTS | FitSVI) -> None:
    pyro.param("mine", torch.ones(2))
    pyro.set_rng_seed(7)
    expected = torch.rand(3)
    pyro.set_rng_seed(7)
    first = fit(program, DATA)["stop"]
    assert torch.rand(3).equal(expected)
    assert list(pyro.get_param_store()) == ["mine"]
    assert not first.requires_grad
    assert fit(program, DATA)["stop"].equal(first)
    assert not fit(program, DATA[:59])["stop"].equal(first)
    assert not replace(fit, seed=1)(program, DATA)["stop"].equal(first)


@pytest.mark.parametrize(
    "fit", [FitNUTS(num_samples=1, warmup_steps=0), FitSVI(num_samples=1, num_steps=1)], ids=["NUTS", "SVI"]
)
def test_one_draw_is_enough_and_nothing_is_printed(fit: FitNUTS | FitSVI, capfd: pytest.CaptureFixture[str]) -> None:
    assert fit(program, DATA)["stop"].shape == (1,)
    assert capfd.readouterr() == ("", "")


def test_random_numbers_are_others_for_other_data() -> None:
    """The guide of a program without data has the same form for both, so that equal noise would show."""
    fit = FitSVI(num_samples=50, num_steps=1, learning_rate=1e-12)
    noise = [fit(program, data)["stop"].logit() for data in (DATA[:30], DATA[30:])]
    standardized = [(own - own.mean()) / own.std() for own in noise]
    assert abs(float((standardized[0] * standardized[1]).mean())) < 0.5


def test_parameters_of_the_program_are_learned_and_the_same_in_all_draws() -> None:
    draws = FitSVI(num_samples=4, num_steps=300)(by_param, DATA)
    assert draws["other"].shape == (4,)
    assert draws["stop"].shape == (4,)
    share = len(DATA) / float(DATA.lengths.sum())
    assert draws["stop"].tolist() == pytest.approx([share] * 4, abs=0.02)
    assert list(pyro.get_param_store()) == []


def by_sequence(x: Any = None, num_sequences: int | None = None) -> Any:
    with pyro.plate("sequences", num_sequences if x is None else len(x)):
        pyro.sample("mood", dist.Normal(0.0, 1.0))
        return pyro.sample("x", MarkovSequence.from_transitions(EVEN[0], EVEN, 0.5), obs=x)


def test_latents_of_each_sequence_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^fit: found the latents \['mood'\] of each sequence, which FitSVI does not"):
        FitSVI(num_steps=1)(by_sequence, DATA)


def with_network(x: Any = None, num_sequences: int | None = None) -> Any:
    network = pyro.module("network", torch.nn.Linear(1, 1))
    pyro.sample("other", dist.Normal(network(torch.ones(1))[0], 1.0))
    return with_stop(0.5, x, num_sequences)


def test_networks_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^fit: found the parameters \['network.*write a function fit\(model, data\)"):
        FitSVI(num_steps=1)(with_network, DATA)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FitNUTS(num_samples=0), "num_samples: expected an integer of at least 1, found 0"),
        (lambda: FitNUTS(warmup_steps=-1), "warmup_steps: expected an integer of at least 0, found -1"),
        (lambda: FitNUTS(seed=-1), "seed: expected an integer from 0"),
        (lambda: FitSVI(guide="normal"), "guide: expected what makes a guide from a program, such as AutoNormal"),
        (lambda: FitSVI(num_samples=0), "num_samples: expected an integer of at least 1, found 0"),
        (lambda: FitSVI(seed=-1), "seed: expected an integer from 0"),
        (lambda: FitSVI(num_steps=0), "num_steps: expected an integer of at least 1, found 0"),
        (lambda: FitSVI(learning_rate=0.0), "learning_rate: expected"),
        (lambda: FitNUTS()("program", DATA), "program: expected a Pyro program to fit, found 'program'"),
        (lambda: FitSVI(AutoNormal)(program, ["ab"]), "data: expected Sequences"),
    ],
)
def test_refuses(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_guide_may_be_of_ones_own() -> None:
    def make(model: Any) -> Any:
        def guide(*arguments: Any, **options: Any) -> None:
            where = pyro.param("where", torch.tensor(0.4, dtype=torch.double), constraint=constraints.unit_interval)
            pyro.sample("stop", dist.Delta(where))

        return guide

    assert FitSVI(make, num_samples=3, num_steps=1)(program, Sequences.of(DATA))["stop"].shape == (3,)

# SPDX-License-Identifier: Apache-2.0
"""Guides that are trained in a session of their own."""

from __future__ import annotations

from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro.infer.autoguide import AutoDelta, AutoMultivariateNormal
from torch.distributions import constraints

from pyro_ksd import MarkovSequence, Sequences
from pyro_ksd.models.fitting.svi_training import check_training, fitting_arguments, trained_guide

EVEN = torch.full((2, 2), 0.5, dtype=torch.double)
DATA = Sequences.of(["ab", "b", "aba", "aa"])


def program(x: Any = None) -> None:
    stop = pyro.sample("stop", dist.Beta(torch.tensor(2.0, dtype=torch.double), 2.0))
    half = torch.tensor(0.5, dtype=torch.double)
    first = pyro.param("first", half, constraint=constraints.unit_interval)
    initial = torch.stack([first, 1 - first])
    with pyro.plate("sequences", len(x)):
        pyro.sample("x", MarkovSequence.from_transitions(initial, EVEN, stop), obs=x)


def test_guide_and_parameters_are_trained_and_the_store_stays() -> None:
    pyro.clear_param_store()
    pyro.param("mine", torch.ones(2))
    arguments = fitting_arguments(program, DATA, "fit")
    options: dict[str, Any] = {"num_steps": 400, "learning_rate": 0.05, "seed": 0, "option": "fit"}
    with trained_guide(program, arguments, AutoDelta, num_sequences=len(DATA), **options) as trained:
        assert trained.latent == ["stop"]
        assert "mine" not in pyro.get_param_store()
        stop = float(trained.guide.median(*arguments)["stop"].detach())
    assert list(pyro.get_param_store()) == ["mine"]
    assert float(trained.learned["first"].detach()) == pytest.approx(3 / 4, abs=0.02)  # of four sequences
    assert stop == pytest.approx((1 + 4) / (2 + 8), abs=0.02)  # the mode: four stops at eight symbols
    pyro.clear_param_store()


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="program: expected a Pyro program to refit, found 3"):
        fitting_arguments(3, DATA, "refit")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="guide: expected what makes a guide from a program"):
        check_training(None, 1, 0.1)


def train(own: Any, num_steps: int = 1, make_guide: Any = AutoDelta) -> list[str]:
    arguments = fitting_arguments(own, DATA, "fit")
    options: dict[str, Any] = {"num_steps": num_steps, "learning_rate": 0.05, "seed": 0, "option": "fit"}
    with trained_guide(own, arguments, make_guide, num_sequences=len(DATA), **options) as trained:
        return [*trained.latent, *trained.learned]


def test_latents_of_each_sequence_and_weights_of_modules_are_refused() -> None:
    def by_sequence(x: Any = None) -> None:
        with pyro.plate("sequences", len(x)):
            stop = pyro.sample("stop", dist.Beta(torch.tensor(2.0, dtype=torch.double), 2.0))
            pyro.factor("score", -stop * x.lengths if hasattr(x, "lengths") else -stop)

    with pytest.raises(ValueError, match=r"fit: found the latents \['stop'\] of each sequence, which FitSVI does not"):
        train(by_sequence)

    def with_module(x: Any = None) -> None:
        pyro.module("network", torch.nn.Linear(1, 1))
        program(x)

    with pytest.raises(ValueError, match=r"fit: found the parameters \[.*network.*\] of a pyro.module"):
        train(with_module)


def test_programs_without_latents_and_with_enumerated_ones() -> None:
    def only_a_parameter(x: Any = None) -> None:
        stop = pyro.param("stop", torch.tensor(0.5).double(), constraint=constraints.unit_interval)
        with pyro.plate("sequences", len(x)):
            pyro.sample("x", MarkovSequence.from_transitions(EVEN[0], EVEN, stop), obs=x)

    assert train(only_a_parameter) == ["stop"]
    assert train(only_a_parameter, make_guide=AutoMultivariateNormal) == ["stop"]  # which needs a latent site

    def of_two_kinds(x: Any = None) -> None:
        kind = pyro.sample("kind", dist.Bernoulli(torch.tensor(0.5).double()), infer={"enumerate": "parallel"})
        rate = pyro.param("rate", torch.tensor(0.5).double(), constraint=constraints.positive)
        pyro.factor("score", -rate * (1 + kind))

    assert train(of_two_kinds) == ["rate"]

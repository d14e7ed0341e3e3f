# SPDX-License-Identifier: Apache-2.0
"""Guides that are trained in a session of their own."""

from __future__ import annotations

from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro.infer.autoguide import AutoDelta
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

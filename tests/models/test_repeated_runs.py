# SPDX-License-Identifier: Apache-2.0
"""Scores that are random are refused, and so are draws that are not."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pyro
import pytest
import torch
from pyro.util import get_rng_state

from pyro_ksd.models.repeated_runs import check_goes_on, repeatable, same_state


@pytest.mark.parametrize("draw", [lambda: torch.rand(()), np.random.rand, random.random])
def test_values_that_depend_on_random_numbers(draw: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match="draws random numbers although all its sites have values"):
        repeatable(lambda: torch.tensor(float(draw())))
    assert repeatable(lambda: (draw(), torch.ones(2))[1]).tolist() == [1.0, 1.0]  # drawn, and not used


def test_runs_start_from_the_same_state_and_leave_none() -> None:
    kinds = []

    def run() -> torch.Tensor:
        kinds.append(torch.get_default_dtype())
        torch.set_default_dtype(torch.double)
        pyro.param("leak", torch.ones(1))
        torch.rand(1)
        return torch.ones(1)

    before = get_rng_state()
    repeatable(run)
    assert kinds == [torch.float, torch.float]
    assert len(pyro.get_param_store()) == 0
    assert same_state(before, get_rng_state())
    assert torch.get_default_dtype() == torch.float


def test_the_kind_of_model_is_named() -> None:
    with pytest.raises(ValueError, match="the network draws random numbers when it scores sequences"):
        repeatable(lambda: torch.rand(1), "network")


def states_after(run: Callable[[], Any]) -> list[dict[str, Any]]:
    states = [get_rng_state()]
    for _ in range(2):
        run()
        states.append(get_rng_state())
    return states


@pytest.mark.parametrize("draw", [lambda: torch.rand(()), np.random.rand, random.random])
def test_draws_that_go_on(draw: Callable[[], Any]) -> None:
    check_goes_on(states_after(draw))
    check_goes_on(states_after(lambda: None))
    # A seed for fixed numbers does no harm where the draws come from elsewhere.
    check_goes_on(states_after(lambda: (np.random.seed(12345), torch.rand(1))))  # noqa: NPY002


@pytest.mark.parametrize("seed", [torch.manual_seed, np.random.seed, random.seed, pyro.set_rng_seed])
def test_draws_that_start_again(seed: Callable[[int], Any]) -> None:
    with pytest.raises(ValueError, match=r"draw: expected other random numbers in each run .* it sets a seed itself"):
        check_goes_on(states_after(lambda: seed(12345)))


def test_values_that_hardly_change_are_refused() -> None:
    with pytest.raises(ValueError, match="draws random numbers although all its sites have values"):
        repeatable(lambda: torch.ones(2, dtype=torch.double) + 1e-9 * torch.rand(2))

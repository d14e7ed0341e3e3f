# SPDX-License-Identifier: Apache-2.0
"""What users who leave out an option of a fit rely on: no pseudocounts, numbers of steps and draws, seeds."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import pytest

from pyro_ksd.models.fitting.baum_welch import improved
from pyro_ksd.models.fitting.counting import fit_markov, fitted_chain, fitted_log_likelihoods
from pyro_ksd.models.fitting.hidden_markov_fit import RefitHiddenMarkov, fit_hidden_markov
from pyro_ksd.models.fitting.posterior_fits import FitNUTS, FitSVI
from pyro_ksd.models.fitting.refits import RefitMarkov, RefitSVI


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (improved, {"pseudocount": 0.0}),
        (fit_markov, {"pseudocount": 0.0, "backoff": False}),
        (fitted_chain, {"pseudocount": 0.0, "backoff": False}),
        (fitted_log_likelihoods, {"pseudocount": 0.0}),
        (fit_hidden_markov, {"pseudocount": 0.0, "num_restarts": 8, "num_steps": 1000, "seed": 0}),
        (RefitHiddenMarkov, {"pseudocount": 0.0, "num_steps": 1000}),
        (RefitMarkov, {"pseudocount": 0.0, "backoff": False}),
        (RefitSVI, {"num_steps": 300, "learning_rate": 0.05, "seed": 0}),
        (FitNUTS, {"num_samples": 500, "warmup_steps": 200, "seed": 0}),
        (FitSVI, {"num_samples": 500, "num_steps": 1000, "learning_rate": 0.05, "seed": 0}),
    ],
)
def test_options_that_are_left_out(function: Callable[..., Any], expected: dict[str, Any]) -> None:
    options = signature(function).parameters
    assert {name: options[name].default for name in expected} == expected

# SPDX-License-Identifier: Apache-2.0
"""Checks of models with given parameters: which bootstrap they take. Their results are tested in test_model_check."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from checks.test_check_request import DEFAULTS

from pyro_ksd import Sequences, fit_markov
from pyro_ksd.checks.check_request import CheckRequest
from pyro_ksd.checks.given_parameters import parameter_check
from pyro_ksd.checks.model_argument import ModelArgument
from pyro_ksd.edits import Substitutions
from pyro_ksd.examples import random_walk
from pyro_ksd.models.fitting.refits import RefitMarkov

WALK = random_walk(3)
LENGTHS_DIFFER = WALK.draw(20, torch.Generator().manual_seed(0)).over("abc")
ONE_LENGTH = Sequences.of(["aba", "bcb", "cab", "acb", "bca"], "abc")


def kind(data: Sequences, **options: Any) -> str:
    request = CheckRequest(**DEFAULTS | {"localize": False} | options)
    return str(parameter_check(ModelArgument(WALK), data, (), request, None)["ksd"].attrs["kind"])


def test_data_sets_are_drawn_unless_lengths_are_given() -> None:
    assert kind(LENGTHS_DIFFER) == "parametric"
    assert kind(LENGTHS_DIFFER, neighborhood=Substitutions()) == "wild"
    assert kind(LENGTHS_DIFFER, neighborhood=Substitutions(), bootstrap="parametric") == "parametric"
    assert kind(LENGTHS_DIFFER, bootstrap="wild") == "wild"


def test_a_refit_finds_the_parameters_itself() -> None:
    argument = ModelArgument(fit_markov(LENGTHS_DIFFER, order=1), {"moves": torch.ones(3)})
    with pytest.raises(ValueError, match="refit: expected no parameters= beside it"):
        parameter_check(argument, LENGTHS_DIFFER, (), CheckRequest(**DEFAULTS), RefitMarkov())


def test_a_refit_is_applied_to_the_data_and_to_each_null_draw() -> None:
    fitted_to = []

    def refit(model: Any, data: Sequences) -> Any:
        fitted_to.append(data)
        return fit_markov(data, order=1, pseudocount=0.5)

    request = CheckRequest(**DEFAULTS | {"localize": False, "num_bootstrap": 3})
    check = parameter_check(ModelArgument(WALK), LENGTHS_DIFFER, (), request, refit)
    assert check["ksd"].attrs["kind"] == "refit"
    assert fitted_to[0] is LENGTHS_DIFFER
    assert [len(data) for data in fitted_to] == [20] * 4

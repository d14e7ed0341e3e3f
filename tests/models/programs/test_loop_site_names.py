# SPDX-License-Identifier: Apache-2.0
"""The names by which symbols and stops of a loop program are told."""

from __future__ import annotations

import math
from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from loop_programs import (
    CHAIN,
    S,
    assert_same,
    chain,
    space,
)

from pyro_ksd.models.programs.loop import LoopProgram
from pyro_ksd.models.programs.loop_site_names import SiteNames


def test_other_names():
    model = LoopProgram(chain(symbol="a{}z", stop_site="end.{}"), S, symbol_site="a{}z", stop_site="end.{}")
    assert_same(model.log_joint(space()), CHAIN.log_joint(space()))
    strict = LoopProgram(chain(stop_site="endx{}"), S, stop_site="end.{}")
    with pytest.raises(ValueError, match="site 'endx0' has no value"):
        strict.log_joint(space(1))


def test_names_that_only_begin_like_symbols_and_stops():
    def program():
        for name in ("x_0b", "stop_0b"):
            pyro.sample(name, dist.Normal(0.0, 1.0), obs=torch.tensor(0.0, dtype=torch.double))
        chain()()

    assert_same(LoopProgram(program, S).log_joint(space(2)), CHAIN.log_joint(space(2)) - math.log(2 * math.pi), 1e-6)


def test_symbols_and_stops_are_told_by_their_whole_names() -> None:
    names = SiteNames("x_{}", "stop_{}")
    assert [names.symbol_step(name) for name in ("x_0", "x_17", "x_", "x_1b", "ax_1", "stop_1", "x_-1")] == [
        0,
        17,
        None,
        None,
        None,
        None,
        None,
    ]
    assert [names.is_stop(name) for name in ("stop_0", "stop_12", "stop_", "stop_1b", "astop_1", "x_1")] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]


def test_signs_in_a_name_mean_themselves() -> None:
    names = SiteNames("a.{}(b)", "end+{}")
    assert names.symbol_step("a.3(b)") == 3
    assert names.symbol_step("ax3(b)") is None
    assert names.is_stop("end+4")
    assert not names.is_stop("endd4")


@pytest.mark.parametrize(
    ("symbol", "stop", "message"),
    [
        ("x", "stop_{}", r"symbol_site: expected a name with one \{\} for the step, found 'x'"),
        ("x_{}", "{}{}", r"stop_site: expected a name with one \{\} for the step, found '\{\}\{\}'"),
        (3, "stop_{}", r"symbol_site: expected a name with one \{\} for the step, found 3"),
        ("x_{}", "x_{}", r"expected different names for symbols and stops, found 'x_\{\}' for both"),
    ],
)
def test_bad_names(symbol: Any, stop: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SiteNames(symbol, stop)

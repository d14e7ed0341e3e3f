# SPDX-License-Identifier: Apache-2.0
"""Balancing functions: the identity g(t) = t g(1/t) far out, and what is said about functions without it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import oracle
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pyro_ksd.stein.balancing import as_balancing, barker, metropolis, mpf, tempered

NAMED: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[float], float]]] = {
    "barker": (barker, oracle.barker),
    "mpf": (mpf, oracle.mpf),
    "metropolis": (metropolis, oracle.metropolis),
}
GRID = torch.linspace(-800, 800, 6401, dtype=torch.double)
TINY = torch.finfo(torch.double).tiny  # below it a double loses digits


@pytest.mark.parametrize("name", NAMED)
def test_identity_where_the_ratio_is_a_number(name: str) -> None:
    g = as_balancing(name)
    down = GRID[(GRID <= 0) & (GRID >= -700)] if name == "mpf" else GRID[GRID <= 0]
    torch.testing.assert_close(g(down), down.exp() * g(-down), rtol=1e-12, atol=TINY)
    up = GRID[(GRID >= 0) & (GRID <= 700)]
    torch.testing.assert_close(g(up), up.exp() * g(-up), rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", NAMED)
def test_identity_in_logs(name: str) -> None:
    g = as_balancing(name)
    normal = GRID[GRID.abs() <= 700] if name != "mpf" else GRID
    torch.testing.assert_close(g(normal).log(), normal + g(-normal).log(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", NAMED)
def test_values_over_the_whole_range(name: str) -> None:
    g, plain = NAMED[name]
    values = g(GRID)
    assert values.isfinite().all()
    assert (values >= 0).all()
    assert values.dtype == torch.double
    assert (values.diff() >= 0).all()
    expected = torch.tensor([plain(r) for r in GRID.tolist()], dtype=torch.double)
    torch.testing.assert_close(values, expected, rtol=1e-12, atol=TINY)


@settings(deadline=None)
@given(st.floats(-700, 700))
def test_formulas(r: float) -> None:
    at = torch.tensor([r], dtype=torch.double)
    assert barker(at).item() == pytest.approx(1 / (1 + math.exp(-r)), rel=1e-12)
    assert mpf(at).item() == pytest.approx(math.sqrt(math.exp(r)), rel=1e-12)
    assert metropolis(at).item() == pytest.approx(min(1.0, math.exp(r)), rel=1e-12)


@pytest.mark.parametrize("name", NAMED)
def test_impossible_neighbors_weigh_nothing(name: str) -> None:
    assert as_balancing(name)(torch.tensor([-math.inf, 0.0, -math.inf])).tolist() in ([0, 0.5, 0], [0, 1, 0])


@pytest.mark.parametrize("name", ["barker", "metropolis"])
def test_bounded_functions_take_an_infinite_ratio(name: str) -> None:
    assert as_balancing(name)(torch.tensor([math.inf])).tolist() == [1.0]


@pytest.mark.parametrize("name", NAMED)
def test_names_and_functions(name: str) -> None:
    function = NAMED[name][0]
    assert as_balancing(name) is function
    assert as_balancing(function) is function


@pytest.mark.parametrize(
    "function",
    [
        lambda r: 3 * r.sigmoid(),
        lambda r: (r / 2).exp() * (-(r**2)).exp(),
        lambda r: (r / 2).exp() / torch.cosh(r / 2),
        lambda r: (r / 2).exp().clamp(max=1) * (r / 2).clamp(max=0).exp(),
        lambda r: torch.maximum(torch.zeros_like(r), r.exp().clamp(max=1)),
    ],
)
def test_own_functions_with_the_identity(function: Callable[[Tensor], Tensor]) -> None:
    assert as_balancing(function) is function


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("gibbs", "balancing: expected one of ['barker', 'metropolis', 'mpf'] or a function, found 'gibbs'"),
        (
            lambda r: r.exp(),
            "balancing: expected g(t) = t g(1/t) for every ratio t, found g(t) = 1.25e-09 and t g(1/t) = 1",
        ),
        (lambda r: torch.ones_like(r), "found g(t) = 1 and t g(1/t) = 1.25e-09 at t = exp(-20.5); for any symmetric"),
        (lambda r: r.sigmoid() * (1 + 1e-6 * (r > 0)), "balancing: expected g(t) = t g(1/t) for every ratio t"),
        (lambda r: -r.sigmoid(), "balancing: expected finite weights of at least 0, one for each log-ratio, found"),
        (lambda r: r.sigmoid() / 0, "balancing: expected finite weights of at least 0, one for each log-ratio, found"),
        (lambda r: r.sigmoid()[:1], "balancing: expected finite weights of at least 0, one for each log-ratio, found"),
        (lambda r: r.sigmoid()[:, None], "balancing: expected finite weights of at least 0, one for each log-ratio"),
        (
            lambda r: torch.where(r < 0, r.exp(), torch.ones_like(r)) + 0 * r,
            "balancing: expected weight 0 for a neighbor of probability 0 (log-ratio -inf), found nan",
        ),
        (
            lambda r: torch.where(r.isinf(), torch.ones_like(r), r.sigmoid()),
            "balancing: expected weight 0 for a neighbor of probability 0 (log-ratio -inf), found 1.0",
        ),
        (7, "balancing: expected one of ['barker', 'metropolis', 'mpf'] or a function, found 7"),
        (None, "balancing: expected one of ['barker', 'metropolis', 'mpf'] or a function, found None"),
    ],
)
def test_refused(function: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        as_balancing(function)


def test_an_unstable_function_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"finite weights for ratios from exp\(-800\) to exp\(800\), found \[0.0, nan\]"
    ):
        as_balancing(lambda r: r.exp() / (1 + r.exp()))


@pytest.mark.parametrize("name", NAMED)
def test_tempered_functions_are_balanced(name: str) -> None:
    g, plain = NAMED[name]
    function = tempered(g)
    assert as_balancing(function) is function
    normal = GRID[GRID.abs() <= 450]  # beyond, the weights are no numbers of full precision
    torch.testing.assert_close(function(normal).log(), normal + function(-normal).log(), rtol=1e-11, atol=1e-11)
    for ratio in (-30.0, -2.0, -0.5, 0.0, 0.5, 2.0, 30.0):
        found = float(function(torch.tensor([ratio], dtype=torch.double)))
        assert found == pytest.approx(plain(ratio) / math.cosh(ratio / 2), rel=1e-12, abs=0)


@pytest.mark.parametrize("name", NAMED)
def test_tempered_weights_times_log_ratios_are_bounded(name: str) -> None:
    function = tempered(NAMED[name][0])
    values = function(GRID)
    assert values.isfinite().all()
    assert (values >= 0).all()
    assert float((values * GRID).abs().max()) < (1700.0 if name == "mpf" else 1.5)
    assert float(values[GRID == 0]) == float(NAMED[name][0](torch.zeros(1, dtype=torch.double)))


def test_tempered_weights_fall_at_both_ends() -> None:
    for g in (barker, metropolis):
        values = tempered(g)(GRID[GRID.abs() > 2])
        assert (values <= 2 * (-GRID[GRID.abs() > 2].abs() / 2).exp()).all()
    extremes = torch.tensor([-torch.inf, -800.0, 800.0], dtype=torch.double)
    assert tempered(barker)(extremes).tolist() == pytest.approx([0.0, 0.0, 2 * math.exp(-400)], abs=0)


@pytest.mark.parametrize("wrong", ["barker", None, 1.0])
def test_tempered_takes_a_function(wrong: Any) -> None:
    with pytest.raises(ValueError, match="balancing: expected a balancing function, such as barker, found"):
        tempered(wrong)

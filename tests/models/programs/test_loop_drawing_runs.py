# SPDX-License-Identifier: Apache-2.0
"""Runs under vmap that draw many sequences: what they note, and what they take from a run before."""

from __future__ import annotations

from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from loop_programs import CHAIN, INITIAL, STOPS, S, chain, limited
from pyro import settings

from pyro_ksd.models.programs.loop_drawing_runs import (
    CannotDrawAtOnce,
    DrawnSite,
    DrawnTogether,
    HorizonReached,
    drawn_together,
)
from pyro_ksd.models.programs.loop_site_names import SiteNames
from pyro_ksd.sequences.container import Sequences

COUNT = 50


def run(program: Any, horizon: int, before: DrawnTogether | None = None) -> DrawnTogether:
    sites: list[DrawnSite] = [] if before is None else before.sites
    known = torch.zeros(COUNT, 0, dtype=torch.double) if before is None else before.values
    torch.manual_seed(horizon)
    with settings.context(validate_distributions_torch=False, validate_distributions_pyro=False):
        return drawn_together(program, SiteNames(), horizon, sites, known)


def kinds(drawn: DrawnTogether) -> list[tuple[str, bool, int]]:
    return [(site.name, site.is_stop, site.symbols) for site in drawn.sites]


def test_stops_are_noted_while_the_program_goes_on() -> None:
    drawn = run(chain(), 3)
    assert isinstance(drawn.error, HorizonReached)
    assert kinds(drawn) == [
        (f"{kind}_{t}", kind == "stop", t + (kind == "stop")) for t in range(3) for kind in ("x", "stop")
    ]
    assert drawn.values.shape == (COUNT, 6)
    assert drawn.scores.shape == (COUNT, 7)
    assert set(drawn.values[:, 1::2].unique().tolist()) == {0.0, 1.0}
    assert set(drawn.values[:, ::2].unique().tolist()) == {0.0, 1.0, 2.0}


def test_scores_are_the_log_probabilities_of_the_values() -> None:
    drawn = run(chain(), 2)
    tokens = drawn.values[:, ::2].long()
    stop, go_on = torch.tensor([0.3, 0.7], dtype=torch.double).log()
    stops = torch.where(drawn.values[:, 1::2] == 1, stop, go_on)
    torch.testing.assert_close(drawn.scores[:, 2::2], stops)
    whole = CHAIN.log_joint(Sequences.of(tokens, S))
    torch.testing.assert_close(drawn.scores[:, [0, 1, 3]].sum(1), whole - stop - go_on)


def test_a_program_that_ends_by_itself() -> None:
    drawn = run(limited(2, stop_at_the_limit=False), 5)
    assert drawn.error is None
    assert [name for name, _, _ in kinds(drawn)] == ["x_0", "stop_0", "x_1"]


def test_observed_sites_are_scored_once() -> None:
    def program() -> None:
        pyro.factor("constant", torch.tensor(3.0))
        chain()()

    drawn = run(program, 1)
    assert drawn.scores[:, 0].tolist() == [3.0] * COUNT


def test_what_was_drawn_before_stays() -> None:
    first = run(chain(), 2)
    unfinished = DrawnTogether(first.sites, first.values * torch.tensor([1.0, 0.0, 1.0, 0.0]), first.scores, None)
    again = run(chain(), 4, unfinished)
    assert torch.equal(again.values[:, :4], unfinished.values)
    assert again.sites[:4] == first.sites
    assert len(again.sites) == 8
    whole = CHAIN.log_joint(Sequences.of(again.values[:, [0, 2]].long(), S))
    stop, go_on = torch.tensor([0.3, 0.7], dtype=torch.double).log()
    torch.testing.assert_close(again.scores[:, :5].sum(1), whole - stop + go_on)


def test_other_sites_than_before_are_refused() -> None:
    first = run(limited(2, stop_at_the_limit=True), 2)

    def no_stops() -> None:
        for t in range(3):
            pyro.sample(f"x_{t}", dist.Categorical(INITIAL))

    error = run(no_stops, 2, first).error
    assert isinstance(error, CannotDrawAtOnce)
    assert "the site 'stop_0' was 'x_1'" in str(error)


def test_values_that_take_no_random_numbers_of_torch_are_refused() -> None:
    drawn = run(lambda: pyro.sample("x_0", dist.Delta(torch.tensor(1.0))), 2)
    assert isinstance(drawn.error, CannotDrawAtOnce)
    assert drawn.values.shape == (COUNT, 0)


def test_control_flow_that_depends_on_symbols_is_an_error() -> None:
    drawn = run(chain(index=int, stops=STOPS), 2)
    assert isinstance(drawn.error, RuntimeError)
    assert [name for name, _, _ in kinds(drawn)] == ["x_0"]


@pytest.mark.parametrize("horizon", [1, 3])
def test_the_run_ends_before_the_symbol_after_the_horizon(horizon: int) -> None:
    def program() -> None:
        t = 0
        while not pyro.sample(f"stop_{t}", dist.Bernoulli(0.5)):
            pyro.sample(f"x_{t}", dist.Categorical(INITIAL))
            t += 1

    drawn = run(program, horizon)
    assert drawn.sites[-1].name == f"stop_{horizon}"
    assert drawn.sites[-1].symbols == horizon

# SPDX-License-Identifier: Apache-2.0
"""Models that draw from another distribution than they score must be refused, others must not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from torch import Tensor

from pyro_ksd import HiddenMarkovSequence, IndependentSequence, MarkovSequence, Sequences, ksd_check
from pyro_ksd.edits import zs
from pyro_ksd.fit_tests.null_draws import NullDraws
from pyro_ksd.fit_tests.sampler_agreement import check_drawn_lengths, check_null_draws
from pyro_ksd.models import with_sampler
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.stein import barker, default_views

INITIAL = torch.tensor([0.5, 0.3, 0.2])
MOVES = torch.tensor([[0.1, 0.6, 0.3], [0.4, 0.2, 0.4], [0.3, 0.6, 0.1]])
VIEWS = default_views()[:2]


def chain(stop: Any = 0.2, moves: Tensor = MOVES) -> MarkovSequence:
    return MarkovSequence.from_transitions(INITIAL, moves, stop=stop)


def short(num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
    """Draws with the mistake of a program that ends all sequences after six symbols."""
    return Sequences.of([row[:6] for row in chain().draw(num_sequences, generator).to_lists()], 3)


def null(means: list[float], size: int = 100) -> NullDraws:
    """Statistics with these means and standard deviations of 1."""
    draws = torch.randn(size, len(means), dtype=torch.double, generator=torch.Generator().manual_seed(0))
    draws = (draws - draws.mean(0)) / draws.std(0) + torch.tensor(means).double()
    return NullDraws(draws, torch.full_like(draws, math.nan))


@pytest.mark.parametrize(
    ("means", "size", "names"),
    [
        ([0.0, 0.4], 10_000, None),  # certain, and too small to matter
        ([0.0, 0.6], 10_000, "'content-2'"),
        ([0.7, 0.6], 10_000, "'content-1', 'content-2'"),
        ([0.6, 0.0], 100, None),  # 6.0 standard errors, and a t variable has long tails
        ([0.8, 0.0], 100, "'content-1'"),
        ([-5.0, 0.0], 100, None),
        ([2.0, 2.0], 3, None),
        ([2.0, 0.0], 30, "'content-1'"),
    ],
)
def test_statistics_of_drawn_data_must_have_the_mean_zero(means: list[float], size: int, names: str | None) -> None:
    if names is None:
        check_null_draws(null(means, size), VIEWS)
    else:
        with pytest.raises(ValueError, match=rf"draw: expected .* \(view {names}\), so p-values"):
            check_null_draws(null(means, size), VIEWS)


def test_one_draw_and_rounding_errors_show_nothing() -> None:
    check_null_draws(NullDraws(torch.ones(1, 2).double(), torch.ones(1, 2).double()), VIEWS)
    tiny = torch.full((100, 2), 1e-17, dtype=torch.double)
    check_null_draws(NullDraws(tiny, tiny), VIEWS)


TRUE = {
    "chain": chain(),
    "stop by symbol": MarkovSequence.from_transitions(INITIAL, MOVES, stop=torch.tensor([0.05, 0.2, 0.6])),
    "hidden states": HiddenMarkovSequence(torch.ones(2) / 2, torch.tensor([[0.9, 0.1], [0.2, 0.8]]), MOVES[:2], 0.1),
    "Poisson": IndependentSequence(INITIAL, dist.Poisson(torch.tensor(4.0))),
    "rarely long": IndependentSequence(INITIAL, dist.Poisson(torch.tensor(0.001)), minimum=3),
}


@pytest.mark.parametrize("size", [100, 1000])
@pytest.mark.parametrize("name", TRUE)
def test_true_draws_are_accepted(name: str, size: int) -> None:
    for seed in range(5):
        drawn = TRUE[name].draw(size, torch.Generator().manual_seed(seed))
        check_drawn_lengths(TRUE[name], drawn, zs().tail, barker)


@pytest.mark.parametrize("draw", [chain(0.3).draw, chain(0.15).draw, short])
def test_wrong_lengths_are_refused(draw: Callable[..., Sequences]) -> None:
    drawn = draw(1000, torch.Generator().manual_seed(0))
    with pytest.raises(
        ValueError, match=rf"lengths that do not fit it \(drawn: from 1 to {int(drawn.lengths.max())} symbols"
    ):
        check_drawn_lengths(chain(), drawn, zs().tail, barker)


class _Given(SequenceModel):
    """A chain whose draws come from elsewhere."""

    def __init__(self, draw: Callable[..., Sequences]) -> None:
        self._draw = draw

    @property
    def alphabet_size(self) -> int:
        return 3

    def log_joint(self, sequences: Sequences) -> Tensor:
        return chain().log_joint(sequences)

    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        return self._draw(num_sequences, generator)


DATA = chain().draw(40, torch.Generator().manual_seed(5))


@pytest.mark.parametrize("draw", [chain(0.3).draw, short, chain(0.2, MOVES.roll(1, 0)).draw])
def test_checks_refuse_such_models(draw: Callable[..., Sequences]) -> None:
    for model in (_Given(draw), with_sampler(chain(), draw)):
        with pytest.raises(ValueError, match=r"draw: expected .* that the model scores, found (lengths|data sets)"):
            ksd_check(model, DATA, num_bootstrap=100, progress=False)
    ksd_check(_Given(chain().draw), DATA, num_bootstrap=100, progress=False)


def posterior_program(of_draw: bool) -> Callable[..., Any]:
    def program(x: Any = None, num_sequences: Any = None) -> Any:
        stop = pyro.sample("stop", dist.Beta(4.0, 4.0))
        if num_sequences is not None and not of_draw:
            return chain(0.15).draw(num_sequences)
        with pyro.plate("sequences", num_sequences if x is None else len(x)):
            return pyro.sample("x", chain(stop), obs=x)

    return program


def test_posterior_checks_refuse_programs_that_draw_without_their_parameters() -> None:
    posterior = {"stop": torch.linspace(0.3, 0.5, 60).double()}
    data = chain(0.4).draw(40, torch.Generator().manual_seed(5))
    ksd_check(posterior_program(True), data, posterior=posterior, progress=False)
    with pytest.raises(ValueError, match=r"draw: expected .* that the model scores, found (lengths|data sets)"):
        ksd_check(posterior_program(False), data, posterior=posterior, progress=False)


@pytest.mark.parametrize("held_out", [False, True])
def test_posterior_checks_refuse_programs_that_set_a_seed(held_out: bool) -> None:
    def program(x: Any = None, num_sequences: Any = None) -> Any:
        stop = pyro.sample("stop", dist.Beta(4.0, 4.0))
        if num_sequences is not None:
            torch.manual_seed(0)
            return chain(stop).draw(num_sequences)
        with pyro.plate("sequences", len(x)):
            return pyro.sample("x", chain(stop), obs=x)

    posterior = {"stop": torch.linspace(0.15, 0.25, 60).double()}
    with pytest.raises(ValueError, match="draw: expected another data set in each call"):
        ksd_check(program, DATA, posterior=posterior, held_out=held_out, progress=False)

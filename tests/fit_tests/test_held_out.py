# SPDX-License-Identifier: Apache-2.0
"""Held-out sequences against replicated ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch

from pyro_ksd import MarkovSequence, Sequences
from pyro_ksd.common.block_runs import draw_blocks
from pyro_ksd.common.checkpoints import Checkpoint
from pyro_ksd.common.random_numbers import seeded_generator
from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.fit_tests import held_out
from pyro_ksd.fit_tests.held_out import HeldOut, compare_held_out
from pyro_ksd.fit_tests.localization import localize_views
from pyro_ksd.fit_tests.statistics import u_statistic
from pyro_ksd.models.posterior.posterior_models import PosteriorModels
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.signs import Signs
from pyro_ksd.stein.summation import sum_views
from pyro_ksd.stein.views import default_views
from pyro_ksd.stein.visits import Visits

SIZE = 3
FLAT = torch.ones(SIZE, SIZE, dtype=torch.double)
DATA = Sequences.of(["abcab", "bca", "ab", "caab", "bcb"])
VIEWS = [view for view in default_views(zs()) if view.name in ("content-1", "content-2", "skip", "start")]
DRAWS = 23  # of which two are averaged


def program(x: Any = None, num_sequences: int | None = None) -> Any:
    initial = pyro.sample("initial", dist.Dirichlet(FLAT[0]))
    moves = pyro.sample("moves", dist.Dirichlet(FLAT).to_event(1))
    chain = MarkovSequence.from_transitions(initial, moves, torch.tensor(0.3, dtype=torch.double))
    with pyro.plate("sequences", num_sequences if x is None else len(x)):
        return pyro.sample("x", chain, obs=x)


@pytest.fixture(scope="module")
def models() -> PosteriorModels:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        draws = {"initial": dist.Dirichlet(FLAT[0]).sample((DRAWS,)), "moves": dist.Dirichlet(FLAT).sample((DRAWS,))}
    return PosteriorModels(program, DATA, draws, order=1)


@pytest.fixture(scope="module")
def found(models: PosteriorModels) -> HeldOut:
    return compare_held_out(models, DATA, VIEWS, seeded_generator(4))


AVERAGED = [0, 22]
REPLICATING = list(range(1, 22))


def statistics(models: PosteriorModels, data: Sequences) -> torch.Tensor:
    """The mean over the two draws, in a plain loop."""
    each = [[u_statistic(own) for own in stein_matrices(models[draw], data, VIEWS)] for draw in AVERAGED]
    return torch.tensor(each, dtype=torch.double).mean(0)


def test_statistics_are_means_under_the_draws_that_are_averaged(models: PosteriorModels, found: HeldOut) -> None:
    torch.testing.assert_close(found.statistic, statistics(models, DATA))


def test_replicated_data_come_from_the_other_draws_and_are_seen_under_the_same_ones(
    models: PosteriorModels, found: HeldOut
) -> None:
    assert found.null.statistic.shape == (len(REPLICATING), len(VIEWS))
    [block] = draw_blocks(len(REPLICATING), 64, seeded_generator(4))
    replicates = models.of_draws(torch.tensor(REPLICATING)).draw_like(DATA, block.generator())
    for index in (0, 1, 7, 20):
        own = replicates[index * len(DATA) : (index + 1) * len(DATA)]
        torch.testing.assert_close(found.null.statistic[index], statistics(models, own))


def test_places_are_means_under_the_draws_that_are_averaged(models: PosteriorModels, found: HeldOut) -> None:
    for index, place in enumerate(found.places):
        torch.testing.assert_close(place.contribution.sum(), found.statistic[index])
    each = []
    for draw in AVERAGED:
        visits = Visits(models[draw], DATA, VIEWS)
        states = sum_views(visits, Signs(seed=0, num_draws=0)).states[0]
        each.append(localize_views(visits, states, found.null.extreme, len(DATA))[1].contribution)
    torch.testing.assert_close(found.places[1].contribution, torch.stack(each).mean(0))


def test_each_block_of_replicated_data_has_random_numbers_of_its_own(
    models: PosteriorModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_out, "sets_at_once", lambda size: 4)
    found = compare_held_out(models, DATA, VIEWS, seeded_generator(4), localize=False)
    assert found.null.statistic.shape == (len(REPLICATING), len(VIEWS))
    blocks = draw_blocks(len(REPLICATING), 4, seeded_generator(4))
    for block in (blocks[0], blocks[2], blocks[-1]):
        some = models.of_draws(torch.tensor(REPLICATING[block.begin : block.end]))
        replicates = some.draw_like(DATA, block.generator())
        last = replicates[-len(DATA) :]
        torch.testing.assert_close(found.null.statistic[block.end - 1], statistics(models, last))
    assert found.places == []


def test_one_draw_is_too_few(models: PosteriorModels) -> None:
    with pytest.raises(ValueError, match="posterior: expected at least 2 draws, to average over and to replicate"):
        compare_held_out(models.of_draws(slice(0, 1)), DATA, VIEWS, seeded_generator(0))


def test_one_sequence_is_too_few(models: PosteriorModels) -> None:
    with pytest.raises(ValueError, match="expected at least 2 sequences, found 1"):
        compare_held_out(models, DATA[:1], VIEWS, seeded_generator(0))


def test_two_draws_are_needed_and_enough(models: PosteriorModels) -> None:
    with pytest.raises(ValueError, match=r"posterior: expected at least 2 draws, .* found 1"):
        compare_held_out(models.of_draws(slice(1)), DATA, VIEWS, seeded_generator(4))
    two = compare_held_out(models.of_draws(slice(2)), DATA, VIEWS, seeded_generator(4))
    assert two.null.statistic.shape == (1, len(VIEWS))


def test_sequences_that_an_averaged_draw_calls_impossible_are_refused(models: PosteriorModels) -> None:
    moves = models.values["moves"].clone()
    moves[0, 0] = torch.tensor([0.5, 0.0, 0.5])  # "ab" cannot be
    wrong = PosteriorModels(program, DATA, {"initial": models.values["initial"], "moves": moves})
    with pytest.raises(ValueError, match="probability zero to"):
        compare_held_out(wrong, DATA, VIEWS, seeded_generator(4))


def test_work_of_other_draws_is_not_gone_on_with(models: PosteriorModels, tmp_path: Path) -> None:
    kept = Checkpoint(tmp_path / "kept")
    first = compare_held_out(models, DATA, VIEWS, seeded_generator(4), checkpoint=kept)
    again = compare_held_out(models, DATA, VIEWS, seeded_generator(4), checkpoint=kept)
    assert again.null.statistic.equal(first.null.statistic)
    with pytest.raises(ValueError, match="differs in: views"):
        compare_held_out(models, DATA, VIEWS[:2], seeded_generator(4), checkpoint=kept)
    with pytest.raises(ValueError, match="differs in: model or views"):
        compare_held_out(models.of_draws(slice(1, 20)), DATA, VIEWS, seeded_generator(4), checkpoint=kept)


def test_two_sequences_are_needed(models: PosteriorModels) -> None:
    with pytest.raises(ValueError, match="expected at least 2 sequences, found 1"):
        compare_held_out(models, DATA[:1], VIEWS, seeded_generator(4))

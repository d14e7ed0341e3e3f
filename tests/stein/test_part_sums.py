# SPDX-License-Identifier: Apache-2.0
"""Sums over parts are those over all data."""

from __future__ import annotations

import math
from functools import reduce
from pathlib import Path

import pytest
import torch
from example_models import Stopped
from partitioned_data import in_parts

from pyro_ksd.common.checkpoints import Checkpoint
from pyro_ksd.examples import random_walk
from pyro_ksd.kernels import ConditionalKernel, HammingKernel, LandmarkKernel, StartKernel
from pyro_ksd.kernels.direction import DirectionKernel, DirectionPart
from pyro_ksd.models.part_survey import surveyed
from pyro_ksd.sequences.covariate_groups import CovariateGroups
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.part_sums import PartSums, check_summable, run_in_threads, sum_parts
from pyro_ksd.stein.signs import Signs
from pyro_ksd.stein.summation import sum_views
from pyro_ksd.stein.sums import SteinSums
from pyro_ksd.stein.views import View, default_views
from pyro_ksd.stein.visits import Visits

WALK = random_walk(3, hold=0.2)
DATA = WALK.draw(90, torch.Generator().manual_seed(0))
VIEWS = default_views()
FIELDS = ("total", "squares", "gains", "squared_losses", "norms", "squared_norms", "signed")


@pytest.mark.parametrize("cuts", [(), (40,), (1, 2, 88)])
@pytest.mark.parametrize("entries", [2**26, 1200])
def test_sums_are_those_of_all_data(cuts: tuple[int, ...], entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    signs = Signs(4, 30)
    whole = sum_views(Visits(WALK, DATA, VIEWS), signs)
    monkeypatch.setattr("pyro_ksd.stein.summation.SIGNED_ENTRIES", entries)
    found = list(sum_parts(WALK, surveyed(WALK, in_parts(DATA, cuts)).parts(), VIEWS, signs))
    assert (len(found) > 1) == (entries == 1200)
    assert sum(own.signs.num_draws for own in found if own.signs) == 30
    for index, own in enumerate(whole.states[0]):
        assert isinstance(own, SteinSums)
        states = [one.states[0][index] for one in found]
        signed = torch.cat([state.signed for state in states if isinstance(state, SteinSums)], 1)
        first = states[0]
        assert isinstance(first, SteinSums)
        assert (first.count, first.codes) == (90, own.codes)
        torch.testing.assert_close(signed, own.signed)
        for name in FIELDS[:-1]:
            torch.testing.assert_close(getattr(first, name), getattr(own, name))
    for rate, own_rate in zip(found[0].rates.values(), whole.rates.values(), strict=True):
        torch.testing.assert_close(rate, own_rate)


def part_sums(draws: int) -> PartSums:
    found = sum_views(Visits(WALK, DATA[:9], VIEWS[:3]), Signs(0, draws))
    return PartSums([own for own in found.states[0] if isinstance(own, SteinSums)], list(found.rates.values()))


def test_sums_with_fewer_draws_have_the_first_ones() -> None:
    for sums in ([part_sums(5), part_sums(3), part_sums(4)], [part_sums(3), part_sums(5), part_sums(3)]):
        total = reduce(lambda one, other: one + other, sums)
        for own, single in zip(total.sums, part_sums(3).sums, strict=True):
            torch.testing.assert_close(own.signed, 3 * single.signed)
            assert own.count == 27


def test_sums_come_back_from_tensors() -> None:
    sums = part_sums(4)
    again = PartSums.of_tensors(sums.tensors())
    assert [rate.tolist() for rate in again.rates] == [rate.tolist() for rate in sums.rates]
    for own, other in zip(again.sums, sums.sums, strict=True):
        assert own.count == other.count
        assert all(getattr(own, name).equal(getattr(other, name)) for name in FIELDS)


def test_a_kernel_without_features_is_named() -> None:
    check_summable(WALK, VIEWS, DATA)
    with pytest.raises(ValueError, match="view 'pairs': expected a kernel with features"):
        check_summable(WALK, [*VIEWS, View("pairs", ZanellaOperator(), HammingKernel())], DATA)


def test_threads_are_for_models_that_allow_them() -> None:
    from pyro_ksd.kernels import EmbeddingKernel
    from pyro_ksd.models import SequenceModel

    class Own(SequenceModel):
        alphabet_size = 3

        def log_joint(self, sequences: object) -> torch.Tensor:
            raise NotImplementedError

    function = EmbeddingKernel(lambda sequences: sequences.lengths[:, None].double())
    by_function = ConditionalKernel(StartKernel(), lambda covariates: covariates.values[:, None])
    direction = DirectionKernel((DirectionPart(function, torch.tensor([0]), torch.ones(1)),), "length")
    landmarks = DATA[:5]
    assert run_in_threads(WALK, VIEWS)
    assert not run_in_threads(Own(), VIEWS)
    for kernel in (
        function,
        2.0 * function,
        function + StartKernel(),
        function * StartKernel(),
        by_function,
        direction,
        LandmarkKernel(function, landmarks),
        ConditionalKernel(function, CovariateGroups("group", torch.tensor([[0], [1]]), ("0", "1"))),
    ):
        assert not run_in_threads(WALK, [*VIEWS, View("own", ZanellaOperator(), kernel)])
    groups = ConditionalKernel(StartKernel(), CovariateGroups("group", torch.tensor([[0], [1]]), ("0", "1")))
    for kernel in (
        groups,
        2.0 * HammingKernel(),
        HammingKernel() + StartKernel(),
        LandmarkKernel(HammingKernel(), landmarks),
    ):
        assert run_in_threads(WALK, [*VIEWS, View("own", ZanellaOperator(), kernel)])


@pytest.mark.parametrize("seconds", [0.0, 1e9])
def test_stopped_sums_of_parts_go_on_from_what_was_kept(
    seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyro_ksd.stein.part_sums.KEPT_SECONDS", seconds)
    signs, parts = Signs(4, 30), surveyed(WALK, in_parts(DATA, (20, 30, 45, 60, 80))).parts()
    plain = Stopped(WALK, math.inf)
    [expected] = sum_parts(plain, parts, VIEWS, signs)
    kept = Checkpoint(tmp_path / "kept")
    kept.begin({})
    count = 3 if seconds == 0 else 0
    with pytest.raises(KeyboardInterrupt, match=f"stopped after {count} of 6 parts, which are kept in"):
        list(sum_parts(Stopped(WALK, 0.55 * plain.scored), parts, VIEWS, signs, checkpoint=kept))
    again = Stopped(WALK, math.inf)
    [found] = sum_parts(again, parts, VIEWS, signs, checkpoint=kept)
    assert (again.scored < 0.6 * plain.scored) == (seconds == 0)
    for own, other in zip(found.states[0], expected.states[0], strict=True):
        assert isinstance(own, SteinSums)
        assert isinstance(other, SteinSums)
        assert own.count == 90
        assert all(getattr(own, name).equal(getattr(other, name)) for name in FIELDS)
    for operator, rate in expected.rates.items():
        assert found.rates[operator].equal(rate)


def test_stopped_sums_of_parts_without_a_checkpoint_are_lost() -> None:
    parts = surveyed(WALK, in_parts(DATA, (20, 30, 45, 60, 80))).parts()
    with pytest.raises(KeyboardInterrupt, match=r"stopped after [1-5] of 6 parts, which are lost"):
        list(sum_parts(Stopped(WALK, 1_500), parts, VIEWS, Signs(4, 30)))


def test_the_bar_is_shown_only_if_asked_for(terminal: pytest.CaptureFixture[str]) -> None:
    parts = surveyed(WALK, in_parts(DATA, (20,))).parts()
    list(sum_parts(WALK, parts, VIEWS[:1], Signs(0, 2)))
    assert "Stein features" not in terminal.readouterr().err
    list(sum_parts(WALK, parts, VIEWS[:1], Signs(0, 2), progress=True))
    shown = terminal.readouterr().err
    assert "Stein features: 100%" in shown
    assert "90/90" in shown

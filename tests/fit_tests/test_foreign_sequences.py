# SPDX-License-Identifier: Apache-2.0
"""Bounds of the share of foreign sequences: duality, level at the boundary, coverage."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from pyro_ksd.examples import random_walk
from pyro_ksd.fit_tests import foreign_share, rademacher, tolerance_p_value, wild_bootstrap
from pyro_ksd.fit_tests.removal import Pushes
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein import default_views, stein_matrices
from pyro_ksd.stein.signs import Signs
from pyro_ksd.stein.sums import SteinSums


def pushes_of(matrix: FeatureMatrix) -> Pushes:
    return Pushes.none(SteinSums.of(matrix)).plus(matrix)


GENERATOR = torch.Generator().manual_seed(5)
PSI = torch.randn(100, 3, dtype=torch.double, generator=GENERATOR)
PSI[:15, 0] += 8.0
OTHER = torch.randn(100, 2, dtype=torch.double, generator=GENERATOR)
PUSHES = [pushes_of(FeatureMatrix(PSI)), pushes_of(FeatureMatrix(OTHER.to_sparse().coalesce()))]
EXTREME = torch.rand(199, 2, dtype=torch.double, generator=GENERATOR) + torch.tensor([2.0, 1.0])


def test_the_bound_is_that_of_the_fewest_removals() -> None:
    alone, together = (draws.sort().values[-10] for draws in (EXTREME[:, 0], EXTREME.amax(1)))  # 10 of 200
    removed = PUSHES[0].fewest(torch.stack([alone, together])).amax(1)
    found = foreign_share(PUSHES, EXTREME, level=0.05)
    assert found.share.tolist() == [(int(removed[0]) - 1) / 100, 0.0]
    assert found.share_overall == (int(removed[1]) - 1) / 100 > 0


def test_the_order_of_the_views_does_not_matter() -> None:
    found, flipped = foreign_share(PUSHES, EXTREME), foreign_share(PUSHES[::-1], EXTREME.flip(1))
    assert flipped.share.flip(0).equal(found.share)
    assert flipped.share_overall == found.share_overall


def test_a_case_that_can_be_counted() -> None:
    """The score is (100 - m) / 10 after the removal of m sequences, and the draws are 0.07, 0.12, ..., 9.97."""
    pushes = pushes_of(FeatureMatrix(torch.ones(100, 1).double()))
    extreme = torch.linspace(0.07, 9.97, 199, dtype=torch.double)[:, None]
    found = foreign_share([pushes], extreme, level=0.05)  # the 10th largest draw is 9.52, so 5 must go
    assert found.share.tolist() == [found.share_overall] == [0.04]
    for tolerance, largest in ((0.0, 10.0), (0.035, 9.6), (0.04, 9.6), (0.041, 9.5), (0.5, 5.0)):
        expected = (1 + int((extreme > largest - 0.01).sum())) / 200
        assert tolerance_p_value([pushes], extreme, tolerance)[1].item() == expected


@pytest.mark.parametrize("level", [0.005, 0.05, 0.3])
def test_the_p_value_and_the_bound_agree(level: float) -> None:
    found = foreign_share(PUSHES, EXTREME, level=level)
    for count in range(30):
        each, overall = tolerance_p_value(PUSHES, EXTREME, count / 100)
        above = [share >= count / 100 and share > 0 for share in found.share.tolist()]
        if count:  # at 0 the bound does not tell one foreign sequence from none
            assert (each <= level).tolist() == above
            assert bool(overall <= level) == (found.share_overall >= count / 100)


def test_without_tolerance_it_is_the_test_of_the_largest_score() -> None:
    each, overall = tolerance_p_value([pushes_of(FeatureMatrix(OTHER))], EXTREME[:, 1:], 0.0)
    largest = (OTHER.sum(0).abs() / OTHER.square().sum(0).sqrt()).amax()
    assert float(overall) == float(each[0]) == (1 + int((EXTREME[:, 1] >= largest).sum())) / 200


def test_views_without_scores_are_left_out() -> None:
    unnamed = torch.cat([EXTREME[:, :1], torch.full((199, 1), torch.nan).double()], 1)
    alone = foreign_share(PUSHES[:1], EXTREME[:, :1])
    for other, extreme in ((None, EXTREME), (PUSHES[1], unnamed)):
        found = foreign_share([PUSHES[0], other], extreme)
        assert found.share[0] == alone.share[0]
        assert found.share[1].isnan()
        assert found.share_overall == alone.share_overall
        each, overall = tolerance_p_value([PUSHES[0], other], extreme, 0.01)
        assert overall == each[0]
        assert each[1].isnan()
    assert math.isnan(foreign_share([None], EXTREME[:, :1]).share_overall)
    assert tolerance_p_value([None], EXTREME[:, :1], 0.01)[1].isnan()


def test_too_few_draws_show_nothing() -> None:
    assert foreign_share(PUSHES, EXTREME[:18]).share_overall == 0.0
    assert foreign_share(PUSHES, EXTREME[:19]).share_overall > 0.0


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(
        ValueError, match=r"tolerance: expected a share of at least 0 and below 1, such as 0.01, found 5"
    ):
        tolerance_p_value(PUSHES, EXTREME, 5)
    with pytest.raises(ValueError, match=r"extreme: expected a floating-point tensor \[B, 2\]"):
        foreign_share(PUSHES, EXTREME[:, :1])
    with pytest.raises(ValueError, match=r"pushes: expected the pushes of sequences"):
        foreign_share([PSI], EXTREME[:, :1])  # type: ignore[list-item]
    with pytest.raises(ValueError, match=r"pushes: expected a list, one of each view"):
        foreign_share(PUSHES[0], EXTREME[:, :1])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"level: expected a number between 0 and 1"):
        foreign_share(PUSHES, EXTREME, 5)


def extremes(psi: Tensor, generator: torch.Generator) -> Tensor:
    """The largest scores in draws of the wild bootstrap, ``[B, 1]``; spreads are sums of squares."""
    signs = rademacher(199, len(psi), generator)
    return ((signs @ psi).abs() / psi.square().sum(0).sqrt()).amax(1)[:, None]


@pytest.mark.slow
@pytest.mark.parametrize("push", [1.0, 2.0, 30.0])
@pytest.mark.parametrize("columns", [1, 6])
def test_the_level_at_the_boundary(columns: int, push: float) -> None:
    """Features of ±1, and foreign sequences that push all of them.

    With a push of 1 the model's own sequences that push as much can be removed in place of the foreign ones, so that
    the removal takes away exactly what the foreign ones have added, and nothing is left to make the test conservative
    but that it is two-sided.
    """
    runs, n, share = 2000, 400, 0.05
    generator = torch.Generator().manual_seed(6)
    rejected = 0
    for _ in range(runs):
        psi = rademacher(n, columns, generator)
        psi[torch.rand(n, generator=generator) < share] = push
        p_value = tolerance_p_value([pushes_of(FeatureMatrix(psi))], extremes(psi, generator), share)[1]
        rejected += bool(p_value <= 0.05)
    assert rejected <= 133  # 0.999 quantile of the binomial distribution at 0.05
    if push == 1.0:
        assert rejected >= 20  # the test is not empty: about 0.025


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.02, 0.2])
@pytest.mark.parametrize("kind", ["same", "other walk", "long"])
def test_the_bound_covers_the_share_and_comes_close(kind: str, share: float) -> None:
    runs, n = 200, 400
    model = random_walk(4, hold=0.2)
    views = default_views()
    generator = torch.Generator().manual_seed(7)
    bounds = []
    for run in range(runs):
        count = int((torch.rand(n, generator=generator) < share).sum())
        foreign = {
            "same": lambda size: Sequences.of([[0, 2, 0, 2, 0, 2, 0, 2]] * size, alphabet=4),
            "other walk": lambda size: random_walk(4, hold=0.9).draw(size, generator),
            "long": lambda size: random_walk(4, hold=0.2, mean_length=30.0).draw(size, generator),
        }[kind]
        own = model.draw(n - count, generator)
        rows = own if not count else Sequences.cat([own, foreign(count)])
        matrices = stein_matrices(model, rows, views)
        null = wild_bootstrap(matrices, views, Signs(run, 199))
        bounds.append(foreign_share([pushes_of(matrix) for matrix in matrices], null.extreme).share_overall)
    assert sum(bound > share for bound in bounds) <= 21  # 0.999 quantile of the binomial distribution at 0.05
    if kind == "same" and share == 0.2:
        assert sorted(bounds)[runs // 2] > 0.1


def test_products_with_the_level_and_the_tolerance_are_not_cut_by_rounding() -> None:
    """In floating point, 0.29 * 100 is smaller than 29, and 0.07 * 100 is larger than 7."""
    pushes = pushes_of(FeatureMatrix(torch.ones(100, 1).double()))
    extreme = torch.linspace(0.07, 9.97, 99, dtype=torch.double)[:, None]  # at distances of a removed sequence
    below, exact, above = (foreign_share([pushes], extreme, level).share_overall for level in (0.285, 0.29, 0.295))
    assert below < exact == above
    below, exact, above = (tolerance_p_value([pushes], extreme, share)[1].item() for share in (0.065, 0.07, 0.075))
    assert below == exact < above


def test_features_that_no_sequence_has_have_no_foreign_share() -> None:
    nothing = pushes_of(FeatureMatrix(torch.zeros(100, 2, dtype=torch.double)))
    assert not len(nothing.codes)
    found = foreign_share([nothing, PUSHES[0]], EXTREME.flip(1))
    assert found.share[0] == 0.0
    assert found.share[1] > 0
    assert foreign_share([nothing], EXTREME[:, :1]).share_overall == 0.0

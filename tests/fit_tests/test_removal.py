# SPDX-License-Identifier: Apache-2.0
"""Removals against all subsets of a few sequences."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
import torch
from torch import Tensor

from pyro_ksd.fit_tests import removal
from pyro_ksd.fit_tests.feature_scores import scores
from pyro_ksd.fit_tests.removal import Pushes
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.stein.sums import SteinSums

N = 8
PSI = torch.randn(N, 6, dtype=torch.double, generator=torch.Generator().manual_seed(3)) + 0.8
PSI[:, 1] *= -1
PSI[:, 2] = 0.0
PSI[:, 3] -= 0.8
PSI[:, 4] = 3.0
PSI[0, 4] = -5.0  # pushes the other way, more than any other sequence
PSI[PSI.abs() < 0.4] = 0.0
FORMS = [FeatureMatrix(PSI), FeatureMatrix(PSI.to_sparse().coalesce())]
forms = pytest.mark.parametrize("matrix", FORMS, ids=["dense", "sparse"])


def pushes_of(matrix: FeatureMatrix, size: int = N, least: float = -1.0) -> Pushes:
    """The pushes of all sequences, of which ``size`` at a time are looked at."""
    found = Pushes.none(SteinSums.of(matrix), least)
    for begin in range(0, len(matrix), size):
        found = found.plus(matrix.rows(begin, min(begin + size, len(matrix))))
    return found


def kept_rows(size: int) -> list[Tensor]:
    """What is left after the removal of ``size`` sequences, in all ways."""
    return [PSI[list(rows)] for rows in combinations(range(N), N - size)]


@forms
@pytest.mark.parametrize("critical", [0.1, 0.5, 1.0, 1.5])
def test_fewest_removals_are_those_of_the_best_subset(matrix: FeatureMatrix, critical: float) -> None:
    total, spread = scores(SteinSums.of(FeatureMatrix(PSI)))
    expected = []
    for u in range(PSI.shape[1]):
        sign = total[u].sign()
        accepted = (
            size
            for size in range(N + 1)
            if any(float(sign * kept[:, u].sum()) <= critical * float(spread[u]) + 1e-12 for kept in kept_rows(size))
        )
        expected.append(next(accepted))
    assert max(expected) > 1
    others = torch.tensor([0.0, critical, 3.0], dtype=torch.double)
    assert pushes_of(matrix).fewest(others)[1].tolist() == expected


@pytest.mark.parametrize("critical", [0.1, 0.5, 1.0, 1.5])
def test_no_smaller_subset_is_accepted_with_its_own_sum_of_squares(critical: float) -> None:
    [bound] = pushes_of(FORMS[0]).fewest(torch.tensor([critical], dtype=torch.double))
    for size in range(N):
        for kept in kept_rows(size):
            accepted = kept.sum(0).abs() <= critical * kept.square().sum(0).sqrt()
            assert (bound[accepted] <= size).all()


@forms
@pytest.mark.parametrize("size", range(N + 1))
def test_the_score_after_removal_is_that_of_the_best_subset(matrix: FeatureMatrix, size: int) -> None:
    total, spread = scores(SteinSums.of(FeatureMatrix(PSI)))
    seen = spread > 0
    sums = torch.stack([total.sign() * kept.sum(0) for kept in kept_rows(size)]).amin(0)
    lowest = float((sums[seen] / spread[seen]).amax().clamp(min=0))
    assert float(pushes_of(matrix).score_after(size)) == pytest.approx(lowest)


@forms
@pytest.mark.parametrize("size", [1, 3])
def test_chunks_change_nothing(matrix: FeatureMatrix, size: int) -> None:
    whole, parts = pushes_of(matrix), pushes_of(matrix, size)
    assert parts.count == whole.count == N
    for name in ("number", "largest"):
        assert getattr(parts, name).equal(getattr(whole, name))
    torch.testing.assert_close(parts.sum, whole.sum, rtol=1e-14, atol=0)


@forms
def test_nothing_is_removed_under_a_high_critical_value(matrix: FeatureMatrix) -> None:
    assert pushes_of(matrix).fewest(torch.tensor([1e9])).tolist() == [[0] * PSI.shape[1]]
    nothing = pushes_of(FeatureMatrix(torch.zeros(3, 2).double()))
    assert nothing.fewest(torch.tensor([1.0])).tolist() == [[0, 0]]
    assert float(nothing.score_after(1)) == 0.0


@forms
def test_features_with_small_scores_are_left_out(matrix: FeatureMatrix) -> None:
    total, spread = scores(SteinSums.of(FeatureMatrix(PSI)))
    z = (total / spread.clamp(min=1e-300)).abs()
    assert pushes_of(matrix, least=1.0).codes.tolist() == (z > 1.0).nonzero().squeeze(1).tolist()
    assert 0 < int((z > 1.0).sum()) < PSI.shape[1]
    none = pushes_of(matrix, least=1e9)
    assert none.fewest(torch.tensor([1.0])).shape == (1, 0)
    assert float(none.score_after(1)) == 0.0


def test_very_large_data_are_seen_through_the_largest_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "_MOST_PARTS", 3 * N)
    monkeypatch.setattr(removal, "_LEAST_COLUMNS", 2)
    every, some = pushes_of(FORMS[0]), removal.Pushes.none(SteinSums.of(FORMS[0]))
    assert len(some.codes) == 3
    monkeypatch.undo()
    z = pushes_of(FORMS[0])
    largest = (z.total.abs() / z.spread.clamp(min=1e-300)).argsort(descending=True)[:3].sort().values
    assert some.codes.equal(largest)
    assert len(every.codes) == 3


def test_columns_that_a_part_does_not_have() -> None:
    """Sparse parts of the data know only their own columns."""
    parts = [
        FeatureMatrix.from_entries(torch.tensor([0, 1]), torch.tensor([3, 9]), torch.tensor([1.0, 2.0]).double(), 2),
        FeatureMatrix.from_entries(torch.tensor([0, 0]), torch.tensor([5, 9]), torch.tensor([4.0, -1.0]).double(), 1),
    ]
    sums = SteinSums.of(parts[0]) + SteinSums.of(parts[1])
    found = Pushes.none(sums)
    for part in parts:
        found = found.plus(part)
    assert found.codes.tolist() == [3, 5, 9]
    assert found.sum.sum(1).tolist() == [1.0, 4.0, 2.0]
    assert found.number.sum(1).tolist() == [1.0, 1.0, 1.0]
    assert found.largest.amax(1).tolist() == [1.0, 4.0, 2.0]


def test_many_removals_are_never_overstated_and_close() -> None:
    """Against the sorted parts of 3,000 sequences."""
    psi = torch.randn(3000, 4, dtype=torch.double, generator=torch.Generator().manual_seed(0)).exp() - 1.0
    pushes = pushes_of(FeatureMatrix(psi), 700)
    total, sign = psi.sum(0), psi.sum(0).sign()
    for critical in (0.0, 2.0, 10.0):
        [found] = pushes.fewest(torch.tensor([critical], dtype=torch.double))
        for u in range(4):
            excess = float(total[u].abs() - critical * pushes.spread[u])
            removed = (sign[u] * psi[:, u]).clamp(min=0).sort(descending=True).values.cumsum(0)
            exact = int((removed < excess).sum()) + 1 if excess > 0 else 0
            assert 0.98 * exact - 1 <= int(found[u]) <= exact
    for count in (1, 40, 900):
        largest = (sign * psi).clamp(min=0).sort(0, descending=True).values[:count].sum(0)
        exact_score = float(((total.abs() - largest) / pushes.spread).amax().clamp(min=0))
        assert 0.98 * exact_score - 0.1 <= float(pushes.score_after(count)) <= exact_score + 1e-9


@forms
@pytest.mark.parametrize("cut", [1, 4, 7])
def test_pushes_of_parts_add_up(matrix: FeatureMatrix, cut: int) -> None:
    start = Pushes.none(SteinSums.of(matrix), -1.0)
    parts = [start.plus(matrix.rows(0, cut)), Pushes.none(SteinSums.of(matrix), -1.0).plus(matrix.rows(cut, N))]
    for found in (parts[0] + parts[1], parts[1] + parts[0]):
        whole = pushes_of(matrix)
        assert found.count == whole.count == N
        assert found.number.equal(whole.number)
        assert found.largest.equal(whole.largest)
        torch.testing.assert_close(found.sum, whole.sum)
    assert not parts[0].largest.equal(parts[1].largest)


def test_features_with_a_score_of_0_are_not_looked_at() -> None:
    values = torch.tensor([[1.0, 1.0], [-1.0, 1.0]], dtype=torch.double)  # the first one adds up to 0
    assert Pushes.none(SteinSums.of(FeatureMatrix(values))).codes.tolist() == [1]


def test_pushes_far_below_the_largest_are_in_the_last_of_640_classes() -> None:
    """There are 32 classes for each factor of 2, and 20 such factors."""
    values = torch.tensor([1.0, 2.0**-1.01, 2.0**-19.5, 2.0**-25, 2.0**-40], dtype=torch.double)[:, None]
    found = pushes_of(FeatureMatrix(values), size=5)
    reach = float(values.square().sum().sqrt())
    expected = [min(int(32 * math.log2(reach / value)), 639) for value in values[:, 0].tolist()]
    assert found.number.shape == (1, 640)
    assert found.number[0].nonzero()[:, 0].tolist() == sorted(set(expected))
    assert found.number[0, 639] == 2

# SPDX-License-Identifier: Apache-2.0
"""Removals against all subsets of a few sequences."""

from __future__ import annotations

from itertools import combinations

import pytest
import torch
from torch import Tensor

from pyro_ksd.fit_tests import removal
from pyro_ksd.fit_tests.feature_scores import scores
from pyro_ksd.fit_tests.removal import fewest_removals, score_after_removal
from pyro_ksd.kernels.stein_matrices import FeatureMatrix

N = 8
PSI = torch.randn(N, 6, dtype=torch.double, generator=torch.Generator().manual_seed(3)) + 0.8
PSI[:, 1] *= -1
PSI[:, 2] = 0.0
PSI[:, 3] -= 0.8
PSI[:, 4] = 3.0
PSI[0, 4] = -5.0  # pushes the other way, more than any other sequence
PSI[PSI.abs() < 0.4] = 0.0
FORMS = [FeatureMatrix(PSI), FeatureMatrix(PSI.to_sparse())]
forms = pytest.mark.parametrize("matrix", FORMS, ids=["dense", "sparse"])


def kept_rows(size: int) -> list[Tensor]:
    """What is left after the removal of ``size`` sequences, in all ways."""
    return [PSI[list(rows)] for rows in combinations(range(N), N - size)]


@forms
@pytest.mark.parametrize("critical", [0.1, 0.5, 1.0, 1.5])
def test_fewest_removals_are_those_of_the_best_subset(matrix: FeatureMatrix, critical: float) -> None:
    total, spread = scores(FeatureMatrix(PSI))
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
    assert fewest_removals(matrix, others)[1].tolist() == expected


@pytest.mark.parametrize("critical", [0.1, 0.5, 1.0, 1.5])
def test_no_smaller_subset_is_accepted_with_its_own_sum_of_squares(critical: float) -> None:
    [bound] = fewest_removals(FORMS[0], torch.tensor([critical], dtype=torch.double))
    for size in range(N):
        for kept in kept_rows(size):
            accepted = kept.sum(0).abs() <= critical * kept.square().sum(0).sqrt()
            assert (bound[accepted] <= size).all()


@forms
@pytest.mark.parametrize("size", range(N + 1))
def test_the_score_after_removal_is_that_of_the_best_subset(matrix: FeatureMatrix, size: int) -> None:
    total, spread = scores(FeatureMatrix(PSI))
    seen = spread > 0
    sums = torch.stack([total.sign() * kept.sum(0) for kept in kept_rows(size)]).amin(0)
    lowest = float((sums[seen] / spread[seen]).amax().clamp(min=0))
    assert float(score_after_removal(matrix, size)) == pytest.approx(lowest)


@forms
@pytest.mark.parametrize("entries", [1, N, 2 * N])
def test_chunks_change_nothing(matrix: FeatureMatrix, entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    critical = torch.tensor([0.5], dtype=torch.double)
    whole = fewest_removals(matrix, critical), score_after_removal(matrix, 1)
    monkeypatch.setattr(removal, "ENTRIES", entries)
    assert fewest_removals(matrix, critical).equal(whole[0])
    assert score_after_removal(matrix, 1).equal(whole[1])


@forms
def test_nothing_is_removed_under_a_high_critical_value(matrix: FeatureMatrix) -> None:
    assert fewest_removals(matrix, torch.tensor([1e9])).tolist() == [[0] * PSI.shape[1]]
    assert fewest_removals(FeatureMatrix(torch.zeros(3, 2).double()), torch.tensor([1.0])).tolist() == [[0, 0]]
    assert float(score_after_removal(FeatureMatrix(torch.zeros(3, 2).double()), 1)) == 0.0

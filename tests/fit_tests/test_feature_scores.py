# SPDX-License-Identifier: Apache-2.0
"""The scores of features against their formula in plain loops."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from pyro_ksd.fit_tests.feature_scores import group_scores, largest_score, scores
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.stein.sums import SteinSums

PSI = torch.randn(6, 4, dtype=torch.double, generator=torch.Generator().manual_seed(0))
PSI[:, 1] = PSI[:, 1].abs() / 10  # a feature that no sequence has
PSI[PSI.abs() < 0.3] = 0.0


def by_hand(psi: Tensor) -> list[tuple[float, float]]:
    rows = psi.tolist()
    lost = [-value for row in rows for value in row if value < 0]
    typical = sum(value**2 for value in lost) / sum(lost) if lost else 0.0
    found = []
    for column in zip(*rows, strict=True):
        squares, gains = sum(value**2 for value in column), sum(value for value in column if value > 0)
        found.append((sum(column), math.sqrt(max(squares, typical * gains + typical**2))))
    return found


@pytest.mark.parametrize(
    "matrix", [FeatureMatrix(PSI), FeatureMatrix(PSI.to_sparse().coalesce())], ids=["dense", "sparse"]
)
def test_scores_are_those_of_the_formula(matrix: FeatureMatrix) -> None:
    total, spread = scores(SteinSums.of(matrix))
    assert list(zip(total.tolist(), spread.tolist(), strict=True)) == [pytest.approx(pair) for pair in by_hand(PSI)]
    [sums] = matrix.group_sums(3)
    totals, spreads = group_scores(sums)
    for index, group in enumerate((PSI[:3], PSI[3:])):
        expected = by_hand(group)
        assert totals[index].tolist() == pytest.approx([pair[0] for pair in expected])
        assert spreads[index].tolist() == pytest.approx([pair[1] for pair in expected])
    largest = [max(abs(total) / spread for total, spread in by_hand(group)) for group in (PSI[:3], PSI[3:])]
    assert largest_score(totals, spreads).tolist() == pytest.approx(largest)


def test_features_that_never_change_have_no_score() -> None:
    total, spread = scores(SteinSums.of(FeatureMatrix(torch.zeros(3, 2, dtype=torch.double))))
    assert largest_score(total[None], spread[None]).tolist() == [0.0]
    assert largest_score(torch.zeros(2, 0), torch.zeros(2, 0)).tolist() == [0.0, 0.0]

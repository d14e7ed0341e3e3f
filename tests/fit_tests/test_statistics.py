# SPDX-License-Identifier: Apache-2.0
"""Statistics against double loops, and p-values against counts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from example_matrices import MATRICES, PSI, sparse
from torch import Tensor

from pyro_ksd.fit_tests.statistics import (
    p_value,
    p_values_of_largest,
    u_statistic,
    u_statistics_under_each,
    v_statistic,
    weighted_u_statistics,
)
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.stein.sums import SteinSums


@pytest.mark.parametrize("name", MATRICES)
def test_statistics_against_double_loops(name: str) -> None:
    matrix, h = MATRICES[name], (PSI @ PSI.T).tolist()
    pairs = [(i, j) for i in range(7) for j in range(7)]
    u = sum(h[i][j] for i, j in pairs if i != j) / 42
    v = sum(h[i][j] for i, j in pairs) / 49
    assert float(u_statistic(matrix)) == pytest.approx(u, rel=1e-12)
    assert float(v_statistic(matrix)) == pytest.approx(v, rel=1e-12)
    weights = torch.tensor([[1, -1, 1, 1, -1, -1, 1], [2, 0, -1, 3, 0, 1, 0.5]], dtype=torch.double)
    expected = [sum(w[i] * w[j] * h[i][j] for i, j in pairs if i != j) / 42 for w in weights.tolist()]
    assert weighted_u_statistics(matrix, weights).tolist() == pytest.approx(expected, rel=1e-12)
    torch.testing.assert_close(matrix.dense(), PSI @ PSI.T, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("form", [FeatureMatrix, sparse])
def test_without_a_common_feature_the_statistic_is_zero_and_not_its_rounding(
    form: Callable[[Tensor], FeatureMatrix],
) -> None:
    rows, columns = torch.arange(40), torch.arange(40 * 25).view(40, 25)
    values = torch.rand(40, 25, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    matrix = form(torch.zeros(40, 1_000, dtype=torch.double).index_put_((rows[:, None], columns), values))
    signs = torch.tensor([[1.0, -1.0] * 20, [1.0] * 40], dtype=torch.double)
    assert weighted_u_statistics(matrix, signs).tolist() == [0.0, 0.0]
    assert matrix.off_diagonal_sums(20).tolist() == [0.0, 0.0]
    assert float(v_statistic(matrix)) > 0


def test_one_sequence_has_no_u_statistic() -> None:
    with pytest.raises(ValueError, match="expected at least 2 sequences, found 1; the statistic compares pairs"):
        u_statistic(FeatureMatrix(PSI[:1]))


def test_overflow_is_an_error_and_not_nan() -> None:
    with pytest.raises(ValueError, match=r"the statistic overflows.*use a bounded balancing function"):
        u_statistic(FeatureMatrix(PSI * 1e173))


def test_p_value_counts_itself_and_is_never_zero() -> None:
    null = torch.arange(99, dtype=torch.double)
    assert float(p_value(torch.tensor(1000.0).double(), null)) == pytest.approx(0.01)
    assert float(p_value(torch.tensor(-1.0).double(), null)) == pytest.approx(1.0)
    assert float(p_value(torch.tensor(94.0).double(), null)) == pytest.approx(0.06)


def test_ties_count_although_their_last_bits_differ() -> None:
    observed = torch.tensor(0.1 + 0.2, dtype=torch.double)
    null = torch.full((9,), 0.3, dtype=torch.double)
    assert float(observed) > 0.3
    assert float(p_value(observed, null)) == 1.0
    assert float(p_value(observed + 1e-6, null)) == pytest.approx(0.1)


def test_p_values_of_several_views() -> None:
    null = torch.tensor([[1.0, 5.0], [2.0, 6.0], [3.0, 7.0]], dtype=torch.double)
    assert p_value(torch.tensor([2.5, 4.0]).double(), null).tolist() == [0.5, 1.0]


def test_one_weighted_statistic_that_overflows_is_enough() -> None:
    weights = torch.ones(2, 7, dtype=torch.double)
    weights[1] = 1e200
    assert weighted_u_statistics(FeatureMatrix(PSI), weights[:1]).isfinite().all()
    with pytest.raises(ValueError, match="the statistic overflows"):
        weighted_u_statistics(FeatureMatrix(PSI), weights)


def test_p_values_against_draws_of_the_largest() -> None:
    generator = torch.Generator().manual_seed(0)
    null = torch.rand(50, dtype=torch.double, generator=generator).mul_(20).round_()
    observed = torch.cat([null[:10], null[:10] * (1 + 1e-13), null[:10] + 0.5, torch.tensor([-1.0, 30.0]).double()])
    expected = torch.stack([p_value(value, null) for value in observed])
    assert p_values_of_largest(observed, null).equal(expected)
    assert p_values_of_largest(observed[:0], null).shape == (0,)


def test_statistics_under_several_models() -> None:
    psi = torch.randn(3, 5, 4, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    each = SteinSums.each_of([FeatureMatrix(own) for own in psi])
    expected = torch.stack([u_statistic(SteinSums.of(FeatureMatrix(own))) for own in psi])
    for states in (each, list(each), [FeatureMatrix(own) for own in psi]):
        torch.testing.assert_close(u_statistics_under_each(states), expected)

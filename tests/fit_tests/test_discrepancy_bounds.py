# SPDX-License-Identifier: Apache-2.0
"""The upper bound of the discrepancy against its formula and by simulation."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from pyro_ksd.fit_tests import closeness, rademacher, weighted_u_statistics
from pyro_ksd.kernels.stein_matrices import FeatureMatrix, GramMatrix, SteinMatrix

PSI = torch.randn(30, 4, dtype=torch.double, generator=torch.Generator().manual_seed(0)) + 0.2


def draws(matrix: SteinMatrix, count: int, seed: int) -> Tensor:
    """The statistics of the wild bootstrap, ``[B, 1]``."""
    signs = rademacher(count, len(matrix), torch.Generator().manual_seed(seed))
    return weighted_u_statistics(matrix, signs)[:, None]


@pytest.mark.parametrize(
    "matrix",
    [FeatureMatrix(PSI), FeatureMatrix(PSI.to_sparse()), GramMatrix(PSI @ PSI.t())],
    ids=["dense", "sparse", "gram"],
)
def test_the_bound_is_that_of_the_formula(matrix: SteinMatrix) -> None:
    signs = rademacher(199, 30, torch.Generator().manual_seed(1))
    noise = (signs @ PSI / 30).norm(dim=1).sort().values[-10]  # 10 of 200, the data among them
    size = PSI.square().sum(1).mean().sqrt()
    found = closeness([matrix], draws(matrix, 199, 1), level=0.05)
    assert float(found.upper) == pytest.approx(float((PSI.mean(0).norm() + noise) / size))
    pairs = (PSI @ PSI.t()).fill_diagonal_(0.0).sum() / (30 * 29)
    assert float(found.estimate) == pytest.approx(float(pairs.sqrt() / size))


def test_one_is_the_largest_bound() -> None:
    same = FeatureMatrix(torch.ones(10, 2).double())
    found = closeness([same], draws(same, 99, 0))
    assert float(found.estimate) == pytest.approx(1.0)
    assert float(found.upper) == 1.0


def test_a_few_sequences_that_say_anything_bound_nothing() -> None:
    psi = torch.zeros(100, 2, dtype=torch.double)
    for carrying in (9, 10):
        psi[:carrying] = 1.0
        matrix = FeatureMatrix(psi.clone())
        found = closeness([matrix], draws(matrix, 99, 0))
        assert bool(found.upper.isnan()) == bool(found.estimate.isnan()) == (carrying < 10)


def test_too_few_draws_bound_nothing() -> None:
    matrix = FeatureMatrix(PSI)
    assert float(closeness([matrix], draws(matrix, 18, 0)).upper) == 1.0
    assert float(closeness([matrix], draws(matrix, 19, 0)).upper) < 1.0


def test_a_view_in_which_nothing_changes_is_close() -> None:
    nothing = FeatureMatrix(torch.zeros(10, 2).double())
    found = closeness([nothing], draws(nothing, 99, 0))
    assert found.upper.tolist() == found.estimate.tolist() == [0.0]


def test_wrong_arguments_are_named() -> None:
    matrix = FeatureMatrix(PSI)
    with pytest.raises(ValueError, match=r"found: expected a Stein kernel matrix"):
        closeness([PSI], torch.rand(9, 1))  # type: ignore[list-item]
    with pytest.raises(ValueError, match=r"wild: expected a floating-point tensor \[B, 1\]"):
        closeness([matrix], torch.rand(9, 2))
    with pytest.raises(ValueError, match=r"level: expected a number between 0 and 1"):
        closeness([matrix], torch.rand(9, 1), level=5)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [1, 5])
@pytest.mark.parametrize("mean", [0.0, 0.05, 0.2, 1.0])
def test_the_bound_holds_with_its_probability(columns: int, mean: float) -> None:
    """Skewed features with a mean in one direction, near the model and far from it."""
    runs, n = 1000, 200
    generator = torch.Generator().manual_seed(2)
    true = mean / (mean**2 + columns) ** 0.5
    misses = 0
    for run in range(runs):
        psi = 1 + torch.rand(n, columns, dtype=torch.double, generator=generator).log()  # mean 0, variance 1
        psi[:, 0] += mean
        matrix = FeatureMatrix(psi)
        misses += float(closeness([matrix], draws(matrix, 199, run)).upper) < true
    assert misses <= 72  # 0.999 quantile of the binomial distribution at 0.05


def test_the_rank_of_the_quantile_is_not_cut_by_rounding() -> None:
    matrix = FeatureMatrix(PSI)
    wild = draws(matrix, 99, 0)
    below, exact, above = (float(closeness([matrix], wild, level).upper) for level in (0.285, 0.29, 0.295))
    assert below > exact == above  # in floating point, 0.29 * 100 is smaller than 29


def test_one_sequence_is_too_few() -> None:
    with pytest.raises(ValueError, match="expected at least 2 sequences, found 1"):
        closeness([FeatureMatrix(torch.ones(1, 3, dtype=torch.double))], torch.zeros(9, 1, dtype=torch.double))

# SPDX-License-Identifier: Apache-2.0
"""Points and weights for integrals over normal variables."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm

from pyro_ksd.models.programs.integration_points import MOST_DIMENSIONS, IntegrationPoints


@pytest.mark.parametrize("degree", range(9))
def test_moments_in_one_dimension(degree: int) -> None:
    points = IntegrationPoints.of(1, 32)
    expected = 0.0 if degree % 2 else math.prod(range(degree - 1, 0, -2))
    found = float((points.log_weights.exp() * points.scores[:, 0] ** degree).sum())
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-8)


def test_a_steep_function_in_one_dimension() -> None:
    points = IntegrationPoints.of(1, 64)
    found = float((points.log_weights.exp() * torch.sigmoid(6 * points.scores[:, 0] - 3)).sum())
    exact, _ = quad(lambda z: norm.pdf(z) / (1 + math.exp(3 - 6 * z)), -9, 9, epsabs=1e-13)
    assert found == pytest.approx(exact, rel=1e-6)


def test_a_grid_in_two_dimensions() -> None:
    points = IntegrationPoints.of(2, 64)
    assert len(points) == 64
    assert len(points.scores[:, 0].unique()) == 8
    weights = points.log_weights.exp()
    assert float((weights * points.scores.prod(1) ** 2).sum()) == pytest.approx(1.0, rel=1e-3)
    assert float((weights * points.scores[:, 0] ** 4 * points.scores[:, 1] ** 2).sum()) == pytest.approx(3.0, rel=1e-2)
    assert len(IntegrationPoints.of(2, 63)) == 49


@pytest.mark.parametrize("dimensions", [3, 40])
def test_quasi_random_points_in_more(dimensions: int) -> None:
    points = IntegrationPoints.of(dimensions, 256)
    assert points.scores.shape == (256, MOST_DIMENSIONS)
    assert points.scores.isfinite().all()
    assert points.scores.dtype == points.log_weights.dtype == torch.double
    assert float(points.log_weights.exp().sum()) == pytest.approx(1.0)
    own = points.scores[:, :dimensions]
    # The standard error of independent points would be 0.06.
    assert own.mean(0).abs().max() < 0.02
    assert (own.var(0) - 1).abs().max() < 0.1
    assert not points.scores.equal(IntegrationPoints.of(dimensions, 256, seed=1).scores)
    assert points.scores.equal(IntegrationPoints.of(dimensions, 256).scores)


def test_points_that_may_get_more_dimensions_start_alike() -> None:
    one, many = (IntegrationPoints.of(dimensions, 16, grows=True) for dimensions in (1, 30))
    assert one.scores.equal(many.scores)

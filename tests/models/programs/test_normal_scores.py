# SPDX-License-Identifier: Apache-2.0
"""Values of distributions at normal scores, against scipy and against moments."""

from __future__ import annotations

from typing import Any

import pyro.distributions as dist
import pytest
import scipy.stats
import torch
from torch import Tensor

from pyro_ksd.models.programs.integration_points import IntegrationPoints
from pyro_ksd.models.programs.normal_scores import value_at

SCORES = torch.linspace(-5, 5, 41, dtype=torch.double)


def of(*values: float) -> list[Tensor]:
    return [torch.tensor(value, dtype=torch.double) for value in values]


ONE_DIMENSION: dict[str, tuple[Any, Any]] = {
    "Normal": (dist.Normal(*of(1.0, 2.0)), scipy.stats.norm(1.0, 2.0)),
    "LogNormal": (dist.LogNormal(*of(0.1, 0.5)), scipy.stats.lognorm(0.5, scale=2.718281828459045**0.1)),
    "Gamma": (dist.Gamma(*of(2.0, 3.0)), scipy.stats.gamma(2.0, scale=1 / 3)),
    "InverseGamma": (dist.InverseGamma(*of(3.0, 2.0)), scipy.stats.invgamma(3.0, scale=2.0)),
    "Beta": (dist.Beta(*of(2.0, 3.0)), scipy.stats.beta(2.0, 3.0)),
    "Exponential": (dist.Exponential(*of(2.0)), scipy.stats.expon(scale=0.5)),
    "StudentT": (dist.StudentT(*of(5.0, 1.0, 2.0)), scipy.stats.t(5.0, 1.0, 2.0)),
    "Uniform": (dist.Uniform(*of(1.0, 3.0)), scipy.stats.uniform(1.0, 2.0)),
    "Laplace": (dist.Laplace(*of(1.0, 2.0)), scipy.stats.laplace(1.0, 2.0)),
    "HalfNormal": (dist.HalfNormal(*of(2.0)), scipy.stats.halfnorm(scale=2.0)),
    "HalfCauchy": (dist.HalfCauchy(*of(2.0)), scipy.stats.halfcauchy(scale=2.0)),
    "Cauchy": (dist.Cauchy(*of(1.0, 2.0)), scipy.stats.cauchy(1.0, 2.0)),
}
DESCENDING = {"InverseGamma"}  # a decreasing function of a variable is as good as an increasing one


@pytest.mark.parametrize("name", ONE_DIMENSION)
def test_quantiles_against_scipy(name: str) -> None:
    fn, expected = ONE_DIMENSION[name]
    found = value_at(fn, SCORES)
    assert found is not None
    chances = scipy.stats.norm.cdf(-SCORES if name in DESCENDING else SCORES)
    torch.testing.assert_close(found, torch.as_tensor(expected.ppf(chances)), rtol=1e-8, atol=1e-8)


def test_wrapped_distributions() -> None:
    scores = torch.randn(4, 2, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    loc = torch.arange(3.0).double()
    fn = dist.Normal(loc, 2.0).expand([4, 2, 3]).to_event(1).mask(torch.tensor(True))
    assert value_at(fn, scores).equal(loc + 2.0 * scores)  # type: ignore[union-attr]
    expanded = dist.Gamma(*of(2.0, 3.0)).expand([4, 2, 3])
    assert value_at(expanded, scores).shape == (4, 2, 3)  # type: ignore[union-attr]


def test_the_dtype_is_that_of_the_parameters() -> None:
    for fn in (
        dist.Normal(torch.tensor(1.0), 2.0),
        dist.Gamma(torch.tensor(1.0), 2.0),
        dist.Exponential(torch.tensor(2.0)),
    ):
        assert value_at(fn, SCORES).dtype == torch.float  # type: ignore[union-attr]


def test_several_dimensions_have_the_right_moments() -> None:
    points = IntegrationPoints.of(3, 2**12).scores[:, :3]
    covariance = torch.tensor([[2.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, 1.5]]).double()
    normal = value_at(dist.MultivariateNormal(torch.ones(3).double(), covariance), points)
    assert normal is not None
    torch.testing.assert_close(normal.T.cov(), covariance, rtol=0.02, atol=0.02)
    torch.testing.assert_close(normal.mean(0), torch.ones(3).double(), rtol=0.01, atol=0.01)
    factor = torch.tensor([[1.0], [0.5], [0.0]]).double()
    low_rank = dist.LowRankMultivariateNormal(torch.zeros(3).double(), factor, torch.ones(3).double())
    torch.testing.assert_close(value_at(low_rank, points).T.cov(), low_rank.covariance_matrix, rtol=0.02, atol=0.02)  # type: ignore[union-attr]
    shares = dist.Dirichlet(torch.tensor([0.5, 2.0, 3.0]).double())
    found = value_at(shares, points)
    assert found is not None
    torch.testing.assert_close(found.sum(1), torch.ones(len(found)).double())
    torch.testing.assert_close(found.mean(0), shares.mean, rtol=0.01, atol=0.002)
    torch.testing.assert_close(found.var(0), shares.variance, rtol=0.03, atol=0.002)


def test_distributions_without_quantiles_are_not_known() -> None:
    assert value_at(dist.VonMises(*of(0.0, 1.0)), SCORES) is None


def test_whole_numbers_among_the_parameters_do_not_count_for_the_dtype() -> None:
    found = value_at(dist.Normal(torch.tensor(1), torch.tensor(2.0, dtype=torch.double)), SCORES)
    assert found is not None
    torch.testing.assert_close(found, 1 + 2 * SCORES)


def test_shares_are_never_rounded_to_a_bound() -> None:
    for fn in (dist.Beta(*of(0.01, 0.01)), dist.Dirichlet(torch.full((3,), 0.01).double())):
        scores = SCORES if isinstance(fn, dist.Beta) else torch.stack([SCORES, -SCORES, 0 * SCORES], 1)
        found = value_at(fn, scores)
        assert found is not None
        assert 0 < float(found.min()) < 1e-9
        assert 1 - 1e-9 < float(found.max()) < 1


@pytest.mark.parametrize("name", sorted(set(ONE_DIMENSION) - {"LogNormal", "Uniform"}))
def test_scores_far_out_give_numbers(name: str) -> None:
    fn, _ = ONE_DIMENSION[name]
    far, farther = (value_at(fn, torch.tensor([-score, score]).double()) for score in (8.0, 40.0))
    assert far is not None
    assert farther is not None
    assert farther.tolist() == ([-79.0, 81.0] if name == "Normal" else far.tolist())

# SPDX-License-Identifier: Apache-2.0
r"""Values of continuous distributions at normal scores.

A standard normal variable :math:`\epsilon` becomes one of another distribution by a fixed function: for one dimension
:math:`F^{-1}(\Phi(\epsilon))`, which is :math:`\mu + \sigma \epsilon` for a normal distribution. So one set of points
serves all distributions, and a value changes smoothly with the parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from pyro.distributions.torch_distribution import ExpandedDistribution, MaskedDistribution
from scipy import special
from torch import Tensor
from torch.distributions import (
    Beta,
    Dirichlet,
    Distribution,
    Gamma,
    HalfCauchy,
    HalfNormal,
    Independent,
    LowRankMultivariateNormal,
    MultivariateNormal,
    Normal,
    StudentT,
    TransformedDistribution,
)

_FAR = 8.0  # beyond this score quantiles have no digits left, and points have no weight


def value_at(fn: Any, scores: Tensor) -> Tensor | None:
    """The value of a distribution at normal scores of its shape, in the dtype of its parameters.

    :param fn: a continuous distribution.
    :param scores: double, ``[..., *fn.batch_shape, *fn.event_shape]``.
    :returns: ``None`` for a distribution that is not known here.

    >>> value_at(Normal(torch.tensor(3.0), 2.0), torch.tensor(-1.0))
    tensor(1.)
    """
    if isinstance(fn, MaskedDistribution | Independent | ExpandedDistribution):
        return value_at(fn.base_dist, scores)
    if isinstance(fn, TransformedDistribution) and not isinstance(fn, _FOLDED):
        value = value_at(fn.base_dist, scores)
        for transform in fn.transforms if value is not None else []:
            value = transform(value)
        return value
    formula = next((formula for kind, formula in _FORMULAS.items() if isinstance(fn, kind)), _by_quantiles)
    value = formula(fn, scores if formula in _LINEAR else scores.clamp(-_FAR, _FAR))
    return None if value is None else _inside(fn, value.to(_dtype(fn)))


def _dtype(fn: Distribution) -> torch.dtype:
    parameters = [getattr(fn, name) for name in fn.arg_constraints if name in fn.__dict__ or hasattr(fn, name)]
    return next(p.dtype for p in parameters if isinstance(p, Tensor) and p.is_floating_point())


def _inside(fn: Distribution, value: Tensor) -> Tensor:
    """The value, not rounded to a bound at which a density may be infinite."""
    limits = torch.finfo(value.dtype)
    if isinstance(fn, Gamma):
        return value.clamp(min=limits.tiny)
    if isinstance(fn, Beta | Dirichlet):
        return value.clamp(limits.tiny, 1 - limits.eps)
    return value


def _by_quantiles(fn: Any, scores: Tensor) -> Tensor | None:
    """By the quantile function of the distribution, if it has one."""
    try:
        value: Tensor = fn.icdf(torch.special.ndtr(scores))
    except NotImplementedError:
        return None
    return value


def _normal(fn: Normal, scores: Tensor) -> Tensor:
    return fn.loc + fn.scale * scores


def _multivariate_normal(fn: Any, scores: Tensor) -> Tensor:
    moved: Tensor = fn.loc + (fn.scale_tril.double() @ scores[..., None])[..., 0]
    return moved


def _of_scipy(function: Callable[..., Any], *arguments: Tensor) -> Tensor:
    return torch.as_tensor(function(*(argument.numpy() for argument in arguments)))


def _gamma(fn: Gamma, scores: Tensor) -> Tensor:
    # The upper tail where scores are positive: there 1 - chance would lose all its digits.
    concentration = fn.concentration.double().expand_as(scores)
    lower = _of_scipy(special.gammaincinv, concentration, torch.special.ndtr(scores))
    upper = _of_scipy(special.gammainccinv, concentration, torch.special.ndtr(-scores))
    return torch.where(scores < 0, lower, upper) / fn.rate


def _beta(fn: Beta, scores: Tensor) -> Tensor:
    one, two = (parameter.double().expand_as(scores) for parameter in (fn.concentration1, fn.concentration0))
    lower = _of_scipy(special.betaincinv, one, two, torch.special.ndtr(scores))
    upper = 1 - _of_scipy(special.betaincinv, two, one, torch.special.ndtr(-scores))
    return torch.where(scores < 0, lower, upper)


def _dirichlet(fn: Dirichlet, scores: Tensor) -> Tensor:
    parts = _gamma(Gamma(fn.concentration.double(), torch.ones((), dtype=torch.double)), scores)
    return parts / parts.sum(-1, keepdim=True)


def _student_t(fn: StudentT, scores: Tensor) -> Tensor:
    low = _of_scipy(special.stdtrit, fn.df.double().expand_as(scores), torch.special.ndtr(-scores.abs()))
    return fn.loc - fn.scale * scores.sign() * low


_FOLDED = (HalfNormal, HalfCauchy)  # as absolute values they have a kink at 0, which quantiles have not

_LINEAR = (_normal, _multivariate_normal)

_FORMULAS: dict[type, Callable[[Any, Tensor], Tensor]] = {
    Normal: _normal,
    MultivariateNormal: _multivariate_normal,
    LowRankMultivariateNormal: _multivariate_normal,
    Gamma: _gamma,
    Beta: _beta,
    Dirichlet: _dirichlet,
    StudentT: _student_t,
}

# SPDX-License-Identifier: Apache-2.0
"""How far the data are from the model at most: an upper confidence bound of the discrepancy, on a scale from 0 to 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_level
from pyro_ksd.common.tensor_checks import check_tensor
from pyro_ksd.fit_tests.statistics import check_sample_size, check_states, diagonal_sums, u_statistic, v_statistic
from pyro_ksd.stein.summation import SteinState

_FEW = 10.0  # sequences that carry the sum of squares


@dataclass(frozen=True, eq=False)
class Closeness:
    """The relative discrepancy of the data, seen by ``V`` views; the largest one counts for all views together.

    :ivar estimate: double ``[V]``, the estimates, 0 where the U-statistic is negative.
    :ivar upper: double ``[V]``, the upper confidence bounds, at most 1.

    Both are NaN for a view of which, effectively, fewer than 10 sequences say anything.
    """

    estimate: Tensor
    upper: Tensor


def closeness(found: Sequence[SteinState], wild: Tensor, level: float = 0.05) -> Closeness:
    r"""Upper confidence bounds of the relative discrepancy of the data from the model,

    .. math:: r = \frac{\mathrm{KSD}}{\sqrt{\mathbb{E}\|\psi(x)\|^2}} =
        \frac{\|\mathbb{E}\,\psi(x)\|}{\sqrt{\mathbb{E}\|\psi(x)\|^2}} \in [0, 1] .

    It is 0 for data of the model and 1 if all sequences push in the same direction by the same amount. If a share
    :math:`\varepsilon` of the sequences does so, each with the typical strength, and the others balance each other,
    :math:`r = \varepsilon`. By the triangle inequality,
    :math:`\|\mathbb{E}\psi\| \le \|\bar\psi\| + \|\bar\psi - \mathbb{E}\psi\|`, and the wild bootstrap gives the
    :math:`1 - \alpha` quantile of the last term; its draws have the second moments of :math:`\psi` about 0, which are
    no smaller than those about the mean. Hence

    .. math:: \hat r_{\mathrm{upper}} = \frac{\sqrt V + \sqrt{V^*_{(1 - \alpha)}}}{\sqrt{\frac{1}{n} \sum_i H_{ii}}}

    with the V-statistics :math:`V` of the data and :math:`V^*` of the draws. It bounds what the kernel sees: nothing
    bounds the share of foreign sequences from above, since some might equal the model's in all features.

    The largest bound of several views needs no correction: it is too small only if that of the view with the largest
    discrepancy is.

    :param found: the Stein kernel matrices, or their sums, of ``V`` views of the same sequences.
    :param wild: ``[B, V]``, the statistics of :func:`~pyro_ksd.fit_tests.wild_bootstrap`. Draws from the model will not
        do: far from the model they vary otherwise than the data.
    :param level: :math:`\alpha`; a bound holds with probability ``1 - level``, in the limit of large samples.

    >>> from pyro_ksd.fit_tests import weighted_u_statistics, rademacher
    >>> from pyro_ksd.kernels.stein_matrices import FeatureMatrix
    >>> generator = torch.Generator().manual_seed(0)
    >>> matrix = FeatureMatrix(torch.randn(2000, 3, generator=generator).double())
    >>> wild = weighted_u_statistics(matrix, rademacher(199, 2000, generator))[:, None]
    >>> round(closeness([matrix], wild).upper.item(), 3)
    0.052
    """
    check_states("found", found)
    for own in found:
        check_sample_size(len(own))
    check_tensor("wild", wild, "B", len(found))
    check_level(level)
    bounds = [_one(own, draws, level) for own, draws in zip(found, wild.unbind(1), strict=True)]
    estimate, upper = (torch.stack(values) for values in zip(*bounds, strict=True))
    return Closeness(estimate, upper)


def _one(found: SteinState, draws: Tensor, level: float) -> tuple[Tensor, Tensor]:
    """The estimate and the bound of one view, scalars."""
    n = len(found)
    diagonal, squares = diagonal_sums(found)
    size = diagonal / n
    if not size:  # no edit changes any feature
        return size, size
    if diagonal.square() < _FEW * squares:
        return torch.full_like(size, torch.nan), torch.full_like(size, torch.nan)
    estimate = (u_statistic(found).clamp(min=0) / size).sqrt()
    rank = math.floor(round(level * (len(draws) + 1), 6))
    if not rank:
        return estimate, torch.ones_like(size)
    quantile = draws.sort(descending=True).values[rank - 1]
    noise = ((n - 1) * quantile + size).clamp(min=0) / n
    upper = (v_statistic(found).clamp(min=0).sqrt() + noise.sqrt()) / size.sqrt()
    return estimate, upper.clamp(max=1)

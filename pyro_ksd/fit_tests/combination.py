# SPDX-License-Identifier: Apache-2.0
"""One decision from several views."""

from __future__ import annotations

import torch
from torch import Tensor

from pyro_ksd.common.tensor_checks import check_tensor
from pyro_ksd.fit_tests.statistics import TIE_TOLERANCE, p_value


def harmonic_p(observed: Tensor, null: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
    r"""p-values of the views, and one overall p-value from their weighted harmonic mean.

    The smallest of several p-values is small too often, and so is their harmonic mean, which the small ones rule. It is
    compared with the harmonic means of the null draws,

    .. math::
        \hat p = \frac{\#\{b \in \{0, \dots, B\} : H_b \ge H_0\}}{B + 1}, \qquad
        H_b = \sum_v \frac{\omega_v}{\hat p_v^{(b)}},

    each p-value computed within the same pool of ``B + 1`` data sets. If the observed data set is exchangeable with the
    draws, as it is under a true model in the parametric bootstrap, the overall p-value has the exact level. Wilson
    (2019), *The harmonic mean p-value for combining dependent tests*.

    :param observed: ``[V]``, the statistics of the views.
    :param null: ``[B, V]``, null draws of the same statistics; a row is one draw, seen by all views.
    :param weights: ``[V]``, positive, how much the views count; all the same if left out.
    :returns: p-values ``[V]`` and the overall p-value, a scalar.

    >>> null = torch.tensor([[1.0, 30.0], [2.0, 10.0], [3.0, 20.0]])
    >>> views, overall = harmonic_p(torch.tensor([4.0, 5.0]), null)
    >>> views.tolist(), overall.item()  # H = 4 + 1 of the data, 1 + 4, 4/3 + 4/3, 2 + 2 of the draws
    ([0.25, 1.0], 0.5)
    """
    check_tensor("observed", observed, "V")
    check_tensor("null", null, "B", len(observed))
    weights = torch.ones(len(observed)) if weights is None else weights
    check_tensor("weights", weights, len(observed))
    pool = torch.cat([observed[None], null])
    tolerance = TIE_TOLERANCE * pool.abs().amax(0)
    ordered = pool.sort(0).values
    below = torch.searchsorted(ordered.t().contiguous(), (pool - tolerance).t().contiguous()).t()
    p = (len(pool) - below).double() / len(pool)
    harmonic = (weights.double() / p).sum(1)
    overall = (harmonic >= harmonic[0] * (1 - TIE_TOLERANCE)).sum().double() / len(pool)
    return p_value(observed, null), overall

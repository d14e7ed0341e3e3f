# SPDX-License-Identifier: Apache-2.0
"""One decision from several views."""

from __future__ import annotations

import torch
from torch import Tensor

from pyro_ksd.common.tensor_checks import check_tensor
from pyro_ksd.fit_tests.statistics import TIE_TOLERANCE, p_value


def min_p(observed: Tensor, null: Tensor) -> tuple[Tensor, Tensor]:
    r"""p-values of the views, and one overall p-value from the smallest of them.

    The smallest of several p-values is small too often, so it is compared with the smallest p-values of the null draws,
    each computed against the same pool of ``B + 1`` data sets. If the observed data set is exchangeable with the draws,
    as it is under a true model in the parametric bootstrap, the overall p-value has the exact level.

    :param observed: ``[V]``, the statistics of the views.
    :param null: ``[B, V]``, null draws of the same statistics; a row is one draw, seen by all views.
    :returns: p-values ``[V]`` and the overall p-value, a scalar.

    >>> null = torch.tensor([[1.0, 30.0], [2.0, 10.0], [3.0, 20.0]])
    >>> views, overall = min_p(torch.tensor([4.0, 5.0]), null)
    >>> views.tolist(), overall.item()
    ([0.25, 1.0], 0.5)
    """
    check_tensor("observed", observed, "V")
    check_tensor("null", null, "B", len(observed))
    pool = torch.cat([observed[None], null])
    tolerance = TIE_TOLERANCE * pool.abs().amax(0)
    ordered = pool.sort(0).values
    below = torch.searchsorted(ordered.t().contiguous(), (pool - tolerance).t().contiguous()).t()
    smallest = (len(pool) - below).amin(1)
    overall = (smallest <= smallest[0]).sum().double() / len(pool)
    return p_value(observed, null), overall

# SPDX-License-Identifier: Apache-2.0
"""Log-probabilities in single precision, whose ratios may be nothing but rounding where they are large."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

_MATTERS = 1e-3  # an error of log-ratios that can be seen in statistics


def rounding_of_ratios(values: Tensor) -> float:
    r"""By how much differences of log-probabilities may be wrong because each of them is rounded.

    .. math:: 2 \epsilon \max_i |v_i|

    with the :math:`\epsilon` of single precision, 1.2e-7; 0 for those in double precision.

    >>> rounding_of_ratios(torch.tensor([-7000.0, -torch.inf])), rounding_of_ratios(torch.tensor([-7000.0]).double())
    (0.0016689..., 0.0)
    """
    if values.dtype == torch.double or not values.is_floating_point() or not values.numel():
        return 0.0
    largest = values.detach().masked_fill(~values.isfinite(), 0.0).abs().max()
    return 2 * torch.finfo(values.dtype).eps * float(largest)


def warn_of_rounding(error: float, source: str) -> bool:
    """Warns of log-ratios that may be wrong by an error that matters.

    :param source: what gives the log-probabilities, as the first words of the warning.
    :returns: whether it does.
    """
    if error <= _MATTERS:
        return False
    warnings.warn(
        f"{source} gives log-probabilities in single precision that are so large that log-ratios may be wrong by "
        f"{error:.2g}, by rounding alone; compute them in double precision: torch.set_default_dtype(torch.double) "
        "before the parameters are made, or .double() for tensors and networks",
        UserWarning,
        stacklevel=3,
    )
    return True

# SPDX-License-Identifier: Apache-2.0
"""The exponentiated Hamming kernel."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pyro_ksd.kernels.aligned_comparison import aligned_sum, equal_length_exp
from pyro_ksd.kernels.base import PairwiseKernel
from pyro_ksd.sequences.container import Sequences


@dataclass(frozen=True, eq=False)
class HammingKernel(PairwiseKernel):
    r"""The exponentiated Hamming kernel between sequences of the same length.

    .. math:: k(x, y) = \exp\Big(-\frac{1}{\ell} \sum_{i=1}^{\ell} [x_i \ne y_i]\Big)

    if both have the length :math:`\ell`, else 0. Two empty sequences have the value 1, so :math:`k(x, x) = 1` always.

    Baum, Kanagawa and Gretton (2023), A Kernel Stein Test of Goodness of Fit for Sequential Models. Their formula
    counts matches instead of mismatches, a slip: that function is not positive semi-definite.

    >>> x, y = Sequences.of(["hello"], "ahelo"), Sequences.of(["hallo", "hell"], "ahelo")
    >>> HammingKernel().gram(x, y)
    tensor([[0.8187, 0.0000]], dtype=torch.float64)
    """

    @property
    def zero_across_lengths(self) -> bool:
        return True

    def gram(self, x: Sequences, y: Sequences) -> Tensor:
        return equal_length_exp(aligned_sum(x, y, torch.ne), x, y)

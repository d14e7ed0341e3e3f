# SPDX-License-Identifier: Apache-2.0
"""The Gaussian kernel for symbols on a ring."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pyro_ksd.kernels.aligned_comparison import aligned_sum, equal_length_exp
from pyro_ksd.kernels.base import PairwiseKernel
from pyro_ksd.sequences.argument_checks import check_pair
from pyro_ksd.sequences.container import Sequences


@dataclass(frozen=True, eq=False)
class CyclicGaussianKernel(PairwiseKernel):
    r"""A Gaussian of the distance on the ring of codes, between sequences of the same length.

    .. math:: k(x, y) = \exp\Big(-\frac{1}{\ell} \sum_{i=1}^{\ell} d(x_i, y_i)^2\Big), \qquad
        d(a, b) = \min(|a - b|, S - |a - b|)

    if both have the length :math:`\ell`, else 0. Two empty sequences have the value 1, so :math:`k(x, x) = 1` always.
    For symbols whose codes have a cyclic order, such as the states of a random walk on a ring.

    Baum, Kanagawa and Gretton (2023), A Kernel Stein Test of Goodness of Fit for Sequential Models.

    .. warning::
        It is positive semi-definite for rings of up to 3 symbols only, where it is the Hamming kernel. Larger rings
        have negative eigenvalues as soon as the sequences are long enough: :math:`\ell \ge 2` for 4 symbols,
        :math:`\ell \ge 4` for 5 and 6, :math:`\ell \ge 6` for 7, :math:`\ell \ge 3` for 8, :math:`\ell \ge 5` for 9 and
        10. (It has them at the length :math:`\ell` if and only if the :math:`S` numbers :math:`\exp(-d(0, b)^2 / \ell)`
        have a negative Fourier coefficient.) With 4 symbols, the function that is :math:`1, -1, 1, -1` on the sequences
        ``00, 10, 20, 30`` has the squared norm :math:`4\,(1 - 2 e^{-1/2} + e^{-2}) = -0.31`. A discrepancy made with
        such a kernel is not a squared distance: it may be negative, or 0 for a model that does not fit. A test that
        draws its null from the model keeps its level.

    >>> x, y = Sequences.of([[0, 0]], 8), Sequences.of([[0, 7], [0, 4], [0]], 8)
    >>> CyclicGaussianKernel().gram(x, y)
    tensor([[6.0653e-01, 3.3546e-04, 0.0000e+00]], dtype=torch.float64)
    """

    @property
    def zero_across_lengths(self) -> bool:
        return True

    def gram(self, x: Sequences, y: Sequences) -> Tensor:
        check_pair(x, y)
        size = x.alphabet_size

        def squared_distance(a: Tensor, b: Tensor) -> Tensor:
            apart = (a - b).abs_()
            return torch.minimum(apart, size - apart).square_()

        return equal_length_exp(aligned_sum(x, y, squared_distance), x, y)

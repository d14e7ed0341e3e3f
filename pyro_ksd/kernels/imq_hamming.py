# SPDX-License-Identifier: Apache-2.0
"""The inverse multiquadric Hamming kernel."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_positive
from pyro_ksd.kernels.aligned_comparison import aligned_sum
from pyro_ksd.kernels.base import PairwiseKernel
from pyro_ksd.sequences.container import Sequences


@dataclass(frozen=True, eq=False)
class IMQHammingKernel(PairwiseKernel):
    r"""The inverse multiquadric of the Hamming distance, also between sequences of different lengths.

    .. math:: k(x, y) = \Big(\frac{1 + s}{s + d(x, y)}\Big)^{\beta}

    The distance :math:`d` counts the positions at which the sequences differ, both thought to go on for ever with a
    padding symbol: :math:`d = \max(\ell_x, \ell_y)` minus the number of matches. A sequence and its extension by one
    symbol are as similar as two sequences that differ in one symbol. Pairs at distance 1 have the value 1, and
    :math:`k(x, x) = ((1 + s) / s)^{\beta}`, which is above 1. The tail is heavy, so that far sequences still count.

    Amin, Weinstein and Marks (2023), A Kernelized Stein Discrepancy for Biological Sequences.

    :param scale: :math:`s > 0`; the smaller, the more a sequence is like itself only.
    :param exponent: :math:`\beta > 0`, how fast the similarity falls.

    >>> x, y = Sequences.of(["hello"], "ahelo"), Sequences.of(["hello", "hallo", "hel"], "ahelo")
    >>> IMQHammingKernel().gram(x, y)
    tensor([[1.4142, 1.0000, 0.8165]], dtype=torch.float64)
    """

    scale: float = 1.0
    exponent: float = 0.5

    def __post_init__(self) -> None:
        for name in ("scale", "exponent"):
            check_positive(name, getattr(self, name))

    def gram(self, x: Sequences, y: Sequences) -> Tensor:
        distance = aligned_sum(x, y, torch.eq).neg_().add_(torch.maximum(x.lengths[:, None], y.lengths))
        return distance.add_(self.scale).div_(1 + self.scale).pow_(-self.exponent)

# SPDX-License-Identifier: Apache-2.0
"""The gap-weighted subsequence kernel."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_number, found, is_real
from pyro_ksd.kernels.aligned_comparison import longest
from pyro_ksd.kernels.base import PairwiseKernel
from pyro_ksd.sequences.argument_checks import check_pair
from pyro_ksd.sequences.container import Sequences


@dataclass(frozen=True, eq=False)
class GapWeightedKernel(PairwiseKernel):
    r"""The string subsequence kernel: common subsequences count, those with gaps count less.

    .. math:: K_n(x, y) = \sum_u \sum_{i:\,x[i] = u} \sum_{j:\,y[j] = u} \lambda^{\mathrm{span}(i) + \mathrm{span}(j)},
        \qquad k(x, y) = \frac{K_n(x, y)}{\sqrt{K_n(x, x) K_n(y, y)}}

    over all :math:`u` of :math:`n` symbols and all increasing index tuples :math:`i, j` at which they stand;
    :math:`\mathrm{span}(i) = i_n - i_1 + 1`. So :math:`k(x, x) = 1` for sequences of at least :math:`n` symbols; a
    shorter one has the value 0 with every sequence, itself included.

    Lodhi, Saunders, Shawe-Taylor, Cristianini and Watkins (2002), Text Classification using String Kernels. Their
    recursion is run for all pairs at once, in :math:`O(n\,\ell_x \ell_y)` operations a pair.

    :param length: :math:`n`, the number of symbols of the subsequences.
    :param decay: :math:`\lambda` in (0, 1]; 1 ignores gaps, a small value leaves only contiguous subsequences.

    >>> x, y = Sequences.of(["cat"], "abcrt"), Sequences.of(["cat", "car", "bat", "c"], "abcrt")
    >>> GapWeightedKernel(length=2, decay=0.5).gram(x, y)
    tensor([[1.0000, 0.4444, 0.4444, 0.0000]], dtype=torch.float64)
    """

    length: int = 2
    decay: float = 0.5

    def __post_init__(self) -> None:
        check_number("length", self.length, least=1)
        if not is_real(self.decay) or not 0 < self.decay <= 1:
            raise ValueError(f"decay: expected a number above 0 and at most 1, found {found(self.decay)}")

    @property
    def meaning(self) -> str:
        return f"subsequences of {self.length} symbols"

    def bytes_per_pair(self, width: int) -> int:
        return 8 * ((self.length - 1) * width + 2 * self.length + 3)

    def gram(self, x: Sequences, y: Sequences) -> Tensor:
        check_pair(x, y)
        x_columns = _columns(x, -1)  # the two paddings never match
        y_columns = _columns(y, -2)
        x_norm = self._subsequences(x_columns, _columns(x, -2)).sqrt_()
        y_norm = self._subsequences(_columns(y, -1), y_columns).sqrt_()
        common = self._subsequences(x_columns[:, :, None], y_columns[:, None, :])
        # A norm is 0 or at least 1, and where it is 0 there is no common subsequence either.
        return common.div_(x_norm.clamp_(min=1.0)[:, None]).div_(y_norm.clamp_(min=1.0))

    def _subsequences(self, x: Tensor, y: Tensor) -> Tensor:
        r""":math:`K_n \lambda^{-2n}` for the pairs to which ``x [T, ...]`` and ``y [T', ...]`` broadcast.

        The factor cancels in the kernel, and without it no power of a small decay gets lost.
        """
        pairs = torch.broadcast_shapes(x.shape[1:], y.shape[1:])
        # Common subsequences of m = 1 .. n-1 symbols that end before i in x and at each j in y, discounted up to i - 1.
        ended = torch.zeros(self.length - 1, len(y), *pairs, dtype=torch.double)
        # Those that end before j too, discounted up to j - 1.
        before = ended.new_zeros(self.length - 1, *pairs)
        ending = ended.new_zeros(self.length, *pairs)  # of m = 1 .. n symbols, that end at i and at j
        total = ended.new_zeros(pairs)
        for x_symbol in x:
            before.zero_()
            for j, y_symbol in enumerate(y):
                match = x_symbol == y_symbol
                ending[0] = match
                torch.mul(before, match, out=ending[1:])
                before.mul_(self.decay).add_(ended[:, j])
                ended[:, j].mul_(self.decay).add_(ending[:-1])
                total += ending[-1]
        return total


def _columns(sequences: Sequences, pad: int) -> Tensor:
    """The symbols of all sequences, position after position: long ``[T, N]``."""
    return sequences.padded(pad)[:, : longest(sequences)].T.contiguous()

# SPDX-License-Identifier: Apache-2.0
r"""How often something occurs in a sequence, with intervals that hold for rare counts, too.

Sequences are the independent units; within one of them, occurrences may come in clusters. Let :math:`c_i` be the counts
of :math:`n` sequences, :math:`y = \sum_i c_i` and :math:`v = \frac{n}{n-1} \sum_i (c_i - \bar c)^2`, at least 1 if
:math:`y > 0`. As in Fay and Feuer (1997), *Confidence intervals for directly standardized rates*, the total is taken
for a multiple of a Poisson variable with the same mean and variance. With :math:`G^{-1}_q(s)` the quantile of the gamma
distribution with the shape :math:`s`, the interval of the total is

.. math:: \frac{v}{y}\, G^{-1}_{\alpha/2}\!\left(\frac{y^2}{v}\right)
    \quad\text{to}\quad
    \frac{v + h^2}{y + h}\, G^{-1}_{1 - \alpha/2}\!\left(\frac{(y + h)^2}{v + h^2}\right) , \qquad
    h = \frac{\sum_i c_i^2}{y} .

:math:`h` is the typical count of a sequence that has any; where none has, the lower end is 0, and :math:`h = 1`. For
single occurrences these are the exact limits of a Poisson variable, for frequent ones about
:math:`y \pm 1.96 \sqrt v`. As :math:`v` is an estimate, both ends are moved away from :math:`y` by a factor, the
quantile of a t distribution with :math:`2 y^2 / \sum_i c_i^2` degrees of freedom over that of the normal distribution.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from scipy.special import gammaincinv, ndtri, stdtrit
from torch import Tensor

from pyro_ksd.common.tensor_checks import check_tensor, shown
from pyro_ksd.fit_tests.tilting import check_coverage


@dataclass(frozen=True, eq=False)
class Rates:
    """Estimates of ``D`` numbers, none of them negative, with their intervals.

    :ivar value: double ``[D]``.
    :ivar low: double ``[D]``.
    :ivar high: double ``[D]``.
    """

    value: Tensor
    low: Tensor
    high: Tensor

    def over(self, other: Rates) -> Rates:
        r"""The ratios to independent ones, with intervals from those of both.

        .. math:: \log r \mp \sqrt{\log^2 (a / a_\text{end}) + \log^2 (b_\text{end} / b)} ,

        with the ends that make the ratio smaller or larger (Donner and Zou, 2012, *Closed-form confidence intervals for
        functions of the normal mean and standard deviation*). If one of them is 0, the interval has all ratios of
        numbers of both intervals.

        >>> two, eight = (Rates(*torch.tensor(row).double().unsqueeze(1)) for row in ([2.0, 1.0, 4.0], [8.0, 4.0, 9.0]))
        >>> ratio = two.over(eight)
        >>> [round(end.item(), 3) for end in (ratio.value, ratio.low, ratio.high)]
        [0.25, 0.124, 0.666]
        """
        ratio = self.value / other.value
        down = torch.hypot((self.value / self.low).log(), (other.high / other.value).log())
        up = torch.hypot((self.high / self.value).log(), (other.value / other.low).log())
        known = (self.low > 0) & (other.low > 0)
        low = torch.where(known, ratio * (-down).exp(), self.low / other.high)
        high = torch.where(known, ratio * up.exp(), self.high / other.low)
        return Rates(ratio, low, high)


@dataclass(frozen=True, eq=False)
class CountTotals:
    """What the mean counts of a sequence need to know of ``N`` sequences; those of parts of the data add up.

    :param size: the number ``N`` of sequences.
    :param total: double ``[D]``, the sums of the counts.
    :param squares: double ``[D]``, the sums of their squares.

    >>> one = CountTotals.of(torch.tensor([[1.0], [2.0]]).double())
    >>> both = one + one
    >>> both.size, both.total.tolist(), both.squares.tolist()
    (4, [6.0], [10.0])
    """

    size: int
    total: Tensor
    squares: Tensor

    @staticmethod
    def of(counts: Tensor) -> CountTotals:
        """Those of the counts of some sequences, double ``[N, D]``."""
        return CountTotals(len(counts), counts.sum(0), counts.square().sum(0))

    def __add__(self, other: CountTotals) -> CountTotals:
        return CountTotals(self.size + other.size, self.total + other.total, self.squares + other.squares)


def mean_counts(counts: Tensor, is_share: Tensor, coverage: float = 0.95) -> Rates:
    """The mean counts of a sequence.

    :param counts: double ``[N, D]``, those of at least two independent sequences.
    :param is_share: boolean ``[D]``, whether a count is 0 or 1, so that its mean is a share. If that is above one half,
        the interval is that of the others.
    :param coverage: how often intervals are to contain the true mean.

    >>> counts = torch.zeros(100, 2, dtype=torch.double)
    >>> counts[:4, 0] = torch.tensor([1, 1, 2, 1])
    >>> found = mean_counts(counts, torch.tensor([False, False]))
    >>> for value, low, high in zip(found.value, found.low, found.high, strict=True):
    ...     print(f"{value:.3f} ({low:.3f} to {high:.3f})")
    0.050 (0.005 to 0.151)
    0.000 (0.000 to 0.037)
    """
    check_tensor("counts", counts, "N", "D")
    return mean_rates(CountTotals.of(counts), is_share, coverage)


def mean_rates(totals: CountTotals, is_share: Tensor, coverage: float = 0.95) -> Rates:
    """The mean counts of a sequence, see :func:`mean_counts`, from their totals."""
    size = totals.size
    if is_share.shape != totals.total.shape or is_share.dtype != torch.bool:
        raise ValueError(f"is_share: expected a boolean tensor [{len(totals.total)}], found {shown(is_share)}")
    check_coverage(coverage)
    if size < 2:
        raise ValueError(f"counts: expected those of at least two sequences, found {size}")
    is_large = is_share & (totals.total / size > 0.5)
    total = torch.where(is_large, size - totals.total, totals.total)
    squares = torch.where(is_large, size - totals.squares, totals.squares)
    portion = torch.where(total > 0, squares / total, 1.0)
    spread = (squares - total.square() / size).clamp(min=0) * size / (size - 1)
    variance = torch.where(total > 0, spread.clamp(min=1.0), 0.0)
    tail = (1 - coverage) / 2
    low = torch.where(total > 0, _gamma_quantile(total, variance, tail), 0.0)
    high = _gamma_quantile(total + portion, variance + portion.square(), 1 - tail)
    freedom = torch.where(total > 0, 2 * total.square() / squares, torch.inf)
    wider = torch.as_tensor(stdtrit(freedom.numpy(), 1 - tail) / ndtri(1 - tail))
    low = (total - wider * (total - low)).clamp(min=0.0)
    high = total + wider * (high - total)
    high = torch.where(is_share, high.clamp(max=size), high)
    value, low, high = (part / size for part in (total, low, high))
    return Rates(
        torch.where(is_large, 1 - value, value),
        torch.where(is_large, 1 - high, low),
        torch.where(is_large, 1 - low, high),
    )


def _gamma_quantile(mean: Tensor, variance: Tensor, probability: float) -> Tensor:
    """Quantiles of gamma distributions."""
    return torch.as_tensor(gammaincinv((mean.square() / variance).numpy(), probability)) * variance / mean

# SPDX-License-Identifier: Apache-2.0
r"""By which factor a model must be corrected: tilts that make the Stein identity hold on the data.

For a count :math:`c` (:class:`~pyro_ksd.edits.Count`) the tilted model
:math:`p_\theta(x) \propto p(x)\,e^{\theta c(x)}` weights every occurrence by the factor :math:`e^\theta`. With Barker
weights :math:`g(t) = t / (1 + t)` its Stein identity on the data, with the count as the test function, is

.. math:: s(\theta) = \sum_i s_i(\theta) = 0, \qquad
    s_i(\theta) = \sum_{y \in \partial x_i} g\!\left(e^{\theta \Delta c}\, \frac{p(y)}{p(x_i)}\right) \Delta c,
    \qquad \Delta c = c(y) - c(x_i) ,

up to its sign the score of a logistic regression that tells data from their edits by :math:`\Delta c`, and increasing
in :math:`\theta`. Only ratios of probabilities are needed. If the data come from :math:`p_{\theta_0}`, the mean of
:math:`s_i(\theta_0)` is 0, so that the solution :math:`\hat\theta` is an M-estimator, with sequences as the independent
units. Its variance is the sandwich of the jackknife,

.. math:: \hat v = \sum_i \left(\frac{s_i(\hat\theta)}{\sum_{j \ne i} s_j'(\hat\theta)}\right)^2 ,

and intervals are those of a t distribution with :math:`2 (m - 1)` degrees of freedom, where :math:`m` sequences,
effectively, gain or lose the count, whichever are fewer (:attr:`Sides.events`). With :math:`m < m_0 = 5` the factor
cannot be estimated.

A rare n-gram has a factor only where it happens to occur often enough, and there its factor is too large. Intervals
allow for this: given that at least :math:`m_0` sequences lose the count, the number :math:`M` of those that do is about
a Poisson variable with the mean :math:`\mu` that is truncated at :math:`m_0`. The smallest means that agree with
:math:`m`, with and without the truncation, solve

.. math:: P_{\mu_0}(M \ge m \mid M \ge m_0) = \frac{\gamma(m, \mu_0)}{\gamma(m_0, \mu_0)} = \frac{\alpha}{2} ,
    \qquad P_{\mu_1}(M \ge m) = \gamma(m, \mu_1) = \frac{\alpha}{2} ,

with :math:`\gamma` the regularized incomplete gamma function, and the lower end is moved down by
:math:`\sqrt{m \hat v}\, \log(\mu_1 / \mu_0)`, which matters for :math:`m` up to about 15. With :math:`m = m_0` there is
no lower end. Where few sequences gain the count, the same is done with the upper end.

References: Zanella (2020) for the balanced weights; Hyvärinen (2007), *Some extensions of score matching*, for
estimates from ratios; Huber (1967), *The behavior of maximum likelihood estimates under nonstandard conditions*, for
the sandwich; Fithian, Sun and Taylor (2014), *Optimal inference after model selection*, for intervals that are
conditional on what was selected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from scipy.special import gammaincinv, stdtrit
from torch import Tensor
from torch.special import gammainc

from pyro_ksd.common.option_checks import check_positive, found, is_real
from pyro_ksd.edits.counts import Count, check_counts
from pyro_ksd.edits.neighborhoods import Neighborhood
from pyro_ksd.fit_tests.jumps import Jumps, jumps_of, length_jumps
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.duck_typing import required_model
from pyro_ksd.sequences.container import Sequences

LEAST_EVENTS = 5.0
"""How many sequences, effectively, must gain and must lose a count; with fewer, its factor cannot be estimated."""

ENOUGH = 100_000
"""Changes of a count after which no further sequences are looked at for it."""

_LARGEST = 12.0  # log-factors, e^12 is more than 160,000
_STEPS = 60  # bisection alone brings the largest log-factors down to rounding errors
_PRECISE = 1e-10
_ROUNDING = 1e-6
_FARTHEST = 20.0  # in logarithms; a mean that is smaller by that much counts as 0


@dataclass(frozen=True, eq=False)
class Sides:
    """How much the jumps of all sequences would gain (row 0) and lose (row 1) of each count.

    :param total: double ``[2, D]``, the sums of the gains and of the losses of the sequences.
    :param squares: double ``[2, D]``, the sums of their squares.
    """

    total: Tensor
    squares: Tensor

    @property
    def portions(self) -> Tensor:
        """The typical gain and loss of a sequence that has one, ``[2, D]``."""
        return (self.squares / self.total).nan_to_num(0.0)

    @property
    def events(self) -> Tensor:
        r"""How many sequences, effectively, gain and lose: :math:`(\sum_i a_i)^2 / \sum_i a_i^2`, ``[2, D]``."""
        return (self.total.square() / self.squares).nan_to_num(0.0)

    @property
    def are_many(self) -> Tensor:
        """Whether enough sequences gain and enough lose, boolean ``[D]``."""
        return (self.events + _ROUNDING >= LEAST_EVENTS).all(0)  # equal portions give whole numbers

    @staticmethod
    def of(gains: Tensor, losses: Tensor) -> Sides:
        """Those of some sequences, from gains and losses ``[N, D]``, none of them negative."""
        both = torch.stack([gains, losses])
        return Sides(both.sum(1), both.square().sum(1))

    @staticmethod
    def sum(parts: Sequence[Sides]) -> Sides:
        """Those of all parts together."""
        total, squares = (torch.stack([getattr(part, field.name) for part in parts]).sum(0) for field in fields(Sides))
        return Sides(total, squares)


@dataclass(frozen=True, eq=False)
class Tilts:
    """By which factor every occurrence of what is counted must be weighted, for ``D`` counts.

    All numbers are NaN where the factor cannot be estimated.

    :ivar log_factor: double ``[D]``.
    :ivar error: double ``[D]``, the standard error of the log-factor.
    :ivar low: double ``[D]``, the lower end of the interval of the log-factor.
    :ivar high: double ``[D]``, its upper end.
    :ivar events: double ``[D]``, how many sequences, effectively, gain or lose the count, whichever are fewer; see
        :attr:`Sides.events`.
    """

    log_factor: Tensor
    error: Tensor
    low: Tensor
    high: Tensor
    events: Tensor

    @property
    def is_known(self) -> Tensor:
        """Boolean ``[D]``, whether the factor could be estimated."""
        return ~self.log_factor.isnan()

    def outside(self, tolerance: float) -> Tensor:
        """Whether the whole interval of the factor lies outside of ``[1 / tolerance, tolerance]``, boolean ``[D]``."""
        reach = _log_tolerance(tolerance)
        return (self.low > reach) | (self.high < -reach)

    def within(self, tolerance: float) -> Tensor:
        """Whether the whole interval of the factor lies inside of ``[1 / tolerance, tolerance]``, boolean ``[D]``."""
        reach = _log_tolerance(tolerance)
        return (self.low >= -reach) & (self.high <= reach)


def tilts(
    model: SequenceModel,
    sequences: Sequences,
    neighborhood: Neighborhood,
    counts: Sequence[Count],
    *,
    coverage: float = 0.95,
) -> Tilts:
    """The factor of each count, as if the model were right in all else.

    The factor of the length comes from moves at the end of the sequences, see
    :func:`~pyro_ksd.fit_tests.jumps.length_jumps`. For what is frequent in large data, some of the sequences are
    enough, and the interval is that of these.

    :param sequences: all of them possible under the model.
    :param neighborhood: the edits; more of them make the estimate more precise.
    :param coverage: how often intervals are to contain the true factor.

    >>> from pyro_ksd import MarkovSequence
    >>> from pyro_ksd.edits import zs
    >>> coin = torch.tensor([0.5, 0.5])
    >>> fair = MarkovSequence.from_transitions(coin, coin.expand(2, 2), stop=0.1)
    >>> sticky = MarkovSequence.from_transitions(coin, torch.tensor([[0.8, 0.2], [0.5, 0.5]]), stop=0.1)
    >>> data = sticky.draw(200, torch.Generator().manual_seed(0))
    >>> found = tilts(fair, data, zs(), [Count("ngram", (0, 0)), Count("length")])
    >>> for factor, low, high in zip(found.log_factor.exp(), found.low.exp(), found.high.exp(), strict=True):
    ...     print(f"{factor:.2f} ({low:.2f} to {high:.2f})")
    2.56 (2.38 to 2.75)
    0.98 (0.94 to 1.03)
    """
    check_coverage(coverage)
    check_counts(counts, required_model(model).alphabet_size)
    places = [place for place, count in enumerate(counts) if count.kind != "length"]
    found = []
    if places:
        jumps = jumps_of(model, sequences, neighborhood, [counts[place] for place in places], ENOUGH)
        found.append(tilt_each(jumps, len(places), coverage))
    if len(places) < len(counts):
        found.append(tilt_each(length_jumps(model, sequences, neighborhood), 1, coverage))
        places.append(counts.index(Count("length")))
    order = torch.tensor(places).argsort()
    names = [field.name for field in fields(Tilts)]
    return Tilts(**{name: torch.cat([getattr(part, name) for part in found])[order] for name in names})


def tilt_each(jumps: Sequence[Jumps], num_counts: int, coverage: float) -> Tilts:
    """The factor of each count alone, by Newton's method within shrinking brackets, for all counts at once."""
    theta = torch.zeros(num_counts, dtype=torch.double)
    low = theta - _LARGEST
    high = theta + _LARGEST
    for _ in range(_STEPS):
        score = torch.zeros_like(theta)
        slope = torch.zeros_like(theta)
        for part in jumps:
            weight, change = _weights(part, theta)
            gained = weight * change
            score.index_add_(0, part.count, gained)
            slope.index_add_(0, part.count, gained * change * (1 - weight))
        low = torch.where(score <= 0, theta, low)
        high = torch.where(score >= 0, theta, high)
        step = theta - score / slope
        inside = (step >= low) & (step <= high)  # false for NaN, where nothing changes
        new = torch.where(inside, step, (low + high) / 2)
        done = (new - theta).abs().max() < _PRECISE
        theta = new
        if done:
            break
    return tilts_at(jumps, theta, coverage)


def tilts_at(jumps: Sequence[Jumps], theta: Tensor, coverage: float) -> Tilts:
    """Errors, intervals and events of single tilts.

    :param theta: double ``[D]``, the log-factors that :func:`tilt_each` finds; NaN where they are not known.
    """
    slope = torch.zeros_like(theta)
    for part in jumps:
        weight, _ = _weights(part, theta)
        slope.index_add_(0, part.count, weight * (1 - weight) * part.change.double().square())
    variance = torch.zeros_like(theta)
    sides = []
    for part in jumps:
        weight, change = _weights(part, theta)
        gained = weight * change
        own = part.sums(gained * change * (1 - weight), len(theta))
        gains = part.sums(gained.clamp(min=0), len(theta))
        losses = part.sums(-gained.clamp(max=0), len(theta))
        variance += ((gains - losses) / (slope - own)).square().sum(0)
        sides.append(Sides.of(gains, losses))
    return _intervals(theta, variance.sqrt(), Sides.sum(sides), coverage)


def tilt_jointly(jumps: Sequence[Jumps], counts: Sequence[int], coverage: float) -> Tilts:
    r"""The factors of some counts together: :math:`p(x) \exp(\sum_k \theta_k c_k(x))` satisfies all Stein identities.

    They minimize the convex function :math:`\sum_i \sum_y \log(1 + e^{\theta \cdot \Delta c}\, p(y) / p(x_i))`. What
    one n-gram does to the others is taken into account, so that side effects of a fault get the factor 1.
    """
    changes = [part.matrix(counts) for part in jumps]
    theta = torch.zeros(len(counts), dtype=torch.double)
    value, score, slope = _potential(jumps, changes, theta)
    for _ in range(_STEPS):
        step = torch.linalg.lstsq(slope, score).solution
        size = 1.0
        while (trial := _potential(jumps, changes, theta - size * step))[0] > value and size > _PRECISE:
            size /= 2
        theta = theta - size * step
        value, score, slope = trial
        if bool((step.abs() < _PRECISE).all()) or size <= _PRECISE:
            break
    variance = torch.zeros_like(theta)
    sides = []
    for part, change in zip(jumps, changes, strict=True):
        log_ratio = part.log_ratio + change @ theta
        weight = log_ratio.sigmoid()
        spread = change * (weight * (1 - weight))[:, None]
        own = part.by_owner(spread[:, :, None] * change[:, None])
        gained = weight[:, None] * change
        gains = part.by_owner(gained.clamp(min=0))
        losses = part.by_owner(-gained.clamp(max=0))
        left = torch.linalg.lstsq(slope - own, (gains - losses)[..., None]).solution[..., 0]
        variance += left.square().sum(0)
        sides.append(Sides.of(gains, losses))
    return _intervals(theta, variance.sqrt(), Sides.sum(sides), coverage)


def _potential(jumps: Sequence[Jumps], changes: Sequence[Tensor], theta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The convex function, its gradient ``[D]`` and its Hessian matrix ``[D, D]``."""
    value = theta.new_zeros(())
    score = torch.zeros_like(theta)
    slope = theta.new_zeros(len(theta), len(theta))
    for part, change in zip(jumps, changes, strict=True):
        log_ratio = part.log_ratio + change @ theta
        weight = log_ratio.sigmoid()
        value = value + torch.nn.functional.softplus(log_ratio).sum()
        score += weight @ change
        slope += change.T @ (change * (weight * (1 - weight))[:, None])
    return value, score, slope


def _intervals(theta: Tensor, error: Tensor, sides: Sides, coverage: float) -> Tilts:
    """Intervals by the t distribution, wider where a side has few events and is known only for having enough."""
    events = sides.events.amin(0)
    known = sides.are_many & (theta.abs() < _LARGEST - 1) & error.isfinite()
    quantile = stdtrit((2 * (events - 1)).clamp(min=1).numpy(), (1 + coverage) / 2)
    further = sides.events.sqrt() * selection_shift(sides.events, coverage)
    up, down = (torch.as_tensor(quantile, dtype=torch.double) + further) * error
    log_factor = theta.masked_fill(~known, math.nan)
    return Tilts(log_factor, error.masked_fill(~known, math.nan), log_factor - down, log_factor + up, events)


def selection_shift(events: Tensor, coverage: float) -> Tensor:
    r"""How much further down the mean of a Poisson number may lie that is known only if it is large enough.

    :param events: double, of any shape: the number :math:`m`, at least 5.
    :param coverage: of the interval.
    :returns: the same shape, :math:`\log(\mu_1 / \mu_0)`; infinite where no mean is too small.

    >>> selection_shift(torch.tensor([6.0, 8.0, 10.0]).double(), 0.95)
    tensor([2.6828, 0.4819, 0.1513], dtype=torch.float64)
    """
    tail = (1 - coverage) / 2
    alone = torch.as_tensor(gammaincinv(events.numpy(), tail))
    low = torch.zeros_like(events)
    high = torch.full_like(events, _FARTHEST)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        mean = alone * (-middle).exp()
        chance = gammainc(events, mean) / gammainc(torch.full_like(events, LEAST_EVENTS), mean)
        low = torch.where(chance > tail, middle, low)
        high = torch.where(chance > tail, high, middle)
    return torch.where(high < _FARTHEST, low, math.inf)


def _weights(jumps: Jumps, theta: Tensor) -> tuple[Tensor, Tensor]:
    """The Barker weights of the changes under the model tilted by their own count, and the changes, double ``[K]``."""
    change = jumps.change.double()
    log_ratio = jumps.log_ratio.index_select(0, jumps.edit)
    return log_ratio.addcmul_(change, theta.index_select(0, jumps.count)).sigmoid_(), change


def check_coverage(coverage: object) -> None:
    """Checks how often intervals are to contain the truth.

    >>> check_coverage(95)
    Traceback (most recent call last):
    ValueError: coverage: expected a number between 0 and 1, such as 0.95, found 95
    """
    if not is_real(coverage) or not 0 < coverage < 1:  # type: ignore[operator]
        raise ValueError(f"coverage: expected a number between 0 and 1, such as 0.95, found {found(coverage)}")


def _log_tolerance(tolerance: float) -> float:
    check_positive("tolerance", tolerance)
    if tolerance < 1:
        raise ValueError(f"tolerance: expected a factor of at least 1, such as 1.25, found {tolerance}")
    return math.log(tolerance)

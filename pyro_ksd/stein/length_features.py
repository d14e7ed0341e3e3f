# SPDX-License-Identifier: Apache-2.0
r"""Bounded features of the length, made for a model: Neyman's smooth test of its length distribution.

The :class:`~pyro_ksd.stein.TailBlockOperator` makes the length a birth–death process that leaves the model's length
distribution :math:`P` invariant: it grows at rate :math:`g(R_j)` and shrinks at rate :math:`g(1 / R_{j-1})`, with
:math:`R_j = P(j + 1) / P(j)`. For a function :math:`h` of the length, the solution of the Poisson equation

.. math::
    f(j + 1) - f(j) = -\frac{1}{P(j)\,g(R_j)} \sum_{k \le j} P(k)\,\bigl(h(k) - P(h)\bigr)

has :math:`A f = P(h) - h`: the Stein feature compares the mean of :math:`h` under the model with its value in the data.
It is bounded if :math:`h` is. A polynomial :math:`f` such as :math:`\ell^2` is not: where the model has a last possible
length, the few sequences of that length carry the whole sum.

The functions :math:`h` are the first Legendre polynomials of the rank :math:`u` of a length in :math:`P` (Neyman, 1937;
they see the location, the spread and the shape), and whether the length is even. Under :math:`P` each has the mean 0
and the variance 1.

Only ratios are needed. By detailed balance, the mean rate at which sequences of length :math:`j` grow, divided by the
mean rate at which those of length :math:`j + 1` shrink, is :math:`R_j` under a true model (Bennett, 1976). They are
bounded, so that a few sequences which hardly ever stop do not carry the means. Beyond the lengths of data, walks tell
the ratios, see :mod:`~pyro_ksd.stein.unseen_lengths`: if :math:`\hat P` ended with the data, those that were cut at a
length would look right. The Stein identity holds for every :math:`f`: an error of :math:`\hat P` costs power, not
level.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from pyro_ksd.edits.neighborhoods import Neighborhood
from pyro_ksd.edits.weighted_edits import chunk_rows
from pyro_ksd.kernels.length import LengthDistribution, LengthKernel
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.balancing import Balancing
from pyro_ksd.stein.operators import block_ratios
from pyro_ksd.stein.unseen_lengths import LogStep, log_steps_beyond, spread_of
from pyro_ksd.stein.weighting import edits_with_ratios

FEATURE_NAMES = ("length", "spread of the length", "skewness of the length", "peakedness of the length", "even length")
"""What the features are called: four Legendre polynomials of the rank, and the parity."""

_ENOUGH = 10  # sequences of one length, whose mean ratio needs no others
_NEAREST = 30  # sequences of similar lengths, where there are fewer
_UNSEEN = 3.0  # sequences longer, or shorter, than all draws may make up this many of them
_REST = 0.01  # a geometric tail may have this share of all lengths before it need not be walked
_FAR = 100  # lengths up to which, at least, is walked
_MOST_LENGTHS = 20_000  # of a geometric tail
_NEGLIGIBLE = 1e-9


def length_kernel(
    model: SequenceModel, sequences: Sequences, tail: Neighborhood, balancing: Balancing, *, drawn: bool = False
) -> LengthKernel | None:
    """The kernel of these features for a model.

    :param sequences: draws from the model, or the data in place of them; all of them possible under the model.
    :param tail: what replaces, appends and removes the last symbol, see :attr:`pyro_ksd.edits.Neighborhood.tail`.
    :param balancing: of the operator.
    :param drawn: whether they are draws: then hardly any lengths of the model lie beyond theirs.
    :returns: ``None`` if the edits cannot change some lengths.

    >>> from pyro_ksd.edits import zs
    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.stein import barker
    >>> walk = random_walk(3, mean_length=8)
    >>> drawn = walk.draw(1000, torch.Generator().manual_seed(0))
    >>> kernel = length_kernel(walk, drawn, zs(locations=1), barker, drawn=True)
    >>> kernel.distribution.shortest, round(kernel.distribution.mean, 1)
    (1, 8.0)
    """
    distribution = length_distribution(model, sequences, tail, drawn=drawn)
    if distribution is None:
        return None
    table = smooth_features(distribution, balancing)
    shortest = distribution.shortest
    last = len(table) - 1

    def feature(lengths: Tensor) -> Tensor:
        place = (lengths - shortest)[:, None]
        before = place.clamp(max=0) * (table[1] - table[0])
        beyond = (place - last).clamp(min=0) * (table[-1] - table[-2])
        return table[place[:, 0].clamp(0, last)] + before + beyond

    return LengthKernel(feature, FEATURE_NAMES, distribution)


def length_distribution(
    model: SequenceModel, sequences: Sequences, tail: Neighborhood, *, drawn: bool = False
) -> LengthDistribution | None:
    """The length distribution of a model, estimated from its ratios at sequences.

    Ratios tell how probable each length is beside the next one. Beyond the lengths of draws there are hardly any, and
    the last ratio goes on. Beyond those of data there may be any share of the model's lengths, so walks look for them
    (:func:`~pyro_ksd.stein.unseen_lengths.log_steps_beyond`), until a geometric tail has no more than 1 %.

    :param sequences: draws from the model, or the data in place of them; all of them possible under the model.
    :param tail: what replaces, appends and removes the last symbol.
    :param drawn: whether they are draws.
    :returns: ``None`` if the edits cannot change some lengths; lengths with negligible probabilities at both ends are
        left out.
    """
    if not len(sequences):
        return None
    lengths = sequences.lengths
    up, down = _ratios(model, sequences, tail)
    first = int(lengths.min())
    last = int(lengths.max())
    steps = [_step(lengths, up, down, length) for length in range(first, last)]
    if not all(math.isfinite(step.value) for step in steps):
        return None  # no edit of one symbol leads from some lengths to longer ones
    inside = torch.tensor([0.0, *(step.value for step in steps)], dtype=torch.double).cumsum(0)
    inside = inside - inside.logsumexp(0)
    if drawn:
        share = _UNSEEN / len(lengths)
        above = _continued(inside[-1], _log_mean(lengths, up, last), 10 * last + 100, share, least=int(first == last))
        below = _continued(inside[0], _log_mean(lengths, down, first), first, share)
    else:
        walks = _walks(model, sequences, tail, up, down)
        above = _unseen(inside[-1], _end_step(lengths, up, down, last), walks[0], 4 * last + _FAR)
        below = _unseen(inside[0], _end_step(lengths, down, up, first), walks[1], first).up_to(first)
    log_p = torch.cat([below.log_p.flip(0), inside, above.log_p])
    spreads = torch.tensor([step.spread for step in steps], dtype=torch.double)
    doubt = torch.cat([log_p.new_zeros(1), below.spread.flip(0), spreads, above.spread]).cumsum(0)
    probability = (log_p - log_p.logsumexp(0)).exp()
    known = (probability > _NEGLIGIBLE).nonzero()[:, 0]
    begin, end = int(known[0]), int(known[-1]) + 1
    if end - begin < 2:
        return None
    probability = probability[begin:end].clamp(min=_NEGLIGIBLE)
    return LengthDistribution(
        first - len(below.log_p) + begin,
        probability / probability.sum(),
        None if drawn else doubt[begin:end],
        above.is_complete,
    )


@dataclass(frozen=True, eq=False)
class _Unseen:
    """Lengths on one side of all that were seen, the nearest one first.

    :param log_p: double ``[M]``, the logs of their probabilities; all that were seen have 1 together.
    :param spread: double ``[M]``, that of each log-ratio, see :class:`~pyro_ksd.stein.unseen_lengths.LogStep`.
    :param is_complete: whether hardly any others are missing.
    """

    log_p: Tensor
    spread: Tensor
    is_complete: bool = True

    def up_to(self, count: int) -> _Unseen:
        """The nearest lengths."""
        return replace(self, log_p=self.log_p[:count], spread=self.spread[:count])


def _ratios(model: SequenceModel, sequences: Sequences, tail: Neighborhood) -> tuple[Tensor, Tensor]:
    """How probable longer and shorter sequences are; ``[N]`` each.

    :returns: ``log Σ_s p(x s) / p(x)``, and ``log p(x') / Σ_s p(x' s)`` with ``x'`` without the last symbol of ``x``.
    """
    ups = []
    downs = []
    for rows in chunk_rows(tail, sequences):
        part = sequences[rows].narrowed()
        edits, log_ratio = edits_with_ratios(model.for_rows(rows.start), tail, part)
        ratios = edits.split(log_ratio)[:3]
        blocks = edits.blocks[:3]
        up, siblings = block_ratios(blocks, ratios, len(part))
        shortened = torch.full_like(up, -torch.inf).index_copy_(0, blocks[2].owner, ratios[2])
        ups.append(up)
        downs.append(shortened - siblings)
    return torch.cat(ups), torch.cat(downs)


def _step(lengths: Tensor, up: Tensor, down: Tensor, length: int) -> LogStep:
    """The estimated step from this length to the next one."""
    shrink = _log_mean(lengths, logsigmoid(down), length + 1)
    if shrink == -torch.inf:
        return LogStep(-math.inf, 0.0)
    value = _log_mean(lengths, logsigmoid(up), length) - shrink
    spreads = [spread_of(up[_near(lengths, up, length)]), spread_of(down[_near(lengths, down, length + 1)])]
    return LogStep(float(value), max(spreads))


def _end_step(lengths: Tensor, ahead: Tensor, back: Tensor, length: int) -> LogStep:
    """The estimated step from the last length that was seen to the next one, which was not.

    The rates back are those of the nearest sequences. Some of them may be impossible: these count as well, for there
    will be as many among the longer ones.

    :param ahead: ``[N]``, the log-ratios of the sequences in this direction.
    :param back: ``[N]``, those in the other one.
    """
    forth = _log_mean(lengths, logsigmoid(ahead), length)
    distance = (lengths - length).abs()
    nearest = distance <= distance.sort().values[:_NEAREST][-1]
    value = float(forth) - float(logsigmoid(back[nearest]).logsumexp(0) - nearest.sum().double().log())
    if forth == -torch.inf:
        value = -math.inf
    return LogStep(value, max(spread_of(ahead[_near(lengths, ahead, length)]), spread_of(back[nearest])))


def _log_mean(lengths: Tensor, logs: Tensor, length: int) -> Tensor:
    """The log of the mean at sequences of this length, or of the nearest ones if there are few of them.

    :param logs: ``[N]``, the logs of what is averaged.
    """
    near = _near(lengths, logs, length)
    return logs[near].logsumexp(0) - near.sum().double().log() if near.any() else logs.new_full((), -torch.inf)


def _near(lengths: Tensor, logs: Tensor, length: int) -> Tensor:
    """Which sequences have this length, or are the nearest possible ones if few have; boolean ``[N]``.

    :param logs: ``[N]``, ``-inf`` for what is impossible. There are none if all of this length are.
    """
    distance = (lengths - length).abs()
    here = distance == 0
    possible = logs > -torch.inf
    if not possible.any() or (here.any() and not (here & possible).any()):
        return torch.zeros_like(here)
    if int(here.sum()) < _ENOUGH:
        nearest = distance[possible].sort().values[:_NEAREST][-1]
        here = possible & (distance <= nearest)
    return here


def _continued(log_p: Tensor, step: Tensor, most: int, share: float, least: int = 0) -> _Unseen:
    """Lengths that were not drawn, by a constant ratio, until they make up the share.

    :param most: how many lengths at the most.
    :param least: how many lengths whatever their share.
    """
    if step == -torch.inf or most < 1:
        return _Unseen(log_p.new_zeros(0), log_p.new_zeros(0))
    values = log_p + step * torch.arange(1, most + 1)
    kept = (values.logcumsumexp(0) <= torch.tensor(share).log()) & (values > torch.tensor(_NEGLIGIBLE).log())
    found = values[: max(least, int(kept.long().cumprod(0).sum()))]
    return _Unseen(found, torch.zeros_like(found))


def _walks(
    model: SequenceModel, sequences: Sequences, tail: Neighborhood, up: Tensor, down: Tensor
) -> tuple[Iterator[LogStep], Iterator[LogStep]]:
    """Walks to longer and to shorter lengths; empty ones where edits of the last symbol do not reach all sequences."""
    lengths = sequences.lengths
    if (down[lengths > lengths.min()] == -torch.inf).any() or (up[lengths < lengths.max()] == -torch.inf).any():
        return iter(()), iter(())
    longer = log_steps_beyond(model, sequences, tail, longer=True)
    return longer, log_steps_beyond(model, sequences, tail, longer=False)


def _unseen(log_p: Tensor, step: LogStep, walk: Iterator[LogStep], most: int) -> _Unseen:
    """Lengths that were not seen, by a walk and then by a constant ratio.

    :param log_p: that of the last length that was seen.
    :param step: an estimate of the first step.
    :param most: how many steps to walk at the most.
    """
    value = float(log_p)
    total = 0.0
    walked: list[tuple[float, float]] = []
    while len(walked) < most and _log_rest(value, step.value) > total + math.log(_REST):
        found = next(walk, None)
        if found is None:
            break
        step = found
        if step.value > -math.inf:
            value += step.value
            total = float(np.logaddexp(total, value))
            walked.append((value, step.spread))
    values, spreads = torch.tensor(walked, dtype=torch.double).reshape(-1, 2).unbind(1)
    if step.value >= 0:
        return _Unseen(values, spreads, is_complete=False)
    count = min(max(int((total + math.log(_NEGLIGIBLE) - value) / step.value), 0), _MOST_LENGTHS)
    further = value + step.value * torch.arange(1, count + 1, dtype=torch.double)
    return _Unseen(torch.cat([values, further]), torch.cat([spreads, torch.full_like(further, step.spread)]))


def _log_rest(log_p: float, ratio: float) -> float:
    """The log of the probability of all further lengths, by a constant log-ratio."""
    return math.inf if ratio >= 0 else log_p + ratio - math.log(-math.expm1(ratio))


def smooth_features(distribution: LengthDistribution, balancing: Balancing) -> Tensor:
    """The features ``f`` of the lengths ``shortest, shortest + 1, ...``, double ``[M + 1, D]``.

    The last feature belongs to the parity of the length, the others to the Legendre polynomials of its rank. Beyond the
    last length they go on with the same slope.

    >>> from pyro_ksd.stein import barker
    >>> uniform = LengthDistribution(1, torch.full((5,), 0.2, dtype=torch.double))
    >>> smooth_features(uniform, barker).diff(dim=0)[:4, 0]  # no more than a few units
    tensor([2.8284, 4.2426, 4.2426, 2.8284], dtype=torch.float64)
    """
    p = distribution.probability
    targets = _targets(distribution)
    centered = (targets - p @ targets) * p[:, None]
    below = centered.cumsum(0)[:-1]
    above = centered.flip(0).cumsum(0).flip(0)[1:]
    # Both sums are the same up to their sign; the one with fewer terms has the smaller rounding error.
    in_lower_half = (p.cumsum(0) < 0.5)[:-1, None]
    gathered = torch.where(in_lower_half, below, -above)
    rate = balancing((p[1:] / p[:-1]).log())
    steps = -gathered / (p[:-1] * rate)[:, None]
    return torch.cat([steps.new_zeros(1, steps.shape[1]), steps, steps[-1:]]).cumsum(0)


def _targets(distribution: LengthDistribution) -> Tensor:
    """The functions of the length whose means are compared, double ``[M, D]``; each has about unit variance."""
    p = distribution.probability
    x = 2 * (p.cumsum(0) - p / 2) - 1
    polynomials = [torch.special.legendre_polynomial_p(x, degree) for degree in range(1, len(FEATURE_NAMES))]
    polynomials.append((distribution.lengths % 2 == 0).double())
    targets = torch.stack(polynomials, 1)
    centered = targets - p @ targets
    spread = (p @ centered.square()).sqrt()
    return centered / spread.clamp(min=_NEGLIGIBLE)

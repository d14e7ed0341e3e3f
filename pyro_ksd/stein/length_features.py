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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, pad

from pyro_ksd.common.random_numbers import seeded_generator
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
_SEED = 1_414_213_562  # always the same random symbols, so that a check does not depend on its seed
_MANY_RANDOM = 200  # sequences of random symbols
_FEW_RANDOM = 30  # of them where the model scores one at a time
_UNKNOWN = 10.0  # the standard deviation of log-ratios if none are known but those of the data: any length is possible
_NEGLIGIBLE = 1e-9
_CLOSE = 2.0  # standard errors by which moments of draws may differ from those that ratios tell
_KOLMOGOROV = 1.36  # the distance times the root of the sample size that is exceeded once in 20 times by chance


def length_kernel(
    model: SequenceModel, sequences: Sequences, tail: Neighborhood, balancing: Balancing, *, drawn: bool = False
) -> LengthKernel | None:
    """The kernel of these features for a model.

    :param sequences: draws from the model, or the data in place of them; all of them possible under the model.
    :param tail: what replaces, appends and removes the last symbol, see :attr:`pyro_ksd.edits.Neighborhood.tail`.
    :param balancing: of the operator.
    :param drawn: whether they are draws: then hardly any lengths of the model lie beyond theirs, and the distribution
        for reports must agree with theirs.
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
    reported = _reported(distribution, sequences.lengths) if drawn else distribution
    return replace(smooth_kernel(distribution, balancing), distribution=reported)


def smooth_kernel(distribution: LengthDistribution, balancing: Balancing) -> LengthKernel:
    """The kernel of these features for a distribution of the length without gaps.

    >>> from pyro_ksd.stein import barker
    >>> uniform = LengthDistribution(1, torch.full((5,), 0.2, dtype=torch.double))
    >>> smooth_kernel(uniform, barker).feature(torch.arange(1, 4))[:, 0]
    tensor([0.0000, 2.8284, 7.0711], dtype=torch.float64)
    """
    table = smooth_features(distribution, balancing)
    shortest = distribution.shortest
    last = len(table) - 1

    def feature(lengths: Tensor) -> Tensor:
        place = (lengths - shortest)[:, None]
        before = place.clamp(max=0) * (table[1] - table[0])
        beyond = (place - last).clamp(min=0) * (table[-1] - table[-2])
        return table[place[:, 0].clamp(0, last)] + before + beyond

    return LengthKernel(feature, FEATURE_NAMES, distribution)


def _reported(estimate: LengthDistribution, lengths: Tensor) -> LengthDistribution:
    """The distribution that ratios tell, or the frequencies of the lengths of draws if these contradict it.

    Ratios are exact where they do not depend on symbols. Where they do, and few draws are long, their errors add up
    from length to length and may make a tail far too thin. Frequencies have no bias.
    """
    counts = lengths.bincount().double()
    shortest = int(lengths.min())
    drawn = LengthDistribution(shortest, counts[shortest:] / len(lengths))
    values = lengths.double()
    squares = (values - drawn.mean).square()
    errors = torch.stack([values, squares]).std(1, correction=0) / math.sqrt(len(lengths))
    is_close = [
        abs(estimate.mean - drawn.mean) <= _CLOSE * float(errors[0]),
        abs(estimate.deviation**2 - drawn.deviation**2) <= _CLOSE * float(errors[1]),
        _distance(estimate, drawn) <= _KOLMOGOROV / math.sqrt(len(lengths)),
    ]
    return estimate if all(is_close) else drawn


def _distance(one: LengthDistribution, other: LengthDistribution) -> float:
    """The largest difference between two cumulative distributions."""
    last = max(found.shortest + len(found.probability) for found in (one, other))
    cumulative = [
        pad(found.probability, (found.shortest, last - found.shortest - len(found.probability))).cumsum(0)
        for found in (one, other)
    ]
    return float((cumulative[0] - cumulative[1]).abs().max())


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
    ratios = _Ratios.of(model, sequences, tail)
    up, down = ratios.up, ratios.down
    first = int(lengths.min())
    last = int(lengths.max())
    steps = [_log_step(ratios, length) for length in range(first, last)]
    if not all(map(math.isfinite, steps)):
        return None  # no edit of one symbol leads from some lengths to longer ones
    inside = torch.tensor([0.0, *steps], dtype=torch.double).cumsum(0)
    inside = inside - inside.logsumexp(0)
    if drawn:
        share = _UNSEEN / len(lengths)
        above = _continued(inside[-1], _log_mean(lengths, up, last), 10 * last + 100, share, least=int(first == last))
        below = _continued(inside[0], _log_mean(lengths, down, first), first, share)
        found = _trimmed(first - len(below), torch.cat([below.flip(0), inside, above]))
        return found if len(found.probability) > 1 else None
    walks = _walks(model, sequences, tail, ratios)
    longer = _unseen(inside[-1], _end_step(lengths, up, down, last), walks[0], 4 * last + _FAR)
    shorter = _unseen(inside[0], _end_step(lengths, down, up, first), walks[1], first).up_to(first)
    log_p = torch.cat([shorter.log_p.flip(0), inside, longer.log_p])
    begin = first - len(shorter.log_p)
    several = [ratios, *_of_random_symbols(model, sequences, tail)]
    spreads = [_spread(several, length) for length in range(first, last)]
    spread = torch.cat(
        [
            shorter.spread.clamp(min=_spread(several, first - 1)).flip(0),
            torch.tensor(spreads, dtype=torch.double),
            longer.spread.clamp(min=_spread(several, last)),
        ]
    )
    doubt = torch.cat([spread.new_zeros(1), spread]).cumsum(0)
    bounds = (_trimmed(begin, log_p - doubt), _trimmed(begin, log_p + doubt))
    found = _trimmed(begin, log_p)
    return replace(found, bounds=bounds, is_complete=longer.is_complete) if len(found.probability) > 1 else None


def _trimmed(shortest: int, log_p: Tensor) -> LengthDistribution:
    """A length distribution without lengths at both ends that are negligible.

    :param log_p: double ``[M]``, the logs of the probabilities of ``shortest, shortest + 1, ...``, up to a constant.
    """
    return LengthDistribution(shortest, log_p.softmax(0)).without_gaps()


@dataclass(frozen=True, eq=False)
class _Ratios:
    """How probable longer and shorter sequences are than some sequences.

    :param lengths: long ``[N]``, those of the sequences.
    :param up: double ``[N]``, ``log Σ_s p(x s) / p(x)``.
    :param down: double ``[N]``, ``log p(x') / Σ_s p(x' s)`` with ``x'`` without the last symbol of ``x``.
    """

    lengths: Tensor
    up: Tensor
    down: Tensor

    @staticmethod
    def of(model: SequenceModel, sequences: Sequences, tail: Neighborhood) -> _Ratios:
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
        return _Ratios(sequences.lengths, torch.cat(ups), torch.cat(downs))


def _of_random_symbols(model: SequenceModel, sequences: Sequences, tail: Neighborhood) -> list[_Ratios]:
    """The ratios of sequences with the lengths of some others and random symbols, as far as they are possible.

    Data that all have the same symbols by mistake would not show that ratios depend on symbols.
    """
    generator = seeded_generator(_SEED)
    most = _FEW_RANDOM if model.is_costly else _MANY_RANDOM
    some = sequences[torch.randperm(len(sequences), generator=generator)[:most]].narrowed()
    inside = some.lengths - int(bool(model.ends))  # the symbol at the end stays
    symbols = torch.randint(some.alphabet_size, some.tokens.shape, generator=generator)
    replaced = torch.arange(some.width) < inside[:, None]
    random = some.derived(torch.where(replaced, symbols, some.tokens), some.lengths)
    try:
        possible = random[model.log_joint(random) > -torch.inf]
        return [_Ratios.of(model, possible, tail)] if len(possible) else []
    except Exception:  # a model may fail in any way at sequences that it was not made for
        return []


def _spread(several: Sequence[_Ratios], length: int) -> float:
    """The largest standard deviation of the log-ratios between a length and the next one.

    :param several: the ratios of the sequences, and those of others with random symbols, if there are such.
    """
    if len(several) < 2:
        return _UNKNOWN
    spreads = []
    for ratios in several:
        for logs, place in ((ratios.up, length), (ratios.down, length + 1)):
            spreads.append(spread_of(logs[_near(ratios.lengths, logs, place)]))
    return max(spreads)


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


def _log_step(ratios: _Ratios, length: int) -> float:
    """The estimated log-ratio of the probabilities of the next length and of this one."""
    shrink = float(_log_mean(ratios.lengths, logsigmoid(ratios.down), length + 1))
    if shrink == -math.inf:
        return shrink
    return float(_log_mean(ratios.lengths, logsigmoid(ratios.up), length)) - shrink


def _end_step(lengths: Tensor, ahead: Tensor, back: Tensor, length: int) -> float:
    """The estimated log-ratio of the next length, which was not seen, and of the last one that was.

    The rates back are those of the nearest sequences. Some of them may be impossible: these count as well, for there
    will be as many among the longer ones.

    :param ahead: ``[N]``, the log-ratios of the sequences in this direction.
    :param back: ``[N]``, those in the other one.
    """
    forth = float(_log_mean(lengths, logsigmoid(ahead), length))
    distance = (lengths - length).abs()
    nearest = distance <= distance.sort().values[:_NEAREST][-1]
    returning = float(logsigmoid(back[nearest]).logsumexp(0)) - math.log(int(nearest.sum()))
    return forth if forth == -math.inf else forth - returning


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


def _continued(log_p: Tensor, step: Tensor, most: int, share: float, least: int = 0) -> Tensor:
    """Log-probabilities of lengths that were not drawn, by a constant ratio, until they make up the share.

    :param most: how many lengths at the most.
    :param least: how many lengths whatever their share.
    """
    if step == -torch.inf or most < 1:
        return log_p.new_zeros(0)
    values = log_p + step * torch.arange(1, most + 1)
    kept = (values.logcumsumexp(0) <= torch.tensor(share).log()) & (values > torch.tensor(_NEGLIGIBLE).log())
    return values[: max(least, int(kept.long().cumprod(0).sum()))]


def _walks(
    model: SequenceModel, sequences: Sequences, tail: Neighborhood, ratios: _Ratios
) -> tuple[Iterator[LogStep], Iterator[LogStep]]:
    """Walks to longer and to shorter lengths; empty ones where edits of the last symbol do not reach all sequences."""
    lengths = ratios.lengths
    has_no_shorter = ratios.down[lengths > lengths.min()] == -torch.inf
    has_no_longer = ratios.up[lengths < lengths.max()] == -torch.inf
    if has_no_shorter.any() or has_no_longer.any():
        return iter(()), iter(())
    longer = log_steps_beyond(model, sequences, tail, longer=True)
    return longer, log_steps_beyond(model, sequences, tail, longer=False)


def _unseen(log_p: Tensor, ratio: float, walk: Iterator[LogStep], most: int) -> _Unseen:
    """Lengths that were not seen, by a walk and then by a constant ratio.

    :param log_p: that of the last length that was seen.
    :param ratio: an estimate of the first log-ratio.
    :param most: how many steps to walk at the most.
    """
    value = float(log_p)
    total = 0.0
    spread = 0.0
    walked: list[tuple[float, float]] = []
    while len(walked) < most and _log_rest(value, ratio) > total + math.log(_REST):
        step = next(walk, None)
        if step is None:
            break
        ratio = step.value
        if ratio > -math.inf:
            value += ratio
            spread = step.spread
            total = float(np.logaddexp(total, value))
            walked.append((value, spread))
    values, spreads = torch.tensor(walked, dtype=torch.double).reshape(-1, 2).unbind(1)
    if ratio >= 0:
        return _Unseen(values, spreads, is_complete=False)
    count = min(max(int((total + math.log(_NEGLIGIBLE) - value) / ratio), 0), _MOST_LENGTHS)
    further = value + ratio * torch.arange(1, count + 1, dtype=torch.double)
    return _Unseen(torch.cat([values, further]), torch.cat([spreads, torch.full_like(further, spread)]))


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

# SPDX-License-Identifier: Apache-2.0
r"""How probable a model makes lengths beyond those of some sequences, by walks from sequence to sequence.

Let :math:`P(j)` be the probability of the length :math:`j` under the model, and let the *walkers* be sequences of
length :math:`j` that come from the model. By :math:`\mathbb{E}\bigl[\sum_s p(x \cdot s) / p(x) \mid \ell = j\bigr] =
P(j + 1) / P(j)`, the mean over the walkers of the ratios of all extensions by one symbol estimates the ratio of the two
probabilities. New walkers, drawn out of all these extensions with probabilities proportional to :math:`p(x \cdot s) /
p(x)`, come from the model, too, and have the length :math:`j + 1`. So the walk goes on, without any draw from the model
and without its normalizing constant (sequential Monte Carlo; Gordon, Salmond and Smith, 1993). Towards shorter lengths
a walker :math:`x \cdot s` becomes :math:`x` with the weight :math:`p(x) / \sum_s p(x \cdot s)`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from pyro_ksd.common.random_numbers import seeded_generator
from pyro_ksd.edits.neighborhoods import Neighborhood
from pyro_ksd.edits.splices import Edits
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.operators import block_ratios, logsumexp_by_owner
from pyro_ksd.stein.weighting import edits_with_ratios

_SEED = 1_618_033_988  # always the same walks, so that the statistics of a check do not depend on its seed
_BEGINNERS = 10  # sequences, at least, from which walkers set out
_FEWEST_WALKERS = 20
_MOST_WALKERS = 100
_MOST_EDITS = 20_000  # of all walkers at a time


class LogStep(NamedTuple):
    """The estimated log-ratio of the probabilities of a length and of the one before it.

    :param value: the log of the mean of the ratios of some sequences.
    :param spread: the standard deviation of the logs of their ratios: 0 if the length alone decides on them, so that
        the estimate is exact.
    """

    value: float
    spread: float

    @staticmethod
    def of(logs: Tensor) -> LogStep:
        """The step from the log-ratios of sequences, ``[N]``."""
        return LogStep(float(logs.logsumexp(0)) - math.log(len(logs)), spread_of(logs))


def spread_of(logs: Tensor) -> float:
    """The standard deviation of the finite ones of some logs, ``[N]``; 0 if there are none.

    >>> spread_of(torch.tensor([1.0, 3.0, -torch.inf]))
    1.0
    """
    finite = logs[logs.isfinite()]
    return float(finite.std(correction=0)) if len(finite) else 0.0


def log_steps_beyond(
    model: SequenceModel, sequences: Sequences, tail: Neighborhood, *, longer: bool
) -> Iterator[LogStep]:
    r"""The log-ratios of the probabilities of lengths beyond those of the sequences, one length after the other.

    Walkers set out from the longest sequences (at least ten, or all of them), and those that have longer ones
    ahead of them are joined by these on their way.

    :param sequences: all of them possible under the model, and about such as it makes of their lengths.
    :param tail: what replaces, appends and removes the last symbol, see :attr:`pyro_ksd.edits.Neighborhood.tail`.
    :param longer: whether to go to longer lengths than those of all sequences, or to shorter ones.
    :returns: :math:`\log P(j \pm 1) / P(j)` from the last length on; ``-inf`` is the last one. They end earlier where
        the model cannot score sequences of a length.

    >>> from itertools import islice
    >>> from pyro_ksd import MarkovSequence
    >>> from pyro_ksd.edits import zs
    >>> coin = torch.tensor([0.5, 0.5], dtype=torch.double)
    >>> model = MarkovSequence.from_transitions(coin, coin.expand(2, 2), stop=0.2)
    >>> data = Sequences.of(["abb", "aaba"])
    >>> steps = islice(log_steps_beyond(model, data, zs(locations=1), longer=True), 3)
    >>> [round(math.exp(step.value), 3) for step in steps]
    [0.8, 0.8, 0.8]
    >>> [round(math.exp(step.value), 3) for step in log_steps_beyond(model, data, zs(locations=1), longer=False)]
    [1.25, 1.25, 0.0]
    """
    generator = seeded_generator(_SEED)
    ahead = sequences.lengths if longer else -sequences.lengths
    last = int(ahead.max())
    place = int(ahead.sort(descending=True).values[:_BEGINNERS][-1])
    walkers = sequences[:0]
    while place <= last or len(walkers):
        if place <= last:
            walkers = _joined(walkers, sequences[ahead == place])
        if len(walkers):
            try:
                edits, weights = _moves(model, tail, walkers, longer)
            except Exception:  # a model may fail in any way at lengths that it was not made for
                if place <= last:
                    raise
                return
            if place >= last:
                yield LogStep.of(logsumexp_by_owner(weights, edits.owner, len(walkers)))
            walkers = _moved(walkers, edits, weights, _num_walkers(model, tail, walkers), generator)
        place += 1


def _moves(model: SequenceModel, tail: Neighborhood, walkers: Sequences, longer: bool) -> tuple[Edits, Tensor]:
    """The edits that append a symbol, or remove the last one, and the logs of their weights, ``[E]``."""
    edits, log_ratio = edits_with_ratios(model, tail, walkers)
    blocks = edits.blocks[:3]
    ratios = edits.split(log_ratio)[:3]
    if longer:
        return Edits(blocks[1:2], len(walkers)), ratios[1]
    _, siblings = block_ratios(blocks, ratios, len(walkers))
    return Edits(blocks[2:3], len(walkers)), ratios[2] - siblings[blocks[2].owner]


def _num_walkers(model: SequenceModel, tail: Neighborhood, walkers: Sequences) -> int:
    affordable = _MOST_EDITS // max(tail.edit_bound(walkers.width + 1, walkers.alphabet_size), 1)
    return _FEWEST_WALKERS if model.is_costly else min(max(affordable, _FEWEST_WALKERS), _MOST_WALKERS)


def _moved(walkers: Sequences, edits: Edits, weights: Tensor, count: int, generator: torch.Generator) -> Sequences:
    """New walkers, drawn out of the edited sequences by the logs of their weights; none if all are ``-inf``."""
    total = weights.logsumexp(0)
    if total == -torch.inf:
        return walkers[:0]
    chosen = torch.multinomial((weights - total).exp(), count, replacement=True, generator=generator)
    return edits.select(chosen.sort().values).apply(walkers).narrowed()


def _joined(walkers: Sequences, others: Sequences) -> Sequences:
    parts = [part for part in (walkers, others) if len(part)]
    return Sequences.cat(parts).narrowed() if parts else walkers

# SPDX-License-Identifier: Apache-2.0
"""Eight faults that no view was made for: a model, and data that differ from it in one respect.

Sequences have about ten symbols on average, out of four. Wherever the fault allows it, the data agree with the model in
the first symbol, in the frequencies of symbols and of pairs, and in the mean length.

The strengths of the faults were chosen while looking at the power of the check with the views ``content-1`` to
``content-3``, ``start`` and ``length``, so that it misses most of them. The power of those views here is therefore no
evidence about faults in general; the power of views that came later is.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.rejections import Sampler
from pyro_ksd.models import HiddenMarkovSequence, LinearChainMRF, MarkovSequence, SequenceDistribution
from pyro_ksd.models.distributions.sampling import cumulative, pick
from pyro_ksd.sequences.container import Sequences

MEAN_LENGTH = 10.0
STOP = 1 / MEAN_LENGTH
CLOSED = 0.5
PALINDROMES = 0.3
BURSTS = 0.02
BURST_LENGTH = 12


@dataclass(frozen=True, eq=False)
class Fault:
    """A model, and data that do not follow it.

    :param name: what a person calls it.
    :param model: the model that is tested.
    :param draw: makes the data.
    """

    name: str
    model: SequenceDistribution
    draw: Sampler


def faults() -> list[Fault]:
    """All eight."""
    chain = reversible_chain()
    hidden = sticky_hidden_chain()
    heavy = heavy_tailed_lengths()
    clockwise, counterclockwise, either_way = turning_chains()
    return [
        Fault("hidden states", best_chain(hidden), hidden.draw),
        Fault("first equals last", chain, closed_sequences),
        Fault("even lengths", chain, chain_with_lengths(*reversible_moves(), even_lengths()).draw),
        Fault("palindromes", chain, palindromes),
        Fault("mixture of chains", either_way, mixture(clockwise.draw, counterclockwise.draw)),
        Fault("period 3", average_of_periods(), periodic_sequences),
        Fault(
            "heavy-tailed lengths", reversible_chain(mean(heavy)), chain_with_lengths(*reversible_moves(), heavy).draw
        ),
        Fault("rare bursts", chain, with_bursts),
    ]


def reversible_moves() -> tuple[Tensor, Tensor]:
    """Start and transitions of a stationary chain over four symbols that looks the same backwards, [4] and [4, 4].

    Mirrored sequences then have the pairs that they should have, and the last symbol the distribution of the first.
    """
    flow = torch.tensor([[2, 4, 1, 3], [4, 1, 2, 1], [1, 2, 3, 4], [3, 1, 4, 2]], dtype=torch.double)
    weight = flow.sum(1)
    return weight / weight.sum(), flow / weight[:, None]


def reversible_chain(mean_length: float = MEAN_LENGTH) -> MarkovSequence:
    """The chain of :func:`reversible_moves` with geometric lengths."""
    return MarkovSequence.from_transitions(*reversible_moves(), stop=1 / mean_length, max_length=10_000)


def chain_with_lengths(start: Tensor, moves: Tensor, lengths: Tensor) -> LinearChainMRF:
    """A chain of order 1 whose length is independent of its symbols.

    :param start: ``[S]``, the distribution of the first symbol, all of them possible.
    :param moves: ``[S, S]``, the transitions.
    :param lengths: ``[M + 1]``, the probabilities of the lengths ``0 .. M``.
    """
    return LinearChainMRF((moves / start).log(), start.log(), lengths.log())


def mean(lengths: Tensor) -> float:
    """The mean length, from the probabilities of ``0 .. M``."""
    return float(lengths @ torch.arange(len(lengths), dtype=torch.double))


def sticky_hidden_chain() -> HiddenMarkovSequence:
    """Two hidden states that seldom change; each prefers two of the four symbols."""
    emission = torch.tensor([[0.4, 0.4, 0.1, 0.1], [0.1, 0.1, 0.4, 0.4]], dtype=torch.double)
    moves = torch.tensor([[0.9, 0.1], [0.1, 0.9]], dtype=torch.double)
    return HiddenMarkovSequence(torch.full((2,), 0.5, dtype=torch.double), moves, emission, STOP)


def best_chain(hidden: HiddenMarkovSequence) -> MarkovSequence:
    r"""The chain of order 1 with the start, the expected pairs and the expected ends of a hidden Markov model.

    The expected visits of the states are :math:`v^\top = a^\top (I - \operatorname{diag}(1 - \sigma) T)^{-1}`. It is
    the maximum likelihood chain of infinitely many sequences.
    """
    going = (1 - hidden.stop)[:, None] * hidden.transition
    visits = torch.linalg.solve(torch.eye(len(going), dtype=going.dtype) - going.T, hidden.initial)
    emitted = visits[:, None] * hidden.emission
    pairs = emitted.T @ going @ hidden.emission
    ends = emitted.T @ hidden.stop
    transition = pairs / pairs.sum(1, keepdim=True)
    return MarkovSequence.from_transitions(hidden.initial @ hidden.emission, transition, ends / emitted.sum(0))


def closed_sequences(num_sequences: int, generator: torch.Generator) -> Sequences:
    """The reversible chain; half of the sequences are drawn given that the last symbol equals the first.

    First symbols and lengths stay as they are. The other half would be closed by chance only: if all were closed, the
    repeats in short sequences would show.
    """
    drawn = reversible_chain().draw(num_sequences, generator)
    _, moves = reversible_moves()
    powers = [torch.eye(len(moves), dtype=torch.double)]
    for _ in range(drawn.width):
        powers.append(powers[-1] @ moves)
    arrival = torch.stack(powers)  # [steps, symbol, symbol that many steps later]
    tokens = drawn.tokens.clone()
    first = tokens[:, 0]
    for position in range(1, drawn.width):
        left = (drawn.lengths - 1 - position).clamp(min=0)
        weights = moves[tokens[:, position - 1]] * arrival[left, :, first]
        tokens[:, position] = pick(cumulative(weights), generator)
    chosen = torch.rand(num_sequences, 1, generator=generator) < CLOSED
    return drawn.derived(torch.where(chosen, tokens * drawn.mask, drawn.tokens), drawn.lengths)


def even_lengths() -> Tensor:
    """Twice a geometric number: even, with the mean 10 of the chain."""
    half = torch.arange(200, dtype=torch.double)
    lengths = torch.zeros(400, dtype=torch.double)
    lengths[2::2] = 2 * STOP * (1 - 2 * STOP) ** half[:-1]
    return lengths / lengths.sum()


def palindromes(num_sequences: int, generator: torch.Generator) -> Sequences:
    """The reversible chain; 30 % of the sequences go on with their first half, mirrored."""
    drawn = reversible_chain().draw(num_sequences, generator)
    position = torch.arange(drawn.width).expand(num_sequences, -1)
    opposite = (drawn.lengths[:, None] - 1 - position).clamp(min=0)
    mirrored = drawn.tokens.gather(1, torch.minimum(position, opposite)) * drawn.mask
    chosen = torch.rand(num_sequences, 1, generator=generator) < PALINDROMES
    return drawn.derived(torch.where(chosen, mirrored, drawn.tokens), drawn.lengths)


def turning_chains() -> tuple[MarkovSequence, MarkovSequence, MarkovSequence]:
    """Chains on a ring of four that prefer steps to the right, steps to the left, and their average.

    All start uniformly and stay uniform, so that pairs of the mixture are those of the average.
    """
    here = torch.eye(4, dtype=torch.double)
    right = 0.15 * here + 0.6 * here.roll(1, 1) + 0.15 * here.roll(2, 1) + 0.1 * here.roll(3, 1)
    start = torch.full((4,), 0.25, dtype=torch.double)
    one, other, average = (
        MarkovSequence.from_transitions(start, moves, stop=STOP) for moves in (right, right.T, (right + right.T) / 2)
    )
    return one, other, average


def mixture(one: Sampler, other: Sampler) -> Sampler:
    """Each sequence comes from one of two samplers, with probability 1/2 each."""

    def draw(num_sequences: int, generator: torch.Generator) -> Sequences:
        both = Sequences.cat([one(num_sequences, generator), other(num_sequences, generator)])
        second = torch.randint(2, (num_sequences,), generator=generator)
        return both[torch.arange(num_sequences) + num_sequences * second].narrowed()

    return draw


def period_probabilities() -> Tensor:
    """The distribution of the symbol at positions 0, 1 and 2 modulo 3, ``[3, 4]``.

    The first is uniform, as is the start of the model. A position 2 is less frequent than a position 1, since some
    sequences end between them; the deviations outweigh each other, so that all symbols are equally frequent.
    """
    uniform = torch.full((4,), 0.25, dtype=torch.double)
    deviation = torch.tensor([0.13, -0.13, 0.07, -0.07], dtype=torch.double)
    return torch.stack([uniform, uniform + (1 - STOP) * deviation, uniform - deviation])


def average_of_periods() -> MarkovSequence:
    """Independent symbols with the expected frequencies of :func:`periodic_sequences`."""
    average = period_probabilities()[0]
    return MarkovSequence.from_transitions(average, average.expand(4, 4), stop=STOP)


def periodic_sequences(num_sequences: int, generator: torch.Generator) -> Sequences:
    """Independent symbols whose distribution depends on the position modulo 3."""
    drawn = average_of_periods().draw(num_sequences, generator)
    phase = torch.arange(drawn.width).repeat(num_sequences) % 3
    tokens = pick(cumulative(period_probabilities())[phase], generator).view_as(drawn.tokens)
    return drawn.derived(tokens * drawn.mask, drawn.lengths)


def heavy_tailed_lengths() -> Tensor:
    r"""Probabilities of the lengths 0 to 1000 with the mean 9, where :math:`P(\ell > k)` falls as :math:`k^{-3/2}`.

    Every sequence has its own stop probability, out of a beta distribution with the parameters 3/2 and 9/2; longer
    sequences than 1000 are left out.
    """
    count = torch.arange(1000, dtype=torch.double)
    survives = ((4.5 + count) / (6 + count)).cumprod(0)
    lengths = -survives.diff(prepend=survives.new_tensor([1.0, 1.0]))
    return lengths / lengths.sum()


def with_bursts(num_sequences: int, generator: torch.Generator) -> Sequences:
    """The reversible chain; 2 % of the sequences repeat one of their symbols 12 times."""
    drawn = reversible_chain().draw(num_sequences, generator)
    uniform = torch.rand(num_sequences, dtype=torch.double, generator=generator)
    place = (uniform * drawn.lengths).long()
    chosen = torch.rand(num_sequences, generator=generator) < BURSTS
    added = torch.where(chosen, BURST_LENGTH - 1, 0)
    position = torch.arange(drawn.width + BURST_LENGTH - 1).expand(num_sequences, -1)
    back = (position - place[:, None]).clamp(min=0)
    source = position - torch.minimum(back, added[:, None])
    lengths = drawn.lengths + added
    tokens = drawn.tokens.gather(1, source.clamp(max=drawn.width - 1))
    return drawn.derived(tokens * (position < lengths[:, None]), lengths).narrowed()

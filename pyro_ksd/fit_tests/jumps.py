# SPDX-License-Identifier: Apache-2.0
r"""Jumps: the edits that change a count, with their log-ratios, from which factors are estimated.

Of the edits around the data, only those that change :math:`c` count for its factor; see
:mod:`pyro_ksd.fit_tests.tilting`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pyro_ksd.common.random_numbers import seeded_generator
from pyro_ksd.edits.counts import Count, check_counts, count_changes
from pyro_ksd.edits.neighborhoods import Neighborhood, check_neighborhood
from pyro_ksd.edits.weighted_edits import ScoredEdits, chunk_rows
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.duck_typing import required_model
from pyro_ksd.sequences.argument_checks import check_sequences
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.balancing import mpf
from pyro_ksd.stein.operators import TailBlockOperator
from pyro_ksd.stein.weighting import edits_with_ratios, scored_edits, weighted


@dataclass(frozen=True, eq=False)
class Jumps:
    """The edits around some consecutive sequences that change a count, with their log-ratios; plain data.

    :param num_sequences: how many sequences there are.
    :param owner: int ``[M]``, the sequence of each edit.
    :param log_ratio: double ``[M]``, finite.
    :param edit: int ``[K]``, the edit of each change.
    :param count: int ``[K]``, which count changes.
    :param change: int8 ``[K]``, by how much.
    """

    num_sequences: int
    owner: Tensor
    log_ratio: Tensor
    edit: Tensor
    count: Tensor
    change: Tensor

    def tilted(self, log_factors: Tensor) -> Jumps:
        """The same under the model that is tilted by all log-factors, ``[D]``."""
        shift = self.change * log_factors.index_select(0, self.count)
        return replace(self, log_ratio=self.log_ratio.index_add(0, self.edit, shift))

    def matrix(self, counts: Sequence[int]) -> Tensor:
        """The changes of some counts by each edit, double ``[M, len(counts)]``."""
        changes = self.log_ratio.new_zeros(len(self.log_ratio), len(counts))
        for place, count in enumerate(counts):
            own = self.count == count
            changes[self.edit[own].long(), place] = self.change[own].double()
        return changes

    def by_owner(self, values: Tensor) -> Tensor:
        """The sums of values of the edits, ``[M, ...]``, over each sequence: ``[N, ...]``."""
        return values.new_zeros(self.num_sequences, *values.shape[1:]).index_add_(0, self.owner, values)

    def sums(self, values: Tensor, num_counts: int) -> Tensor:
        """The sums of values of the changes, ``[K]``, over each sequence and count: ``[N, D]``."""
        place = self.owner.index_select(0, self.edit).long().mul_(num_counts).add_(self.count)
        total = values.new_zeros(self.num_sequences * num_counts).index_add_(0, place, values)
        return total.view(self.num_sequences, num_counts)


def jumps_of(
    model: SequenceModel,
    sequences: Sequences,
    neighborhood: Neighborhood,
    counts: Sequence[Count],
    enough: float = math.inf,
) -> list[Jumps]:
    """The edits that change the counts, a chunk of sequences at a time; the model is asked once about each.

    The other edits are forgotten. What is kept takes 12 bytes an edit and 9 bytes a change.

    :param sequences: all of them possible under the model.
    :param enough: changes of a count after which no further sequences are looked at for it, which bounds the memory.
        Sequences come in random order, always the same one, as data may be sorted.

    >>> from pyro_ksd.edits import zs
    >>> from pyro_ksd.examples import random_walk
    >>> [jumps] = jumps_of(random_walk(3), Sequences.of(["abca", "bb"]), zs(), [Count("ngram", (1, 1))])
    >>> jumps.change.tolist()  # becomes abba, bbca; then the same by insertion; then bb loses its pair or gets another
    [1, 1, -1, -1, -1, -1, 1, 1, -1, -1, -1]
    """
    model = required_model(model)
    check_sequences("sequences", sequences)
    check_neighborhood("neighborhood", neighborhood)
    check_counts(counts, sequences.alphabet_size)
    shuffled = sequences[torch.randperm(len(sequences), generator=seeded_generator(0))]
    return enough_jumps(_scored_in_turn(model, shuffled, neighborhood), counts, enough)


def _scored_in_turn(model: SequenceModel, sequences: Sequences, neighborhood: Neighborhood) -> Iterator[ScoredEdits]:
    for rows in chunk_rows(neighborhood, sequences):
        part = sequences[rows].narrowed()
        yield ScoredEdits(rows.start, part, *edits_with_ratios(model, neighborhood, part))


def enough_jumps(chunks: Iterable[ScoredEdits], counts: Sequence[Count], enough: float) -> list[Jumps]:
    """The edits of chunks in random order that change the counts, until there are enough of them.

    :param enough: changes of a count after which no further chunks are looked at for it. No chunk is taken after there
        are so many of all counts.

    >>> from pyro_ksd.edits import zs
    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.stein.weighting import scored_edits
    >>> chunks = [scored_edits(random_walk(3), zs(), Sequences.of([word], "abc")) for word in ("abca", "bb")]
    >>> [len(jumps.change) for jumps in enough_jumps(chunks, [Count("ngram", (1, 1)), Count("ngram", (0,))], enough=4)]
    [14, 8]
    >>> [len(jumps.change) for jumps in enough_jumps(chunks, [Count("ngram", (0,))], enough=4)]
    [11]
    """
    found: list[Jumps] = []
    changes = torch.zeros(len(counts), dtype=torch.long)
    for scored in chunks:
        active = (changes < enough).nonzero().squeeze(1)
        jumps = scored_jumps(scored, [counts[place] for place in active.tolist()])
        own = active[jumps.count.long()]
        changes += own.bincount(minlength=len(counts))
        found.append(replace(jumps, count=own.int()))
        if bool((changes >= enough).all()):
            break
    return found


def scored_jumps(scored: ScoredEdits, counts: Sequence[Count]) -> Jumps:
    """The edits of a chunk that change the counts.

    >>> from pyro_ksd.edits import zs
    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.stein.weighting import scored_edits
    >>> scored = scored_edits(random_walk(3), zs(), Sequences.of(["abca"]))
    >>> scored_jumps(scored, [Count("ngram", (1, 1))]).change.tolist()  # to abba and bbca; abbca
    [1, 1, 1]
    """
    edits = scored.edits
    edit, count, change = count_changes(counts, scored.sequences, edits)
    possible = scored.log_ratio[edit] > -torch.inf
    touched, place = edit[possible].unique(return_inverse=True)
    return Jumps(
        len(scored.sequences),
        edits.owner[touched].int(),
        scored.log_ratio[touched],
        place.int(),
        count[possible].int(),
        change[possible].to(torch.int8),
    )


def length_jumps(model: SequenceModel, sequences: Sequences, neighborhood: Neighborhood) -> list[Jumps]:
    r"""Growth and shrinkage at the end of each sequence, averaged over the last symbol, as changes of the length.

    These are the moves of the :class:`~pyro_ksd.stein.TailBlockOperator`: the log-ratio of growing is
    :math:`\log P_\uparrow(x) - \log p(x)`. Whether the model is right about symbols hardly matters to them.

    :param neighborhood: the edits whose :attr:`~pyro_ksd.edits.Neighborhood.tail` is taken.

    >>> from pyro_ksd.edits import zs
    >>> from pyro_ksd.examples import random_walk
    >>> [jumps] = length_jumps(random_walk(3, mean_length=4), Sequences.of(["abca", "b"], "abc"), zs())
    >>> jumps.log_ratio.exp(), jumps.change  # the walk goes on with probability 3/4, and is never empty
    (tensor([0.7500, 0.7500, 1.3333], dtype=torch.float64), tensor([ 1,  1, -1], dtype=torch.int8))
    """
    tail = neighborhood.tail
    chunks = chunk_rows(tail, sequences)
    return scored_length_jumps(
        [scored_edits(model, tail, sequences[rows].narrowed(), rows.start) for rows in chunks], tail
    )


def scored_length_jumps(chunks: Iterable[ScoredEdits], tail: Neighborhood) -> list[Jumps]:
    """The same from the edits of a tail that a model has scored, a chunk at a time."""
    operator = TailBlockOperator(mpf, tail)
    found = []
    for scored in chunks:
        moves = weighted(scored, operator)
        owners = torch.arange(len(moves.sequences), dtype=torch.int32)
        sides = []
        for sign in (1, -1):
            own = [
                weights if block.growth * sign > 0 else torch.zeros_like(weights)
                for block, weights in zip(moves.edits.blocks, moves.edits.split(moves.weights), strict=True)
            ]
            root = moves.edits.sum_by_owner(torch.cat(own))  # these weights are square roots of ratios
            sides.append((owners[root > 0], 2 * root[root > 0].log(), sign))
        owner = torch.cat([owner for owner, _, _ in sides])
        change = torch.cat([torch.full_like(owner, sign, dtype=torch.int8) for owner, _, sign in sides])
        edit = torch.arange(len(owner), dtype=torch.int32)
        log_ratio = torch.cat([log_ratio for _, log_ratio, _ in sides])
        found.append(Jumps(len(owners), owner, log_ratio, edit, torch.zeros_like(edit), change))
    return found

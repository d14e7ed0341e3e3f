# SPDX-License-Identifier: Apache-2.0
"""The edits of an operator around sequences, weighted by the model, a chunk of sequences at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from time import perf_counter

import torch
from torch import Tensor

from pyro_ksd.edits import Edits, SpliceBlock
from pyro_ksd.models.base import SequenceModel, model_from
from pyro_ksd.models.several import Several
from pyro_ksd.operators import Operator
from pyro_ksd.sequences import Sequences

EDITS_PER_CHUNK = 2**17
"""How many edits are held at once; enough to keep tensors busy, few enough to stay in the processor's cache."""

_FEW, _RARE = 5.0, 0.05  # jumps of all sequences together, and of one on average


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some consecutive sequences with their edits.

    :ivar begin: the row of the first sequence in the data.
    :ivar sequences: the sequences, no wider than they need to be.
    :ivar edits: their edits; owners count from the first sequence of the chunk.
    :ivar weights: double ``[E]``, the operator's weights of the edits; ``[K, E]`` under ``K`` models.
    """

    begin: int
    sequences: Sequences
    edits: Edits
    weights: Tensor

    @property
    def rows(self) -> slice:
        """Where the sequences stand in the data."""
        return slice(self.begin, self.begin + len(self.sequences))


class Jumps:
    """All jumps of one operator from the sequences, chunk by chunk, so that memory never holds all edits.

    :param find: gives the edits around consecutive sequences and their weights, ``[E]`` or ``[K, E]``, from the row of
        the first one in the data and the sequences; see :meth:`under` and :meth:`under_each`.
    :param keep: whether to keep the weights, so that a second pass does not ask the model again.
    :ivar rate: the sum of all weights, once a pass is over.
    :ivar seconds: the time that the model took.
    """

    def __init__(
        self,
        find: Callable[[int, Sequences], tuple[Edits, Tensor]],
        operator: Operator,
        sequences: Sequences,
        *,
        keep: bool = False,
    ) -> None:
        self.operator, self.sequences = operator, sequences
        self.rate, self.seconds = 0.0, 0.0
        self._find, self._keep = find, keep
        self._kept: list[Tensor] = []

    @staticmethod
    def under(model: SequenceModel, operator: Operator, sequences: Sequences, *, keep: bool = False) -> Jumps:
        """The jumps under one model."""

        def find(begin: int, part: Sequences) -> tuple[Edits, Tensor]:
            return weighted_edits(model_from(model, begin), operator, part)

        return Jumps(find, operator, sequences, keep=keep)

    @staticmethod
    def under_each(models: Several, operator: Operator, sequences: Sequences) -> Jumps:
        """The jumps under each of several models, whose weights are found together and kept."""

        def find(begin: int, part: Sequences) -> tuple[Edits, Tensor]:
            edits = operator.neighborhood.edits(part)
            found = models.log_ratios(part, edits)
            for log_ratio in found:
                check_log_ratio(part, edits, log_ratio)
            return edits, torch.stack([operator.weights(part, edits, log_ratio) for log_ratio in found])

        return Jumps(find, operator, sequences, keep=True)

    def of_model(self, index: int) -> Jumps:
        """Those under one of several models, once a pass is over."""
        own = copy(self)
        own._kept = [weights[index] for weights in self._kept]
        own.rate = float(sum(weights.sum() for weights in own._kept))
        return own

    def __iter__(self) -> Iterator[Chunk]:
        if self._kept:
            for (begin, part), weights in zip(self._parts(), self._kept, strict=True):
                yield Chunk(begin, part, self.operator.neighborhood.edits(part), weights)
            return
        self.rate = 0.0
        kept = []
        for begin, part in self._parts():
            started = perf_counter()
            edits, weights = self._find(begin, part)
            self.seconds += perf_counter() - started
            self.rate += float(weights.sum())
            if self._keep:
                kept.append(weights)
            yield Chunk(begin, part, edits, weights)
        self._kept = kept

    @property
    def hardly_any(self) -> bool:
        """Whether a pass has found that fewer than a handful of jumps are to be expected in all of the data."""
        return self.rate < min(_FEW, _RARE * len(self.sequences))

    def at_once(self) -> Chunk:
        """All jumps in one chunk, for kernels that compare every pair of neighbors."""
        chunks = list(self)
        blocks = [
            SpliceBlock(block.owner + chunk.begin, block.start, block.removed, block.inserted)
            for chunk in chunks
            for block in chunk.edits.blocks
        ]
        edits = Edits(tuple(blocks), len(self.sequences))
        return Chunk(0, self.sequences, edits, torch.cat([chunk.weights for chunk in chunks], -1))

    def _parts(self) -> Iterator[tuple[int, Sequences]]:
        """The sequences in consecutive parts with about ``EDITS_PER_CHUNK`` edits each, and their first rows."""
        edits = edit_bounds(self.operator, self.sequences).cumsum(0)
        counts = (edits // EDITS_PER_CHUNK).unique_consecutive(return_counts=True)[1]
        begin = 0
        for count in counts.tolist():
            yield begin, self.sequences[begin : begin + count].narrowed()
            begin += count


def edit_bounds(operator: Operator, sequences: Sequences) -> Tensor:
    """At most how many edits there are around each sequence, long ``[N]``."""
    lengths, inverse = sequences.lengths.unique(return_inverse=True)
    bounds = [operator.neighborhood.edit_bound(length, sequences.alphabet_size) for length in lengths.tolist()]
    return torch.tensor(bounds, device=sequences.device)[inverse]


def weighted_edits(model: SequenceModel, operator: Operator, sequences: Sequences) -> tuple[Edits, Tensor]:
    """The edits of the operator around the sequences, and their weights, double ``[E]``.

    :raises ValueError: if the model gives NaN to an edit.
    """
    edits = operator.neighborhood.edits(sequences)
    log_ratio = model.log_ratio(sequences, edits).double()
    check_log_ratio(sequences, edits, log_ratio)
    return edits, operator.weights(sequences, edits, log_ratio)


def check_log_ratio(sequences: Sequences, edits: Edits, log_ratio: Tensor) -> None:
    """Checks that the model gave a number to every edit.

    :raises ValueError: showing one to which it gave NaN.
    """
    if log_ratio.isnan().any():
        edit = log_ratio.isnan().nonzero()[:1, 0]
        row = int(edits.owner[edit])
        raise ValueError(
            f"expected a log-ratio for every edit, found NaN where sequence {row}, "
            f"{sequences[row : row + 1].to_lists()[0]}, becomes {edits.select(edit).apply(sequences).to_lists()[0]}; "
            "the model gives NaN there"
        )

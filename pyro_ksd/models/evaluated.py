# SPDX-License-Identifier: Apache-2.0
"""Models that are known by their log-joint alone: ratios by evaluating every edited sequence."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from pyro_ksd.edits import Edits
from pyro_ksd.sequences import Sequences

CHUNK = 3 * 2**12
"""How many sequences are evaluated at once. All chunks but the last have this size, so that plans made for one shape
serve again."""

_EDITS = 2**16  # edited sequences built at once


class EvaluatedModel(ABC):
    """A model whose ratios are differences of log-joints of whole sequences.

    Every edited sequence is evaluated once, whichever sequences it is a neighbor of, in chunks of sequences of similar
    length.
    """

    def __init__(self, alphabet_size: int) -> None:
        self._alphabet_size = alphabet_size

    @property
    def alphabet_size(self) -> int:
        """The number of symbols ``S``."""
        return self._alphabet_size

    @abstractmethod
    def _evaluate(self, sequences: Sequences) -> Tensor:
        """``log p(x)`` up to a constant, ``[N]``, of at most ``CHUNK`` sequences."""

    def log_joint(self, sequences: Sequences) -> Tensor:
        """``log p(x)`` up to a constant, double ``[N]``; ``-inf`` where the model calls a sequence impossible."""
        if sequences.alphabet_size != self.alphabet_size:
            raise ValueError(
                f"expected sequences over the model's {self.alphabet_size} symbols, found an alphabet of "
                f"{sequences.alphabet_size}; state it in Sequences.of(data, alphabet=...)"
            )
        values = torch.empty(len(sequences), dtype=torch.double, device=sequences.device)
        for rows in sequences.lengths.argsort(stable=True).split(CHUNK) if len(sequences) else ():
            values[rows] = self._evaluate(sequences[rows].narrowed()).double()
        return values

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        """``log p(y) - log p(x)`` for every edit ``y`` of its owner ``x``, double ``[E]``; every ``p(x) > 0``."""
        parts = [torch.empty(0, dtype=torch.double, device=sequences.device)]
        for index in torch.arange(len(edits), device=sequences.device).split(_EDITS):
            some = edits.select(index)
            everything = Edits.cat([Edits.identity(sequences), some]).apply(sequences)
            first, inverse = distinct(everything)
            if len(first) < len(everything):
                values = self.log_joint(everything[first])[inverse]
            else:
                values = self.log_joint(everything)
            parts.append(values[len(sequences) :] - values[some.owner])
        return torch.cat(parts)


def distinct(sequences: Sequences) -> tuple[Tensor, Tensor]:
    """A representative of each different sequence.

    :returns: the rows of the representatives, long ``[M]``, and for each sequence the index of its own, long ``[N]``.
    """
    # Sorting one number a sequence is far cheaper than sorting sequences; equal numbers are then checked to be equal
    # sequences.
    generator = torch.Generator().manual_seed(0)
    factors = torch.randint(-(2**62), 2**62, (sequences.width + 1,), generator=generator).mul_(2).add_(1).tolist()
    keys = sequences.lengths * factors[0]
    for column, factor in zip(sequences.tokens.unbind(1), factors[1:], strict=True):
        keys.add_(column, alpha=factor)
    _, inverse = keys.unique(return_inverse=True)
    first = _first_rows(inverse)
    if len(first) < len(sequences):
        rows = torch.cat([sequences.lengths[:, None], sequences.tokens], 1)
        if not torch.equal(rows[first[inverse]], rows):
            _, inverse = rows.unique(dim=0, return_inverse=True)
            first = _first_rows(inverse)
    return first, inverse


def _first_rows(group: Tensor) -> Tensor:
    """A row of each group, long ``[M]``, from the groups ``0 .. M-1`` of all rows."""
    size = int(group.max()) + 1 if len(group) else 0
    rows = torch.arange(len(group), device=group.device)
    return torch.zeros(size, dtype=torch.long, device=group.device).scatter_(0, group, rows)

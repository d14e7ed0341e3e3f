# SPDX-License-Identifier: Apache-2.0
"""Models that are known by their log-joint alone: ratios by evaluating every edited sequence."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

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
        same = torch.zeros_like(sequences.lengths)
        return evaluated_ratio(lambda found, _: self.log_joint(found), sequences, edits, same)


def evaluated_ratio(
    log_joint: Callable[[Sequences, Tensor], Tensor], sequences: Sequences, edits: Edits, which: Tensor
) -> Tensor:
    """``log p(y) - log p(x)`` for every edit ``y`` of its owner ``x``, from the log-joints of whole sequences.

    Edited sequences are built around sequences of similar length, so that little of them is padding.

    :param log_joint: takes sequences and the number of the model of each, long ``[M]``, gives ``[..., M]``.
    :param which: long ``[N]``, the number of the model of each sequence. Equal sequences of a model are evaluated once.
    :returns: ``[..., E]``
    """
    rank = torch.empty_like(sequences.lengths)
    rank[sequences.lengths.argsort(stable=True)] = torch.arange(len(rank), device=rank.device)
    indices, parts = [], []
    for some in rank[edits.owner].argsort(stable=True).split(_EDITS):
        index = some.sort().values
        chosen = edits.select(index)
        rows = chosen.owner.unique()
        indices.append(index)
        parts.append(_ratio(log_joint, sequences[rows].narrowed(), chosen.within(rows), which[rows]))
    found = torch.cat(parts, -1)
    return torch.empty_like(found).index_copy_(-1, torch.cat(indices), found)


def _ratio(
    log_joint: Callable[[Sequences, Tensor], Tensor], sequences: Sequences, edits: Edits, which: Tensor
) -> Tensor:
    everything = Edits.cat([Edits.identity(sequences), edits])
    edited, which = everything.apply(sequences), which[everything.owner]
    first, inverse = distinct(torch.cat([which[:, None], edited.lengths[:, None], edited.tokens], 1))
    values = log_joint(edited[first], which[first])
    own, neighbor = inverse[: len(sequences)].index_select(0, edits.owner), inverse[len(sequences) :]
    return values.index_select(-1, neighbor) - values.index_select(-1, own)


def distinct(rows: Tensor) -> tuple[Tensor, Tensor]:
    """A representative of each different row of numbers, long ``[N, C]``.

    :returns: the representatives, long ``[M]``, and for each row the index of its own, long ``[N]``.
    """
    # Sorting one number a row is far cheaper than sorting rows; rows of equal numbers are then checked to be equal.
    generator = torch.Generator().manual_seed(0)
    factors = torch.randint(-(2**62), 2**62, (rows.shape[1],), generator=generator).mul_(2).add_(1)
    _, inverse = (rows * factors.to(rows.device)).sum(1).unique(return_inverse=True)
    first = _first_rows(inverse)
    twins = (first[inverse] != torch.arange(len(rows), device=rows.device)).nonzero().squeeze(1)
    if not torch.equal(rows[twins], rows[first[inverse[twins]]]):
        _, inverse = rows.unique(dim=0, return_inverse=True)
        first = _first_rows(inverse)
    return first, inverse


def _first_rows(group: Tensor) -> Tensor:
    """A row of each group, long ``[M]``, from the groups ``0 .. M-1`` of all rows."""
    size = int(group.max()) + 1 if len(group) else 0
    rows = torch.arange(len(group), device=group.device)
    return torch.zeros(size, dtype=torch.long, device=group.device).scatter_(0, group, rows)

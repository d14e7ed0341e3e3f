# SPDX-License-Identifier: Apache-2.0
"""Which rows of numbers are equal."""

from __future__ import annotations

import torch
from torch import Tensor


def distinct_rows(rows: Tensor) -> tuple[Tensor, Tensor]:
    """A representative of each different row of numbers, long ``[N, C]``.

    :returns: the representatives, long ``[M]``, and for each row the index of its own, long ``[N]``.

    >>> distinct_rows(torch.tensor([[3, 1], [2, 2], [3, 1]]))[1].unique(return_counts=True)[1].sort().values
    tensor([1, 2])
    """
    # Sorting one number per row is far cheaper than sorting rows; rows of equal numbers are then checked to be equal.
    generator = torch.Generator().manual_seed(0)
    factors = torch.randint(-(2**62), 2**62, (rows.shape[1],), generator=generator).mul_(2).add_(1)
    _, inverse = (rows * factors).sum(1).unique(return_inverse=True)
    first = _first_rows(inverse)
    twins = (first[inverse] != torch.arange(len(rows))).nonzero().squeeze(1)
    if not torch.equal(rows[twins], rows[first[inverse[twins]]]):
        _, inverse = rows.unique(dim=0, return_inverse=True)
        first = _first_rows(inverse)
    return first, inverse


def _first_rows(group: Tensor) -> Tensor:
    """A row of each group, long ``[M]``, from the groups ``0 .. M-1`` of all rows."""
    size = int(group.max()) + 1 if len(group) else 0
    return torch.zeros(size, dtype=torch.long).scatter_(0, group, torch.arange(len(group)))

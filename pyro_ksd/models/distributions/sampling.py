# SPDX-License-Identifier: Apache-2.0
"""Drawing symbols, and sequences symbol by symbol."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

PAD = -1
"""The value that fills a padded sequence after its end."""


def cumulative(probs: Tensor) -> Tensor:
    """Cumulated probabilities along the last dimension, in double precision and with an exact 1 at the end."""
    total = probs.double().cumsum(-1)
    return total / total[..., -1:]


def pick(cumulated: Tensor, generator: torch.Generator | None) -> Tensor:
    """One index a row, long ``[R]``, from cumulated probabilities ``[R, n]``; never one of probability 0."""
    uniform = torch.rand(len(cumulated), 1, dtype=torch.double, generator=generator)
    return (cumulated <= uniform).sum(-1)


def grow(count: int, max_length: int, step: Callable[[int, Tensor], Tensor]) -> Tensor:
    """Sequences made symbol after symbol, long ``[count, T]`` padded with -1.

    :param step: takes the position and the rows ``[A]`` that are alive, gives their symbols ``[A]``, -1 for the end.
    """
    alive = torch.arange(count)
    columns: list[Tensor] = []
    for position in range(max_length + 1):
        symbol = step(position, alive)
        going = symbol != PAD
        alive = alive[going]
        symbol = symbol[going]
        if not len(alive):
            return torch.stack(columns, 1) if columns else alive.new_empty(count, 0)
        columns.append(alive.new_full((count,), PAD).index_copy_(0, alive, symbol))
    raise ValueError(
        f"{len(alive)} of {count} sequences were still alive at max_length={max_length}; raise max_length, or make the "
        "sequences shorter"
    )

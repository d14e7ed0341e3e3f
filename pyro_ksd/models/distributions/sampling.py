# SPDX-License-Identifier: Apache-2.0
"""Drawing symbols, and sequences symbol by symbol."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from pyro_ksd.common.compilation import is_compiled

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
    raise _too_long(len(alive), count, max_length)


def grow_chains(
    cumulated: Tensor, offset: Tensor, num_contexts: int, max_length: int, uniform: Callable[[int, Tensor], Tensor]
) -> Tensor:
    """Sequences of Markov chains that stop, long ``[N, T]`` padded with -1.

    :param cumulated: double ``[R, S + 1]``, the cumulated probabilities of the next symbol, or of the end, after each
        context.
    :param offset: long ``[N]``, where the contexts of the chain of each sequence begin; it starts with the last one.
    :param uniform: takes the position and the rows ``[A]`` that are alive, gives a random number for each, double
        ``[A]``.
    """
    base = cumulated.shape[1]
    context = torch.full_like(offset, num_contexts - 1)
    if is_compiled():
        return _compiled_chains(
            cumulated.detach().numpy(), offset.contiguous().numpy(), context.numpy(), num_contexts, max_length, uniform
        )

    def step(position: int, alive: Tensor) -> Tensor:
        reached = cumulated[offset[alive] + context[alive]] <= uniform(position, alive)[:, None]
        symbol = reached.sum(-1)
        context[alive] = (context[alive] * base + symbol) % num_contexts
        return symbol.masked_fill(symbol == base - 1, PAD)

    return grow(len(offset), max_length, step)


def _compiled_chains(
    cumulated: np.ndarray,
    offset: np.ndarray,
    context: np.ndarray,
    num_contexts: int,
    max_length: int,
    uniform: Callable[[int, Tensor], Tensor],
) -> Tensor:
    from pyro_ksd.models.distributions.compiled_chain import next_symbols

    alive = np.arange(len(offset))
    columns = [np.zeros((0, len(offset)), dtype=np.int64)]
    for position in range(max_length + 1):
        column = np.full((1, len(offset)), PAD)
        numbers = uniform(position, torch.from_numpy(alive)).numpy()
        alive = alive[: next_symbols(cumulated, offset, context, num_contexts, alive, numbers, column[0])]
        if not len(alive):
            return torch.from_numpy(np.ascontiguousarray(np.concatenate(columns).T))
        columns.append(column)
    raise _too_long(len(alive), len(offset), max_length)


def _too_long(num_alive: int, count: int, max_length: int) -> ValueError:
    return ValueError(
        f"{num_alive} of {count} sequences were still alive at max_length={max_length}; raise max_length, or make the "
        "sequences shorter"
    )

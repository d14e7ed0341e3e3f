# SPDX-License-Identifier: Apache-2.0
"""Symbols of chains in a compiled loop: the same as those of torch, with one pass over the rows."""

from __future__ import annotations

import numpy as np

from pyro_ksd.common.compilation import compiled


@compiled
def next_symbols(
    cumulated: np.ndarray,
    offset: np.ndarray,
    context: np.ndarray,
    num_contexts: int,
    alive: np.ndarray,
    uniform: np.ndarray,
    column: np.ndarray,
) -> int:
    """The next symbols of some rows, the last one of which means the end.

    :param cumulated: double ``[R, S + 1]``, cumulated probabilities.
    :param offset: long ``[N]``, where the contexts of each row begin in them.
    :param context: long ``[N]``, which is brought up to date.
    :param alive: long ``[A]``, the rows; those that go on move to the front.
    :param uniform: double ``[A]``, a random number for each of them.
    :param column: long ``[N]``, gets the symbols of the rows that go on.
    :returns: how many rows go on.
    """
    base = cumulated.shape[1]
    count = 0
    for index in range(len(alive)):
        row = alive[index]
        own = cumulated[offset[row] + context[row]]
        symbol = 0
        while own[symbol] <= uniform[index]:
            symbol += 1
        if symbol < base - 1:
            context[row] = (context[row] * base + symbol) % num_contexts
            column[row] = symbol
            alive[count] = row
            count += 1
    return count

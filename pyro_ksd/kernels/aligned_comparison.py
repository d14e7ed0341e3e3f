# SPDX-License-Identifier: Apache-2.0
"""What kernels share that compare two sequences symbol by symbol, each position with the same position."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pyro_ksd.sequences.argument_checks import check_pair
from pyro_ksd.sequences.container import Sequences

_HOT_SYMBOLS = 128  # measured: with more symbols, the loop over positions is faster than the product of one-hots
_HOT_BYTES = 32  # a pair, for the one-hots of both sides
_AT_ONCE = 2**18  # comparisons of single symbols: few sequences are compared at many positions in one step


def aligned_sum(x: Sequences, y: Sequences, compare: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    r"""Compares all pairs of sequences position by position, :math:`\sum_i D(x_i, y_i)` over the positions of both.

    For few symbols this is a product of one-hots, ``onehot(x) [N, T·S] @ D(onehot(y)) [T·S, M]``; where the one-hots
    would be large next to the ``N·M`` results, it is a loop over the positions. Both take less than 64 bytes a pair, or
    a few megabytes.

    :param compare: ``D``, a function of two long tensors of codes that broadcasts; it gives booleans or integers.
    :returns: double ``[N, M]``.

    >>> x, y = Sequences.of(["abc", "b"], "abc"), Sequences.of(["abb", "bb", ""], "abc")
    >>> aligned_sum(x, y, torch.eq).tolist()
    [[2.0, 1.0, 0.0], [0.0, 1.0, 0.0]]
    """
    check_pair(x, y)
    width = min(longest(x), longest(y))
    if _one_hot_pays(x, y, width):
        return _by_one_hot(x, y, width, compare)
    return _by_position(x, y, width, compare)


def equal_length_exp(distance: Tensor, x: Sequences, y: Sequences) -> Tensor:
    """``exp(-distance / ℓ)`` for pairs of the same length ``ℓ``, 0 for all others; overwrites ``distance [N, M]``."""
    length = x.lengths.clamp(min=1)[:, None]  # two empty sequences: exp(-0 / 1) = 1
    value = distance.div_(-length).exp_()
    return value if _one_length(x, y) else value.mul_(x.lengths[:, None] == y.lengths)


def longest(sequences: Sequences) -> int:
    """The number of symbols of the longest sequence, 0 if there is none."""
    return int(sequences.lengths.amax()) if len(sequences) else 0


def _one_length(x: Sequences, y: Sequences) -> bool:
    lengths = torch.cat([x.lengths, y.lengths])
    return bool((lengths == lengths[:1]).all())


def _one_hot_pays(x: Sequences, y: Sequences, width: int) -> bool:
    size = x.alphabet_size
    place = 8 * size + 16  # bytes of a one-hot in double, and of the index and the mask that fill it
    return size <= _HOT_SYMBOLS and (len(x) + len(y)) * width * place <= _HOT_BYTES * len(x) * len(y)


def _by_one_hot(x: Sequences, y: Sequences, width: int, compare: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    size = x.alphabet_size
    codes = torch.arange(size)
    table = compare(codes[:, None], codes)
    # Sums of zeros and ones are integers below 2**24, exact in float32, even where a product takes its factors in a
    # reduced format such as TF32; other integers need double.
    table = table.float() if table.dtype == torch.bool else table.double()
    place = torch.arange(0, width * size, size) + x.tokens[:, :width]
    left = table.new_zeros(len(x), width * size).scatter_(1, place, x.mask[:, :width].to(table.dtype))
    right = table.T[y.tokens[:, :width]].mul_(y.mask[:, :width, None])
    return (left @ right.reshape(len(y), width * size).T).double()


def _by_position(x: Sequences, y: Sequences, width: int, compare: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    total = torch.zeros(len(x), len(y), dtype=torch.double)
    step = max(1, _AT_ONCE // max(1, len(x) * len(y)))
    whole = _one_length(x, y)
    inside_x = x.mask
    inside_y = y.mask
    for begin in range(0, width, step):
        columns = slice(begin, min(begin + step, width))
        value = compare(x.tokens[:, None, columns], y.tokens[:, columns])
        if not whole:
            value.mul_(inside_x[:, None, columns] & inside_y[:, columns])
        total += value.sum(-1)
    return total

# SPDX-License-Identifier: Apache-2.0
"""Sums of features with random signs in compiled loops: the same numbers as those of torch, with fewer additions.

Four rows have only 16 different combinations of signs. Their sums are formed once, and each draw adds the one that it
needs: a quarter of the additions, and no multiplications (the method of four Russians).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from pyro_ksd.common.compilation import compiled, share_rows

_TOGETHER = 4  # rows whose signs make one number
_NUMBERS = 2**_TOGETHER
_COLUMNS = 64  # at a time, so that the sums of all combinations stay in the fastest cache
_DRAWS = 128  # at a time, of sparse features
_ADDITIONS = 64  # take about as long as one edit


def signed_sums(parts: Sequence[Tensor], signs: Tensor) -> Tensor:
    """The sums with signs of dense features, ``[D, B]``.

    :param parts: ``ψ`` of some sequences after the other, double ``[N_1, D]``, ``[N_2, D]`` and so on.
    :param signs: int8 ``[B, N]`` for all of them, -1 and 1.
    """
    columns = parts[0].shape[1]
    own_signs = signs.t().contiguous().split(list(map(len, parts)))
    patterns = [_patterns(own.numpy()) for own in own_signs]
    values = [part.contiguous().numpy() for part in parts]
    signed = np.zeros((-(-columns // _COLUMNS), len(signs), _COLUMNS))

    def loop(first: int, last: int) -> None:
        for own_values, own_patterns in zip(values, patterns, strict=True):
            _add_dense(first, last, own_values, own_patterns, signed)

    share_rows(loop, _work(len(signed), signs.shape[1] * len(signs) * _COLUMNS // _TOGETHER))
    return torch.from_numpy(signed).transpose(1, 2).reshape(-1, len(signs))[:columns]


def signed_sums_of_entries(rows: Tensor, columns: Tensor, values: Tensor, signs: Tensor, size: int) -> Tensor:
    """The sums with signs of sparse features, ``[size, B]``.

    :param rows: long ``[M]``, as ``columns``, for each entry.
    :param values: double ``[M]``.
    :param signs: int8 ``[B, N]``, -1 and 1.
    """
    signed = np.zeros((size, len(signs)))
    arrays = (rows.contiguous().numpy(), columns.contiguous().numpy(), values.contiguous().numpy())
    loop = partial(_add_entries, *arrays, signs.t().contiguous().numpy(), signed)
    share_rows(loop, _work(-(-len(signs) // _DRAWS), len(values) * _DRAWS))
    return torch.from_numpy(signed)


def _work(parts: int, additions: int) -> np.ndarray:
    """What :func:`share_rows` is to know of equal parts of the work."""
    return np.arange(parts + 1) * (additions // _ADDITIONS)


@compiled
def _patterns(signs: np.ndarray) -> np.ndarray:
    """Which of four rows each have the sign 1, as numbers below 16, uint8 ``[P, B]``; ``P`` is a multiple of 4."""
    rows, draws = signs.shape
    patterns = np.zeros((-(-rows // _TOGETHER**2) * _TOGETHER, draws), np.uint8)
    for row in range(rows):
        bit = 1 << row % _TOGETHER
        own = signs[row]
        found = patterns[row // _TOGETHER]
        for draw in range(draws):
            found[draw] |= bit if own[draw] > 0 else 0
    return patterns


@compiled
def _combine(psi: np.ndarray, table: np.ndarray) -> None:
    """The sums of up to four rows ``[4, C]`` with all combinations of signs, ``[16, C]``."""
    table[0] = 0.0
    for row in range(len(psi)):
        least = table[0]
        own = psi[row]
        for column in range(len(own)):
            least[column] -= own[column]
    size = 1
    for row in range(_TOGETHER):
        for number in range(size):
            without = table[number]
            with_row = table[size + number]
            if row < len(psi):
                own = psi[row]
                for column in range(len(own)):
                    with_row[column] = without[column] + 2 * own[column]
            else:
                with_row[:] = without
        size *= 2


@compiled
def _add_dense(first: int, last: int, values: np.ndarray, patterns: np.ndarray, signed: np.ndarray) -> None:
    """The sums of some blocks of 64 columns."""
    rows, columns = values.shape
    tables = np.zeros((4, _NUMBERS, _COLUMNS))
    for block in range(first, last):
        begin = block * _COLUMNS
        end = min(begin + _COLUMNS, columns)
        for group in range(0, len(patterns), 4):
            for part in range(4):
                row = (group + part) * _TOGETHER
                psi = values[min(row, rows) : min(row + _TOGETHER, rows), begin:end]
                _combine(psi, tables[part, :, : end - begin])
            for draw in range(signed.shape[1]):
                total = signed[block, draw]
                one = tables[0, patterns[group, draw]]
                two = tables[1, patterns[group + 1, draw]]
                three = tables[2, patterns[group + 2, draw]]
                four = tables[3, patterns[group + 3, draw]]
                for column in range(end - begin):
                    total[column] += (one[column] + two[column]) + (three[column] + four[column])


@compiled
def _add_entries(
    rows: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    signs: np.ndarray,
    signed: np.ndarray,
    first: int,
    last: int,
) -> None:
    """The sums of sparse features for some blocks of 128 draws."""
    for block in range(first, last):
        begin = block * _DRAWS
        end = min(begin + _DRAWS, signs.shape[1])
        for entry in range(len(values)):
            value = values[entry]
            own = signs[rows[entry], begin:end]
            total = signed[columns[entry], begin:end]
            for draw in range(len(own)):
                total[draw] += value * own[draw]

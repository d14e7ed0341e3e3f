# SPDX-License-Identifier: Apache-2.0
"""Sums of the factors of windows of symbols, in compiled loops: log-probabilities of sequences, and ratios of edits.

The code of a window is the number with its symbols as digits. With each further symbol, the first digit goes and the
symbol comes as the last digit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pyro_ksd.common.compilation import compiled
from pyro_ksd.edits.flat_edits import FlatEdits


class Factors(NamedTuple):
    """A factor for each window of symbols.

    :ivar values: of the window with each code, the tables of several models one after the other.
    :ivar offsets: long ``[N]``, where the table for each sequence begins.
    :ivar base: the number of symbols.
    :ivar width: of the windows.
    """

    values: np.ndarray
    offsets: np.ndarray
    base: int
    width: int


@compiled
def log_joints(
    first: int, last: int, padded: np.ndarray, lengths: np.ndarray, factors: Factors, sums: np.ndarray
) -> None:
    """The sums of the factors of all windows of some rows.

    :param padded: long ``[N, width - 1 + T + 1]``, tokens with boundary symbols before the start and after the end.
    :param sums: ``[N]``, gets the result.
    """
    values = factors.values
    codes = np.empty(padded.shape[1], np.int64)
    for row in range(first, last):
        _window_codes(padded[row], 0, lengths[row] + 1, factors.base, factors.width, codes)
        offset = factors.offsets[row]
        total = 0.0
        for end in range(lengths[row] + 1):
            total += values[offset + codes[end]]
        sums[row] = total


@compiled
def log_ratios(
    first: int,
    last: int,
    padded: np.ndarray,
    lengths: np.ndarray,
    edits: FlatEdits,
    factors: Factors,
    terms: np.ndarray,
    ratios: np.ndarray,
) -> None:
    """``log p(y) - log p(x)`` of the edits of some rows.

    :param padded: as for :func:`log_joints`.
    :param terms: for each length, what is to be added to ``log p``; may be empty.
    :param ratios: ``[E]``, gets the result.
    """
    # Numba counts references: each array is taken out of its tuple once, and none is passed on for each edit.
    starts = edits.start
    firsts = edits.first
    inserted = edits.inserted
    values = factors.values
    base = factors.base
    width = factors.width
    margin = width - 1
    most = 1
    for block in range(len(edits.shapes)):
        most = max(most, edits.shapes[block, 0], edits.shapes[block, 1])
    codes = np.empty(margin + most, np.int64)
    around = np.empty(2 * margin + most, np.int64)  # the symbols of the windows that an edit creates
    digits = base ** np.arange(width)
    for row in range(first, last):
        tokens = padded[row]
        offset = factors.offsets[row]
        for block in range(len(edits.shapes)):
            removed = edits.shapes[block, 0]
            arrived = edits.shapes[block, 1]
            first_symbol = edits.symbols[block]
            old_term = 0.0
            new_term = 0.0
            if len(terms) > 0:
                old_term = terms[lengths[row]]
                new_term = terms[max(0, lengths[row] + arrived - removed)]
            around[margin : margin + arrived] = 0
            for place in range(edits.places[block, row], edits.places[block, row + 1]):
                start = starts[place]
                right = min(margin, lengths[row] + 1 - start - removed)  # windows that end after the splice
                _window_codes(tokens, start, removed + right, base, width, codes)
                old = 0.0
                for j in range(removed + right):
                    old += values[offset + codes[j]]
                old += old_term
                for j in range(margin):
                    around[j] = tokens[start + j]
                for j in range(right):
                    around[margin + arrived + j] = tokens[start + margin + removed + j]
                _window_codes(around, 0, arrived + right, base, width, codes)
                for edit in range(firsts[place], firsts[place + 1]):
                    symbols = first_symbol + edit * arrived
                    new = 0.0
                    for j in range(arrived + right):
                        code = offset + codes[j]
                        if arrived == 1:
                            code += digits[j] * inserted[symbols]
                        else:
                            for number in range(max(0, j - margin), min(arrived, j + 1)):
                                code += digits[j - number] * inserted[symbols + number]
                        new += values[code]
                    new += new_term
                    ratios[edit] = new if new == -np.inf else new - old


@compiled
def _window_codes(symbols: np.ndarray, begin: int, count: int, base: int, width: int, codes: np.ndarray) -> None:
    """The codes of ``count`` windows, the first of which begins with ``symbols[begin]``."""
    code = 0
    top = 1
    for place in range(begin, begin + width - 1):
        code = code * base + symbols[place]
        top *= base
    for index in range(count):
        codes[index] = code * base + symbols[begin + index + width - 1]
        code = codes[index] - symbols[begin + index] * top

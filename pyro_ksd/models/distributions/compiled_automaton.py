# SPDX-License-Identifier: Apache-2.0
"""Values of weighted automata in compiled loops: those of sequences, and ratios of edits.

Vectors are rescaled after each symbol; the logarithm of the scale is kept beside them. It is NaN from where on a sum of
large numbers of both signs is so small that it may consist of rounding errors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pyro_ksd.common.compilation import compiled
from pyro_ksd.edits.flat_edits import FlatEdits


class Automata(NamedTuple):
    """The automata of some sequences, see :class:`~pyro_ksd.models.distributions.weighted_automaton.WeightedAutomaton`.

    :ivar first: ``[B, d]``, the first vector of each automaton.
    :ivar by_symbol: ``[B, S, d, d]``, the matrices of each symbol.
    :ivar last: ``[B, d]``, the last vector.
    :ivar of_rows: ``[B, S, d]``, the largest absolute value in each row of the matrices.
    :ivar of_columns: ``[B, S, d]``, that in each column.
    :ivar lost: what share of its terms a sum must have at least.
    :ivar members: long ``[N]``, the automaton of each sequence.
    """

    first: np.ndarray
    by_symbol: np.ndarray
    last: np.ndarray
    of_rows: np.ndarray
    of_columns: np.ndarray
    lost: float
    members: np.ndarray


@compiled
def log_values(
    begin: int, end: int, tokens: np.ndarray, lengths: np.ndarray, automata: Automata, values: np.ndarray
) -> None:
    """The logarithms of the values of some rows.

    :param tokens: long ``[N, T]``.
    :param values: ``[N]``, gets the result.
    """
    firsts = automata.first
    lasts = automata.last
    lost = automata.lost
    size = firsts.shape[1]
    vector = np.empty(size)
    moved = np.empty(size)
    for row in range(begin, end):
        member = automata.members[row]
        matrices = automata.by_symbol[member]
        of_rows = automata.of_rows[member]
        for i in range(size):
            vector[i] = firsts[member, i]
        log_scale = 0.0
        for place in range(lengths[row]):
            log_scale += _move(vector, matrices, of_rows, tokens[row, place], lost, moved)
            vector, moved = moved, vector
        values[row] = _log_product(vector, lasts[member], lost) + log_scale


@compiled
def log_ratios(
    begin: int,
    end: int,
    tokens: np.ndarray,
    lengths: np.ndarray,
    edits: FlatEdits,
    automata: Automata,
    ratios: np.ndarray,
) -> None:
    """The log-ratios of the edits of some rows.

    :param tokens: long ``[N, T]``.
    :param ratios: ``[E]``, gets the result.
    """
    # Numba counts references: each array is taken out of its tuple once.
    starts = edits.start
    firsts = edits.first
    inserted = edits.inserted
    lost = automata.lost
    size = automata.first.shape[1]
    ahead = np.empty((tokens.shape[1] + 1, size))
    back = np.empty((tokens.shape[1] + 1, size))
    ahead_scale = np.empty(tokens.shape[1] + 1)
    back_scale = np.empty(tokens.shape[1] + 1)
    vector = np.empty(size)
    moved = np.empty(size)
    for row in range(begin, end):
        member = automata.members[row]
        matrices = automata.by_symbol[member]
        of_rows = automata.of_rows[member]
        of_columns = automata.of_columns[member]
        length = lengths[row]
        ahead[0] = automata.first[member]
        ahead_scale[0] = 0.0
        for place in range(length):
            scale = _move(ahead[place], matrices, of_rows, tokens[row, place], lost, ahead[place + 1])
            ahead_scale[place + 1] = ahead_scale[place] + scale
        back[length] = automata.last[member]
        back_scale[length] = 0.0
        for place in range(length - 1, -1, -1):
            scale = _move_back(back[place + 1], matrices, of_columns, tokens[row, place], lost, back[place])
            back_scale[place] = back_scale[place + 1] + scale
        old = _log_product(ahead[length], back[length], lost) + ahead_scale[length]
        for block in range(len(edits.shapes)):
            removed = edits.shapes[block, 0]
            arrived = edits.shapes[block, 1]
            first_symbol = edits.symbols[block]
            for place in range(edits.places[block, row], edits.places[block, row + 1]):
                start = starts[place]
                after = back[start + removed]
                scale_around = ahead_scale[start] + back_scale[start + removed]
                for edit in range(firsts[place], firsts[place + 1]):
                    for i in range(size):
                        vector[i] = ahead[start, i]
                    log_scale = scale_around
                    for number in range(arrived):
                        symbol = inserted[first_symbol + edit * arrived + number]
                        log_scale += _move(vector, matrices, of_rows, symbol, lost, moved)
                        vector, moved = moved, vector
                    new = _log_product(vector, after, lost) + log_scale
                    ratios[edit] = new if new == -np.inf else new - old


@compiled
def _move(
    vector: np.ndarray, matrices: np.ndarray, of_rows: np.ndarray, symbol: int, lost: float, moved: np.ndarray
) -> float:
    """Multiplies a row vector by the matrix of a symbol, rescales it, and gives the logarithm of the scale."""
    size = len(vector)
    bound = 0.0
    for j in range(size):
        moved[j] = 0.0
    for i in range(size):
        factor = vector[i]
        bound += abs(factor) * of_rows[symbol, i]
        for j in range(size):
            moved[j] += factor * matrices[symbol, i, j]
    return _rescale(moved, lost * bound)


@compiled
def _move_back(
    vector: np.ndarray, matrices: np.ndarray, of_columns: np.ndarray, symbol: int, lost: float, moved: np.ndarray
) -> float:
    """The same for the product of the matrix and a column vector."""
    size = len(vector)
    bound = 0.0
    for i in range(size):
        bound += abs(vector[i]) * of_columns[symbol, i]
        total = 0.0
        for j in range(size):
            total += matrices[symbol, i, j] * vector[j]
        moved[i] = total
    return _rescale(moved, lost * bound)


@compiled
def _rescale(vector: np.ndarray, least: float) -> float:
    """Divides a vector by its largest absolute value, and gives its logarithm; NaN if it is less than ``least``."""
    largest = 0.0
    for i in range(len(vector)):
        largest = max(largest, abs(vector[i]))
    if largest < least:
        return np.nan
    if not largest > 0.0:
        return 0.0
    for i in range(len(vector)):
        vector[i] /= largest
    return np.log(largest)  # type: ignore[no-any-return]


@compiled
def _log_product(one: np.ndarray, other: np.ndarray, lost: float) -> float:
    total = 0.0
    bound = 0.0
    for i in range(len(one)):
        term = one[i] * other[i]
        total += term
        bound += abs(term)
    return np.nan if total < lost * bound else np.log(total)

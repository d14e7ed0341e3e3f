# SPDX-License-Identifier: Apache-2.0
"""The arrays between which compiled loops count windows of symbols."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

FREE = -1
"""The key of a slot of a hash table that is not in use."""


class Counting(NamedTuple):
    """What is counted in which sequences, and how counts become features.

    :ivar tokens: long ``[N, T]``.
    :ivar lengths: long ``[N]``.
    :ivar size: the number of symbols.
    :ivar digits: long ``[width]``, the factors of the symbols of a window in its code, from the last to the first.
    :ivar transformed: ``T(c)`` of the counts ``0, 1, ...``; ``step`` and ``gain`` are ``T(c + 1) - T(c)`` and
        ``T(c + 1)² - T(c)²``.
    :ivar divisors: for each length, by what the energy ``Σ T(c_u)²`` is multiplied in ``1 / scale²``.
    :ivar by_energy: whether the energy counts in the scale.
    """

    tokens: np.ndarray
    lengths: np.ndarray
    size: int
    digits: np.ndarray
    transformed: np.ndarray
    step: np.ndarray
    gain: np.ndarray
    divisors: np.ndarray
    by_energy: bool


class Slots(NamedTuple):
    """Where the features of a row are: feature ``u`` in slot ``u``, or, if these are too many, in a hash table.

    :ivar counts: int ``[slots]``, how often each window occurs.
    :ivar keys: long ``[slots]``, the codes of the features in the hash table; empty without one.
    :ivar claimed: long, the number of slots in use, and then these slots.
    """

    counts: np.ndarray
    keys: np.ndarray
    claimed: np.ndarray


class Models(NamedTuple):
    """Weights of edits under several models, with room for sums of them, which takes time to get for each row.

    :ivar weights: ``[E, K]``; those of one edit lie together, so that a loop over the models is quick.
    :ivar here: ``[K]``, the sums over the edits at one place.
    :ivar common: ``[K]``, what all windows of a row share.
    """

    weights: np.ndarray
    here: np.ndarray
    common: np.ndarray


class Scratch(NamedTuple):
    """Room for the work on one row, which takes time to get for each of them.

    :ivar own: long, the slot of the window that ends at each position.
    :ivar codes: long, the codes of the windows that a splice creates, without what the inserted symbols add.
    :ivar created: long, their slots.
    :ivar stays: which windows a splice leaves as they are.
    """

    own: np.ndarray
    codes: np.ndarray
    created: np.ndarray
    stays: np.ndarray


class Entries(NamedTuple):
    """Entries of a sparse matrix, with room for all that the rows may have.

    :ivar begin: long ``[N + 1]``, where the room of each row begins.
    :ivar found: long ``[N]``, how many entries each row has.
    :ivar code: long, the codes, ascending within a row.
    :ivar value: the values.
    """

    begin: np.ndarray
    found: np.ndarray
    code: np.ndarray
    value: np.ndarray


class Coefficients(NamedTuple):
    """The coefficients of a witness for the features of one shape.

    :ivar codes: long ``[D]``, ascending.
    :ivar total: ``[D]``, the sums over all sequences.
    :ivar begin: long ``[N + 1]``, where the entries of each sequence in the next two begin.
    :ivar column: long, the columns of what each sequence itself has in the sums; empty if it has all of them.
    :ivar value: the values of it.
    """

    codes: np.ndarray
    total: np.ndarray
    begin: np.ndarray
    column: np.ndarray
    value: np.ndarray


def direct_slots(num_codes: int) -> Slots:
    """A slot for every code."""
    none = np.empty(0, dtype=np.int64)
    return Slots(np.zeros(num_codes, dtype=np.int32), none, none)


def hash_table(room: np.ndarray) -> Slots:
    """A hash table for rows with at most the given numbers of features."""
    most = int(room.max(initial=1))
    size = 1 << (2 * most - 1).bit_length()
    keys = np.full(size, FREE, dtype=np.int64)
    return Slots(np.zeros(size, dtype=np.int32), keys, np.zeros(most + 1, dtype=np.int64))

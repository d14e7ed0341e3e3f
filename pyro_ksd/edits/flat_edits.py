# SPDX-License-Identifier: Apache-2.0
"""Edits as a few flat arrays, for loops over the edits of one row after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class FlatEdits(NamedTuple):
    """``E`` edits around ``N`` sequences in ``B`` blocks of one shape each; in a block, those of one row are together.

    :ivar start: long ``[E]``, the position of the first removed symbol.
    :ivar inserted: long, the symbols that come, of one edit after the other.
    :ivar shapes: long ``[B, 2]``, how many symbols go and come.
    :ivar edits: long ``[B, N + 1]``, the first edit of each row in each block, and the end of the last.
    :ivar symbols: long ``[B]``, where the inserted symbols of each block begin, if its first edit had the number 0.
    """

    start: np.ndarray
    inserted: np.ndarray
    shapes: np.ndarray
    edits: np.ndarray
    symbols: np.ndarray

    @property
    def work(self) -> np.ndarray:
        """The number of edits before each row, and of all, long ``[N + 1]``."""
        work: np.ndarray = (self.edits - self.edits[:, :1]).sum(0)
        return work

    @property
    def most_inserted(self) -> int:
        """The largest number of symbols that an edit inserts."""
        return int(self.shapes[:, 1].max(initial=0))

    def most_windows(self, width: int) -> np.ndarray:
        """An upper bound of the number of windows of ``width`` symbols that the edits of each row create, ``[N]``."""
        windows: np.ndarray = (np.diff(self.edits) * (self.shapes[:, 1:] + width - 1)).sum(0)
        return windows

    @staticmethod
    def of(
        owners: Sequence[np.ndarray],
        starts: Sequence[np.ndarray],
        removed: Sequence[int],
        inserted: Sequence[np.ndarray],
        num_sequences: int,
    ) -> FlatEdits | None:
        """The flat form of blocks of edits; ``None`` if the edits of a block are not in the order of the rows.

        :param owners: long ``[E]`` for each block.
        :param starts: long ``[E]`` for each block.
        :param removed: for each block, how many symbols go.
        :param inserted: long ``[E, W]`` for each block.

        >>> owner, start, symbols = np.array([0, 0, 2]), np.array([1, 2, 0]), np.array([[0], [1], [1]])
        >>> FlatEdits.of([owner], [start], [1], [symbols], 3).edits
        array([[0, 2, 2, 3]])
        >>> FlatEdits.of([owner[::-1]], [start], [1], [symbols], 3) is None
        True
        """
        if any((owner[1:] < owner[:-1]).any() for owner in owners):
            return None
        none = np.zeros(0, dtype=np.int64)
        arrived = [symbols.shape[1] for symbols in inserted]
        first = np.cumsum([0, *map(len, owners)])
        rows = np.arange(num_sequences + 1)
        edits = [np.searchsorted(owner, rows) + begin for owner, begin in zip(owners, first[:-1], strict=True)]
        symbols_before = np.cumsum([0, *(symbols.size for symbols in inserted)])[:-1]
        return FlatEdits(
            start=np.concatenate([none, *starts]),
            inserted=np.concatenate([none, *(symbols.reshape(-1) for symbols in inserted)]),
            shapes=np.array([removed, arrived], dtype=np.int64).T.reshape(-1, 2).copy(),
            edits=np.array(edits, dtype=np.int64).reshape(-1, num_sequences + 1),
            symbols=symbols_before - first[:-1] * np.array(arrived, dtype=np.int64),
        )

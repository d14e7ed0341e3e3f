# SPDX-License-Identifier: Apache-2.0
"""Edits as a few flat arrays, for compiled loops over the edits of one row after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class FlatEdits(NamedTuple):
    """``E`` edits around ``N`` sequences in ``B`` blocks of one shape each; in a block, those of one row are together.

    Neighboring edits of a row with the same start are a *place*; there are ``P`` of them. Loops read these arrays again
    and again, so they are small.

    :ivar start: long ``[P]``, the position of the first symbol that is removed.
    :ivar first: long ``[P + 1]``, the first edit of each place, and the end of the last.
    :ivar places: long ``[B, N + 1]``, the first place of each row in each block, and the end of the last.
    :ivar inserted: int32, the symbols that come, of one edit after the other.
    :ivar symbols: long ``[B]``, where the inserted symbols of each block begin, if its first edit had the number 0.
    :ivar shapes: long ``[B, 2]``, how many symbols go and come.
    """

    start: np.ndarray
    first: np.ndarray
    places: np.ndarray
    inserted: np.ndarray
    symbols: np.ndarray
    shapes: np.ndarray

    @property
    def num_edits(self) -> int:
        """The number ``E`` of edits."""
        return int(self.first[-1])

    @property
    def edits(self) -> np.ndarray:
        """The first edit of each row in each block, and the end of the last, long ``[B, N + 1]``."""
        edits: np.ndarray = self.first[self.places]
        return edits

    @property
    def work(self) -> np.ndarray:
        """The number of edits before each row, and of all, long ``[N + 1]``."""
        edits = self.edits
        work: np.ndarray = (edits - edits[:, :1]).sum(0)
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

        >>> owner, start, symbols = np.array([0, 0, 2]), np.array([1, 1, 0]), np.array([[0], [1], [1]])
        >>> flat = FlatEdits.of([owner], [start], [1], [symbols], 3)
        >>> flat.start, flat.first, flat.places
        (array([1, 0]), array([0, 2, 3]), array([[0, 1, 1, 2]]))
        >>> FlatEdits.of([owner[::-1]], [start], [1], [symbols], 3) is None
        True
        """
        from pyro_ksd.edits.compiled_places import find_places

        sizes = [len(owner) for owner in owners]
        arrived = [symbols.shape[1] for symbols in inserted]
        start = np.empty(sum(sizes), dtype=np.int64)
        first = np.zeros(sum(sizes) + 1, dtype=np.int64)
        places = np.zeros((len(sizes), num_sequences + 1), dtype=np.int64)
        count = 0
        edit = 0
        for owner, own, bounds in zip(owners, starts, places, strict=True):
            count = find_places(
                np.ascontiguousarray(owner), np.ascontiguousarray(own), edit, count, start, first, bounds
            )
            if count < 0:
                return None
            edit += len(owner)
        first[count] = edit
        symbols = [np.zeros(0, dtype=np.int32), *(own.reshape(-1).astype(np.int32) for own in inserted)]
        symbols_before = np.cumsum([0, *(own.size for own in inserted)])[:-1]
        edits_before = np.cumsum([0, *sizes])[:-1]
        return FlatEdits(
            start=start[:count],
            first=first[: count + 1],
            places=places,
            inserted=np.concatenate(symbols),
            symbols=symbols_before - edits_before * np.array(arrived, dtype=np.int64),
            shapes=np.array([removed, arrived], dtype=np.int64).T.reshape(-1, 2).copy(),
        )

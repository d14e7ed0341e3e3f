# SPDX-License-Identifier: Apache-2.0
"""Substitutions, insertions and deletions by compiled loops: the same edits as torch, in fewer passes."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pyro_ksd.common.compilation import compiled
from pyro_ksd.edits.splices import SpliceBlock
from pyro_ksd.sequences.container import Sequences


def substitutions(sequences: Sequences, locations: int | None) -> SpliceBlock:
    """As :class:`pyro_ksd.edits.Substitutions` by any other symbol, at the last ``locations`` positions."""
    size = sequences.alphabet_size
    lengths = sequences.lengths.contiguous().numpy()
    first = _first_places(lengths, locations)
    found = np.empty((3, int((lengths - first).sum()) * (size - 1)), dtype=np.int64)
    _substitutions(sequences.tokens.numpy(), lengths, first, size, *found)
    return _block(found, removed=1)


def insertions(sequences: Sequences, allowed: Tensor, locations: int | None) -> SpliceBlock:
    """As :class:`pyro_ksd.edits.InsertionsDeletions`, of symbols ``allowed [S]``, at the last ``locations`` gaps."""
    lengths = sequences.lengths.contiguous().numpy()
    first = _first_places(lengths + 1, locations)
    symbols = allowed.nonzero()[:, 0].numpy()
    found = np.empty((3, int((lengths + 1 - first).sum()) * len(symbols)), dtype=np.int64)
    count = _insertions(sequences.tokens.numpy(), lengths, first, symbols, *found)
    return _block(found[:, :count], removed=0)


def deletions(sequences: Sequences, allowed: Tensor, locations: int | None) -> SpliceBlock:
    """As :class:`pyro_ksd.edits.InsertionsDeletions`, of the symbols ``allowed [S]``, at the last positions."""
    lengths = sequences.lengths.contiguous().numpy()
    first = _first_places(lengths, locations)
    found = np.empty((3, int((lengths - first).sum())), dtype=np.int64)
    count = _deletions(sequences.tokens.numpy(), lengths, first, allowed.numpy(), *found[:2])
    (owner, start, _) = torch.from_numpy(found[:, :count])
    return SpliceBlock(owner, start, 1, owner.new_empty(count, 0))


def _first_places(places: np.ndarray, locations: int | None) -> np.ndarray:
    """The first of the last ``locations`` out of the places of each sequence, long ``[N]``."""
    return np.zeros_like(places) if locations is None else np.maximum(places - locations, 0)


def _block(found: np.ndarray, removed: int) -> SpliceBlock:
    owner, start, symbol = torch.from_numpy(found)
    return SpliceBlock(owner, start, removed, symbol[:, None])


@compiled
def _substitutions(
    tokens: np.ndarray,
    lengths: np.ndarray,
    first: np.ndarray,
    size: int,
    owner: np.ndarray,
    start: np.ndarray,
    symbol: np.ndarray,
) -> None:
    edit = 0
    for row in range(len(lengths)):
        for place in range(first[row], lengths[row]):
            own = tokens[row, place]
            for other in range(own + 1, own + size):
                owner[edit] = row
                start[edit] = place
                symbol[edit] = other if other < size else other - size
                edit += 1


@compiled
def _insertions(
    tokens: np.ndarray,
    lengths: np.ndarray,
    first: np.ndarray,
    symbols: np.ndarray,
    owner: np.ndarray,
    start: np.ndarray,
    symbol: np.ndarray,
) -> int:
    """As :func:`_substitutions`; gives the number of insertions."""
    edit = 0
    for row in range(len(lengths)):
        for gap in range(first[row], lengths[row] + 1):
            before = tokens[row, gap - 1] if gap > first[row] else -1
            for place in range(len(symbols)):
                if symbols[place] != before:
                    owner[edit] = row
                    start[edit] = gap
                    symbol[edit] = symbols[place]
                    edit += 1
    return edit


@compiled
def _deletions(
    tokens: np.ndarray,
    lengths: np.ndarray,
    first: np.ndarray,
    allowed: np.ndarray,
    owner: np.ndarray,
    start: np.ndarray,
) -> int:
    """As :func:`_substitutions`; gives the number of deletions."""
    edit = 0
    for row in range(len(lengths)):
        before = -1
        for place in range(first[row], lengths[row]):
            own = tokens[row, place]
            if allowed[own] and own != before:
                owner[edit] = row
                start[edit] = place
                edit += 1
            before = own
    return edit

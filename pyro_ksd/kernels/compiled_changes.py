# SPDX-License-Identifier: Apache-2.0
"""What edits change of a few features, in compiled loops: the same numbers as the kernels' own, and faster."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pyro_ksd.common.compilation import compiled, inlined
from pyro_ksd.edits.splices import SpliceBlock
from pyro_ksd.sequences.container import Sequences

_SHORT_CODES = 2**31

Changes = tuple[Tensor, Tensor]
"""Codes of the features that are touched, ``[K, E]``, and the change of each, ``[K, E]``; of short types that hold
them, since there are many."""


def position_changes(sequences: Sequences, block: SpliceBlock, period: int) -> Changes:
    """As :meth:`pyro_ksd.kernels.PositionKernel.changes`, for substitutions."""
    found = _Arrays(sequences, block, 2, sequences.alphabet_size * period)
    _position_changes(*found.inputs, sequences.alphabet_size, period, *found.outputs)
    return found.changes


def start_changes(sequences: Sequences, block: SpliceBlock, num_places: int) -> Changes:
    """As :meth:`pyro_ksd.kernels.StartKernel.changes`, for the first ``num_places`` symbols."""
    found = _Arrays(sequences, block, 2, (sequences.alphabet_size + 1) ** num_places)
    _start_changes(*found.inputs, block.removed, sequences.alphabet_size, num_places, *found.outputs)
    return found.changes


def mirror_changes(sequences: Sequences, block: SpliceBlock) -> Changes:
    """As :meth:`pyro_ksd.kernels.MirrorKernel.changes`, for substitutions."""
    found = _Arrays(sequences, block, 1)
    _mirror_changes(*found.inputs, *found.outputs)
    return found.changes


def repeats_changes(sequences: Sequences, block: SpliceBlock, width: int) -> Changes:
    """As :meth:`pyro_ksd.kernels.RepeatsKernel.changes`, for windows of ``width`` equal symbols."""
    found = _Arrays(sequences, block, 1)
    _repeats_changes(*found.inputs, block.removed, width, *found.outputs)
    return found.changes


def add_changes(owner: Tensor, changes: Changes, weights: Tensor, features: Tensor) -> None:
    """Adds what weighted edits change to the features of each sequence.

    :param owner: long ``[E]``.
    :param weights: double ``[M, E]``, of ``M`` models.
    :param features: double ``[M, N, D]``.
    """
    codes, change = (values.contiguous().numpy() for values in changes)
    for own, found in zip(weights.contiguous().numpy(), features.numpy(), strict=True):
        _add_changes(owner.contiguous().numpy(), codes, change, own, found)


def steps_of_changes(owner: Tensor, changes: Changes, total: Tensor, own: Tensor) -> Tensor:
    """How far edits move along a witness, double ``[E]``.

    :param owner: long ``[E]``.
    :param total: double ``[D]``, the sums of the features over all sequences.
    :param own: double ``[N, D]``, the features of the sequences, which are not to count.
    """
    codes, change = (values.contiguous().numpy() for values in changes)
    steps = np.zeros(len(owner))
    arrays = (owner.contiguous().numpy(), codes, change, total.contiguous().numpy(), own.contiguous().numpy())
    _steps_of_changes(*arrays, steps)
    return torch.from_numpy(steps)


class _Arrays:
    """The arrays of sequences and splices of one shape, and room for ``K`` changes of each, small integers."""

    def __init__(self, sequences: Sequences, block: SpliceBlock, num_changes: int, num_codes: int = 1) -> None:
        self.inputs = (
            sequences.tokens.contiguous().numpy(),
            sequences.lengths.contiguous().numpy(),
            block.owner.contiguous().numpy(),
            block.start.contiguous().numpy(),
            block.inserted.contiguous().numpy(),
        )
        self.outputs = (
            np.zeros((num_changes, len(block)), dtype=np.int32 if num_codes <= _SHORT_CODES else np.int64),
            np.zeros((num_changes, len(block)), dtype=np.float32),
        )

    @property
    def changes(self) -> Changes:
        codes, change = self.outputs
        return torch.from_numpy(codes), torch.from_numpy(change)


@compiled
def _position_changes(
    tokens: np.ndarray,
    lengths: np.ndarray,
    owner: np.ndarray,
    start: np.ndarray,
    inserted: np.ndarray,
    size: int,
    period: int,
    codes: np.ndarray,
    change: np.ndarray,
) -> None:
    for edit in range(len(owner)):
        here = start[edit] % period * size
        codes[0, edit] = here + inserted[edit, 0]
        codes[1, edit] = here + tokens[owner[edit], start[edit]]
        change[0, edit] = 1.0
        change[1, edit] = -1.0


@compiled
def _start_changes(
    tokens: np.ndarray,
    lengths: np.ndarray,
    owner: np.ndarray,
    start: np.ndarray,
    inserted: np.ndarray,
    removed: int,
    size: int,
    num_places: int,
    codes: np.ndarray,
    change: np.ndarray,
) -> None:
    arrived = inserted.shape[1]
    for edit in range(len(owner)):
        row = owner[edit]
        begin = start[edit]
        if begin >= num_places:
            continue
        length = lengths[row]
        old = 0
        new = 0
        for place in range(num_places):
            symbol = tokens[row, place] if place < length else size
            old = old * (size + 1) + symbol
            if place >= begin + arrived:
                source = place - arrived + removed
                symbol = tokens[row, source] if source < length else size
            elif place >= begin:
                symbol = inserted[edit, place - begin]
            new = new * (size + 1) + symbol
        codes[0, edit] = new
        codes[1, edit] = old
        if new != old:
            change[0, edit] = 1.0
            change[1, edit] = -1.0


@compiled
def _mirror_changes(
    tokens: np.ndarray,
    lengths: np.ndarray,
    owner: np.ndarray,
    start: np.ndarray,
    inserted: np.ndarray,
    codes: np.ndarray,
    change: np.ndarray,
) -> None:
    for edit in range(len(owner)):
        row = owner[edit]
        opposite = lengths[row] - 1 - start[edit]
        if opposite != start[edit]:
            partner = tokens[row, opposite]
            change[0, edit] += inserted[edit, 0] == partner
            change[0, edit] -= tokens[row, start[edit]] == partner


@inlined
def _run_before(tokens: np.ndarray, row: int, place: int, most: int) -> int:
    """How many symbols before a place are equal to the one right before it, at most ``most``."""
    run = 0
    while run < min(place, most) and tokens[row, place - 1 - run] == tokens[row, place - 1]:
        run += 1
    return run


@inlined
def _run_from(tokens: np.ndarray, row: int, place: int, length: int, most: int) -> int:
    """How many symbols from a place on are equal to the one there, at most ``most``."""
    run = 0
    while run < min(length - place, most) and tokens[row, place + run] == tokens[row, place]:
        run += 1
    return run


@inlined
def _equal_windows(
    left: int,
    left_run: int,
    symbols: np.ndarray,
    row: int,
    begin: int,
    end: int,
    right: int,
    right_run: int,
    width: int,
) -> int:
    """How many windows of equal symbols end in or after some symbols, and begin in or before them.

    :param left: the symbol before them, and ``left_run``, how often it stands there, below ``width``.
    :param symbols: the symbols are ``symbols[row, begin:end]``.
    :param right: the symbol after them, as ``left``.
    """
    windows = 0
    run = left_run
    previous = left
    for place in range(begin, end):
        run = run + 1 if symbols[row, place] == previous and run > 0 else 1
        previous = symbols[row, place]
        windows += run >= width
    if previous == right and run > 0:
        windows += max(0, min(right_run, run + right_run - width + 1))
    return windows


@compiled
def _repeats_changes(
    tokens: np.ndarray,
    lengths: np.ndarray,
    owner: np.ndarray,
    start: np.ndarray,
    inserted: np.ndarray,
    removed: int,
    width: int,
    codes: np.ndarray,
    change: np.ndarray,
) -> None:
    row = -1
    begin = -1
    for edit in range(len(owner)):
        if owner[edit] != row or start[edit] != begin:  # the next place
            row = owner[edit]
            begin = start[edit]
            end = begin + removed
            left_run = _run_before(tokens, row, begin, width - 1)
            right_run = _run_from(tokens, row, end, lengths[row], width - 1)
            left = tokens[row, begin - 1] if left_run > 0 else -1
            right = tokens[row, end] if right_run > 0 else -1
            before = _equal_windows(left, left_run, tokens, row, begin, end, right, right_run, width)
        after = _equal_windows(left, left_run, inserted, edit, 0, inserted.shape[1], right, right_run, width)
        change[0, edit] = after - before


@compiled
def _add_changes(
    owner: np.ndarray, codes: np.ndarray, change: np.ndarray, weights: np.ndarray, features: np.ndarray
) -> None:
    for edit in range(len(owner)):
        for place in range(len(codes)):
            if change[place, edit] != 0:
                features[owner[edit], codes[place, edit]] += change[place, edit] * weights[edit]


@compiled
def _steps_of_changes(
    owner: np.ndarray, codes: np.ndarray, change: np.ndarray, total: np.ndarray, own: np.ndarray, steps: np.ndarray
) -> None:
    for edit in range(len(owner)):
        for place in range(len(codes)):
            code = codes[place, edit]
            if change[place, edit] != 0:
                steps[edit] += change[place, edit] * (total[code] - own[owner[edit], code])

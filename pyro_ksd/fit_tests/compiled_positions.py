# SPDX-License-Identifier: Apache-2.0
"""Shares of positions in compiled loops: the same numbers as those of torch, in one pass over the edits."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pyro_ksd.common.compilation import compiled
from pyro_ksd.edits.flat_edits import FlatEdits


def position_sums(edits: FlatEdits, rows: Tensor, values: Tensor, width: int) -> Tensor:
    """The sums over the edits at each position of some sequences, double ``[K, width]``.

    :param rows: long ``[K]``, the rows of the sequences.
    :param values: double ``[E]``, those of all edits.
    """
    sums = np.zeros((len(rows), width))
    _add_at_positions(rows.numpy(), edits, values.contiguous().numpy(), sums)
    return torch.from_numpy(sums)


@compiled
def _add_at_positions(rows: np.ndarray, edits: FlatEdits, values: np.ndarray, sums: np.ndarray) -> None:
    starts = edits.start
    firsts = edits.first
    for index in range(len(rows)):
        own = sums[index]
        for block in range(len(edits.places)):
            for place in range(edits.places[block, rows[index]], edits.places[block, rows[index] + 1]):
                for edit in range(firsts[place], firsts[place + 1]):
                    own[starts[place]] += values[edit]

# SPDX-License-Identifier: Apache-2.0
"""Where the edits of one row and one position stand among all, found by a compiled loop."""

from __future__ import annotations

import numpy as np

from pyro_ksd.common.compilation import compiled


@compiled
def find_places(
    owner: np.ndarray,
    starts: np.ndarray,
    begin: int,
    count: int,
    start: np.ndarray,
    first: np.ndarray,
    bounds: np.ndarray,
) -> int:
    """The places of a block of edits, the first of which has the number ``begin``, after ``count`` other places.

    :param bounds: long ``[N + 1]``, gets the first place of each row, and the end of the last.
    :returns: how many places there are then; -1 if the rows are not in order.
    """
    row = 0
    bounds[0] = count
    for edit in range(len(owner)):
        if edit == 0 or owner[edit] != owner[edit - 1] or starts[edit] != starts[edit - 1]:
            if owner[edit] < row:
                return -1
            while row < owner[edit]:
                row += 1
                bounds[row] = count
            start[count] = starts[edit]
            first[count] = begin + edit
            count += 1
    while row < len(bounds) - 1:
        row += 1
        bounds[row] = count
    return count

# SPDX-License-Identifier: Apache-2.0
"""Entries of sparse features moved together, in a compiled loop."""

from __future__ import annotations

import numpy as np

from pyro_ksd.common.compilation import compiled
from pyro_ksd.edits.window_arrays import Entries


@compiled
def collect_entries(
    first: int,
    last: int,
    entries: Entries,
    begin: np.ndarray,
    columns: np.ndarray,
    index: np.ndarray,
    value: np.ndarray,
) -> None:
    """Moves the entries of some rows together.

    :param begin: long ``[N]``, where those of each row are to begin.
    :param columns: long, the column of each code; empty to keep the codes.
    :param index: long ``[2, M]``, gets row and column of each entry.
    :param value: ``[M]``, gets the values.
    """
    for row in range(first, last):
        for entry in range(entries.found[row]):
            code = entries.code[entries.begin[row] + entry]
            index[0, begin[row] + entry] = row
            index[1, begin[row] + entry] = columns[code] if len(columns) > 0 else code
            value[begin[row] + entry] = entries.value[entries.begin[row] + entry]

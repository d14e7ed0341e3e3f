# SPDX-License-Identifier: Apache-2.0
"""Entries of sparse features in compiled loops."""

from __future__ import annotations

import numpy as np

from pyro_ksd.edits.compiled_entries import collect_entries
from pyro_ksd.edits.window_arrays import Entries


def test_entries_are_moved_together() -> None:
    code = np.array([4, 7, -1, -1, 2, -1])
    entries = Entries(np.array([0, 3, 4, 6]), np.array([2, 0, 1]), code, code * 0.5)
    for columns, expected in ((np.arange(8) * 10, [40, 70, 20]), (np.zeros(0, dtype=np.int64), [4, 7, 2])):
        index = np.zeros((2, 3), dtype=np.int64)
        value = np.zeros(3)
        begin = np.array([0, 2, 2])
        collect_entries(0, 2, entries, begin, columns, index, value)  # the rows may be shared out
        collect_entries(2, 3, entries, begin, columns, index, value)
        assert index.tolist() == [[0, 0, 2], expected]
        assert value.tolist() == [2.0, 3.5, 1.0]

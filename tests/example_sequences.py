# SPDX-License-Identifier: Apache-2.0
"""Four short sequences, one of them empty, in the forms in which data come."""

from __future__ import annotations

LETTERS = [["a", "c"], ["b"], [], ["c", "c", "a"]]
CODES = [[0, 2], [1], [], [2, 2, 0]]
FILLED = [[0, 2, -1, -1], [1, -1, -1, -1], [-1] * 4, [2, 2, 0, -1]]
LENGTHS = [2, 1, 0, 3]
CELLS = [["a", "c", "-"], ["b", "-", "-"], ["-", "-", "-"], ["c", "c", "a"]]

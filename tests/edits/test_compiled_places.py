# SPDX-License-Identifier: Apache-2.0
"""Where the edits of one row and one position stand among all."""

from __future__ import annotations

import numpy as np
import pytest

from pyro_ksd.edits.compiled_places import find_places


def found(
    owner: list[int], starts: list[int], rows: int, begin: int = 0, count: int = 0
) -> tuple[int, list[list[int]]]:
    start = np.full(10, -9)
    first = np.full(10, -9)
    bounds = np.full(rows + 1, -9)
    total = find_places(
        np.array(owner, dtype=np.int64), np.array(starts, dtype=np.int64), begin, count, start, first, bounds
    )
    return total, [start[count:total].tolist(), first[count:total].tolist(), bounds.tolist()]


def test_neighboring_edits_with_one_start_are_one_place() -> None:
    # Rows 0 and 2 have edits, row 1 and the last have none.
    assert found([0, 0, 0, 2, 2], [4, 4, 5, 5, 5], rows=4) == (3, [[4, 5, 5], [0, 2, 3], [0, 2, 2, 3, 3]])


def test_places_of_a_later_block_are_counted_on() -> None:
    assert found([1], [3], rows=2, begin=7, count=2) == (3, [[3], [7], [2, 2, 3]])


@pytest.mark.parametrize("count", [0, 4])
def test_no_edits_are_no_places(count: int) -> None:
    assert found([], [], rows=2, count=count) == (count, [[], [], [count] * 3])


def test_rows_must_be_in_order() -> None:
    assert found([1, 0], [0, 0], rows=2)[0] == -1

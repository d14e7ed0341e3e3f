# SPDX-License-Identifier: Apache-2.0
"""The arrays of compiled loops."""

from __future__ import annotations

import numpy as np
import pytest

from pyro_ksd.edits.window_arrays import FREE, direct_slots, hash_table


@pytest.mark.parametrize(("room", "size"), [([0], 2), ([3, 8], 16), ([9], 32)])
def test_half_of_a_hash_table_stays_free(room: list[int], size: int) -> None:
    table = hash_table(np.array(room, dtype=np.int64))
    assert len(table.keys) == len(table.counts) == size
    assert (table.keys == FREE).all()
    assert not table.counts.any()
    assert len(table.claimed) == max(*room, 1) + 1 if len(room) > 1 else max(room[0], 1) + 1


def test_direct_slots_have_no_keys() -> None:
    slots = direct_slots(5)
    assert (len(slots.counts), len(slots.keys), len(slots.claimed)) == (5, 0, 0)

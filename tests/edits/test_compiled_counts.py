# SPDX-License-Identifier: Apache-2.0
"""The parts of the compiled loops, as plain Python and compiled; the whole is tested in ``kernels`` and ``models``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyro_ksd.edits import compiled_counts
from pyro_ksd.edits.window_arrays import direct_slots, hash_table

pytest.importorskip("numba")


def plain(function: Any) -> Any:
    return function.py_func


@pytest.mark.parametrize("form", [lambda function: function, plain], ids=["compiled", "plain"])
def test_a_hash_table_finds_what_it_has(form: Any) -> None:
    slot_of = form(compiled_counts._slot)
    codes = [0, 1, 2**61, 8, 16, 24, 2**40 + 8, 7]
    table = hash_table(np.array([3, len(codes)]))
    assert len(table.keys) == 16
    slots = [slot_of(code, table.keys, table.claimed) for code in codes]
    assert len(set(slots)) == len(codes)
    assert [slot_of(code, table.keys, table.claimed) for code in codes] == slots
    assert table.claimed.tolist() == [len(codes), *slots]
    form(compiled_counts._free)(table.keys, table.claimed)
    assert (table.keys == -1).all()
    assert table.claimed[0] == 0


def test_without_a_hash_table_a_code_is_its_slot() -> None:
    slots = direct_slots(5)
    assert [compiled_counts._slot(code, slots.keys, slots.claimed) for code in range(5)] == list(range(5))


@pytest.mark.parametrize("form", [lambda function: function, plain], ids=["compiled", "plain"])
@pytest.mark.parametrize(
    ("start", "removed", "arrived"), [(0, 0, 0), (2, 1, 1), (3, 2, 0), (5, 0, 2), (0, 6, 1), (6, 0, 1)]
)
def test_codes_of_created_windows(form: Any, start: int, removed: int, arrived: int) -> None:
    tokens = np.array([1, 2, 3, 4, 5, 6, 9, 9, 9])  # six symbols and padding
    digits = np.array([1, 10, 100])
    edited = [*tokens[:start], *[0] * arrived, *tokens[start + removed : 6]]
    codes = np.full(10, -1)
    first, last = form(compiled_counts._outer_codes)(tokens, 6, start, removed, arrived, digits, codes)
    expected = {
        end - start: 100 * edited[end - 2] + 10 * edited[end - 1] + edited[end]
        for end in range(2, len(edited))
        if start <= end <= start + arrived + 1
    }
    assert {j: int(codes[j]) for j in range(first, last)} == expected


def test_unknown_coefficients_are_zero() -> None:
    known = np.array([2, 5])
    total = np.array([0.5, 0.25])
    assert [compiled_counts._look_up(code, known, total) for code in (1, 2, 4, 5, 6)] == [0.0, 0.5, 0.0, 0.25, 0.0]

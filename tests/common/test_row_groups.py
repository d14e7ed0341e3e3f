# SPDX-License-Identifier: Apache-2.0
"""Which rows of numbers are equal."""

from __future__ import annotations

import pytest
import torch

from pyro_ksd.common.row_groups import distinct_rows


def test_distinct_survives_a_collision_of_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "randint", lambda low, high, size, **_: torch.zeros(size, dtype=torch.long))
    rows = torch.tensor([[0, 2], [1, 1], [2, 0], [1, 1], [0, 2]])  # all rows have the same sum
    first, inverse = distinct_rows(rows)
    assert len(first) == 3
    assert rows[first[inverse]].equal(rows)


def test_distinct_rows() -> None:
    rows = torch.tensor([[1, 2], [0, 5], [1, 2], [2, 1], [0, 5]])
    first, inverse = distinct_rows(rows)
    assert len(first) == 3
    assert torch.equal(rows[first[inverse]], rows)
    assert inverse[0] == inverse[2]
    assert len(set(inverse[[0, 1, 3]].tolist())) == 3
    assert [part.shape for part in distinct_rows(rows[:0])] == [(0,), (0,)]

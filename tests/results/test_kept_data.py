# SPDX-License-Identifier: Apache-2.0
"""What a result keeps of the data."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from pyro_ksd.results.kept_data import KeptData, kept_rows  # noqa: E402
from pyro_ksd.sequences.container import Sequences  # noqa: E402


def test_data_in_memory_are_kept_as_a_whole() -> None:
    data = KeptData.whole(Sequences.of(["ab", "", "aab", "b"]), {1: "x", 3: ""})
    assert (data.num_sequences, data.num_impossible, data.is_partial) == (4, 2, False)
    assert data.rows.tolist() == [0, 1, 2, 3]
    assert data.possible_rows.tolist() == [0, 2]
    assert data.lengths.tolist() == [0, 0, 1, 1]


def test_rows_of_partitioned_data() -> None:
    rows = kept_rows([torch.tensor([7, 3]), torch.tensor([], dtype=torch.long), torch.tensor([3, 9])], [1, 9])
    assert rows.tolist() == [1, 3, 7, 9]
    kept = KeptData(Sequences.of(["a", "b", "a", "b"]), rows, 1000, 2, {1: "", 9: ""}, is_partial=True)
    assert kept.possible_rows.tolist() == [3, 7]

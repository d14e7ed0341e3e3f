# SPDX-License-Identifier: Apache-2.0
"""Data in parts: rows are numbered over all parts, and parts are read when they are needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.partitions import Part, PartitionedSequences

ROWS = [["a", "b"], [], ["b"], ["a"], ["b", "b", "a"]]


def parts(*sizes: int) -> PartitionedSequences:
    rows = iter(ROWS)
    return PartitionedSequences.of([[next(rows) for _ in range(size)] for size in sizes], "ab")


@pytest.mark.parametrize("sizes", [(5,), (2, 3), (1, 0, 3, 1), (0, 5)])
def test_rows_are_numbered_over_all_parts(sizes: tuple[int, ...]) -> None:
    data = parts(*sizes)
    assert data.load().to_lists() == ROWS
    assert len(data.counted()) == 5
    for rows in ([0], [4, 1], [3, 3, 0], [], range(5), torch.tensor([2])):
        assert data.take(rows).to_lists() == [ROWS[row] for row in rows]
    assert data.alphabet == data.take([]).alphabet == ("a", "b")


def test_readers_are_called_when_their_part_is_needed() -> None:
    calls: list[int] = []

    def reader(number: int) -> Any:
        def read() -> list[list[str]]:
            calls.append(number)
            return [ROWS[number]]

        return read

    data = PartitionedSequences.of(map(reader, range(4)), "ab")
    assert calls == []
    with pytest.raises(ValueError, match=r"count them: data = data.counted\(\)"):
        len(data)
    data = data.counted()
    assert sorted(calls) == [0, 1, 2, 3]
    calls.clear()
    assert data.counted() is data
    assert data.take([2]).to_lists() == [["b"]]
    assert calls == [2]


def test_parts_may_have_covariates() -> None:
    known = [Sequences.of([row], "ab").with_covariates([number]) for number, row in enumerate(ROWS)]
    data = PartitionedSequences.of(known, "ab")
    covariates = data.take([3, 1]).covariates
    assert covariates is not None
    assert covariates.values.tolist() == [3, 1]


def test_data_that_change_are_refused() -> None:
    sizes = iter([3, 3, 2])
    data = PartitionedSequences.of([["b"], lambda: ROWS[: next(sizes)]], "ab").counted()
    assert data.load().to_lists() == [["b"], *ROWS[:3]]
    with pytest.raises(ValueError, match=r"part 1 of the data: expected the 3 sequences .* found 2; do not change"):
        data.load()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: PartitionedSequences.of([], "ab"), "parts: expected at least one part"),
        (lambda: PartitionedSequences.of("abc", "abc"), "parts: expected a list of parts"),
        (
            lambda: PartitionedSequences.of(["data.txt"], "ab"),
            "found 'data.txt' in part 0; for files take PartitionedSequences.from_files",
        ),
        (
            lambda: PartitionedSequences.of([Path("x")], "ab"),
            "in part 0; for files take PartitionedSequences.from_files",
        ),
        (lambda: PartitionedSequences.of([["a"], ["ac"]], "ab").load(), "part 1 of the data: .*'c'"),
        (lambda: PartitionedSequences([["a"]]), "parts: expected parts of the data"),
        (lambda: PartitionedSequences(3), "parts: expected parts of the data"),
        (lambda: parts(5).take([5]), "rows: expected numbers from 0 to 4, found 5"),
        (lambda: parts(5).take([-1]), "rows: expected numbers from 0 to 4, found -1"),
        (lambda: parts(5).take([0.5]), "rows: expected the numbers of rows"),
        (lambda: parts(5).take([True, False]), "rows: expected the numbers of rows"),
        (lambda: parts(5).take("ab"), "rows: expected the numbers of rows"),
        (lambda: parts(5).take(3), "rows: expected the numbers of rows"),
        (lambda: parts(5).counted(progress=1), "progress"),
    ],
)
def test_mistakes_are_named(wrong: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        wrong()


def test_a_part_over_another_alphabet_is_refused() -> None:
    data = PartitionedSequences.of([["ab"], Sequences.of(["ab"], "abc")], "ab")
    with pytest.raises(ValueError, match=r"part 1 of the data: alphabet"):
        data.load()


def test_it_says_what_it_is() -> None:
    assert repr(parts(2, 3)) == "PartitionedSequences(2 parts over ('a', 'b'))"
    assert isinstance(parts(5).parts[0], Part)

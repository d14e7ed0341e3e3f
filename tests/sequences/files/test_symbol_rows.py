# SPDX-License-Identifier: Apache-2.0
"""From rows of symbols to coded sequences: numbers, kinds, unknown symbols."""

from __future__ import annotations

from typing import Any

import pytest

from pyro_ksd.sequences.alphabets import Alphabet
from pyro_ksd.sequences.files.symbol_rows import LineRows, as_sequences, check_kinds, split_text, with_numbers


def rows_of(*rows: Any) -> LineRows:
    return LineRows("f", rows, range(1, len(rows) + 1))


@pytest.mark.parametrize(
    ("rows", "alphabet", "expected"),
    [
        ([["1", "10"], ["9"]], None, [[1, 10], [9]]),
        ([["-1", "0"]], None, [[-1, 0]]),
        ([["1"], ["0"]], 2, [[1], [0]]),
        ([["1"], ["0"]], (0, 1), [[1], [0]]),
        ([["1"], ["0"]], ("0", "1"), [["1"], ["0"]]),
        ([["1", "a"]], None, [["1", "a"]]),
        ([["007", "1"]], None, [["007", "1"]]),
        ([["-0", "1"]], None, [["-0", "1"]]),
        ([["٣", "1"]], None, [["٣", "1"]]),
        ([[1, 2]], None, [[1, 2]]),
        ([[]], None, [[]]),
        ([["1.5", "2"]], ("1.5", "2"), [["1.5", "2"]]),
        ([["1.5", "a"]], None, [["1.5", "a"]]),
    ],
)
def test_whole_numbers(rows: Any, alphabet: Alphabet | None, expected: Any) -> None:
    assert list(with_numbers(rows_of(*rows), alphabet).rows) == expected


@pytest.mark.parametrize("text", ["0.5", "1e3", "+1", ".5", "2."])
def test_numbers_with_fractions_are_refused(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"^f, line 2, symbol 2: found the number .*, expected a discrete symbol; round"
    ):
        with_numbers(rows_of(["1"], ["2", text, "3"]), None)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([["a", 1]], "f, line 1, symbol 2: found 1, expected a symbol of the same kind as 'a' in f, line 1, symbol 1"),
        ([["a"], ["b", None]], "f, line 2, symbol 2: found None, expected a text or a whole number"),
        ([[0.5]], "f, line 1, symbol 1: found 0.5, expected a text or a whole number"),
        ([[["a"]]], r"f, line 1, symbol 1: found \['a'\], expected a text or a whole number"),
        ([[True], [1]], "f, line 2, symbol 1: found 1, expected a symbol of the same kind as True"),
    ],
)
def test_symbols_of_several_kinds(rows: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        check_kinds(rows_of(*rows))


def test_symbols_of_one_kind() -> None:
    for rows in (["ab", "", "a"], [["a"], []], [[1], [-2]], [[True, False]]):
        check_kinds(rows_of(*rows))


def test_unknown_symbols() -> None:
    found = rows_of("AC", "ANNG", "TN", "RG", "")
    with pytest.raises(
        ValueError,
        match=r"^f, line 2, symbol 2: found the symbol 'N', expected one of the alphabet \('A', 'C', 'G', 'T'\); add "
        "it to alphabet=, fix the file, or leave out all sequences with other symbols, skip_unknown=True",
    ):
        as_sequences(found, tuple("ACGT"), skip_unknown=False)
    with pytest.warns(
        UserWarning,
        match=r"^left out 3 of 5 sequences with symbols outside of the alphabet: 'N' \(3 times\), 'R' \(once\), first "
        "in f, line 2, symbol 2; this changes the lengths",
    ):
        data = as_sequences(found, tuple("ACGT"), skip_unknown=True)
    assert data.to_lists() == [["A", "C"], []]
    assert data.alphabet == tuple("ACGT")
    with pytest.raises(ValueError, match=r"no sequence has symbols of the alphabet only; correct alphabet="):
        as_sequences(rows_of("N", "AN"), tuple("ACGT"), skip_unknown=True)


def test_unknown_numbers() -> None:
    with pytest.raises(
        ValueError, match=r"^f, line 2, symbol 1: found the symbol 3, expected one of the alphabet 0\.\.2"
    ):
        as_sequences(rows_of([1], [3]), 3, skip_unknown=False)


def test_nothing_is_said_if_all_symbols_are_known() -> None:
    assert as_sequences(rows_of("ab"), ("a", "b", "c"), skip_unknown=True).alphabet == ("a", "b", "c")
    assert as_sequences(rows_of("ba"), None, skip_unknown=False).alphabet == ("a", "b")


def test_split_text() -> None:
    assert split_text("a  b\tc", " ", "here") == ["a", "b", "c"]
    assert split_text("a, b", ",", "here") == ["a", "b"]
    assert split_text("", ",", "here") == []
    with pytest.raises(ValueError, match=r"^here, symbol 2: found no symbol before or after a separator ','"):
        split_text("a,,b", ",", "here")

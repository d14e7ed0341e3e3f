# SPDX-License-Identifier: Apache-2.0
"""Logs and columns of sequences."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pyro_ksd.sequences.files.symbol_rows import SymbolRows
from pyro_ksd.sequences.files.tables import Log, Table, check_columns, column_rows, log_rows


def read_log(by: list[Any], symbols: list[Any], order: list[Any] | None = None, alphabet: Any = None) -> SymbolRows:
    columns = {"by": by, "symbol": symbols} | ({} if order is None else {"order": order})
    return log_rows(
        Table("f.csv", columns, first=2), Log(["by"], "symbol", [] if order is None else ["order"]), alphabet
    )


def test_logs() -> None:
    assert read_log(["x", "y", "x"], ["a", "b", "c"]).rows == [["a", "c"], ["b"]]
    assert read_log(["y", "x", "y"], ["a", "b", "c"], ["2", "1", "1"]).rows == [["c", "a"], ["b"]]
    assert read_log(["x", "x"], ["10", "9"]).rows == [[10, 9]]


@pytest.mark.parametrize(
    "times",
    [
        ["9", "10", "100"],
        ["-2", "-1.5", "1e3"],
        ["2024-01-31 09:30", "2024-01-31 10:00", "2024-02-01 00:00"],
        ["2024-01-31T09:30:00Z", "2024-01-31T09:30:00.5Z", "2024-02-01T00:00:00Z"],
        ["2024-01-31T09:30+02:00", "2024-01-31T08:00Z", "2024-01-31T06:30-02:00"],
        ["2024-01-31", "2024-02-01", "2024-10-01"],
        ["09:30", "10:00", "23:59:59.5"],
        [2, 3.5, 10],
    ],
)
def test_order(times: list[Any]) -> None:
    for seed in range(5):
        order = list(range(3))
        random.Random(seed).shuffle(order)
        found = read_log(["x"] * 3, [str("abc"[i]) for i in order], [times[i] for i in order])
        assert found.rows == [["a", "b", "c"]]
        assert found.place(0, 1) == f"f.csv, line {order.index(1) + 2}, column 'symbol'"


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (["1", "b"], "f.csv, line 3, column 'order': found the text 'b', expected a number or a time"),
        (
            ["31/01/2024", "1"],
            "f.csv, line 2, column 'order': found the text '31/01/2024', expected a number or a time",
        ),
        (["2024-01-31 09:30Z", "2024-01-31 09:30"], "f.csv, line 3, .* expected one with an offset from UTC"),
        (["2024-01-31 09:30", "2024-01-31 09:30+01"], "f.csv, line 3, .* expected one without an offset from UTC"),
        ([1, "1"], "f.csv, line 3, column 'order': found '1', expected a value of the same kind as 1 in f.csv, line 2"),
        ([[1], [2]], r"f.csv, line 2, column 'order': found \[1\], expected a text or a number"),
    ],
)
def test_wrong_order(times: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        read_log(["x", "x"], ["a", "b"], times)


def test_numbers_and_texts_that_tell_sequences_apart() -> None:
    with pytest.raises(ValueError, match=r"line 3, column 'by': found '7', expected a value of the same kind as 7"):
        read_log([7, "7"], ["a", "b"])


def test_ties_are_warned_of_by_line() -> None:
    with pytest.warns(UserWarning, match=r"found 2 events that share their place .* such as lines \[2, 4\]"):
        found = read_log(["x", "y", "x"], ["a", "b", "c"], ["1", "1", "1"])
    assert found.rows == [["a", "c"], ["b"]]


def test_a_part_of_a_log_keeps_its_places() -> None:
    found = read_log(["x", "y", "x"], ["a", "b", "c"])
    assert found.chosen([1]).rows == [["b"]]
    assert found.chosen([1]).place(0, 0) == "f.csv, line 3, column 'symbol'"


def column(values: list[Any], sep: str | None = None, alphabet: Any = None) -> SymbolRows:
    return column_rows(Table("f", {"path": values}, first=1, unit="row"), "path", sep, alphabet)


def test_columns() -> None:
    assert column(["ab", ""]).rows == ["ab", ""]
    assert column(["a-b", "", "b"], "-").rows == [["a", "b"], [], ["b"]]
    assert column(["1 2", "3"], " ").rows == [[1, 2], [3]]
    assert column([["a", "b"], []]).rows == [["a", "b"], []]
    assert column([["a"], ["b"]]).place(1, 0) == "f, row 2, column 'path', symbol 1"


@pytest.mark.parametrize(
    ("values", "sep", "message"),
    [
        (["a", ["b"]], None, r"f, row 2, column 'path': found \['b'\], expected a string, as in f, row 1"),
        ([["a"], "b"], None, "f, row 2, column 'path': found 'b', expected a list, as in f, row 1"),
        ([3], None, "f, row 1, column 'path': found 3, expected a string or a list of symbols"),
        ([["a"]], " ", "sep: expected strings to split, found lists in f; leave it out"),
        ([["a"], ["b", 1]], None, "f, row 2, column 'path', symbol 2: found 1, expected a symbol of the same kind"),
        (["a,b", "a,"], ",", "f, row 2, column 'path', symbol 2: found no symbol before or after a separator"),
    ],
)
def test_wrong_columns(values: list[Any], sep: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        column(values, sep)


def test_words_are_warned_of() -> None:
    with pytest.warns(UserWarning, match=r"found ' ' in 1 of 1 strings"):
        column(["home buy"])


def test_names_of_columns() -> None:
    check_columns("f", ["a", "b"], ["b"])
    with pytest.raises(
        ValueError, match=r"^f: expected one column 'c', found none among the columns \['a', 'b'\]; correct"
    ):
        check_columns("f", ["a", "b"], ["c"])
    with pytest.raises(ValueError, match=r"^f: expected one column 'a', found 2 among .*; rename the others"):
        check_columns("f", ["a", "a"], ["a"])

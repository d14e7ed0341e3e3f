# SPDX-License-Identifier: Apache-2.0
"""CSV and TSV: rows of symbols, and tables with names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pyro_ksd.sequences import read
from pyro_ksd.sequences.files.delimited_files import delimited_file, delimited_table, wide_rows
from pyro_ksd.sequences.files.file_contents import FileContent
from pyro_ksd.sequences.files.symbol_rows import SymbolRows


def wide(text: str, by: str | None = None, alphabet: Any = None, delimiter: str | None = None) -> SymbolRows:
    return wide_rows(delimited_file(FileContent("f.csv", text.encode()), delimiter), by, alphabet)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("home,search\nhome\n", [["home", "search"], ["home"]]),
        ("home,search,,\nhome,,,\n,,,\n", [["home", "search"], ["home"], []]),
        ('a,b\n""\nb', [["a", "b"], [], ["b"]]),
        ("a;b\nb", [["a", "b"], ["b"]]),
        ("3,10\n2", [[3, 10], [2]]),
        ('a,"b,c"\nb', [["a", "b,c"], ["b"]]),
        ('a,"NA"\nb', [["a", "NA"], ["b"]]),
        ("t1,t2,t3\na,b\nb,a,a\na", [["a", "b"], ["b", "a", "a"], ["a"]]),
        ("step 0,step 1\na,b\n", [["a", "b"]]),
        ("0,1,2\na,b,a\na", [["a", "b", "a"], ["a"]]),
        ("t1,t2\nt1,t2\nt2", [["t1", "t2"], ["t1", "t2"], ["t2"]]),
        ("t1,t2\nt1,t3,t2\nt3", [["t1", "t2"], ["t1", "t3", "t2"], ["t3"]]),
        ("t2,t1\na,b\nb", [["t2", "t1"], ["a", "b"], ["b"]]),
        ("1,2,4\n2,2\n1", [[1, 2, 4], [2, 2], [1]]),
    ],
)
def test_one_sequence_a_row(text: str, expected: Any) -> None:
    assert list(wide(text).rows) == expected


def test_a_stated_alphabet_settles_what_names_could_be() -> None:
    assert wide("home\nbuy", alphabet=("buy", "home")).rows == [["home"], ["buy"]]
    assert wide("3\n12").rows == [[3], [12]]
    assert wide("0,1,2\n1,1,0", alphabet=3).rows == [[0, 1, 2], [1, 1, 0]]
    assert wide("t1,t2\na,b", alphabet=("a", "b", "t1", "t2")).rows == [["t1", "t2"], ["a", "b"]]
    assert wide("a,NA\nNA", alphabet=("a", "NA")).rows == [["a", "NA"], ["NA"]]
    assert wide('""\na', alphabet=("", "a")).rows == [[""], ["a"]]
    rows = wide("\n".join(f"{i},a,a" for i in range(12)), alphabet=("a", *map(str, range(12)))).rows
    assert len(rows) == 12
    assert rows[3] == ["3", "a", "a"]


def test_a_column_of_names() -> None:
    found = wide("step 1,user,step 2\na,u1,b\nb,u2,\n,u3,\n", by="user")
    assert found.rows == [["a", "b"], ["b"], []]
    assert found.place(0, 0) == "f.csv, line 2, cell 1"
    assert found.place(0, 1) == "f.csv, line 2, cell 3"
    with pytest.raises(
        ValueError, match=r"line 3, column 'user': found 'u1' as in line 2, expected another name .* symbol="
    ):
        wide("user,page\nu1,a\nu1,b\n", by="user")
    with pytest.raises(
        ValueError, match=r"line 2, column 'user': found an empty cell, expected the name of a sequence"
    ):
        wide("user,page\n,a\n", by="user")
    with pytest.raises(ValueError, match=r"expected one column 'visit', found none"):
        wide("user,page\nu1,a\n", by="visit")
    with pytest.raises(ValueError, match=r"expected at least one sequence after the names of the columns"):
        wide("user,page\n", by="user")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name\nanna\nbob", "f.csv: found one cell in each line, such as 'name', expected several, which are"),
        ("a,b\na,,b", "f.csv, line 2, cell 2: found an empty cell, expected a symbol; blank cells stand at the end"),
        ("a,b\nNA,b", "f.csv, line 2, cell 1: found 'NA', which marks a missing value, expected a symbol"),
        ("a,b\na,NA", "f.csv, line 2, cell 2: found 'NA', which marks a missing value, expected a symbol"),
        ('a,b\na,""', "f.csv, line 2, cell 2: found an empty cell, expected a symbol"),
        (
            "a,b\n\nb",
            'f.csv, line 2: found a blank line, expected a row; remove it, or, if it is an empty sequence, write ""',
        ),
        ('a,b\na,"b', "f.csv, line 2, column 3: found a quote that is not closed"),
        ("1,0.5\n1", "f.csv, line 1, cell 2: found the number '0.5', expected a discrete symbol"),
        ("0,1,2\n1,1,0", "f.csv, line 1: found 0, 1, 2, ..., which may name the columns or be a sequence"),
        (
            "mon,tue\na,b\nb\na",
            "f.csv, line 1: found 'mon', 'tue', which are in no other line, as if they named columns",
        ),
        ("user,page\nu1,a\nu1,b\nu2,a", "f.csv, line 1: found 'user', 'page', which are in no other line"),
        (
            "user,p1,p2\nu1,a,b\nu2,b\nu3,a",
            "f.csv, line 1: found 'user', 'p1', 'p2', which are in no other line, as if they named columns; if the "
            "first column names the sequences, pass by='user'; ",
        ),
        (
            "\n".join(f"u{i},a,b" for i in range(10)),
            "f.csv, line 1, cell 1: found 'u0', and something else in each line",
        ),
        ("\n".join(f"{i},1,0" for i in range(10)), "f.csv, line 1, cell 1: found '0', and something else in each line"),
        (
            "t1,t2,t3\n" + "\n".join(f"{i + 5},1,0" for i in range(10)),
            "f.csv, line 2, cell 1: found '5', and something else in each line",
        ),
    ],
)
def test_what_is_not_clear(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        wide(text)


def test_no_names_are_seen_in_true_data() -> None:
    generator = np.random.default_rng(0)
    for _ in range(200):
        size, count = generator.integers(2, 30), generator.integers(1, 40)
        rows = [generator.integers(0, size, generator.integers(1, 8)) for _ in range(count)]
        repeated = rows + rows[::-1]  # so that no line is the only one of its symbols
        text = "\n".join(",".join(f"s{symbol}x" for symbol in row) for row in repeated)
        assert wide(text).rows == [[f"s{symbol}x" for symbol in row] for row in repeated]


@pytest.mark.parametrize("delimiter", ["", ",,", '"', " "])
def test_wrong_delimiters(delimiter: str) -> None:
    with pytest.raises(ValueError, match=r"^sep: expected a single character that separates the cells"):
        wide("a,b", delimiter=delimiter)


def table(text: str, needed: list[str], delimiter: str | None = None) -> dict[str, list[Any]]:
    return delimited_table(delimited_file(FileContent("f.csv", text.encode()), delimiter), needed).columns


def test_tables_as_pandas_reads_them() -> None:
    text = 'visit;"the page";time\r\n7;home;1\r\n3;"buy;now";2\r\n'
    expected = pd.read_csv(pd.io.common.StringIO(text), sep=";", dtype=str)
    columns = table(text, ["time", "the page"])
    assert columns == {name: expected[name].tolist() for name in ("time", "the page")}
    assert list(columns) == ["time", "the page"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n1", "f.csv, line 3: found 1 cells, expected 2, one for each of the columns ['a', 'b']"),
        ("a,b\n1,2,3", "f.csv, line 2: found 3 cells, expected 2"),
        ("a,b\n1,2\n,3", "f.csv, line 3, column 'a': found an empty cell, expected a value"),
        ("a,b\nNULL,3", "f.csv, line 2, column 'a': found 'NULL', which marks a missing value, expected a value"),
        ("a,b\n", "f.csv: expected at least one row after the names of the columns, found none"),
        ("b,c\n1,2", "f.csv: expected one column 'a', found none among the columns ['b', 'c']"),
        ("a,a\n1,2", "f.csv: expected one column 'a', found 2"),
    ],
)
def test_wrong_tables(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        table(text, ["a"])


def test_what_is_missing_in_other_columns_does_not_matter() -> None:
    assert table('a,b\nx,\ny,NA\n"NA",z', ["a"]) == {"a": ["x", "y", "NA"]}


LOG = """visit,page,at
7,home,2024-03-01 09:30
3,home,2024-03-01 09:10
7,buy,2024-03-01 09:45
3,search,{}
"""


def test_times_that_are_not_in_order_are_warned_of(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text(LOG.format("2024-03-01 09:05"))
    with pytest.warns(UserWarning, match=r"log.csv, line 5, column 'at': found a time .*; pass order_by='at' to sort"):
        found = read(log, by="visit", symbol="page")
    assert found.to_lists() == [["home", "buy"], ["home", "search"]]
    assert read(log, by="visit", symbol="page", order_by="at").to_lists() == [["home", "buy"], ["search", "home"]]


@pytest.mark.parametrize("last", ["2024-03-01 09:10", "2024-03-01 09:11", "yesterday", "2024-03-01 09:05+01:00"])
def test_columns_that_are_in_order_or_have_no_times_are_not_warned_of(last: str, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text(LOG.format(last))
    assert read(log, by="visit", symbol="page").to_lists() == [["home", "buy"], ["home", "search"]]

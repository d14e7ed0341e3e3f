# SPDX-License-Identifier: Apache-2.0
"""Cells of lines against Python's csv module; wrong quotes have a column."""

from __future__ import annotations

import csv
import io
import random

import pytest

from pyro_ksd.sequences.files.cells import cells_of, delimiter_of, is_blank, is_missing, plain


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_what_the_csv_module_writes(delimiter: str, quoting: int) -> None:
    chance = random.Random(0)
    for _ in range(300):
        row = ["".join(chance.choices('ab ",;', k=chance.randrange(4))).strip() for _ in range(chance.randrange(1, 5))]
        text = io.StringIO()
        csv.writer(text, delimiter=delimiter, quoting=quoting, lineterminator="\n").writerow(row)  # type: ignore[arg-type]
        assert plain(cells_of(text.getvalue()[:-1], delimiter, "here")) == row
        assert all(type(cell) is str for cell in plain(cells_of(text.getvalue()[:-1], delimiter, "here")))


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        ("a, b ,c", ["a", "b", "c"]),
        ("a,,", ["a", "", ""]),
        ("", [""]),
        ('"a",', ["a", ""]),
        ('a, " b " ,c', ["a", " b ", "c"]),
        ('"a""b",""', ['a"b', ""]),
    ],
)
def test_white_space_counts_in_quotes_only(line: str, cells: list[str]) -> None:
    assert plain(cells_of(line, ",", "here")) == cells


@pytest.mark.parametrize(
    ("line", "column", "words"),
    [
        ('a,"b', 3, "found a quote that is not closed in this line"),
        ('a, "b,c', 4, "found a quote that is not closed in this line"),
        ('a,"b""', 3, "found a quote that is not closed in this line"),
        ('"a"b,c', 4, "found 'b' after a closing quote"),
        ('x,"a" b', 7, "found 'b' after a closing quote"),
        ('a,5" pipe,"c"', 4, "found a quote inside of a cell without quotes"),
    ],
)
def test_wrong_quotes(line: str, column: int, words: str) -> None:
    with pytest.raises(ValueError, match=f"^here, column {column}: {words}"):
        cells_of(line, ",", "here")


def test_what_is_missing() -> None:
    cells = cells_of('NA,"NA",,"",nan,Nathan', ",", "here")
    assert [is_missing(cell) for cell in cells] == [True, False, True, False, True, False]
    assert [is_blank(cell) for cell in cells] == [False, False, True, False, False, False]


@pytest.mark.parametrize(
    ("lines", "delimiter"),
    [
        (["a,b"], ","),
        (["a;b", "a,b;c"], ";"),
        (["a", "b", "c\td"], "\t"),
        (['"a,b;c"|d'], "|"),
        (["a", "b c"], ","),
    ],
)
def test_the_first_line_with_a_candidate_decides(lines: list[str], delimiter: str) -> None:
    assert delimiter_of("f.csv", lines) == delimiter


def test_a_line_with_two_candidates() -> None:
    with pytest.raises(ValueError, match=r"^f\.csv, line 2: found ',' and ';', expected one .*pass sep=',' or sep=';'"):
        delimiter_of("f.csv", ["a", "b;c,d"])

# SPDX-License-Identifier: Apache-2.0
"""Strings of words: how they are split, and what is said of strings that look as if they should be."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.text_reading import SEPARATORS


@pytest.mark.parametrize(
    ("sep", "lines", "expected"),
    [
        (" ", ["a b", "b"], [["a", "b"], ["b"]]),
        (" ", ["  a   b \n", "b\ta"], [["a", "b"], ["b", "a"]]),
        (" ", ["a b", "", "  "], [["a", "b"], [], []]),
        (",", ["a,b", "b"], [["a", "b"], ["b"]]),
        (",", [" a b, c\n", "c ,c"], [["a b", "c"], ["c", "c"]]),
        (",", ["a,b", "", " "], [["a", "b"], [], []]),
        ("\t", ["a b\tc\n", "\n"], [["a b", "c"], []]),
        ("->", ["a->b -> c", "b"], [["a", "b", "c"], ["b"]]),
        (".", ["a.b"], [["a", "b"]]),
        ("  ", ["a b  c"], [["a b", "c"]]),
    ],
)
def test_strings_are_split_at_the_separator(sep: str, lines: list[str], expected: list[list[str]]) -> None:
    assert Sequences.of(lines, sep=sep).to_lists() == expected


def test_split_strings_over_a_stated_alphabet() -> None:
    data = Sequences.of(["sun rain", "rain"], alphabet=["sun", "rain", "fog"], sep=" ")
    assert data.tokens.tolist() == [[0, 1], [1, 0]]
    with pytest.raises(ValueError, match="sequence 0, position 1: found the symbol 'snow', expected one of"):
        Sequences.of(["sun snow"], alphabet=["sun", "rain"], sep=" ")


def test_numbers_are_taken_as_text_only_if_their_codes_are_the_numbers() -> None:
    assert Sequences.of(["0 1 1", "2"], sep=" ").alphabet == ("0", "1", "2")
    assert Sequences.of(["0 10", "2"], sep=" ", alphabet=["0", "2", "10"]).tokens.tolist() == [[0, 2], [1, 0]]
    assert Sequences.of(["7 x", "2"], sep=" ").alphabet == ("2", "7", "x")


@pytest.mark.parametrize("sep", SEPARATORS)
def test_strings_that_look_like_words(sep: str) -> None:
    data = [f"home{sep}buy", f"home{sep}search{sep}buy", "home", ""]
    message = (
        f"found {sep!r} in 2 of 3 strings, as if it separated words, and took every character as a symbol, {sep!r} "
        f"included. For words, pass sep={sep!r}; for characters, state the alphabet to silence "
        "this warning, such as alphabet=sorted(set(''.join(data)))"
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$") as warned:
        found = Sequences.of(data)
    assert len(warned) == 1
    assert warned[0].filename == __file__
    assert ["".join(map(str, row)) for row in found.to_lists()] == data
    assert Sequences.of(data, sep=sep).to_lists()[1] == ["home", "search", "buy"]
    assert Sequences.of(data, alphabet=sorted(set("".join(data)))).to_lists() == found.to_lists()


@pytest.mark.parametrize(
    ("data", "sep"),
    [
        (["home, search", "buy, home"], ","),
        (["home -> search"], "->"),
        (["home > search"], ">"),
        (["who, me", "not you", "nor me"], " "),
        (["A C G"], " "),
    ],
)
def test_the_separator_that_is_suggested(data: list[str], sep: str) -> None:
    with pytest.warns(UserWarning, match=re.escape(f"pass sep={sep!r};")):
        Sequences.of(data)


@pytest.mark.parametrize(
    "data",
    [
        ["ACGT", "A-CG", "G"],
        ["((..))", "(.)"],
        ["new york", "boston"],
        ["ab\n", " ba", "a "],
        ["", " "],
        [["home search"], ["a, b"]],
        ["a b", "b", "a", ["x y"]],
    ],
    ids=str,
)
def test_no_warning_of_other_data(data: list[Any]) -> None:
    assert Sequences.of(data).to_lists() == [list(row) for row in data]


def test_a_separator_that_never_occurs() -> None:
    message = (
        "found the separator ';' in none of 3 strings, and took each whole string as one symbol; correct sep=, or, if "
        "all sequences have one symbol, state alphabet= to silence this warning"
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$") as warned:
        found = Sequences.of(["home,buy", "home", ""], sep=";")
    assert len(warned) == 1
    assert warned[0].filename == __file__
    assert found.to_lists() == [["home,buy"], ["home"], []]
    assert Sequences.of(["home", "buy"], sep=" ", alphabet=["home", "buy"]).to_lists() == [["home"], ["buy"]]
    assert Sequences.of(["", ""], sep=" ").to_lists() == [[], []]


MISTAKES: dict[str, tuple[Any, dict[str, Any], str]] = {
    "no separator": (
        ["ab"],
        {"sep": ""},
        "sep: expected what separates the symbols, such as ' ' or ',', found ''; leave it out if each character is a "
        "symbol",
    ),
    "separator of another kind": (
        ["ab"],
        {"sep": 3},
        "sep: expected what separates the symbols, such as ' ' or ',', f",
    ),
    "nothing between": (
        ["a,b", "a,,b"],
        {"sep": ","},
        "sequence 1, position 1: found no symbol before or after a separator ',', expected one; remove the separator, "
        "or write a symbol for what is missing",
    ),
    "nothing before": ([",b"], {"sep": ","}, "sequence 0, position 0: found no symbol before or after a separator"),
    "nothing after": (["a\tb\t\n"], {"sep": "\t"}, "sequence 0, position 2: found no symbol before or after a sep"),
    "lists": (
        ["a b", ["a", "b"]],
        {"sep": " "},
        "sequence 1: expected a string to split at sep=' ', found list; leave out sep= if the sequences are split "
        "already",
    ),
    "missing": (
        ["a b", None],
        {"sep": " "},
        "sequence 1: expected a string or a list of symbols, found None; remove or fill missing sequences",
    ),
    "bytes": (
        ["a b", b"a b"],
        {"sep": " "},
        "sequence 1: expected a string or a list of symbols, found b'a b'; pass e",
    ),
    "numbers": (
        ["0 1 10", "2"],
        {"sep": " "},
        "found only numbers between the separators; as text they get their codes in sorted order, and '10' would get "
        "the code 2; pass integers, [[int(n) for n in line.split()] for line in data], or state alphabet= in the order "
        "of the codes",
    ),
    "numbers that do not start at 0": (
        ["1,2", "3"],
        {"sep": ","},
        "'1' would get the code 0; pass integers, [[int(n) f",
    ),
    "numbers, split at commas": (["1,2", "3"], {"sep": ","}, "[[int(n) for n in line.split(',')] for line in data]"),
    "negative numbers": (["0 -1", "0"], {"sep": " "}, "'-1' would get the code 0; pass integers"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_explained(mistake: str) -> None:
    data, options, message = MISTAKES[mistake]
    with pytest.raises(ValueError, match=re.escape(message)):
        Sequences.of(data, **options)

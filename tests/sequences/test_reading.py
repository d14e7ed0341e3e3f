# SPDX-License-Identifier: Apache-2.0
"""Every way into ``Sequences``, the way back, and every mistake with what it says."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from pyro_ksd.sequences import Sequences, split

LETTERS = [["a", "c"], ["b"], [], ["c", "c", "a"]]
CODES = [[0, 2], [1], [], [2, 2, 0]]
FILLED = [[0, 2, -1, -1], [1, -1, -1, -1], [-1] * 4, [2, 2, 0, -1]]
LENGTHS = [2, 1, 0, 3]
CELLS = [["a", "c", "-"], ["b", "-", "-"], ["-", "-", "-"], ["c", "c", "a"]]


def same(left: Sequences, right: Sequences) -> bool:
    return left.alphabet == right.alphabet and left.to_lists() == right.to_lists()


# ------------------------------------------------------------------------------------------------ ways in


@pytest.mark.parametrize(
    "data",
    [
        ["ac", "b", "", "cca"],
        ("ac", "b", "", "cca"),
        LETTERS,
        [tuple(row) for row in LETTERS],
        (row for row in LETTERS),
        [iter(row) for row in LETTERS],
        [np.array(row, dtype="U1") for row in LETTERS],
        np.array(["ac", "b", "", "cca"]),
        pd.Series(["ac", "b", "", "cca"]),
        pd.Series(["ac", "b", "", "cca"], index=[3, 1, 0, 2]),
        pd.Series(["ac", "b", "", "cca"]).astype("category"),
        pd.Series(LETTERS),
        xr.DataArray(["ac", "b", "", "cca"], dims="name"),
        xr.Dataset({"word": ("name", ["ac", "b", "", "cca"])})["word"],
    ],
    ids=lambda data: type(data).__name__,
)
def test_letters_from_every_container(data: Any) -> None:
    made = Sequences.of(data)
    assert made.to_lists() == LETTERS
    assert made.alphabet == ("a", "b", "c")
    assert made.tokens.tolist() == [[0, 2, 0], [1, 0, 0], [0, 0, 0], [2, 2, 0]]
    assert made.lengths.tolist() == LENGTHS
    assert made.tokens.dtype == made.lengths.dtype == torch.long


@pytest.mark.parametrize(
    "data",
    [
        CODES,
        [torch.tensor(row, dtype=torch.long) for row in CODES],
        [np.array(row, dtype=np.int16) for row in CODES],
        [[np.int64(code) for code in row] for row in CODES],
        [[torch.tensor(code) for code in row] for row in CODES],
        pd.Series(CODES),
    ],
    ids=["lists", "tensors", "arrays", "numpy scalars", "torch scalars", "series"],
)
def test_codes_from_every_container(data: Any) -> None:
    made = Sequences.of(data)
    assert made.to_lists() == CODES
    assert made.alphabet == 3
    assert all(type(symbol) is int for row in made.to_lists() for symbol in row)


@pytest.mark.parametrize(
    "convert",
    [
        np.array,
        torch.tensor,
        lambda rows: torch.tensor(rows, dtype=torch.int8),
        lambda rows: np.array(rows, dtype=np.int16),
        lambda rows: np.asfortranarray(np.array(rows)),
        lambda rows: np.array(rows, dtype=object),
        lambda rows: xr.DataArray(rows, dims=("sequence", "position")),
        lambda rows: pd.DataFrame(rows),
    ],
    ids=["numpy", "torch", "int8", "int16", "fortran", "object", "xarray", "frame"],
)
@pytest.mark.parametrize(
    "options", [{"pad": -1}, {"lengths": LENGTHS}, {"lengths": LENGTHS, "pad": -1}], ids=["pad", "lengths", "both"]
)
def test_padded_codes(convert: Callable[[Any], Any], options: dict[str, Any]) -> None:
    made = Sequences.of(convert(FILLED), **options)
    assert made.to_lists() == CODES
    assert made.alphabet == 3
    assert not made.tokens[~made.mask].any()


@pytest.mark.parametrize(
    "lengths",
    [LENGTHS, tuple(LENGTHS), np.array(LENGTHS), torch.tensor(LENGTHS, dtype=torch.int32), pd.Series(LENGTHS)],
    ids=lambda lengths: type(lengths).__name__,
)
def test_lengths_in_every_form(lengths: Any) -> None:
    assert Sequences.of(np.array(FILLED), lengths=lengths).to_lists() == CODES


def test_lengths_hide_whatever_lies_behind_the_end() -> None:
    made = Sequences.of(torch.tensor([[1, 7], [0, 1]]), lengths=[1, 2])
    assert made.tokens.tolist() == [[1, 0], [0, 1]]
    assert made.alphabet == 2


@pytest.mark.parametrize("convert", [np.array, torch.tensor], ids=["numpy", "torch"])
def test_array_with_neither_lengths_nor_pad_has_full_rows(convert: Callable[[Any], Any]) -> None:
    made = Sequences.of(convert([[0, 0], [3, 1]]))
    assert made.lengths.tolist() == [2, 2]
    assert made.alphabet == 4


def test_pad_may_be_a_code_that_is_no_symbol() -> None:
    assert Sequences.of(np.array([[0, 1, 2], [2, 2, 2]]), alphabet=2, pad=2).to_lists() == [[0, 1], []]


@pytest.mark.parametrize("dtype", ["U1", "S1", object])
def test_padded_array_of_letters(dtype: Any) -> None:
    cells = np.array(CELLS, dtype=dtype)
    pad = b"-" if dtype == "S1" else "-"
    expected = [[symbol.encode() for symbol in row] for row in LETTERS] if dtype == "S1" else LETTERS
    for options in ({"pad": pad}, {"lengths": LENGTHS}, {"lengths": LENGTHS, "pad": pad}):
        assert Sequences.of(cells, **options).to_lists() == expected


@pytest.mark.parametrize("convert", [pd.DataFrame, lambda rows: xr.DataArray(rows, dims=("row", "column"))])
def test_two_dimensional_columns_of_letters(convert: Callable[[Any], Any]) -> None:
    assert Sequences.of(convert(CELLS), pad="-").to_lists() == LETTERS
    assert Sequences.of(convert([["a", "b"], ["b", "a"]])).to_lists() == [["a", "b"], ["b", "a"]]


@pytest.mark.parametrize("convert", [np.array, torch.tensor], ids=["numpy", "torch"])
def test_padded_codes_with_named_symbols(convert: Callable[[Any], Any]) -> None:
    letters = Sequences.of(convert([[0, 2], [1, -1]]), alphabet="abc", pad=-1)
    assert letters.to_lists() == [["a", "c"], ["b"]]
    notes = Sequences.of(convert([[60, 64], [67, -1]]), alphabet=(60, 64, 67), pad=-1)
    assert notes.tokens.tolist() == [[0, 1], [2, 0]]
    assert notes.to_lists() == [[60, 64], [67]]


def test_array_without_columns_holds_empty_sequences() -> None:
    for options in ({}, {"pad": -1}, {"lengths": [0, 0]}):
        made = Sequences.of(np.zeros((2, 0), dtype=int), **options)
        assert made.to_lists() == [[], []]
        assert made.alphabet == 1


def test_booleans_are_symbols() -> None:
    assert Sequences.of([[True], [False, True]]).alphabet == (False, True)
    assert Sequences.of(torch.tensor([[True, False]])).to_lists() == [[1, 0]]


def test_any_hashable_is_a_symbol() -> None:
    rows = [[("C", 4), "rest"], [frozenset({1}), ("C", 4)]]
    assert Sequences.of(rows).to_lists() == rows
    assert Sequences.of(rows).alphabet == (("C", 4), "rest", frozenset({1}))


def test_sequences_pass_through() -> None:
    data = Sequences.of(["ab", "b"])
    assert Sequences.of(data) is data
    assert Sequences.of(data, alphabet="ab") is data


# ---------------------------------------------------------------------------------------------- alphabets


@pytest.mark.parametrize("alphabet", ["abcd", ("a", "b", "c", "d"), list("abcd"), np.array(list("abcd")), iter("abcd")])
def test_given_letters(alphabet: Any) -> None:
    made = Sequences.of(["db", "a"], alphabet=alphabet)
    assert made.alphabet == made.symbols == ("a", "b", "c", "d")
    assert made.alphabet_size == 4
    assert made.tokens.tolist() == [[3, 1], [0, 0]]


@pytest.mark.parametrize("alphabet", [5, np.int64(5)])
def test_given_size(alphabet: Any) -> None:
    made = Sequences.of([[0, 1], [2]], alphabet=alphabet)
    assert made.alphabet == made.alphabet_size == 5
    assert made.symbols == (0, 1, 2, 3, 4)


def test_order_of_the_alphabet_is_the_order_of_the_codes() -> None:
    assert Sequences.of(["ab"], alphabet="ba").tokens.tolist() == [[1, 0]]


@pytest.mark.parametrize("alphabet", [[1, 0], np.array([1, 0]), torch.tensor([1, 0])], ids=["list", "numpy", "torch"])
def test_integer_symbols_of_an_array_are_looked_up_in_the_alphabet(alphabet: Any) -> None:
    made = Sequences.of(np.array([[0, 0, 1]]), alphabet=alphabet)
    assert made.alphabet == (1, 0)
    assert made.tokens.tolist() == [[1, 1, 0]]
    assert made.to_lists() == [[0, 0, 1]]


def test_inferred_alphabets() -> None:
    assert Sequences.of([[0], [4]]).alphabet == 5
    assert Sequences.of([[], []]).alphabet == 1
    assert Sequences.of([[-1, 3]]).alphabet == (-1, 3)
    assert Sequences.of(["ba", "c"]).alphabet == ("a", "b", "c")
    assert Sequences.of([["b", 1], ["a"]]).alphabet == ("b", 1, "a")


def test_encode() -> None:
    data = Sequences.of(["abc"])
    assert data.encode("cab") == [2, 0, 1]
    with pytest.raises(ValueError, match=r"found the symbol 'x', expected one of the alphabet \('a', 'b', 'c'\)"):
        data.encode("ax")


# ---------------------------------------------------------------------------------------- parts and wholes


def test_row_selection() -> None:
    data = Sequences.of(LETTERS)
    assert data[1:3].to_lists() == LETTERS[1:3]
    assert data[[3, 0]].to_lists() == [LETTERS[3], LETTERS[0]]
    assert data[torch.tensor([3, 3])].to_lists() == [LETTERS[3]] * 2
    assert data[data.lengths > 1].to_lists() == [LETTERS[0], LETTERS[3]]
    assert data[1:1].to_lists() == []
    assert data[[3]].alphabet == data.alphabet
    with pytest.raises(ValueError, match=re.escape("found the single index 2; use data[2:3]")):
        data[2]  # type: ignore[index]


def test_cat() -> None:
    long, short = Sequences.of(["abba"]), Sequences.of(["b", ""], alphabet="ab")
    assert Sequences.cat([short, long, short]).to_lists() == [["b"], [], list("abba"), ["b"], []]
    assert Sequences.cat([short, long]).alphabet == ("a", "b")
    with pytest.raises(ValueError, match=re.escape("expected one alphabet, found [\"('a', 'b')\", '0..1']")):
        Sequences.cat([long, Sequences.of([[0, 1]])])


def test_mask_padded_and_size() -> None:
    data = Sequences.of(torch.tensor(FILLED), pad=-1)
    assert len(data) == 4
    assert data.width == 4
    assert data.padded(-1).tolist() == FILLED
    assert data.mask.sum(1).tolist() == LENGTHS


# ---------------------------------------------------------------------------------------------- round trip

rows_of_codes = st.lists(st.lists(st.integers(0, 6), max_size=6), min_size=1, max_size=6)


@settings(deadline=None, max_examples=60)
@given(rows_of_codes, st.integers(-3, -1) | st.integers(7, 9))
def test_round_trip_of_codes(rows: list[list[int]], pad: int) -> None:
    data = Sequences.of(rows, alphabet=7)
    assert data.to_lists() == rows
    for again in (
        Sequences.of(data.to_lists(), 7),
        Sequences.of(data.padded(pad), 7, pad=pad),
        Sequences.of(data.padded(pad).numpy(), 7, pad=pad),
        Sequences.of(data.tokens, 7, lengths=data.lengths),
        Sequences(data.tokens, data.lengths, 7),
    ):
        assert same(again, data)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.text(max_size=5), min_size=1, max_size=5))
def test_round_trip_of_text(words: list[str]) -> None:
    data = Sequences.of(words)
    assert ["".join(map(str, row)) for row in data.to_lists()] == words
    symbols = sorted(set("".join(words)))
    assert data.symbols == (tuple(symbols) if symbols else (0,))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.text("xy", max_size=1)), max_size=4), min_size=1, max_size=4))
def test_round_trip_of_hashables(rows: list[list[tuple[int, str]]]) -> None:
    assert Sequences.of(rows).to_lists() == rows


# ---------------------------------------------------------------------------------------------- bad input


class Thing:
    """Hashable, but with no order."""


MISTAKES: dict[str, tuple[Any, dict[str, Any], str]] = {
    "letter outside": (
        ["ab", "axb"],
        {"alphabet": "ab"},
        "sequence 1, position 1: found the symbol 'x', expected one of the alphabet ('a', 'b'); "
        "add it to alphabet= or fix the sequence",
    ),
    "code outside": ([[0], [0, 3]], {"alphabet": 3}, "sequence 1, position 1: found the symbol 3, expected one of"),
    "negative code": ([[0], [-1, 0]], {"alphabet": 3}, "sequence 1, position 0: found the symbol -1, expected one of"),
    "letter for a size": (["a"], {"alphabet": 3}, "sequence 0, position 0: found the symbol 'a', expected one of the"),
    "long alphabet": ([[99]], {"alphabet": range(40)}, "28, 29) and 10 more"),
    "code outside, padded": (
        np.array([[0, 1], [5, -1]]),
        {"alphabet": 2, "pad": -1},
        "sequence 1, position 0: found the symbol 5, expected one of the alphabet 0..1; add it to alphabet=",
    ),
    "code outside, torch": (torch.tensor([[0, -2]]), {"alphabet": 2}, "sequence 0, position 1: found the symbol -2"),
    "code outside, named": (torch.tensor([[0, 2]]), {"alphabet": "ab"}, "sequence 0, position 1: found the symbol 2"),
    "symbol outside, integers": (
        np.array([[60, 64], [60, 61]]),
        {"alphabet": (60, 64)},
        "sequence 1, position 1: found the symbol 61, expected one of the alphabet (60, 64)",
    ),
    "pad not said": (
        torch.tensor([[0, 1], [1, -1]]),
        {},
        "sequence 1, position 1: found -1, expected a code of at least 0; if it marks the padding, say pad=-1",
    ),
    "negative length": (np.array(FILLED), {"lengths": [2, -1, 0, 3]}, "sequence 1: found the length -1, expected 0..4"),
    "length too large": (np.array(FILLED), {"lengths": [2, 1, 0, 5]}, "sequence 3: found the length 5, expected 0..4"),
    "negative length, letters": (
        np.array(CELLS),
        {"lengths": [2, 1, -4, 3]},
        "sequence 2: found the length -4, expected 0..3, the number of columns",
    ),
    "too few lengths": (
        torch.tensor(FILLED),
        {"lengths": [2, 1]},
        "lengths: expected 4 integers, one for each row, found torch.int64 of shape [2]",
    ),
    "too many lengths, letters": (
        np.array(CELLS),
        {"lengths": [1] * 5},
        "lengths: expected 4 integers, one for each row, found torch.int64 of shape [5]",
    ),
    "float lengths": (
        torch.tensor(FILLED),
        {"lengths": [2.0, 1.0, 0.0, 3.0]},
        "lengths: expected 4 integers, one for each row, found torch.float64 of shape [4]",
    ),
    "pad inside": (
        torch.tensor([[0, 1], [-1, 1]]),
        {"pad": -1},
        "sequence 1, position 1: found 1 behind the padding value -1, expected padding up to the end of the row; "
        "a pad inside a sequence has no meaning, remove it",
    ),
    "pad inside, letters": (
        np.array([["a", "b"], ["-", "b"]]),
        {"pad": "-"},
        "sequence 1, position 1: found 'b' behind the padding value '-', expected padding up to the end of the row",
    ),
    "pad within the length": (
        torch.tensor([[0, 1], [1, -1]]),
        {"pad": -1, "lengths": [2, 2]},
        "sequence 1, position 1: found the padding value -1 inside the sequence, expected it only after the end; "
        "fix lengths=, or use a padding value that is no symbol",
    ),
    "pad within the length, letters": (
        np.array([["a", "b"], ["b", "-"]]),
        {"pad": "-", "lengths": [2, 2]},
        "sequence 1, position 1: found the padding value '-' inside the sequence, expected it only after the end",
    ),
    "value behind the length": (
        torch.tensor([[0, 1], [1, 0]]),
        {"pad": -1, "lengths": [2, 1]},
        "sequence 1, position 1: found 0 behind the padding value -1, expected padding up to the end of the row",
    ),
    "value behind the length, letters": (
        np.array([["a", "b"], ["b", "a"]]),
        {"pad": "-", "lengths": [2, 1]},
        "sequence 1, position 1: found 'a' behind the padding value '-', expected padding up to the end of the row",
    ),
    "pad of another kind": (
        torch.tensor(FILLED),
        {"pad": "-"},
        "pad: expected an integer for an integer array, found '-'",
    ),
    "pad for lists": ([[0, 1]], {"pad": -1}, "lengths= and pad= belong to padded arrays; a list of sequences needs"),
    "lengths for lists": ([[0, 1]], {"lengths": [1]}, "lengths= and pad= belong to padded arrays"),
    "empty list": ([], {}, "expected at least one sequence, found an empty data set"),
    "empty series": (pd.Series([], dtype=object), {}, "expected at least one sequence, found an empty data set"),
    "empty array": (np.zeros((0, 3), dtype=int), {}, "expected at least one sequence, found an empty data set"),
    "empty letters": (np.zeros((0, 3), dtype="U1"), {}, "expected at least one sequence, found an empty data set"),
    "single string": ("acgt", {}, "expected several sequences, found the single string 'acgt'; pass a list of strings"),
    "single bytes": (b"acgt", {}, "expected several sequences, found the single string b'acgt'"),
    "single list": ([0, 1, 2], {}, "sequence 0: expected a string or a list of symbols, found 0"),
    "single tensor": (torch.tensor([3, 1]), {}, "sequence 0: expected a string or a list of symbols, found 3"),
    "no container": (3, {}, "expected a list of sequences or a padded array, found int"),
    "nothing": (None, {}, "expected a list of sequences or a padded array, found NoneType"),
    "dictionary": ({"a": [0, 1]}, {}, "expected a list of sequences or a padded array, found dict"),
    "scalar tensor": (torch.tensor(3), {}, "expected a padded array with 2 dimensions, found shape []; one sequence a"),
    "cube": (np.zeros((2, 2, 2), dtype=int), {}, "expected a padded array with 2 dimensions, found shape [2, 2, 2]"),
    "float": ([[0, 1], [1, 0.5]], {}, "sequence 1, position 1: found the float 0.5, expected a discrete symbol; use"),
    "whole float": ([[0, 1.0]], {"alphabet": 2}, "sequence 0, position 1: found the float 1.0, expected a discrete"),
    "NaN": (
        [["a", float("nan")]],
        {},
        "sequence 0, position 1: found NaN, expected a discrete symbol; use integers or",
    ),
    "float array": (
        np.array([[0.25, 1.0]]),
        {},
        "sequence 0, position 0: found the float 0.25, expected an integer code",
    ),
    "float tensor": (
        torch.tensor([[2.0, 1.0]]),
        {},
        "sequence 0, position 0: found the float 2.0, expected an integer",
    ),
    "NaN array": (np.array([[0, 1], [1, np.nan]]), {}, "sequence 1, position 1: found NaN, expected an integer code"),
    "NaN in letters": (pd.DataFrame([["a", "b"], ["a", None]]), {}, "sequence 1, position 1: found N"),
    "float row": ([torch.tensor([0.5])], {}, "sequence 0, position 0: found the float 0.5"),
    "missing row": (["ab", None], {}, "sequence 1: expected a string or a list of symbols, found None; remove or fill"),
    "missing in a series": (
        pd.Series(["ab", None, "b"]),
        {},
        "sequence 1: expected a string or a list of symbols, fou",
    ),
    "NaN row": ([[0], float("nan")], {}, "sequence 1: expected a string or a list of symbols, found nan; remove or"),
    "bytes row": ([b"ab"], {}, "sequence 0: expected a string or a list of symbols, found b'ab'"),
    "missing symbol": ([["a", None]], {}, "sequence 0, position 1: found None, expected a hashable symbol such as an"),
    "unhashable symbol": ([["a"], [["b"]]], {}, "sequence 1, position 0: found ['b'], expected a hashable symbol such"),
    "unhashable, alphabet": ([[["b"]]], {"alphabet": "ab"}, "sequence 0, position 0: found ['b'], expected a hashable"),
    "tensor as a symbol": (
        [[torch.tensor([1, 2])]],
        {},
        "sequence 0, position 0: found tensor([1, 2]), expected a hash",
    ),
    "matrix row": ([torch.zeros(2, 2, dtype=torch.long)], {}, "sequence 0: expected one dimension, found shape [2, 2]"),
    "repeated alphabet": (["ab"], {"alphabet": "aba"}, "alphabet: expected distinct symbols, found 'a' more than once"),
    "no alphabet": (["ab"], {"alphabet": ""}, "alphabet: expected at least one symbol, found ()"),
    "alphabet of size 0": ([[0]], {"alphabet": 0}, "alphabet: expected at least one symbol, found 0"),
    "float alphabet": ([[0]], {"alphabet": 2.0}, "alphabet: expected a number of symbols or the symbols, found 2.0"),
    "unhashable alphabet": ([[0]], {"alphabet": [[0]]}, "alphabet: expected hashable symbols, found [0]"),
    "another alphabet": (
        Sequences.of(["ab"]),
        {"alphabet": "abc"},
        "the data already has the alphabet ('a', 'b'), found another one: abc",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_explained(mistake: str) -> None:
    data, options, message = MISTAKES[mistake]
    with pytest.raises(ValueError, match=re.escape(message)):
        Sequences.of(data, **options)


TOKENS = torch.tensor([[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("tokens", "lengths", "alphabet", "message"),
    [
        (
            TOKENS.double(),
            [2, 1],
            2,
            "tokens: expected a long tensor with 2 dimension(s), found torch.float64 [2, 2]; use",
        ),
        (TOKENS[0], [2, 1], 2, "tokens: expected a long tensor with 2 dimension(s), found torch.int64 [2]"),
        (TOKENS.tolist(), [2, 1], 2, "tokens: expected a long tensor with 2 dimension(s), found list"),
        (TOKENS, [2], 2, "expected one length for each of the 2 rows of tokens, found 1"),
        (TOKENS, [2, -1], 2, "sequence 1: found the length -1, expected 0..2"),
        (TOKENS, [3, 1], 2, "sequence 0: found the length 3, expected 0..2"),
        (TOKENS, [2, 1], 1, "sequence 0, position 1: found the symbol 1, expected one of the alphabet 0..0"),
        (-TOKENS, [2, 1], 2, "sequence 0, position 1: found the symbol -1, expected one of the alphabet 0..1"),
        (TOKENS, [1, 1], 2, "sequence 0, position 1: found 1 after the end (length 1), expected the padding 0; use"),
        (5 * TOKENS, [1, 1], 2, "sequence 0, position 1: found 5 after the end (length 1), expected the padding 0"),
        (TOKENS, [2, 1], ("a", "a"), "alphabet: expected distinct symbols, found 'a' more than once"),
    ],
)
def test_the_class_itself_checks_its_fields(tokens: Any, lengths: list[int], alphabet: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Sequences(tokens, torch.tensor(lengths), alphabet)


def test_lengths_are_a_long_tensor() -> None:
    with pytest.raises(ValueError, match=re.escape("lengths: expected a long tensor with 1 dimension(s), found list")):
        Sequences(TOKENS, [2, 1], 2)  # type: ignore[arg-type]


def test_symbols_without_an_order_keep_the_order_of_appearance() -> None:
    one, two = Thing(), Thing()
    assert Sequences.of([[two], [one, two]]).alphabet == (two, one)


def test_split_keeps_every_sequence_once() -> None:
    data = ["ab", "b", "abb", "ba", "a", "bb", "aab"]
    first, second = split(data, 0.4, seed=3)
    assert (len(first), len(second)) == (3, 4)
    assert sorted("".join(x) for x in first.to_lists() + second.to_lists()) == sorted(data)
    assert first.alphabet == second.alphabet == ("a", "b")
    again, _ = split(Sequences.of(data), 0.4, seed=3)
    assert again.to_lists() == first.to_lists()
    assert {tuple(map(tuple, split(data, 0.4, seed=seed)[0].to_lists())) for seed in range(5)} != {
        tuple(map(tuple, first.to_lists()))
    }


@pytest.mark.parametrize("fraction", [0.0, 1.0, 0.01, -1.0])
def test_split_leaves_sequences_in_both_parts(fraction: float) -> None:
    with pytest.raises(ValueError, match=f"leaves sequences in both parts, found {fraction} of 3"):
        split(["a", "b", "ab"], fraction)


def test_over_another_alphabet_keeps_the_codes() -> None:
    data = Sequences.of([[0, 2], [1], []], 3)
    found = data.over("abc")
    assert found.tokens.equal(data.tokens)
    assert found.lengths.equal(data.lengths)
    assert found.alphabet == ("a", "b", "c")
    assert found.over(3).alphabet == 3


def test_over_an_alphabet_of_another_size() -> None:
    with pytest.raises(ValueError, match="expected an alphabet of 3 symbols, found one of 2"):
        Sequences.of([[0, 2]], 3).over("ab")


def test_lists_that_seem_padded() -> None:
    rows = [[0, 1, -1], [2, -1, -1], [0, 0, 0]]
    with pytest.raises(ValueError, match=r"-1 only at their ends, which seems to be padding; .* pad=-1\), or, if -1"):
        Sequences.of(rows)
    assert Sequences.of(rows, alphabet=[-1, 0, 1, 2]).lengths.tolist() == [3, 3, 3]
    assert Sequences.of(np.array(rows), pad=-1).lengths.tolist() == [2, 1, 3]


@pytest.mark.parametrize("rows", [[[0, 1, -1], [-1, 1, 0]], [[0, -1], [1]], [["a", -1], ["b", -1]]])
def test_minus_one_can_be_a_symbol(rows: list[list[object]]) -> None:
    assert Sequences.of(rows).to_lists() == rows


def test_table_with_other_columns() -> None:
    table = pd.DataFrame({"dna": ["AC", "G"], "count": [1, 2]})
    with pytest.raises(ValueError, match=r"give the column of the sequences, such as data\['dna'\]"):
        Sequences.of(table)
    assert Sequences.of(table["dna"]).to_lists() == [["A", "C"], ["G"]]


@pytest.mark.parametrize(("rows", "fix"), [([b"ab"], "bytes decoded"), ([3], "as a list"), (["a", None], "missing")])
def test_rows_that_are_no_sequences(rows: list[object], fix: str) -> None:
    with pytest.raises(ValueError, match=f"expected a string or a list of symbols, found .*{fix}"):
        Sequences.of(rows)


def test_what_is_shown_of_sequences() -> None:
    assert repr(Sequences.of(["ab", "b"])) == "Sequences(2 over ('a', 'b'): ['a', 'b'], ['b'])"
    assert repr(Sequences.of([[0]] * 4, 2)) == "Sequences(4 over 0..1: [0], [0], [0], ...)"


def test_split_by_several_shares() -> None:
    with pytest.raises(ValueError, match="expected a share that leaves sequences in both parts, found"):
        split(["ab", "a"], [0.8, 0.2])  # type: ignore[arg-type]

# SPDX-License-Identifier: Apache-2.0
"""Padded arrays: where the rows end, and what their entries stand for."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr
from example_sequences import CELLS, CODES, FILLED, LENGTHS, LETTERS

from pyro_ksd.sequences.container import Sequences


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


def test_lengths_hide_whatever_lies_after_the_end() -> None:
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


@pytest.mark.parametrize("alphabet", [[1, 0], np.array([1, 0]), torch.tensor([1, 0])], ids=["list", "numpy", "torch"])
def test_integer_symbols_of_an_array_are_looked_up_in_the_alphabet(alphabet: Any) -> None:
    made = Sequences.of(np.array([[0, 0, 1]]), alphabet=alphabet)
    assert made.alphabet == (1, 0)
    assert made.tokens.tolist() == [[1, 1, 0]]
    assert made.to_lists() == [[0, 0, 1]]


@pytest.mark.parametrize("options", [{"alphabet": ["AC", "G", "-"]}, {"lengths": [1, 1]}, {"pad": "-"}], ids=str)
def test_single_column_of_strings_that_are_said_to_be_symbols(options: dict[str, Any]) -> None:
    assert Sequences.of(np.array([["AC"], ["G"]]), **options).to_lists() == [["AC"], ["G"]]


def test_single_column_that_can_only_be_symbols() -> None:
    assert Sequences.of(np.array([["a"], ["b"]])).to_lists() == [["a"], ["b"]]
    assert Sequences.of(np.array([[0], [1]])).to_lists() == [[0], [1]]
    assert Sequences.of(np.array([["AC", "G"]])).to_lists() == [["AC", "G"]]
    assert Sequences.of(np.array([[("C", 4)], [None]], dtype=object)[:1]).to_lists() == [[("C", 4)]]


MISTAKES: dict[str, tuple[Any, dict[str, Any], str]] = {
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
        "lengths: expected 4 integers, one for each row, found [2, 1]",
    ),
    "too many lengths, letters": (
        np.array(CELLS),
        {"lengths": [1] * 5},
        "lengths: expected 4 integers, one for each row, found [1, 1, 1, 1, 1]",
    ),
    "float lengths": (
        torch.tensor(FILLED),
        {"lengths": [2.0, 1.0, 0.0, 3.0]},
        "lengths: expected 4 integers, one for each row, found [2.0, 1.0, 0.0, 3.0]",
    ),
    "pad inside": (
        torch.tensor([[0, 1], [-1, 1]]),
        {"pad": -1},
        "sequence 1, position 1: found 1 after the padding value -1, expected padding up to the end of the row; "
        "a pad inside a sequence has no meaning, remove it",
    ),
    "pad inside, letters": (
        np.array([["a", "b"], ["-", "b"]]),
        {"pad": "-"},
        "sequence 1, position 1: found 'b' after the padding value '-', expected padding up to the end of the row",
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
        "sequence 1, position 1: found 0 after the padding value -1, expected padding up to the end of the row",
    ),
    "value behind the length, letters": (
        np.array([["a", "b"], ["b", "a"]]),
        {"pad": "-", "lengths": [2, 1]},
        "sequence 1, position 1: found 'a' after the padding value '-', expected padding up to the end of the row",
    ),
    "pad of another kind": (
        torch.tensor(FILLED),
        {"pad": "-"},
        "pad: expected an integer of 64 bits, as the codes are, found '-'",
    ),
    "pad too large": (torch.tensor(FILLED), {"pad": 2**70}, "pad: expected an integer of 64 bits"),
    "lengths as text": (torch.tensor(FILLED), {"lengths": list("2103")}, "for each row, found ['2', '1', '0', '3']"),
    "lengths of a meta tensor": (
        torch.tensor(FILLED),
        {"lengths": torch.ones(4, device="meta").long()},
        "lengths: expected 4 integers, one for each row, found torch.int64 [4] on meta",
    ),
    "lengths of different depth": (np.array(CELLS), {"lengths": [[1], [1, 2], 3, 4]}, "lengths: expected 4 integers"),
    "no values": (torch.empty(2, 2, device="meta"), {}, "data: expected a tensor with values, found one on the device"),
    "dates": (
        np.zeros((2, 3), dtype="datetime64[s]"),
        {},
        "data: expected an array of integers or strings, found datetime64[s] [2, 3]",
    ),
    "single column of strings": (
        np.array([["G"], ["AC"]]),
        {},
        "sequence 1: found the string 'AC' in an array with a single column, where it would be one symbol; pass "
        "data[:, 0] if each string is a sequence, or [[symbol] for symbol in data[:, 0]]",
    ),
    "single column of bytes": (np.array([[b"AC"]]), {}, "sequence 0: found the string b'AC' in an array with a single"),
    "empty array": (np.zeros((0, 3), dtype=int), {}, "expected at least one sequence, found an empty data set"),
    "empty letters": (np.zeros((0, 3), dtype="U1"), {}, "expected at least one sequence, found an empty data set"),
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
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_explained(mistake: str) -> None:
    data, options, message = MISTAKES[mistake]
    with pytest.raises(ValueError, match=re.escape(message)):
        Sequences.of(data, **options)


def test_numbers_of_numpy_are_lengths_and_padding() -> None:
    data = Sequences.of(np.array([[0, 1], [1, 9]]), 2, lengths=np.array([2, 1], dtype=np.uint8), pad=np.int16(9))
    assert data.to_lists() == [[0, 1], [1]]
    assert data.padded(np.int64(7)).tolist() == [[0, 1], [1, 7]]  # type: ignore[arg-type]


def padded(lengths: list[int], fill: int, symbols: int = 3) -> torch.Tensor:
    """Random codes from 1 on, filled up after the ends."""
    tokens = torch.randint(1, symbols, (len(lengths), max(lengths)), generator=torch.Generator().manual_seed(0))
    return tokens.masked_fill(torch.arange(max(lengths)) >= torch.tensor(lengths)[:, None], fill)


TEN_LENGTHS = [3, 9, 4, 5, 2, 7, 3, 6, 4, 5]


def test_zeros_at_the_ends_that_look_like_padding_are_warned_of() -> None:
    for data in (padded(TEN_LENGTHS, 0), padded(TEN_LENGTHS, 0) - (padded(TEN_LENGTHS, 0) == 2).long() * 2):
        with pytest.warns(UserWarning, match=r"data: 9 of 10 rows end in several zeros.* pass lengths=, or pad=0"):
            assert Sequences.of(data).lengths.tolist() == [9] * 10
        Sequences.of(data, lengths=TEN_LENGTHS)
    Sequences.of(padded(TEN_LENGTHS, 0), pad=0)
    Sequences.of(padded(TEN_LENGTHS, -1), pad=-1)


@pytest.mark.parametrize(
    "data",
    [
        padded(TEN_LENGTHS[:9], 0),  # few rows
        padded([4, 9, 9, 9, 9, 9, 9, 9, 8, 8], 0),  # few end in zeros
        torch.zeros(12, 5).long(),
        padded([5] * 12, 0),
        torch.tensor([0, 0, 0, 1, 0, 0, 0, 0, 1, 0]).repeat(12, 1).where(torch.eye(12)[:, :10] == 0, torch.tensor(2)),
    ],
)
def test_other_zeros_are_not(data: torch.Tensor) -> None:
    Sequences.of(data)

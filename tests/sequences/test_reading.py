# SPDX-License-Identifier: Apache-2.0
"""Every container of sequences is read in the same way, and everything else is refused with an explanation."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr
from example_sequences import CODES, LENGTHS, LETTERS
from hypothesis import given, settings
from hypothesis import strategies as st

from pyro_ksd.sequences.container import Sequences


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
    "data",
    [
        ["home buy", "home", "", "buy home"],
        np.array(["home buy", "home", "", "buy home"]),
        pd.Series(["home buy", "home", "", "buy home"]),
        (line for line in ["home buy", "home", "", "buy home"]),
        xr.DataArray(["home buy", "home", "", "buy home"], dims="name"),
    ],
    ids=lambda data: type(data).__name__,
)
def test_words_from_every_container(data: Any) -> None:
    made = Sequences.of(data, sep=" ")
    assert made.to_lists() == [["home", "buy"], ["home"], [], ["buy", "home"]]
    assert made.alphabet == ("buy", "home")


def same(left: Sequences, right: Sequences) -> bool:
    return left.alphabet == right.alphabet and left.to_lists() == right.to_lists()


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
@given(st.lists(st.text(st.characters(exclude_characters="\t;|,> "), max_size=5), min_size=1, max_size=5))
def test_round_trip_of_text(words: list[str]) -> None:
    data = Sequences.of(words)
    assert ["".join(map(str, row)) for row in data.to_lists()] == words
    symbols = sorted(set("".join(words)))
    assert data.symbols == (tuple(symbols) if symbols else (0,))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.text("xy", max_size=1)), max_size=4), min_size=1, max_size=4))
def test_round_trip_of_hashables(rows: list[list[tuple[int, str]]]) -> None:
    assert Sequences.of(rows).to_lists() == rows


MISTAKES: dict[str, tuple[Any, dict[str, Any], str]] = {
    "pad for lists": ([[0, 1]], {"pad": -1}, "pad: expected a padded array beside it, found a list of sequences"),
    "lengths for lists": ([[0, 1]], {"lengths": [1]}, "lengths: expected a padded array beside it, found a list of"),
    "single string": ("acgt", {}, "expected several sequences, found the single string 'acgt'; pass a list of strings"),
    "single bytes": (b"acgt", {}, "expected several sequences, found the single string b'acgt'"),
    "no container": (3, {}, "expected a list of sequences or a padded array, found int"),
    "nothing": (None, {}, "expected a list of sequences or a padded array, found NoneType"),
    "dictionary": ({"a": [0, 1]}, {}, "expected a list of sequences or a padded array, found dict"),
    "scalar tensor": (torch.tensor(3), {}, "expected a padded array with 2 dimensions, found shape []; one sequence a"),
    "separator for an array": (
        np.array([["a", "b"]]),
        {"sep": " "},
        "sep: expected strings to split, found an array of shape [1, 2]; leave it out",
    ),
    "separator for a tensor": (torch.zeros(3, 2).long(), {"sep": " "}, "found an array of shape [3, 2]; leave it out"),
    "cube": (
        np.zeros((2, 2, 2, 2), dtype=int),
        {},
        "expected a padded array with 2 dimensions, found shape [2, 2, 2, 2]",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_explained(mistake: str) -> None:
    data, options, message = MISTAKES[mistake]
    with pytest.raises(ValueError, match=re.escape(message)):
        Sequences.of(data, **options)

# SPDX-License-Identifier: Apache-2.0
"""Alphabets in every form, and every mistake with what it says."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch

from pyro_ksd.sequences.alphabets import as_alphabet, plain_symbol, shown_alphabet
from pyro_ksd.sequences.container import Sequences


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


MISTAKES: dict[str, tuple[Any, dict[str, Any], str]] = {
    "long alphabet": ([[99]], {"alphabet": range(40)}, "28, 29) and 10 more"),
    "repeated alphabet": (["ab"], {"alphabet": "aba"}, "alphabet: expected distinct symbols, found 'a' more than once"),
    "no alphabet": (["ab"], {"alphabet": ""}, "alphabet: expected at least one symbol, found ()"),
    "alphabet of size 0": ([[0]], {"alphabet": 0}, "alphabet: expected at least one symbol, found 0"),
    "float alphabet": ([[0]], {"alphabet": 2.0}, "alphabet: expected a number of symbols or the symbols, found 2.0"),
    "unhashable alphabet": ([[0]], {"alphabet": [[0]]}, "alphabet: expected hashable symbols, found [0]"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_explained(mistake: str) -> None:
    data, options, message = MISTAKES[mistake]
    with pytest.raises(ValueError, match=re.escape(message)):
        Sequences.of(data, **options)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (3, 3),
        (np.int64(3), 3),
        ("ba", ("b", "a")),
        (iter([2, 1]), (2, 1)),
        (np.array([2, 1]), (2, 1)),
        (torch.tensor([2, 1]), (2, 1)),
        ([("C", 4), "rest"], (("C", 4), "rest")),
    ],
    ids=["int", "numpy int", "string", "iterator", "numpy", "torch", "list"],
)
def test_an_alphabet_is_a_plain_number_or_a_tuple_of_plain_symbols(given: Any, expected: Any) -> None:
    found = as_alphabet(given)
    assert found == expected
    assert type(found) is type(expected)
    if isinstance(found, tuple):
        assert [type(symbol) for symbol in found] == [type(symbol) for symbol in expected]


def test_scalars_of_numpy_and_torch_become_plain_symbols() -> None:
    for symbol in (np.int64(2), torch.tensor(2), np.array(2)[()]):
        assert plain_symbol(symbol) == 2
        assert type(plain_symbol(symbol)) is int
    assert type(plain_symbol(np.str_("a"))) is str
    several = torch.tensor([1, 2])
    assert plain_symbol(several) is several


def test_what_is_shown_of_an_alphabet() -> None:
    assert shown_alphabet(4) == "0..3"
    assert shown_alphabet(("a", 1)) == "('a', 1)"
    assert shown_alphabet(tuple(range(30))) == repr(tuple(range(30)))
    assert shown_alphabet(tuple(range(31))) == f"{tuple(range(30))!r} and 1 more"

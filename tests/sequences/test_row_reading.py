# SPDX-License-Identifier: Apache-2.0
"""Lists of sequences: what is a symbol, which alphabet the symbols have, and what is none."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from pyro_ksd.sequences.container import Sequences


def test_booleans_are_symbols() -> None:
    assert Sequences.of([[True], [False, True]]).alphabet == (False, True)
    assert Sequences.of(torch.tensor([[True, False]])).to_lists() == [[1, 0]]


def test_any_hashable_is_a_symbol() -> None:
    rows = [[("C", 4), "rest"], [frozenset({1}), ("C", 4)]]
    assert Sequences.of(rows).to_lists() == rows
    assert Sequences.of(rows).alphabet == (("C", 4), "rest", frozenset({1}))


def test_inferred_alphabets() -> None:
    assert Sequences.of([[0], [4]]).alphabet == 5
    assert Sequences.of([[], []]).alphabet == 1
    assert Sequences.of([[-1, 3]]).alphabet == (-1, 3)
    assert Sequences.of(["ba", "c"]).alphabet == ("a", "b", "c")
    assert Sequences.of([["b", 1], ["a"]]).alphabet == ("b", 1, "a")


class Thing:
    """Hashable, but with no order."""


def test_symbols_without_an_order_keep_the_order_of_appearance() -> None:
    one, two = Thing(), Thing()
    assert Sequences.of([[two], [one, two]]).alphabet == (two, one)


def test_lists_that_seem_padded() -> None:
    rows = [[0, 1, -1], [2, -1, -1], [0, 0, 0]]
    with pytest.raises(ValueError, match=r"-1 only at their ends, which seems to be padding; .* pad=-1\), or, if -1"):
        Sequences.of(rows)
    assert Sequences.of(rows, alphabet=[-1, 0, 1, 2]).lengths.tolist() == [3, 3, 3]
    assert Sequences.of(np.array(rows), pad=-1).lengths.tolist() == [2, 1, 3]


@pytest.mark.parametrize("rows", [[[0, 1, -1], [-1, 1, 0]], [[0, -1], [1]], [["a", -1], ["b", -1]]])
def test_minus_one_can_be_a_symbol(rows: list[list[object]]) -> None:
    assert Sequences.of(rows).to_lists() == rows


@pytest.mark.parametrize(("rows", "fix"), [([b"ab"], "bytes decoded"), ([3], "as a list"), (["a", None], "missing")])
def test_rows_that_are_no_sequences(rows: list[object], fix: str) -> None:
    with pytest.raises(ValueError, match=f"expected a string or a list of symbols, found .*{fix}"):
        Sequences.of(rows)


MISTAKES: dict[str, tuple[Any, dict[str, Any], str]] = {
    "letter outside": (
        ["ab", "axb"],
        {"alphabet": "ab"},
        "sequence 1, position 1: found the symbol 'x', expected one of the alphabet ('a', 'b'); "
        "add it to alphabet= or fix the sequence",
    ),
    "complex": ([[0], [0.5j]], {}, "sequence 1, position 0: found the complex 0.5j, expected a discrete symbol"),
    "no values": ([[0], torch.ones(2, device="meta")], {}, "sequence 1: expected a tensor with values, found one on"),
    "code outside": ([[0], [0, 3]], {"alphabet": 3}, "sequence 1, position 1: found the symbol 3, expected one of"),
    "negative code": ([[0], [-1, 0]], {"alphabet": 3}, "sequence 1, position 0: found the symbol -1, expected one of"),
    "letter for a size": (["a"], {"alphabet": 3}, "sequence 0, position 0: found the symbol 'a', expected one of the"),
    "empty list": ([], {}, "expected at least one sequence, found an empty data set"),
    "empty series": (pd.Series([], dtype=object), {}, "expected at least one sequence, found an empty data set"),
    "single list": ([0, 1, 2], {}, "sequence 0: expected a string or a list of symbols, found 0"),
    "single tensor": (torch.tensor([3, 1]), {}, "sequence 0: expected a string or a list of symbols, found 3"),
    "float": ([[0, 1], [1, 0.5]], {}, "sequence 1, position 1: found the float 0.5, expected a discrete symbol; use"),
    "whole float": ([[0, 1.0]], {"alphabet": 2}, "sequence 0, position 1: found the float 1.0, expected a discrete"),
    "NaN": (
        [["a", float("nan")]],
        {},
        "sequence 0, position 1: found NaN, expected a discrete symbol; use integers or",
    ),
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
    "matrix row": (
        [torch.zeros(2, 2, dtype=torch.long), [0]],
        {},
        "sequence 0: expected one dimension, found shape [2, 2]",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_explained(mistake: str) -> None:
    data, options, message = MISTAKES[mistake]
    with pytest.raises(ValueError, match=re.escape(message)):
        Sequences.of(data, **options)

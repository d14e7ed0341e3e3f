# SPDX-License-Identifier: Apache-2.0
"""The data container: its checks, its parts and wholes, and the way back to lists."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from example_sequences import FILLED, LENGTHS, LETTERS

from pyro_ksd.sequences.container import Sequences


def test_sequences_pass_through() -> None:
    data = Sequences.of(["ab", "b"])
    assert Sequences.of(data) is data
    assert Sequences.of(data, alphabet="ab") is data


def test_a_log_becomes_sequences_over_the_stated_alphabet() -> None:
    log = pd.DataFrame({"visit": [1, 1, 2], "page": ["home", "buy", "home"]})
    data = Sequences.from_frame(log, by="visit", symbol="page", alphabet=["home", "search", "buy"])
    assert isinstance(data, Sequences)
    assert data.tokens.tolist() == [[0, 2], [0, 0]]
    assert data.lengths.tolist() == [2, 1]
    assert data.alphabet == ("home", "search", "buy")
    with pytest.raises(ValueError, match="alphabet: expected distinct symbols, found 'home' more than once"):
        Sequences.from_frame(log, by="visit", symbol="page", alphabet=["home", "home"])


def test_encode() -> None:
    data = Sequences.of(["abc"])
    assert data.encode("cab") == [2, 0, 1]
    with pytest.raises(ValueError, match=r"found the symbol 'x', expected one of the alphabet \('a', 'b', 'c'\)"):
        data.encode("ax")


def test_row_selection() -> None:
    data = Sequences.of(LETTERS)
    assert data[1:3].to_lists() == LETTERS[1:3]
    assert data[[3, 0]].to_lists() == [LETTERS[3], LETTERS[0]]
    assert data[torch.tensor([3, 3])].to_lists() == [LETTERS[3]] * 2
    assert data[data.lengths > 1].to_lists() == [LETTERS[0], LETTERS[3]]
    assert data[1:1].to_lists() == data[[]].to_lists() == []
    assert data[-1:].to_lists() == data[[-1]].to_lists() == [LETTERS[-1]]
    assert data[range(2)].to_lists() == LETTERS[:2]
    assert data[np.array([3, 0], dtype=np.int16)].to_lists() == [LETTERS[3], LETTERS[0]]  # type: ignore[index]
    for mask in (data.lengths.numpy() > 1, pd.Series(data.lengths.numpy() > 1), (data.lengths > 1).tolist()):
        assert data[mask].to_lists() == [LETTERS[0], LETTERS[3]]  # type: ignore[index]
    assert data[[3]].alphabet == data.alphabet
    with pytest.raises(ValueError, match=re.escape("found the single index 2; use data[2:3]")):
        data[2]  # type: ignore[index]
    message = "rows: expected a slice, row numbers from 0 to 3, or a boolean tensor [4], found "
    for rows, words in (([4], "[4]"), (slice(None, None, -1), "slice(None, None, -1)"), (torch.tensor(1), "torch.int")):
        with pytest.raises(ValueError, match=re.escape(message + words)):
            data[rows]  # type: ignore[index]


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
        (TOKENS.tolist(), [2, 1], 2, "tokens: expected a long tensor with 2 dimension(s), found [[0, 1], [1, 0]]; use"),
        (TOKENS, [2], 2, "expected one length for each of the 2 rows of tokens, found 1"),
        (TOKENS, [2, -1], 2, "sequence 1: found the length -1, expected 0..2"),
        (TOKENS, [3, 1], 2, "sequence 0: found the length 3, expected 0..2"),
        (TOKENS, [2, 1], 1, "sequence 0, position 1: found the symbol 1, expected one of the alphabet 0..0"),
        (-TOKENS, [2, 1], 2, "sequence 0, position 1: found the symbol -1, expected one of the alphabet 0..1"),
        (TOKENS, [1, 1], 2, "sequence 0, position 1: found 1 after the end (length 1), expected the padding 0; use"),
        (5 * TOKENS, [1, 1], 2, "sequence 0, position 1: found 5 after the end (length 1), expected the padding 0"),
        (TOKENS, [2, 1], ("a", "a"), "alphabet: expected distinct symbols, found 'a' more than once"),
        (TOKENS, [2, 1], None, "alphabet: expected a number of symbols or the symbols, found None"),
        (TOKENS, [2, 1], True, "alphabet: expected a number of symbols or the symbols, found True"),
        (TOKENS, [2, 1], 2**80, "alphabet: expected at most 9223372036854775807 symbols, found 1208925819614629174706"),
    ],
)
def test_the_class_itself_checks_its_fields(tokens: Any, lengths: list[int], alphabet: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Sequences(tokens, torch.tensor(lengths), alphabet)


def test_the_class_itself_takes_any_form_of_alphabet() -> None:
    for alphabet in (["a", "b"], "ab", np.array(["a", "b"])):
        assert Sequences(TOKENS, torch.tensor([2, 1]), alphabet).alphabet == ("a", "b")
    assert type(Sequences(TOKENS, torch.tensor([2, 1]), np.int64(2)).alphabet) is int  # type: ignore[arg-type]


def test_lengths_are_a_long_tensor() -> None:
    with pytest.raises(ValueError, match=re.escape("lengths: expected a long tensor with 1 dimension(s), found [2")):
        Sequences(TOKENS, [2, 1], 2)  # type: ignore[arg-type]


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


def test_what_is_shown_of_sequences() -> None:
    assert repr(Sequences.of(["ab", "b"])) == "Sequences(2 over ('a', 'b'): ['a', 'b'], ['b'])"
    assert repr(Sequences.of([[0] * 10, [1] * 11])) == f"Sequences(2 over 0..1: {[0] * 10}, {str([1] * 10)[:-1]}, ...])"
    assert repr(Sequences.of([[0]] * 4, 2)) == "Sequences(4 over 0..1: [0], [0], [0], ...)"


MISTAKES: dict[str, tuple[Any, dict[str, Any], str]] = {
    "another alphabet": (
        Sequences.of(["ab"]),
        {"alphabet": "abc"},
        "alphabet: expected that of the data, ('a', 'b'), found 'abc'; leave it out",
    ),
    "separator of sequences": (
        Sequences.of(["ab"]),
        {"sep": " "},
        "sep: expected strings to split, found Sequences; pass the strings themselves",
    ),
    "lengths of sequences": (
        Sequences.of(["ab"]),
        {"lengths": [1]},
        "lengths: expected a padded array beside it, found Sequences; leave it out",
    ),
    "padding of sequences": (
        Sequences.of(["ab"]),
        {"pad": 0},
        "pad: expected a padded array beside it, found Sequences; leave it out",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_explained(mistake: str) -> None:
    data, options, message = MISTAKES[mistake]
    with pytest.raises(ValueError, match=re.escape(message)):
        Sequences.of(data, **options)


@pytest.mark.parametrize("name", ["tokens", "lengths"])
def test_tensors_that_are_not_on_the_cpu_are_refused(name: str) -> None:
    fields = {"tokens": TOKENS, "lengths": torch.tensor([2, 1])}
    fields[name] = fields[name].to("meta")
    with pytest.raises(ValueError, match=f"^{name}: expected a tensor on the CPU, found one on meta; pass {name}.cpu"):
        Sequences(**fields, alphabet=2)


def test_narrowed_drops_columns_of_padding_only() -> None:
    data = Sequences.of(torch.tensor(FILLED), pad=-1)
    assert data.narrowed().width == 3
    assert data.narrowed().to_lists() == data.to_lists()
    assert data[1:3].narrowed().tokens.tolist() == [[1], [0]]
    assert data[2:3].narrowed().tokens.shape == (1, 0)
    assert data[:0].narrowed().tokens.shape == (0, 0)


def test_derived_sequences_have_the_same_alphabet() -> None:
    data = Sequences.of(["ab", "b"])
    found = data.derived(torch.tensor([[1, 1, 0]]), torch.tensor([3]))
    assert found.to_lists() == [["b", "b", "a"]]
    assert found.alphabet is data.alphabet

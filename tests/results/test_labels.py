# SPDX-License-Identifier: Apache-2.0
"""Labels from codes: of n-grams, starts, lengths, own features and edits."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pyro_ksd.results.labels import are_letters, feature_labels, operation, spelled, spelled_symbols

WORDS = ["AH", "B", "K K", "$"]


@pytest.mark.parametrize(
    ("codes", "symbols", "text"),
    [
        ([1], "abc", "b"),
        ([1, 2, -1, -1], "abc", "bc"),
        ([-1, -1], "abc", ""),
        ([], "abc", ""),
        ([0, 3], "abc", "a$"),  # the sequence is over after a
        ([3, 3], "abc", "$$"),
        ([0, 1, 0], WORDS, "AH B AH"),
        ([2, 1, -1], WORDS, "K K B"),  # a symbol may contain a space
        ([0, 4], WORDS, "AH $"),
        ([3, 4], WORDS, "$ $"),  # the symbol, and the end
        ([0, 1], ["$", "^"], "$^"),
        ([0], ["ab"], "ab"),
    ],
)
def test_codes_are_spelled(codes: list[int], symbols: Sequence[str], text: str) -> None:
    assert spelled(codes, symbols) == text
    joint = "" if are_letters(symbols) else " "
    assert joint.join(spelled_symbols(codes, symbols)) == text


def test_symbols_stay_apart_one_by_one() -> None:
    assert spelled_symbols([2, 1, -1], WORDS) == ["K K", "B"]
    assert spelled_symbols([3, 4], WORDS) == ["$", "$"]
    assert spelled_symbols([-1], WORDS) == []


def test_letters() -> None:
    assert are_letters("abc")
    assert are_letters(["$", "^", " ", "ß"])
    assert not are_letters(["a", "bc"])
    assert not are_letters(["a", ""])


@pytest.mark.parametrize(
    ("kind", "name", "codes", "ngrams", "symbols", "labels"),
    [
        ("ngram", "", [5, 0], [[1, 2], [0, -1]], "abc", ["bc", "a"]),
        ("ngram", "", [5], [[1, 2]], WORDS, ["B K K"]),
        ("ngram", "", [5], [[0, 1]], ["$", "^"], ["$^"]),
        ("start", "", [0, 3], [[0], [3]], "abc", ["^a", "^$"]),
        ("start", "", [1], [[0, 3]], "abc", ["^a$"]),
        ("start", "", [1], [[0, 1]], WORDS, ["^AH B"]),
        ("start", "", [0, 1], [[0], [1]], ["^", "$"], ["^^", "^$"]),
        ("length", "length", [0], [[]], "abc", ["length"]),
        ("length", "length", [0, 2], [[], []], "abc", ["length, feature 0", "length, feature 2"]),
        ("feature", "rests", [0], [[]], "abc", ["rests"]),
        ("feature", "rests", [0, 7], [[], []], "abc", ["rests 0", "rests 7"]),
    ],
)
def test_features_of_every_kind_have_labels(
    kind: str, name: str, codes: list[int], ngrams: list[list[int]], symbols: Sequence[str], labels: list[str]
) -> None:
    assert feature_labels(kind, name, codes, ngrams, symbols) == labels


def test_no_features_have_no_labels() -> None:
    for kind in ("ngram", "start", "length", "feature"):
        assert feature_labels(kind, "rests", [], [], "abc") == []


@pytest.mark.parametrize(
    ("removed", "inserted", "symbols", "words"),
    [
        ([0], [1], "ab", "replace 'a' by 'b'"),
        ([], [1], "ab", "insert 'b'"),
        ([-1, -1], [1, 0], "ab", "insert 'b' 'a'"),
        ([0, -1], [-1], "ab", "delete 'a'"),
        ([0, 1], [1, 0], "ab", "replace 'a' 'b' by 'b' 'a'"),
        ([2], [3, 1], WORDS, "replace 'K K' by '$' 'B'"),
        ([0], [-1], ["'", "b"], 'delete "\'"'),
    ],
)
def test_edits_are_told_in_words(removed: list[int], inserted: list[int], symbols: Sequence[str], words: str) -> None:
    assert operation(removed, inserted, symbols) == words

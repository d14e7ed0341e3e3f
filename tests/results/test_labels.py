# SPDX-License-Identifier: Apache-2.0
"""Labels from codes: of n-grams, starts, lengths, own features and edits."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pyro_ksd.results.labels import are_letters, feature_labels, operation, readable, spelled, spelled_symbols

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
    ("kind", "name", "ngram", "symbols", "label"),
    [
        ("ngram", "", [1, 2], "abc", "bc"),
        ("ngram", "", [0, -1], "abc", "a"),
        ("ngram", "", [1, 2], WORDS, "B K K"),
        ("ngram", "", [0, 1], ["$", "^"], "$^"),
        ("start", "", [0], "abc", "^a"),
        ("start", "", [3], "abc", "^$"),
        ("start", "", [0, 3], "abc", "^a$"),
        ("start", "", [0, 1], WORDS, "^AH B"),
        ("start", "", [0], ["^", "$"], "^^"),
        ("start", "", [1], ["^", "$"], "^$"),
        ("end", "", [1], "abc", "b$"),
        ("end", "", [0, 1], "abc", "ab$"),
        ("end", "", [3], "abc", "^$"),  # nothing ends there
        ("end", "", [3, 1], "abc", "^b$"),  # it is the whole sequence
        ("end", "", [3, 3], "abc", "^$"),
        ("end", "", [0, 1], WORDS, "AH B$"),
        ("end", "", [4, 1], WORDS, "^B$"),
        ("end", "", [3], WORDS, "$$"),  # a symbol of that name
        ("ends", "", [0, 1], "abc", "^a...b$"),
        ("ends", "", [2, 2], "abc", "^c...c$"),
        ("ends", "", [3, 3], "abc", "^$"),
        ("ends", "", [0, 2], WORDS, "^AH...K K$"),
        ("skip", "_", [0, 1], "abc", "a_b"),
        ("skip", "__", [2, 0], "abc", "c__a"),
        ("skip", "", [2, 0], "abc", "ca"),  # neighbors
        ("skip", "_", [0, 1], WORDS, "AH _ B"),
        ("skip", "__", [2, 3], WORDS, "K K __ $"),
        ("skip", "", [0, 1], WORDS, "AH B"),
        ("position", "position 2 of 3", [0], "abc", "a at position 2 of 3"),
        ("position", "position 1 of 6", [2], WORDS, "K K at position 1 of 6"),
        ("length", "length", [], "abc", "length"),
        ("length", "spread of the length", [], "abc", "spread of the length"),
        ("surprise", "log-probability", [], "abc", "log-probability"),
        ("mirror", "mirrored symbols", [], "abc", "mirrored symbols"),
        ("repeats", "runs of 4 equal symbols", [], "abc", "runs of 4 equal symbols"),
        ("composition", "unevenness", [], "abc", "unevenness"),
        ("feature", "rests 7", [], "abc", "rests 7"),
    ],
)
def test_features_of_every_kind_have_labels(
    kind: str, name: str, ngram: list[int], symbols: Sequence[str], label: str
) -> None:
    assert feature_labels(kind, [name], [ngram], symbols) == [label]
    assert feature_labels(kind, [name, name], [ngram, ngram], symbols) == [label, label]


def test_no_features_have_no_labels() -> None:
    for kind in ("ngram", "start", "end", "ends", "skip", "position", "length", "feature"):
        assert feature_labels(kind, [], [], "abc") == []


def test_every_feature_belongs_to_its_own_name_and_symbols() -> None:
    assert feature_labels("skip", ["_", "__"], [[0, 1], [1, 0]], "ab") == ["a_b", "b__a"]
    with pytest.raises(ValueError, match="zip"):
        feature_labels("ngram", [""], [[0], [1]], "ab")


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


@pytest.mark.parametrize(
    ("symbol", "seen"),
    [
        ("a", "a"),
        (" ", "␣"),
        ("a b", "a␣b"),
        ("\n", "\\n"),
        ("\t\x00", "\\t\\x00"),
        ("$^\\", "$^\\"),
        ("ß", "ß"),
        ("", ""),
    ],
)
def test_symbols_can_be_seen(symbol: str, seen: str) -> None:
    assert readable(symbol) == seen

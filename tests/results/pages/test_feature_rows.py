# SPDX-License-Identifier: Apache-2.0
"""Features in words: how often they are in the data and in the model's sequences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import xarray as xr
from synthetic import check_with

from pyro_ksd.results.pages.feature_rows import examples, named_features

NAN = math.nan


def sized(label: str = "aa", view: str = "content-2", z: float = -4.0, **sizes: tuple[float, ...]) -> xr.DataTree:
    """A check with one feature of some sizes, each with its interval."""
    check = check_with([(view, label, z, 0.01)], {view: 0.001})
    values = {
        f"{name}{end}": ("ngram", [value])
        for name, own in sizes.items()
        for end, value in zip(("", "_low", "_high"), own, strict=True)
    }
    return check.assign({"ksd_ngram": xr.DataTree(check["ksd_ngram"].to_dataset().assign(values))})


@pytest.mark.parametrize(
    ("ratio", "z", "words"),
    [
        ((6.93, 2.51, 31.2), -4.0, "6.9 times (2.5 to 31) as often in the data as in the model"),
        ((0.25, 0.2, 0.5), 4.0, "4 times (2 to 5) as often in the model as in the data"),
        ((0.0, 0.0, 0.1), 4.0, "none in the data; in the model at least 10 times as often"),
        ((math.inf, 2.68, math.inf), -4.0, "none in the draws from the model; in the data at least 2.7 times as often"),
        (
            (1.1, 0.9, 1.3),
            -4.0,
            "about as often in both, but given the rest of the sequence the model gives it too little probability",
        ),
        (
            (1.1, 0.9, 1.3),
            4.0,
            "about as often in both, but given the rest of the sequence the model gives it too much probability",
        ),
        ((NAN, NAN, NAN), -4.0, ""),
    ],
)
def test_by_how_much(ratio: tuple[float, ...], z: float, words: str) -> None:
    [row] = named_features(sized(z=z, ratio=ratio), "content-2", 5)
    assert row.amount == words
    assert row.finding == ("too rare" if z < 0 else "too frequent")


@pytest.mark.parametrize(
    ("view", "label", "observed", "expected", "words"),
    [
        ("content-2", "aa", 0.0347, 0.005, ("3.47 in 100 sequences", "0.5 in 100 sequences")),
        ("content-2", "aa", 1.5, 0.75, ("1.5 in a sequence", "0.75 in a sequence")),
        ("start", "^a", 0.084, 0.042, ("8.4 % of sequences", "4.2 % of sequences")),
    ],
)
def test_how_often(view: str, label: str, observed: float, expected: float, words: tuple[str, str]) -> None:
    sizes: dict[str, Any] = {"observed": (observed, 0.0, 9.0), "expected": (expected, 0.0, 9.0)}
    [row] = named_features(sized(label, view, **sizes), view, 5)
    assert (row.observed, row.expected) == words
    assert (row.observed_width, row.expected_width) == (100, pytest.approx(100 * expected / observed))
    assert row.has_bars


def test_what_is_not_known_is_not_shown() -> None:
    [row] = named_features(sized(observed=(0.5, 0.4, 0.6)), "content-2", 5)
    assert not row.has_bars
    assert (row.expected, row.weight, row.amount) == ("", "", "")
    [row] = named_features(sized(factor=(9.78, 5.48, 17.45)), "content-2", 5)
    assert row.weight == "9.8 (5.5 to 17)"


def test_only_features_that_are_named_and_the_first_of_them() -> None:
    features = [("content-2", label, -z, 0.01) for label, z in (("aa", 3.0), ("ab", 5.0), ("ac", 4.0))]
    check = check_with([*features, ("content-2", "ad", -9.0, 0.5)], {"content-2": 0.001})
    assert [row.label for row in named_features(check, "content-2", 2)] == ["ab", "ac"]
    assert [row.label for row in named_features(check, "content-2", 9)] == ["ab", "ac", "aa"]
    assert named_features(check_with(features, {"content-2": 0.001}, 0.5), "content-2", 9) == []


def test_symbols_that_nobody_sees_are_made_visible() -> None:
    check = check_with([("content-2", "a ", -4.0, 0.01)], {"content-2": 0.001}, symbols=["a", " ", "c"])
    assert named_features(check, "content-2", 1)[0].label == "a␣"


def with_texts(label: str, view: str, texts: list[str]) -> xr.DataTree:
    """A check of some sequences, with one feature of symbols."""
    symbols = "abc"
    check = check_with([(view, label, -4.0, 0.01)], {view: 0.001}, symbols=list(symbols))
    longest = max(map(len, texts))
    token = np.array([[symbols.index(one) for one in text] + [-1] * (longest - len(text)) for text in texts])
    data = check["ksd_data"].to_dataset()
    new = xr.Dataset(
        {"token": (("sequence", "position"), token, data["token"].attrs), "length": ("sequence", [*map(len, texts)])},
        coords={"sequence": np.arange(len(texts)), "position": np.arange(longest)},
    )
    return check.assign({"ksd_data": xr.DataTree(new)})


@pytest.mark.parametrize(
    ("view", "label", "found"),
    [
        ("content-2", "ab", ["cab", "ab", "aab"]),
        ("content-3", "abb", []),
        ("start", "^a", ["ab", "aab"]),
        ("start", "^$", [""]),
    ],
)
def test_examples_are_sequences_with_the_feature(view: str, label: str, found: list[str]) -> None:
    texts = ["cab", "ab", "b", "", "aab", "ab"]
    count, some = examples(with_texts(label, view, texts), view, 3)
    assert some == found
    assert count == sum(texts.count(text) for text in found)


def test_features_without_symbols_have_no_examples() -> None:
    assert examples(check_with([("rests", "rests", -4.0, 0.01)], {"rests": 0.001}), "rests", 3) == (0, [])

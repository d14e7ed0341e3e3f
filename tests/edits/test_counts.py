# SPDX-License-Identifier: Apache-2.0
"""Counts of sequences and their changes, against plain counting before and after each edit."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from neighbor_lists import SYMMETRIC, Codes, space
from tilted_spaces import plain_count

from pyro_ksd.edits.counts import Count, check_counts, count_changes, count_values
from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.edits.splices import Edits
from pyro_ksd.sequences.container import Sequences

COUNTS = [
    Count("ngram", (1,)),
    Count("length"),
    Count("ngram", (0, 0)),
    Count("last", (0,)),
    Count("ngram", (0, 1, 0)),
    Count("first", (1,)),
    Count("ngram", (1, 0)),
    Count("first", (0,)),
    Count("ngram", (2,)),
    Count("ngram", (1, 1, 1, 1)),
]


def rows(sequences: Sequences) -> list[Codes]:
    return [tuple(row) for row in sequences.to_lists()]  # type: ignore[misc]


def test_counts_of_all_short_sequences() -> None:
    lists = space(3, 4)
    expected = [[plain_count(count, x) for count in COUNTS] for x in lists]
    assert count_values(COUNTS, Sequences.of(lists, 3)).tolist() == expected
    assert len(set(map(tuple, expected))) > 50


@pytest.mark.parametrize("name", SYMMETRIC)
def test_changes_against_counting_before_and_after(name: str) -> None:
    data = Sequences.of([*space(3, 3), (0, 1, 0, 0, 1), (1, 1, 1, 1, 1)], 3)
    edits = SYMMETRIC[name].edits(data)
    edit, feature, change = count_changes(COUNTS, data, edits)
    found = torch.zeros(len(edits), len(COUNTS), dtype=torch.long)
    found[edit, feature] = change
    before = rows(data)
    pairs = zip(edits.owner.tolist(), rows(edits.apply(data)), strict=True)
    expected = [[plain_count(count, y) - plain_count(count, before[owner]) for count in COUNTS] for owner, y in pairs]
    assert found.tolist() == expected
    assert bool((change != 0).all())
    assert len(torch.stack([edit, feature]).unique(dim=1).T) == len(edit)


def test_some_edits_change_a_count_by_two() -> None:
    data = Sequences.of([(0, 1, 0)], 2)
    assert set(count_changes([Count("ngram", (0, 0))], data, zs().edits(data))[2].tolist()) == {1, 2}


def test_no_edits_have_no_changes() -> None:
    data = Sequences.of([(0, 1)], 2)
    assert [len(part) for part in count_changes(COUNTS[:2], data, Edits((), 1))] == [0, 0, 0]


@pytest.mark.parametrize(
    ("kind", "symbols", "words"),
    [
        ("gram", (0,), "kind: expected 'ngram', 'first', 'last' or 'length', found 'gram'"),
        ("ngram", (), "symbols: expected at least one symbol for the kind 'ngram', found ()"),
        ("first", (0, 1), "symbols: expected one symbol for the kind 'first', found (0, 1)"),
        ("length", (0,), "symbols: expected no symbols for the kind 'length', found (0,)"),
        ("ngram", "ab", "symbols: expected a tuple of codes of symbols, such as (0, 1), found 'ab'"),
        ("ngram", (-1,), "symbols: expected an integer of at least 0, found -1"),
    ],
)
def test_wrong_counts(kind: Any, symbols: Any, words: str) -> None:
    with pytest.raises(ValueError, match=r".*") as error:
        Count(kind, symbols)
    assert str(error.value) == words


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ([], "at least one"),
        ("length", "found 'length'"),
        ([Count("length"), Count("length")], "distinct counts"),
        ([Count("ngram", (0,) * 40)], "short enough"),
    ],
)
def test_wrong_lists_of_counts(counts: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_counts(counts, 3)

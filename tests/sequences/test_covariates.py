# SPDX-License-Identifier: Apache-2.0
"""Covariates of sequences: reading them, and keeping them with their sequences."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from torch import Tensor

from pyro_ksd import Sequences, split
from pyro_ksd.edits.neighborhoods import BeforeEnd, zs
from pyro_ksd.sequences.covariates import Covariates

DATA = Sequences.of(["ab", "", "bba", "a"])


def group(sequences: Sequences) -> list[int]:
    assert sequences.covariates is not None
    values = sequences.covariates.values
    assert isinstance(values, dict)
    return values["group"].tolist()


@pytest.mark.parametrize(
    "passed",
    [
        torch.tensor([[1.5, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]),
        np.arange(8.0, dtype=np.float32).reshape(4, 2),
        [[1, 2], [3, 4], [5, 6], [7, 8]],
        [0.5, 1.5, 2.5, 3.5],
        torch.tensor([True, False, True, True]),
    ],
)
def test_one_tensor_stays_one(passed: Any) -> None:
    values = Covariates.of(passed, 4).values
    assert isinstance(values, Tensor)
    torch.testing.assert_close(values, torch.as_tensor(passed))
    whole = not values.is_floating_point() and values.dtype != torch.bool
    assert values.dtype == (torch.long if whole else torch.as_tensor(passed).dtype)


@pytest.mark.parametrize("table", [dict, pandas.DataFrame])
def test_several_come_by_name(table: type) -> None:
    values = Covariates.of(table({"group": [0, 1, 0, 2], "age": np.array([31.0, 25.0, 60.0, 4.0])}), 4).values
    assert isinstance(values, dict)
    assert list(values) == ["group", "age"]
    assert values["group"].tolist() == [0, 1, 0, 2]
    assert values["age"].dtype == torch.float  # as most networks have


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint8", "uint16", "int64"])
def test_whole_numbers_can_be_indices(dtype: str) -> None:
    small = torch.tensor([1, 0, 0, 1], dtype=torch.int8)
    values = Covariates.of({"a": np.array([0, 2, 1, 1], dtype), "b": small}, 4).values
    assert isinstance(values, dict)
    assert values["a"].dtype == values["b"].dtype == torch.long
    assert torch.tensor([5.0, 6.0, 7.0])[values["a"]].tolist() == [5.0, 7.0, 6.0, 6.0]


def test_categories_come_as_codes() -> None:
    frame = pandas.DataFrame({"land": pandas.Categorical(["b", "a", "c", "a"]), "prompt": [[1, 2], [3], [4], [5, 6]]})
    values = Covariates.of(frame, 4).values
    assert isinstance(values, dict)
    assert values["land"].tolist() == [1, 0, 2, 0]
    assert values["prompt"].tolist() == [[1, 2], [3, -1], [4, -1], [5, 6]]


def test_lists_of_different_lengths_are_filled() -> None:
    values = Covariates.of([[5, 3, 1], [7], [], [2, 2]], 4).values
    assert isinstance(values, Tensor)
    assert values.tolist() == [[5, 3, 1], [7, -1, -1], [-1, -1, -1], [2, 2, -1]]


def test_gradients_are_left_behind() -> None:
    assert not Covariates.of({"age": torch.ones(2, requires_grad=True)}, 2).values["age"].requires_grad  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("passed", "message"),
    [
        ([1, 2, 3], "covariates: expected one row for each of the 4 sequences, in their order, found 3 rows"),
        ({"age": [1.0] * 5}, "covariates 'age': expected one row for each of the 4 sequences, in their order, found 5"),
        (torch.tensor(3.0), "in their order, found a single number"),
        ({}, "covariates: expected at least one covariate, found none"),
        ("abcd", "covariates: expected numbers, one row for each sequence, found 'abcd'"),
        (7, "covariates: expected numbers, one row for each sequence, found 7"),
        (None, "covariates: expected numbers, one row for each sequence, found None"),
        ({"land": ["DE", "FR", "DE", "IT"]}, "covariates 'land': expected numbers, found 'DE'; for names, pass categ"),
        ({"age": [1.0, 2.0, None, 3.0]}, "covariates 'age': expected numbers, found None"),
        (
            {"age": np.array([1.0, 2.0, np.nan, 3.0])},
            "a number for each sequence, found NaN for sequence 2; fill",
        ),
        (torch.tensor([[1.0, 2.0], [1.0, torch.nan], [0.0, 0.0], [0.0, 0.0]]), "found NaN for sequence 1"),
        (torch.zeros(4, dtype=torch.cfloat), "expected real numbers, found torch.complex64 [4]"),
        (
            pandas.DataFrame({"land": pandas.Categorical(["a", None, "b", "a"])}),
            "covariates 'land': expected a category for each sequence, found none for sequence 1",
        ),
        ([[1.5], [2.0, 3.0], [1.0], [1.0]], "covariates: expected numbers of one shape"),
    ],
)
def test_mistake_is_named(passed: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        DATA.with_covariates(passed)


def test_they_follow_their_sequences() -> None:
    data = DATA.with_covariates({"group": [5, 6, 7, 8]})
    assert group(data) == [5, 6, 7, 8]
    assert DATA.covariates is None
    assert group(data[[3, 0]]) == [8, 5]
    assert group(data[1:3]) == [6, 7]
    assert group(data[torch.tensor([True, False, False, True])]) == [5, 8]
    assert group(data[-1:]) == [8]
    assert group(data.narrowed()) == [5, 6, 7, 8]
    assert group(data.over("xy")) == [5, 6, 7, 8]
    assert group(Sequences.cat([data[2:], data])) == [7, 8, 5, 6, 7, 8]
    first, second = split(data, 0.5, seed=1)
    assert sorted(group(first) + group(second)) == [5, 6, 7, 8]
    by_text = {"".join(map(str, x)): g for x, g in zip(data.to_lists(), group(data), strict=True)}
    for part in (first, second):
        assert group(part) == [by_text["".join(map(str, x))] for x in part.to_lists()]


@pytest.mark.parametrize("neighborhood", [zs(), zs(locations=1), BeforeEnd(zs())])
def test_edited_sequences_have_those_of_their_owners(neighborhood: Any) -> None:
    data = DATA.with_covariates({"group": [5, 6, 7, 8]})
    edits = neighborhood.edits(data)
    assert group(edits.apply(data)) == [[5, 6, 7, 8][owner] for owner in edits.owner.tolist()]


def test_parts_with_different_tables() -> None:
    one = DATA.with_covariates({"group": [5, 6, 7, 8]})
    other = DATA[:2].with_covariates({"group": [1, 2]})
    assert group(Sequences.cat([one[2:], other])) == [7, 8, 1, 2]
    plain = Sequences.cat([DATA.with_covariates(DATA.lengths), DATA[:2].with_covariates(torch.tensor([9, 9]))])
    assert plain.covariates is not None
    assert plain.covariates.values.tolist() == [2, 0, 3, 1, 9, 9]  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="parts: expected covariates in all of them or in none, found 1 of 2"):
        Sequences.cat([one, DATA])
    with pytest.raises(
        ValueError, match=re.escape("expected the same covariates in all of them, found [\"'group'[N]\"")
    ):
        Sequences.cat([one, DATA.with_covariates({"age": [5, 6, 7, 8]})])
    with pytest.raises(ValueError, match="expected the same covariates"):
        Sequences.cat([one, DATA.with_covariates({"group": [5.0, 6, 7, 8]})])


def test_repeated_for_data_sets_that_follow_each_other() -> None:
    known = Covariates.of([3, 4], 2).repeated(3)
    assert known.values.tolist() == [3, 4, 3, 4, 3, 4]  # type: ignore[union-attr]
    assert len(known) == 6


def test_the_number_of_rows_is_checked() -> None:
    known = Covariates.of([3, 4], 2)
    with pytest.raises(ValueError, match="covariates: expected those of 4 sequences, found those of 2"):
        DATA.with_covariates(known)
    data = DATA.with_covariates([1, 2, 3, 4])
    with pytest.raises(ValueError, match="expected 1 rows of covariates, found 4; state the owners"):
        data.derived(DATA.tokens[:1], DATA.lengths[:1])


def test_they_are_shown() -> None:
    shown = repr(DATA.with_covariates({"group": [5, 6, 7, 8], "place": np.zeros((4, 2))}))
    assert shown.endswith("; Covariates(4: 'group'[N], 'place'[N, 2]))")

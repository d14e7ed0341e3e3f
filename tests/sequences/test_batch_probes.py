# SPDX-License-Identifier: Apache-2.0
"""A few sequences on which one sees whether values depend on the sequence alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from pyro_ksd.common.chunk_sizes import EVALUATED_SEQUENCES
from pyro_ksd.sequences.batch_probes import (
    BatchFault,
    ManyRows,
    batch_fault,
    few_rows,
    first_change,
    in_many_rows,
    padding_fault,
    repetition_fault,
    widened,
)
from pyro_ksd.sequences.container import Sequences

OWN = torch.tensor([-1.0, -2.5, -4.0], dtype=torch.double)
MANY = ManyRows(torch.tensor([0, 1, 2, 1, 0, 2, 2, 1]), wide=True)


def with_lengths(lengths: list[int]) -> Sequences:
    tokens = torch.zeros(len(lengths), max(lengths), dtype=torch.long)
    return Sequences(tokens, torch.tensor(lengths), 2)


def test_few_rows_have_all_lengths_with_the_longest_and_the_shortest() -> None:
    lengths = torch.arange(100) % 50
    found = lengths[few_rows(lengths)]
    assert found[0] == 49
    assert found[-1] == 1  # the empty sequence is left out
    assert len(found) == 8
    assert (found.diff() < 0).all()
    assert few_rows(torch.tensor([4])).tolist() == [0]
    assert few_rows(torch.zeros(3, dtype=torch.long)).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("num_sequences", "num_rows"), [(3, 16), (15, 16), (16, 17), (200, 201), (20_000, 2**13 * 3 // 2)]
)
def test_there_are_more_rows_than_data(num_sequences: int, num_rows: int) -> None:
    assert num_rows <= EVALUATED_SEQUENCES
    data = with_lengths([2, 3] * (num_sequences // 2) + [2] * (num_sequences % 2))
    index, wide = in_many_rows(torch.tensor([4, 3, 2]), data)
    assert wide
    assert len(index) == num_rows
    assert index.unique().tolist() == [1, 2]


def test_the_rows_of_a_sequence_have_no_period() -> None:
    index = in_many_rows(torch.tensor([2, 2]), with_lengths([2] * 200)).which
    for period in range(2, 40):
        for phase in range(period):
            rows = index[phase::period]
            assert len(rows) < 9 or len(rows.unique()) == 2


def test_very_long_sequences_are_left_out_of_many_rows_only() -> None:
    def found(lengths: list[int], data: list[int]) -> tuple[list[int], bool]:
        index, wide = in_many_rows(torch.tensor(lengths), with_lengths(data))
        return index.unique().tolist(), wide

    many = [1000] + [5] * 9000
    assert found([1000, 6, 4], many) == ([1, 2], False)
    assert found([1000, 999, 6, 4], many) == ([2, 3], False)
    assert found([1000], many) == ([0], True)
    assert found([20, 11, 10, 4], many) == ([2, 3], True)
    assert found([21, 11, 10, 4], many) == ([2, 3], False)
    assert found([901, 900, 6, 4], [901, 900, 6, 4]) == ([1, 2, 3], True)
    assert found([3, 3], [3, 3]) == ([0, 1], True)


def stateful() -> Callable[[Tensor, bool], Tensor]:
    runs = iter(range(1000))
    return lambda index, wide: OWN[index] + 0.01 * next(runs) + 0.01


@pytest.mark.parametrize(
    ("score", "kind"),
    [
        (lambda index, wide: OWN[index], None),
        (lambda index, wide: OWN[index] + 1e-9 * torch.arange(len(index)), None),
        (stateful(), "run"),
        (lambda index, wide: OWN[index] + 1e-3 * (torch.arange(len(index)) == 5), "row"),
        (lambda index, wide: OWN[index].cumsum(0), "row"),
        (lambda index, wide: OWN[index] + 1e-3 * len(index), "mates"),
        (lambda index, wide: OWN[index] - OWN[index].mean(), "mates"),
        (lambda index, wide: OWN[index].masked_fill(torch.arange(len(index)) == 3, -torch.inf), "row"),
    ],
)
def test_faults_are_told_apart(score: Callable[[Tensor, bool], Tensor], kind: str | None) -> None:
    found = batch_fault(score, OWN, MANY)
    assert (None if found is None else found.kind) == kind


def test_other_padding_of_a_narrow_batch_is_not_blamed_on_the_other_sequences() -> None:
    narrow = MANY._replace(wide=False)
    assert batch_fault(lambda index, wide: OWN[index] + 1e-3 * (wide - 1.0), OWN, narrow) == ("padding", -1.001, -1.0)
    found = batch_fault(lambda index, wide: OWN[index] + 1e-3 * len(index), OWN, narrow)
    assert found is not None
    assert found.kind == "mates"


def test_what_fails_on_a_narrow_batch_is_tried_on_a_wide_one() -> None:
    def score(index: Tensor, wide: bool) -> Tensor:
        if not wide:
            raise IndexError
        return OWN[index]

    narrow = MANY._replace(wide=False)
    assert batch_fault(score, OWN, narrow) is None
    found = batch_fault(lambda index, wide: score(index, wide) * torch.arange(len(index)), OWN, narrow)
    assert found is not None
    assert found.kind == "row"

    def fails(index: Tensor, wide: bool) -> Tensor:
        raise IndexError

    with pytest.raises(IndexError):
        batch_fault(fails, OWN, MANY)


def test_faults_of_several_values_are_seen_in_each_of_them() -> None:
    own = torch.stack([OWN, 1e-9 * OWN], 1)

    def score(index: Tensor, wide: bool) -> Tensor:
        return own[index] + torch.tensor([0.0, 1e-9]) * torch.arange(len(index))[:, None]

    assert batch_fault(score, own, MANY) is None
    found = batch_fault(score, own, MANY, 1e-5 * own.abs().amax(0))
    assert found is not None
    assert found.kind == "row"


def test_faults_of_padding_and_of_repetition() -> None:
    assert padding_fault(lambda: OWN, OWN, OWN.clone()) is None
    assert padding_fault(lambda: OWN, OWN, OWN + 1.0) == ("padding", -1.0, 0.0)
    assert padding_fault(lambda: OWN + 2.0, OWN, OWN + 1.0) == ("run", -1.0, 1.0)
    assert repetition_fault(lambda: OWN, OWN) is None
    runs = iter([OWN, OWN + 1.0])
    assert repetition_fault(lambda: next(runs), OWN) == ("run", -1.0, 0.0)


def test_change() -> None:
    infinite = torch.tensor([-torch.inf, 3.0])
    assert first_change(infinite, infinite.clone()) is None
    assert first_change(infinite, torch.tensor([-torch.inf, 3.00001])) is None
    assert first_change(infinite, torch.tensor([-torch.inf, 3.5])) == (3.0, 3.5)
    assert first_change(infinite, torch.tensor([2.0, 3.0])) == (-torch.inf, 2.0)
    assert first_change(torch.tensor([[1.0], [2.0]]), torch.tensor([[1.0], [4.0]])) == (2.0, 4.0)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("run", "the score is not repeatable: the same batch gave 1, and the next time 2; expected the same value in"),
        ("row", "the score depends on the row of the batch: 1 in one row, and 2 in another; rows of a batch are"),
        ("padding", "the score changes with the padding after its end, from 1 to 2; expected the mask"),
        ("mates", "the score changes with the other sequences of the batch, from 1 to 2; expected one value for each"),
    ],
)
def test_words(kind: str, words: str) -> None:
    message = str(BatchFault(kind, 1.0, 2.0).error("the score", alone="constants", masked="the mask"))  # type: ignore[arg-type]
    assert message.startswith(words)
    assert ("pass what differs between sequences as covariates: Sequences.with_covariates(...)" in message) == (
        kind == "row"
    )
    assert message.endswith("constants") == (kind == "mates")


def test_wider_sequences_are_the_same() -> None:
    data = Sequences.of(["abb", "b"]).with_covariates([1, 2])
    wide = widened(data)
    assert wide.width == 6
    assert wide.to_lists() == data.to_lists()
    assert wide.covariates is data.covariates

# SPDX-License-Identifier: Apache-2.0
"""Splitting data at random into parts."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.splitting import fold_rows, split


def test_split_keeps_every_sequence_once() -> None:
    data = ["ab", "b", "abb", "ba", "a", "bb", "aab"]
    first, second = split(data, 0.4, seed=3)
    assert (len(first), len(second)) == (3, 4)
    assert sorted("".join(x) for x in first.to_lists() + second.to_lists()) == sorted(data)
    assert first.alphabet == second.alphabet == ("a", "b")
    again, _ = split(Sequences.of(data), 0.4, seed=3)
    assert again.to_lists() == first.to_lists()
    assert {tuple(map(tuple, split(data, 0.4, seed=seed)[0].to_lists())) for seed in range(5)} != {
        tuple(map(tuple, first.to_lists()))
    }


@pytest.mark.parametrize("fraction", [0.0, 1.0, 0.01, -1.0])
def test_split_leaves_sequences_in_both_parts(fraction: float) -> None:
    with pytest.raises(ValueError, match=f"leaves sequences in both parts, found {fraction} of 3"):
        split(["a", "b", "ab"], fraction)


def test_split_takes_numbers_of_numpy() -> None:
    data = ["ab", "b", "abb", "ba"]
    one, other = split(data, 0.5, seed=3), split(data, np.float32(0.5), seed=np.int64(3))  # type: ignore[arg-type]
    assert one[0].to_lists() == other[0].to_lists()


def test_split_by_several_shares() -> None:
    with pytest.raises(ValueError, match="expected a share that leaves sequences in both parts, found"):
        split(["ab", "a"], [0.8, 0.2])  # type: ignore[arg-type]


@pytest.mark.parametrize(("num_sequences", "folds"), [(6, 3), (11, 4), (20, 10), (100, 7)])
def test_folds_have_every_row_once_and_nearly_the_same_size(num_sequences: int, folds: int) -> None:
    rows = fold_rows(num_sequences, folds, seed=3)
    assert len(rows) == folds
    assert torch.cat(rows).sort().values.tolist() == list(range(num_sequences))
    sizes = [len(own) for own in rows]
    assert max(sizes) - min(sizes) <= 1
    assert all(own.equal(own.sort().values) for own in rows)
    assert all(own.equal(again) for own, again in zip(rows, fold_rows(num_sequences, folds, seed=3), strict=True))
    others = {tuple(fold_rows(num_sequences, folds, seed=seed)[0].tolist()) for seed in range(5)}
    assert len(others) > 1


@pytest.mark.parametrize(
    ("num_sequences", "folds", "message"),
    [
        (10, 2, "folds: expected an integer of at least 3, found 2"),
        (10, 2.5, "folds: expected an integer of at least 3, found 2.5"),
        (9, 5, "folds: expected at least 2 sequences in each, found 9 sequences for 5 folds; take fewer folds"),
    ],
)
def test_folds_are_refused_that_are_too_few_or_too_small(num_sequences: int, folds: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fold_rows(num_sequences, folds)

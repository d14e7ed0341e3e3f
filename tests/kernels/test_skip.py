# SPDX-License-Identifier: Apache-2.0
"""Pairs at a distance by local changes against pairs counted from scratch."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
import torch
from feature_enumeration import NEIGHBORHOODS, Features, assert_features, runs
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.kernels.contiguous import ContiguousKernel
from pyro_ksd.kernels.skip import SkipKernel
from pyro_ksd.sequences.container import Sequences

pytestmark = pytest.mark.usefixtures("engine")


def pairs_at(x: tuple[int, ...], distances: tuple[int, ...]) -> Features:
    features: Features = {}
    for distance in distances:
        counts = Counter(zip(x, x[distance:], strict=False))
        for pair, count in counts.items():
            features[distance, *pair] = count / math.sqrt(len(x))
    return features


def decoded(code: int, size: int, distances: tuple[int, ...]) -> tuple[int, ...]:
    return distances[code // size**2], code // size % size, code % size


@pytest.mark.parametrize("distances", [(1,), (2,), (3,), (2, 3), (1, 4)])
@pytest.mark.parametrize("neighborhood", NEIGHBORHOODS)
@given(data=st.lists(runs(), min_size=1, max_size=4))
@example(data=[[], [0], [1, 1], [2, 2, 2], [0, 0, 0, 0, 0, 0, 0], [0, 1, 2, 0, 1, 2]])
@settings(max_examples=6, deadline=None)
def test_skip_features_by_local_changes(data: list[list[int]], neighborhood: str, distances: tuple[int, ...]) -> None:
    assert_features(
        SkipKernel(distances),
        data,
        3,
        NEIGHBORHOODS[neighborhood],
        lambda x: pairs_at(x, distances),
        lambda code: decoded(code, 3, distances),
    )


def test_skips_of_a_large_alphabet() -> None:
    size = 50_257
    data = [[size - 1, 7, size - 1, 0, size - 2], [1, size - 1], [size - 1] * 4, [7], []]
    distances = (2, 3)
    assert_features(
        SkipKernel(distances),
        data,
        size,
        zs(insertable=[size - 1, 3], symbols=1),
        lambda x: pairs_at(x, distances),
        lambda code: decoded(code, size, distances),
    )


def test_neighbors_have_the_distance_one() -> None:
    data = Sequences.of(["abcab", "bb", "c", "acca"])
    cosine = ContiguousKernel(2, form="cosine").gram(data, data)
    gram = SkipKernel((1,)).gram(data, data)
    norm = gram.diagonal().sqrt()
    torch.testing.assert_close(gram, cosine * norm[:, None] * norm)


@pytest.mark.parametrize("distances", [(), [2, 3], (3, 2), (2, 2), 2, None])
def test_distances_are_an_ascending_tuple(distances: Any) -> None:
    with pytest.raises(ValueError, match="distances: expected a tuple of distances in ascending order, such as"):
        SkipKernel(distances)


@pytest.mark.parametrize("distances", [(0,), (-1, 2), (62,)])
def test_distances_are_within_bounds(distances: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"distances: expected an integer from 1 to 61, found"):
        SkipKernel(distances)


def test_words() -> None:
    assert SkipKernel((2,)).meaning == "pairs of symbols at distance 2"
    assert SkipKernel((2, 3)).meaning == "pairs of symbols at distance 2 and 3"
    assert SkipKernel((1, 2, 5)).meaning == "pairs of symbols at distance 1, 2 and 5"
    kernel = SkipKernel((2, 4))
    assert kernel.feature_kind == "skip"
    assert [kernel.feature_label(code, 3) for code in (0, 8, 9, 17)] == ["_", "_", "___", "___"]
    assert kernel.feature_symbols(torch.tensor([0, 5, 9, 16]), 3).tolist() == [[0, 0], [1, 2], [0, 0], [2, 1]]

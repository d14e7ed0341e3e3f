# SPDX-License-Identifier: Apache-2.0
"""Symbols at places from the start and from the end, read off from scratch."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from feature_enumeration import NEIGHBORHOODS, Features, assert_features, ngram, runs
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.kernels.edge_symbols import EdgeKernel
from pyro_ksd.sequences.container import Sequences


@dataclass(frozen=True, eq=False)
class SomePlaces(EdgeKernel):
    at: tuple[int, ...] = (0,)

    @property
    def places(self) -> tuple[int, ...]:
        return self.at


def edges(x: tuple[int, ...], places: tuple[int, ...], size: int) -> tuple[int, ...]:
    return tuple(x[place] if -len(x) <= place < len(x) else size for place in places)


@pytest.mark.parametrize("places", [(0,), (-1,), (0, -1), (2,), (-3,), (1, -2), (-1, 0, -4, 3)])
@pytest.mark.parametrize("neighborhood", NEIGHBORHOODS)
@given(data=st.lists(runs(), min_size=1, max_size=4))
@example(data=[[], [0], [1, 1], [2, 2, 2], [0, 1, 2, 0, 1, 2, 0]])
@settings(max_examples=5, deadline=None)
def test_edges_by_local_changes(data: list[list[int]], neighborhood: str, places: tuple[int, ...]) -> None:
    count = len(places)

    def phi(x: tuple[int, ...]) -> Features:
        return {edges(x, places, 3): 1.0}

    assert_features(
        SomePlaces(places), data, 3, NEIGHBORHOODS[neighborhood], phi, lambda code: ngram(code, 4, range(count, 9))
    )


def test_edges_of_a_large_alphabet() -> None:
    size, places = 50_000, (0, -1)
    data = [[49_999, 0, 49_999], [5], [], [1, 2]]
    assert_features(
        SomePlaces(places),
        data,
        size,
        zs(symbols=1, insertable=[2]),
        lambda x: {edges(x, places, size): 1.0},
        lambda code: ngram(code, size + 1, range(2, 3)),
    )


def test_symbols_of_all_edges() -> None:
    codes = torch.arange(4**2)
    found = SomePlaces((0, -1)).feature_symbols(codes, 3)
    assert found.tolist() == [list(ngram(code, 4, range(2, 3))) for code in codes.tolist()]


def test_every_sequence_has_one_feature() -> None:
    data = Sequences.of(["", "a", "ab", "abc"])
    values = SomePlaces((1, -2)).features(data).values.to_dense()
    assert values.sum(1).tolist() == [1.0] * 4
    assert SomePlaces((1, -2)).num_features(3) == 16

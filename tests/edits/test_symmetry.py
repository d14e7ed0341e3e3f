# SPDX-License-Identifier: Apache-2.0
"""Which neighborhoods are symmetric, and which connect a space."""

from __future__ import annotations

import re
from typing import Any

import oracle
import pytest
import torch
from neighbor_lists import SYMMETRIC, Codes, around, space

from pyro_ksd.edits.neighborhoods import (
    CustomNeighborhood,
    DoubleSubstitutions,
    InsertionsDeletions,
    Neighborhood,
    Substitutions,
    zs,
)
from pyro_ksd.edits.symmetry import check_symmetric, is_connected
from pyro_ksd.sequences.container import Sequences


@pytest.mark.parametrize("name", SYMMETRIC)
def test_symmetric(name: str) -> None:
    rows = space(3, 3)
    check_symmetric(SYMMETRIC[name], Sequences.of(rows, alphabet=3))
    for x, ys in zip(rows, around(SYMMETRIC[name], rows, 3), strict=True):
        for back in around(SYMMETRIC[name], ys, 3) if ys else []:
            assert x in back


def rotate(x: Any) -> list[Any]:
    return [x[1:] + x[:1]]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            rotate,
            "the neighborhood is not symmetric: ['b', 'c', 'a'] is a neighbor of ['a', 'b', 'c'], but not the other",
        ),
        (
            lambda x: [x[:-1]],
            "['a', 'b'] is a neighbor of ['a', 'b', 'c'], but not the other way round; add the way back",
        ),
        (lambda x: [(*x, "a")], "['a', 'b', 'c', 'a'] is a neighbor of ['a', 'b', 'c'], but not the other way round"),
    ],
)
def test_not_symmetric(function: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        check_symmetric(CustomNeighborhood(function), Sequences.of(["abc"]))


def test_one_lopsided_neighbor_among_many_is_found() -> None:
    def lopsided(x: Codes) -> list[Codes]:
        return [*oracle.neighbors(x, 2), *([(1, 1, 1)] if x == (0,) else [])]

    with pytest.raises(ValueError, match=re.escape("[1, 1, 1] is a neighbor of [0], but not")):
        check_symmetric(CustomNeighborhood(lopsided), Sequences.of(space(2, 2), alphabet=2))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("neighborhood", "rows", "size", "connected"),
    [
        (zs(), space(2, 3), 2, True),
        (zs(locations=1), space(2, 3), 2, True),
        (InsertionsDeletions(), space(2, 3), 2, True),
        (InsertionsDeletions(), space(2, 3, shortest=1), 2, True),
        (InsertionsDeletions(insertable=[1]), space(2, 3), 2, False),
        (zs(insertable=[1]), space(2, 3), 2, True),
        (Substitutions(), space(2, 3), 2, False),
        (Substitutions(), space(3, 2, shortest=2), 3, True),
        (Substitutions(symbols=1), space(5, 1, shortest=1), 5, True),
        (Substitutions(symbols=torch.zeros(3, 3).bool()), space(3, 1, shortest=1), 3, False),
        (Substitutions(locations=1), space(2, 2, shortest=2), 2, False),
        (DoubleSubstitutions(), space(2, 3, shortest=3), 2, False),
        (DoubleSubstitutions(), space(3, 3, shortest=3), 3, True),
        (DoubleSubstitutions() | Substitutions(), space(2, 3, shortest=3), 2, True),
        (Substitutions(), [(0,), (0, 0)], 1, False),
        (Substitutions(), [(0,)], 1, True),
        (zs(), [(0,), (0, 0, 0)], 1, False),
        (CustomNeighborhood(lambda x: [(0,)]), [(0,), (1,)], 2, False),
    ],
)
def test_connected(neighborhood: Neighborhood, rows: list[Codes], size: int, connected: bool) -> None:
    assert is_connected(neighborhood, Sequences.of(rows, alphabet=size)) is connected

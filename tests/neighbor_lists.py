# SPDX-License-Identifier: Apache-2.0
"""Neighborhoods as plain lists, for small spaces of sequences."""

from __future__ import annotations

from itertools import product

from pyro_ksd.edits.neighborhoods import (
    CustomNeighborhood,
    DoubleSubstitutions,
    InsertionsDeletions,
    Neighborhood,
    Substitutions,
    zs,
)
from pyro_ksd.sequences.container import Sequences

Codes = tuple[int, ...]


def around(neighborhood: Neighborhood, rows: list[Codes], size: int) -> list[list[Codes]]:
    """The neighbors of each row in the order of the edits, with whatever repeats there are."""
    data = Sequences.of(rows, alphabet=size)
    edits = neighborhood.edits(data)
    found: list[list[Codes]] = [[] for _ in rows]
    for owner, neighbor in zip(edits.owner.tolist(), edits.apply(data).to_lists(), strict=True):
        found[owner].append(tuple(neighbor))
    assert len(edits) == sum(map(len, found))
    return found


def space(size: int, longest: int, shortest: int = 0) -> list[Codes]:
    return [x for length in range(shortest, longest + 1) for x in product(range(size), repeat=length)]


SYMMETRIC: dict[str, Neighborhood] = {
    "substitutions": Substitutions(),
    "ring": Substitutions(symbols=1),
    "last two": zs(locations=2),
    "indel": InsertionsDeletions(),
    "indel of one symbol": InsertionsDeletions(3, insertable=[1]),
    "double": DoubleSubstitutions(2),
    "all": zs() | DoubleSubstitutions(),
    "overlapping": zs(1) | zs(3),
    "reversal": CustomNeighborhood(lambda x: [x[::-1]]),
    "nothing": CustomNeighborhood(lambda x: []),
}

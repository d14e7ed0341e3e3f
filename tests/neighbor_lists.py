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


def assert_replaces_freely(neighborhood: Neighborhood, size: int, longest: int = 4) -> None:
    """Asserts that what replaces one symbol falls into classes, within which any symbol leads to any other."""
    rows = space(size, longest)
    classes: dict[tuple[Codes, int], set[Codes]] = {}
    for x, neighbors in zip(rows, around(neighborhood, rows, size), strict=True):
        for place in range(len(x)):
            own = {
                y for y in neighbors if len(y) == len(x) and y[:place] == x[:place] and y[place + 1 :] == x[place + 1 :]
            }
            classes[x, place] = own | {x}
    assert any(len(found) > 2 for found in classes.values())
    for (_, place), found in classes.items():
        assert all(classes[y, place] == found for y in found)

# SPDX-License-Identifier: Apache-2.0
"""Neighborhoods against plain enumeration: the same set, nothing twice, never the sequence itself."""

from __future__ import annotations

import re
from collections import Counter
from itertools import product
from typing import Any

import oracle
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pyro_ksd.edits.neighborhoods import (
    CustomNeighborhood,
    DoubleSubstitutions,
    InsertionsDeletions,
    Neighborhood,
    Substitutions,
    Union,
    replacements,
    zs,
)
from pyro_ksd.edits.symmetry import check_symmetric, is_connected
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


def compare(neighborhood: Neighborhood, rows: list[Codes], size: int, **options: Any) -> None:
    for row, found in zip(rows, around(neighborhood, rows, size), strict=True):
        assert [y for y, count in Counter(found).items() if count > 1] == []
        assert row not in found
        assert set(found) == oracle.neighbors(row, size, **options)
        assert len(found) <= neighborhood.edit_bound(len(row), size)


@st.composite
def runs(draw: st.DrawFn, size: int) -> Codes:
    """A sequence with many runs of equal symbols, often empty or of one symbol."""
    pieces = draw(st.lists(st.tuples(st.integers(0, size - 1), st.integers(1, 4)), max_size=3))
    return tuple(symbol for symbol, count in pieces for _ in range(count))


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, list[Codes], int | None]:
    """An alphabet size, some sequences over it and a number of locations that may exceed their lengths."""
    size = draw(st.integers(1, 4))
    rows = draw(st.lists(runs(size), min_size=1, max_size=4))
    return size, rows, draw(st.none() | st.integers(1, 14))


quick = settings(deadline=None, max_examples=80)


@quick
@given(cases())
def test_substitutions(case: tuple[int, list[Codes], int | None]) -> None:
    size, rows, locations = case
    compare(Substitutions(locations), rows, size, indel=False, locations=locations)


@quick
@given(cases(), st.none() | st.sets(st.integers(0, 3)))
def test_insertions_and_deletions(case: tuple[int, list[Codes], int | None], chosen: set[int] | None) -> None:
    size, rows, locations = case
    insertable = None if chosen is None else sorted(symbol for symbol in chosen if symbol < size)
    neighborhood = InsertionsDeletions(locations, insertable)
    compare(neighborhood, rows, size, substitute=False, locations=locations, insertable=insertable)


@quick
@given(cases())
def test_double_substitutions(case: tuple[int, list[Codes], int | None]) -> None:
    size, rows, locations = case
    options: dict[str, Any] = {"substitute": False, "indel": False, "double": True, "locations": locations}
    compare(DoubleSubstitutions(locations), rows, size, **options)


@quick
@given(cases(), st.integers(1, 3))
def test_zs_on_a_ring(case: tuple[int, list[Codes], int | None], radius: int) -> None:
    size, rows, locations = case

    def related(a: int, b: int) -> bool:
        return oracle.ring_distance(a, b, size) <= radius

    compare(zs(locations), rows, size, locations=locations)
    compare(zs(locations, symbols=radius), rows, size, locations=locations, related=related)


@st.composite
def relations(draw: st.DrawFn, size: int) -> torch.Tensor:
    upper = torch.tensor(draw(st.lists(st.booleans(), min_size=size**2, max_size=size**2))).reshape(size, size)
    return upper | upper.T


@quick
@given(cases(), st.data())
def test_any_symmetric_relation(case: tuple[int, list[Codes], int | None], data: st.DataObject) -> None:
    size, rows, locations = case
    matrix = data.draw(relations(size))

    def related(a: int, b: int) -> bool:
        return bool(matrix[a, b])

    single, double = Substitutions(locations, matrix), DoubleSubstitutions(locations, matrix)
    compare(single, rows, size, indel=False, locations=locations, related=related)
    compare(single | double, rows, size, indel=False, double=True, locations=locations, related=related)


@quick
@given(cases(), st.integers(1, 5))
def test_unions(case: tuple[int, list[Codes], int | None], other: int) -> None:
    size, rows, locations = case
    widest = None if locations is None else max(locations, other)
    apart = Substitutions(locations) | InsertionsDeletions(locations) | DoubleSubstitutions(locations)
    compare(apart, rows, size, double=True, locations=locations)
    compare(zs(locations) | zs(other), rows, size, locations=widest)
    triple = Union((zs(other), Substitutions(), zs(other)))
    for row, found in zip(rows, around(triple, rows, size), strict=True):
        expected = oracle.neighbors(row, size, locations=other) | oracle.neighbors(row, size, indel=False)
        assert sorted(found) == sorted(expected)
        assert len(found) <= triple.edit_bound(len(row), size)


def test_the_paper_counts_locations_from_the_end() -> None:
    assert set(around(Substitutions(1), [(0, 0)], 2)[0]) == {(0, 1)}
    assert set(around(InsertionsDeletions(1), [(0, 1)], 2)[0]) == {(0, 1, 0), (0, 1, 1), (0,)}
    assert set(around(InsertionsDeletions(2), [(0, 1)], 2)[0]) == {(0, 1, 0), (0, 1, 1), (0, 0, 1), (0,), (1,)}


def test_number_of_neighbors_of_a_sequence_without_runs() -> None:
    row = (0, 1, 2, 0, 1)
    assert len(around(Substitutions(), [row], 3)[0]) == 5 * 2
    assert len(around(InsertionsDeletions(), [row], 3)[0]) == 6 * 3 - 5 + 5
    assert len(around(DoubleSubstitutions(), [row], 3)[0]) == 10 * 4


def test_empty_sequence_has_insertions_only() -> None:
    assert around(Substitutions(), [()], 3) == [[]]
    assert around(DoubleSubstitutions(), [()], 3) == [[]]
    assert sorted(around(zs(), [()], 3)[0]) == [(0,), (1,), (2,)]
    assert sorted(around(zs(locations=5), [(), ()], 2)[1]) == [(0,), (1,)]


def test_alphabet_of_one_symbol() -> None:
    assert around(zs(), [(0, 0), ()], 1) == [[(0, 0, 0), (0,)], [(0,)]]
    assert around(Substitutions() | DoubleSubstitutions(), [(0, 0)], 1) == [[]]


def test_insertable_are_symbols_of_the_alphabet() -> None:
    data = Sequences.of(["xay"], alphabet="axy")
    neighborhood = InsertionsDeletions(insertable=iter("a"))
    for _ in range(2):  # an iterator must not be used up by the first call
        found = ["".join(map(str, row)) for row in neighborhood.edits(data).apply(data).to_lists()]
        assert sorted(found) == ["axay", "xaay", "xaya", "xy"]
    with pytest.raises(ValueError, match=r"found the symbol 'b', expected one of the alphabet \('a', 'x', 'y'\)"):
        InsertionsDeletions(insertable="ab").edits(data)


# ------------------------------------------------------------------------------------------------- custom


@settings(quick, max_examples=40)
@given(cases())
def test_custom_equals_built_in(case: tuple[int, list[Codes], int | None]) -> None:
    size, rows, locations = case

    def repeated(x: Codes) -> list[Codes]:
        return [*sorted(oracle.neighbors(x, size, double=True, locations=locations)), x] * 2

    custom = CustomNeighborhood(repeated)  # type: ignore[arg-type]
    for neighborhood in (custom, custom | zs(locations), DoubleSubstitutions(locations) | custom):
        found = around(neighborhood, rows, size)
        assert list(map(sorted, found)) == [
            sorted(oracle.neighbors(x, size, double=True, locations=locations)) for x in rows
        ]


def test_custom_sees_symbols_and_may_find_nothing() -> None:
    data = Sequences.of(["ab", "ba"])
    seen = []

    def reverse(x: Any) -> list[Any]:
        seen.append(x)
        return [x[::-1]]

    found = CustomNeighborhood(reverse).edits(data)
    assert seen == [("a", "b"), ("b", "a")]
    assert found.apply(data).to_lists() == [["b", "a"], ["a", "b"]]
    assert len(CustomNeighborhood(lambda x: []).edits(data)) == 0
    assert len(CustomNeighborhood(lambda x: [x]).edits(data)) == 0
    with pytest.raises(ValueError, match="position 0: found the symbol 'z'"):
        CustomNeighborhood(lambda x: ["z"]).edits(data)


# -------------------------------------------------------------------------------------- symbol relations


def pairs_of(symbols: Any, here: list[int], size: int) -> list[tuple[int, int]]:
    """The replacements as pairs (index of what is replaced, new symbol), with whatever repeats there are."""
    index, symbol = replacements(symbols, torch.tensor(here, dtype=torch.long), size)
    return sorted(zip(index.tolist(), symbol.tolist(), strict=True))


@pytest.mark.parametrize(("size", "radius"), list(product(range(1, 7), [None, 1, 2, 3, 4])))
def test_replacements_on_a_ring(size: int, radius: int | None) -> None:
    here = [*range(size), 0]
    near = size if radius is None else radius
    expected = [
        (index, b)
        for index, a in enumerate(here)
        for b in range(size)
        if a != b and oracle.ring_distance(a, b, size) <= near
    ]
    assert pairs_of(radius, here, size) == expected


def test_replacements_by_a_matrix_leave_out_the_symbol_itself() -> None:
    everything = torch.ones(3, 3, dtype=torch.bool)
    assert pairs_of(everything, [2, 0], 3) == pairs_of(None, [2, 0], 3) == [(0, 0), (0, 1), (1, 1), (1, 2)]
    only = torch.tensor([[1, 0, 1], [0, 0, 0], [1, 0, 0]]).bool()
    assert pairs_of(only, [0, 1, 2, 0], 3) == [(0, 2), (2, 0), (3, 2)]
    assert pairs_of(only, [], 3) == pairs_of(None, [], 3) == pairs_of(None, [0], 1) == []


@pytest.mark.parametrize(
    ("symbols", "message"),
    [
        (
            torch.tensor([[0, 1, 0], [1, 0, 1], [0, 0, 0]]).bool(),
            "symbols: expected a symmetric relation, found that 1 and 2 replace each other in one direction only; "
            "the Stein identity needs both: use (relation | relation.T)",
        ),
        (
            torch.ones(3, 3),
            "symbols: expected a boolean [3, 3] matrix for an alphabet of 3 symbols, found torch.float32",
        ),
        (torch.ones(2, 3).bool(), "for an alphabet of 3 symbols, found torch.bool [2, 3]"),
        (0, "symbols: expected None, a radius of at least 1 or a boolean matrix, found 0"),
        (True, "symbols: expected None, a radius of at least 1 or a boolean matrix, found True"),
        (1.5, "symbols: expected None, a radius of at least 1 or a boolean matrix, found 1.5"),
    ],
)
@pytest.mark.parametrize("kind", [Substitutions, DoubleSubstitutions, zs])
def test_bad_relations(kind: Any, symbols: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        kind(symbols=symbols).edits(Sequences.of([[0, 1, 2]]))


@pytest.mark.parametrize("kind", [Substitutions, DoubleSubstitutions, InsertionsDeletions, zs])
@pytest.mark.parametrize("locations", [0, -1, 1.0, True])
def test_bad_locations(kind: Any, locations: Any) -> None:
    message = f"locations: expected None (everywhere) or a number of at least 1, found {locations!r}"
    with pytest.raises(ValueError, match=re.escape(message)):
        kind(locations)


# --------------------------------------------------------------------------------------------- properties


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


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("locations", [None, 1, 2, 3, 7])
@pytest.mark.parametrize("length", range(5))
def test_edit_bound_holds_and_is_reached_up_to_runs(size: int, locations: int | None, length: int) -> None:
    rows = space(size, length, shortest=length)
    for neighborhood in (
        Substitutions(locations),
        Substitutions(locations, symbols=1),
        InsertionsDeletions(locations),
        InsertionsDeletions(locations, insertable=[0]),
        DoubleSubstitutions(locations),
        zs(locations) | Substitutions(1),
    ):
        most = max(map(len, around(neighborhood, rows, size)))
        assert most <= neighborhood.edit_bound(length, size)
    for exact in (Substitutions(locations), Substitutions(locations, symbols=1), DoubleSubstitutions(locations)):
        assert max(map(len, around(exact, rows, size))) == exact.edit_bound(length, size)


def test_neighborhoods_do_not_depend_on_batch_mates() -> None:
    rows: list[Codes] = [(0, 0, 1), (), (1,), (0, 1, 1, 1, 0, 0)]
    for neighborhood in SYMMETRIC.values():
        together = around(neighborhood, rows, 2)
        alone = [around(neighborhood, [row], 2)[0] for row in rows]
        assert list(map(sorted, together)) == list(map(sorted, alone))

# SPDX-License-Identifier: Apache-2.0
"""Neighborhoods against plain enumeration: the same set, nothing twice, never the sequence itself."""

from __future__ import annotations

import re
from collections import Counter
from random import Random
from typing import Any

import oracle
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from neighbor_lists import SYMMETRIC, Codes, around, assert_replaces_freely, space
from torch import Tensor

from pyro_ksd.edits.neighborhoods import (
    BeforeEnd,
    CustomNeighborhood,
    DoubleSubstitutions,
    InsertionsDeletions,
    ModelsUnion,
    Neighborhood,
    Substitutions,
    Union,
    zs,
)
from pyro_ksd.edits.prefix_neighborhoods import prefix_zs
from pyro_ksd.edits.symmetry import check_symmetric
from pyro_ksd.kernels import ContiguousKernel, LengthKernel, StartKernel
from pyro_ksd.models import SequenceModel
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.operators import Operator, TailBlockOperator, ZanellaOperator
from pyro_ksd.stein.views import View


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


@pytest.mark.parametrize("kind", [Substitutions, DoubleSubstitutions, InsertionsDeletions, zs])
@pytest.mark.parametrize("locations", [0, -1, 1.0, True])
def test_bad_locations(kind: Any, locations: Any) -> None:
    message = f"locations: expected None (everywhere) or a number of at least 1, found {locations!r}"
    with pytest.raises(ValueError, match=re.escape(message)):
        kind(locations)


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


# ----------------------------------------------------------------------------------- several models' edits

PARTS: dict[str, tuple[Neighborhood, ...]] = {
    "one": (zs(),),
    "equal": (zs(), zs()),
    "overlapping": (zs(1), Substitutions(3), InsertionsDeletions(2, insertable=[1])),
    "before the end": (zs(), BeforeEnd(zs())),
    "custom": (BeforeEnd(zs(1)), CustomNeighborhood(lambda x: [x[::-1]])),
    "of its own kind": (Substitutions(1) | Substitutions(2), DoubleSubstitutions()),
}


@pytest.mark.parametrize("kind", [Union, ModelsUnion])
@pytest.mark.parametrize("name", PARTS)
def test_a_union_has_the_neighbors_of_all_parts_once(name: str, kind: type[Union] | type[ModelsUnion]) -> None:
    rows = space(3, 3)
    union = kind(PARTS[name])
    each = [around(part, rows, 3) for part in PARTS[name]]
    for row, found, *own in zip(rows, around(union, rows, 3), *each, strict=True):
        assert len(found) == len(set(found))
        assert set(found) == set().union(*own)
        assert row not in found
        if name != "custom":  # whose bound is a guess
            assert len(found) <= union.edit_bound(len(row), 3)
    check_symmetric(union, Sequences.of(rows, 3))
    assert union.kinds == frozenset().union(*(part.kinds for part in PARTS[name]))
    assert union.is_costly == any(part.is_costly for part in PARTS[name])


@pytest.mark.parametrize("name", PARTS)
def test_the_tail_of_several_models_has_the_tail_of_each(name: str) -> None:
    rows = space(3, 3)
    tail = ModelsUnion(PARTS[name]).tail
    each = [around(part.tail, rows, 3) for part in PARTS[name]]
    for found, again, *own in zip(around(tail, rows, 3), around(tail.tail, rows, 3), *each, strict=True):
        assert sorted(found) == sorted(again) == sorted(neighbor for neighbors in own for neighbor in neighbors)
    check_symmetric(tail, Sequences.of(rows, 3))


@pytest.mark.parametrize("name", PARTS)
def test_the_tail_of_several_models_adds_up_the_operators(name: str) -> None:
    model = Table(space(3, 3), 3)
    data = Sequences.of(model.rows, 3)
    kernel = LengthKernel()
    [union] = stein_matrices(
        model, data, [View("", TailBlockOperator("barker", ModelsUnion(PARTS[name]).tail), kernel)]
    )
    views = [View("", TailBlockOperator("barker", part.tail), kernel) for part in PARTS[name]]
    each = [matrix.features.values for matrix in stein_matrices(model, data, views)]  # type: ignore[union-attr]
    torch.testing.assert_close(union.features.values, torch.stack(each).sum(0), rtol=1e-12, atol=1e-12)  # type: ignore[union-attr]


def test_the_tail_of_a_union_is_that_of_its_first_part() -> None:
    rows = space(2, 3)
    for first, second in [(zs(), BeforeEnd(zs())), (BeforeEnd(zs()), zs())]:
        assert around((first | second).tail, rows, 2) == around(first.tail, rows, 2)


END = 3  # a symbol that stands at the end of all sequences of some models, and nowhere else


def likely(model: int, prefix: Codes) -> list[int]:
    """What may follow a prefix under a model: at random, but always the same."""
    random = Random(f"{model} {prefix}")
    return sorted(random.sample(range(END), random.randint(1, END)))


class Candidates:
    """:func:`likely` as candidates for prefixes."""

    def __init__(self, model: int) -> None:
        self._model = model

    def __call__(self, sequences: Sequences, top: int) -> Tensor:
        codes = torch.full((len(sequences), sequences.width + 1, top), -1)
        for row, symbols in enumerate(sequences.to_lists()):
            for length in range(len(symbols) + 1):
                chosen = likely(self._model, tuple(symbols[:length]))  # type: ignore[arg-type]
                codes[row, length, : len(chosen)] = torch.tensor(chosen)
        return codes


class Table(SequenceModel):
    """Random probabilities for the given sequences, none for all others."""

    def __init__(self, rows: list[Codes], size: int) -> None:
        self._size, self.rows = size, rows
        self._log_p = {row: Random(str(row)).gauss(0.0, 1.0) for row in rows}

    @property
    def alphabet_size(self) -> int:
        return self._size

    def log_joint(self, sequences: Sequences) -> Tensor:
        rows = map(tuple, sequences.to_lists())
        return torch.tensor([self._log_p.get(row, -torch.inf) for row in rows], dtype=torch.double)  # type: ignore[call-overload]


def ending_table(model: int) -> Table:
    """A model of up to 3 likely symbols and the end."""
    rows = [x for x in space(END, 3) if all(x[i] in likely(model, x[:i]) for i in range(len(x)))]
    return Table([(*x, END) for x in rows], END + 1)


def largest_mean(model: Table, operator: Operator) -> float:
    """The largest mean of a Stein feature under the model, by enumeration of all its sequences."""
    data = Sequences.of(model.rows, model.alphabet_size)
    p = model.log_joint(data).softmax(0)
    kernels = [LengthKernel(), StartKernel(), ContiguousKernel(1), ContiguousKernel(2)]
    matrices = stein_matrices(model, data, [View(str(kernel), operator, kernel) for kernel in kernels])
    assert all(bool(matrix.diagonal().any()) for matrix in matrices)
    return max(float((p @ matrix.features.values.to_dense()).abs().max()) for matrix in matrices)  # type: ignore[union-attr]


@pytest.mark.parametrize("balancing", ["barker", "mpf", "metropolis"])
@pytest.mark.parametrize("models", [(9, 10), (1, 3), (0, 9, 10)], ids=str)
def test_stein_identity_with_the_edits_of_several_models(models: tuple[int, ...], balancing: str) -> None:
    """Each model has its own likely symbols, and holds all others for impossible."""
    union = ModelsUnion(tuple(BeforeEnd(prefix_zs(Candidates(model), END)) for model in models))
    tables = [ending_table(model) for model in models]
    assert len({tuple(table.rows) for table in tables}) == len(models)
    for table in tables:
        assert len(table.rows) > 10
        assert largest_mean(table, TailBlockOperator(balancing, union.tail)) < 1e-12
        assert largest_mean(table, ZanellaOperator(union, balancing)) < 1e-12


@pytest.mark.parametrize("operator", ["zanella", "tail block"])
@pytest.mark.parametrize(
    "parts",
    [
        (zs(), BeforeEnd(zs())),
        (prefix_zs(Candidates(0), END), prefix_zs(Candidates(1), END)),
        (BeforeEnd(prefix_zs(Candidates(0), END)), BeforeEnd(prefix_zs(Candidates(1), END))),
    ],
    ids=["before the end and not", "different candidates", "different candidates before the end"],
)
def test_stein_identity_with_the_edits_of_others_for_a_model_that_holds_everything_for_possible(
    parts: tuple[Neighborhood, ...], operator: str
) -> None:
    union = ModelsUnion(parts)
    chosen = ZanellaOperator(union) if operator == "zanella" else TailBlockOperator("barker", union.tail)
    assert largest_mean(Table(space(3, 3), 3), chosen) < 1e-12


# ---------------------------------------------------------------------------------------------- free replacements

FREE: dict[str, tuple[Neighborhood, bool]] = {
    "substitutions": (Substitutions(), True),
    "last two": (Substitutions(locations=2), True),
    "ring": (Substitutions(symbols=1), False),
    "matrix": (Substitutions(symbols=torch.tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]]).bool()), False),
    "zs": (zs(), True),
    "zs of some locations": (zs(locations=2), True),
    "zs on the ring": (zs(symbols=1), False),
    "zs with few insertions": (zs(insertable=[1]), True),
    "indel": (InsertionsDeletions(), False),
    "double": (DoubleSubstitutions(), False),
    "single and double": (zs() | DoubleSubstitutions(), True),
    "twice": (Substitutions(locations=1) | Substitutions(locations=2), False),
    "nested": ((Substitutions() | DoubleSubstitutions()) | InsertionsDeletions(), True),
    "custom": (
        CustomNeighborhood(lambda x: [(*x[:-1], (x[-1] + 1) % 3), (*x[:-1], (x[-1] - 1) % 3)] if x else []),
        False,
    ),
    "with custom": (zs() | CustomNeighborhood(lambda x: [x[::-1]]), False),
    "before the end": (BeforeEnd(zs()), True),
    "ring before the end": (BeforeEnd(Substitutions(symbols=1)), False),
    "several models": (ModelsUnion((zs(), BeforeEnd(zs()))), False),
}


@pytest.mark.parametrize("name", FREE)
def test_where_symbols_are_replaced_freely(name: str) -> None:
    """Where it says so, the substitutions at a place lead from each symbol to all others that it can become."""
    neighborhood, claimed = FREE[name]
    assert neighborhood.replaces_freely == claimed
    if claimed:
        assert_replaces_freely(neighborhood, 3)


def test_the_test_of_free_replacements_sees_others() -> None:
    with pytest.raises(AssertionError):
        assert_replaces_freely(Substitutions(symbols=torch.tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]]).bool()), 3)

# SPDX-License-Identifier: Apache-2.0
"""Which symbols may replace which, against plain enumeration."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import oracle
import pytest
import torch

from pyro_ksd.edits.neighborhoods import DoubleSubstitutions, Substitutions, zs
from pyro_ksd.edits.symbol_relations import RandomReplacements, num_replacements, one_channel, replacements
from pyro_ksd.edits.symmetry import check_symmetric
from pyro_ksd.sequences.container import Sequences


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
    assert num_replacements(radius, size) == sum(index == 0 for index, _ in expected)


def test_replacements_by_a_matrix_leave_out_the_symbol_itself() -> None:
    everything = torch.ones(3, 3, dtype=torch.bool)
    assert pairs_of(everything, [2, 0], 3) == pairs_of(None, [2, 0], 3) == [(0, 0), (0, 1), (1, 1), (1, 2)]
    only = torch.tensor([[1, 0, 1], [0, 0, 0], [1, 0, 0]]).bool()
    assert pairs_of(only, [0, 1, 2, 0], 3) == [(0, 2), (2, 0), (3, 2)]
    assert num_replacements(everything, 3) == 2
    assert num_replacements(only, 3) == 1
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
            "symbols: expected a boolean [S, S] matrix, found torch.float32 [3, 3]",
        ),
        (torch.ones(2, 3).bool(), "symbols: expected a boolean [S, S] matrix, found torch.bool [2, 3]"),
        (torch.ones(2, 2).bool(), "expected a boolean [3, 3] matrix for an alphabet of 3 symbols, found torch.bool"),
        (0, "symbols: expected None, a radius of at least 1 or a boolean matrix, found 0"),
        (True, "symbols: expected None, a radius of at least 1 or a boolean matrix, found True"),
        (1.5, "symbols: expected None, a radius of at least 1 or a boolean matrix, found 1.5"),
    ],
)
@pytest.mark.parametrize("kind", [Substitutions, DoubleSubstitutions, zs])
def test_bad_relations(kind: Any, symbols: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        kind(symbols=symbols).edits(Sequences.of([[0, 1, 2]]))


@pytest.mark.parametrize("size", [1, 2, 3, 10, 11, 500])
@pytest.mark.parametrize("count", [1, 2, 5, 64, 1000])
def test_random_replacements_are_symmetric_and_as_many_as_asked(size: int, count: int) -> None:
    steps = RandomReplacements(count, seed=3).steps(size)
    assert all(0 < step < size for step in steps)
    assert {size - step for step in steps} == set(steps)
    wanted = min(count + count % 2, size - 1)
    assert wanted - 1 <= len(steps) <= wanted  # the step to the opposite symbol is its own way back
    assert steps == RandomReplacements(count, seed=3).steps(size)


def test_random_replacements_depend_on_the_seed_and_on_nothing_else() -> None:
    assert RandomReplacements(8, seed=1).steps(1000) != RandomReplacements(8, seed=2).steps(1000)
    data = Sequences.of([[5, 90], [7]], alphabet=100)
    around = Substitutions(symbols=RandomReplacements(6))
    check_symmetric(around, data)
    assert len(around.edits(data)) == 18
    assert around.edit_bound(2, 100) == 12


@pytest.mark.parametrize("count", [0, -1, 2.5, "3", None])
def test_wrong_numbers_of_replacements(count: Any) -> None:
    with pytest.raises(ValueError, match="count: expected an integer of at least 1"):
        RandomReplacements(count)


def test_symbols_that_differ_in_one_channel() -> None:
    rows = [torch.tensor([[0, 1], [1, 1]]), torch.tensor([[0, 0], [0, 1], [0, 0]])]
    data = Sequences.of(rows, alphabet=torch.tensor([[0, 0], [0, 1], [1, 1]]))
    relation = one_channel(data)
    assert relation.codes.tolist() == [[1, -1], [0, 2], [1, -1]]
    check_symmetric(Substitutions(symbols=relation), data)
    assert Substitutions(symbols=relation).edit_bound(3, 3) == 6
    with pytest.raises(ValueError, match="expected replacements of the 4 symbols of the alphabet, found those of 3"):
        Substitutions(symbols=relation).edits(Sequences.of(rows))
    with pytest.raises(ValueError, match="expected symbols that are vectors, found single ones"):
        one_channel(Sequences.of(["ab"]))


def test_one_channel_against_all_pairs() -> None:
    rows = torch.randint(3, (40, 4), generator=torch.Generator().manual_seed(0)).unique(dim=0)
    data = Sequences.of([rows], alphabet=rows)
    found = one_channel(data).codes
    for row, listed in zip(rows, found.tolist(), strict=True):
        expected = [code for code, other in enumerate(rows) if int((row != other).sum()) == 1]
        assert [code for code in listed if code >= 0] == expected

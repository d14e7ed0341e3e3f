# SPDX-License-Identifier: Apache-2.0
"""Neighborhoods of candidates against plain enumeration, for any candidates whatever."""

from __future__ import annotations

import re
from collections import Counter
from itertools import product
from random import Random
from typing import Any

import pytest
import torch
from neighbor_lists import assert_replaces_freely
from torch import Tensor

from pyro_ksd.edits.neighborhoods import BeforeEnd, Neighborhood, Substitutions, zs
from pyro_ksd.edits.prefix_neighborhoods import (
    PrefixInsertionsDeletions,
    PrefixSubstitutions,
    prefix_zs,
    sparse_zs,
)
from pyro_ksd.edits.symmetry import check_symmetric
from pyro_ksd.sequences.container import Sequences

Codes = tuple[int, ...]
SIZE, LONGEST = 3, 4
SPACE: list[Codes] = [x for length in range(LONGEST + 1) for x in product(range(SIZE), repeat=length)]


def after(prefix: Codes) -> list[int]:
    """Some symbols, at random for every prefix, but always the same; none for some of them."""
    random = Random(str(prefix))
    return random.sample(range(SIZE), random.randrange(SIZE + 1))


def candidates(sequences: Sequences, top: int) -> Tensor:
    """:func:`after` for every prefix, and rubbish after the end of a sequence."""
    codes = torch.full((len(sequences), sequences.width + 1, top), SIZE - 1)
    for row, symbols in enumerate(sequences.to_lists()):
        for length in range(len(symbols) + 1):
            chosen = after(tuple(symbols[:length]))[:top]  # type: ignore[arg-type]
            codes[row, length] = torch.tensor([*chosen, *[-1] * (top - len(chosen))])
    return codes


def truth(x: Codes, locations: int | None, *, substitute: bool = True, indel: bool = True) -> set[Codes]:
    """All neighbors, by the definition."""
    reach = len(x) + 1 if locations is None else locations
    found: set[Codes] = set()
    for i in range(len(x)):
        if i >= len(x) - reach and x[i] in after(x[:i]):
            found |= {(*x[:i], s, *x[i + 1 :]) for s in after(x[:i]) if substitute}
            found |= {x[:i] + x[i + 1 :]} if indel else set()
    for i in range(len(x) + 1):
        if i >= len(x) + 1 - reach and indel:
            found |= {(*x[:i], s, *x[i:]) for s in after(x[:i])}
    return found - {x}


def compare(neighborhood: Neighborhood, expected: dict[Codes, set[Codes]]) -> None:
    data = Sequences.of(list(expected), SIZE)
    edits = neighborhood.edits(data)
    found: list[list[Codes]] = [[] for _ in expected]
    for owner, neighbor in zip(edits.owner.tolist(), edits.apply(data).to_lists(), strict=True):
        found[owner].append(tuple(neighbor))  # type: ignore[arg-type]
    for (x, neighbors), own in zip(expected.items(), found, strict=True):
        assert [y for y, count in Counter(own).items() if count > 1] == []
        assert set(own) == neighbors, x
        assert len(own) <= neighborhood.edit_bound(len(x), SIZE)


@pytest.mark.parametrize("locations", [None, 1, 2, 3])
def test_against_enumeration(locations: int | None) -> None:
    kinds: dict[Any, dict[str, bool]] = {
        PrefixSubstitutions: {"indel": False},
        PrefixInsertionsDeletions: {"substitute": False},
        prefix_zs: {},
    }
    for kind, options in kinds.items():
        neighborhood = kind(candidates, SIZE, locations)
        compare(neighborhood, {x: truth(x, locations, **options) for x in SPACE})
        check_symmetric(neighborhood, Sequences.of(SPACE, SIZE))


@pytest.mark.parametrize("locations", [None, 1, 2])
def test_the_last_symbol_stays(locations: int | None) -> None:
    inner = prefix_zs(candidates, SIZE, locations)
    expected = {x: {(*y, x[-1]) for y in truth(x[:-1], locations)} if x else set() for x in SPACE}
    compare(BeforeEnd(inner), expected)
    check_symmetric(BeforeEnd(inner), Sequences.of(SPACE, SIZE))
    compare(BeforeEnd(inner) | BeforeEnd(PrefixSubstitutions(candidates, SIZE, 1)), expected)


def test_with_all_symbols_as_candidates_they_are_the_plain_neighborhoods() -> None:
    def everything(sequences: Sequences, top: int) -> Tensor:
        return torch.arange(top).expand(len(sequences), sequences.width + 1, top)

    data = Sequences.of(SPACE, SIZE)
    pairs = [(prefix_zs(everything, SIZE, j), zs(j)) for j in (None, 1, 2)]
    pairs += [(PrefixSubstitutions(everything, SIZE, 2), Substitutions(2))]
    for one, other in pairs:
        found = [
            sorted(zip(edits.owner.tolist(), edits.apply(data).to_lists(), strict=True))
            for edits in (one.edits(data), other.edits(data))
        ]
        assert found[0] == found[1]
        assert len(found[0]) > len(data)


def test_fewer_candidates_than_there_might_be() -> None:
    data = Sequences.of(SPACE, SIZE)
    few = prefix_zs(candidates, 1)
    check_symmetric(few, data)
    assert 0 < len(few.edits(data)) < len(prefix_zs(candidates, SIZE).edits(data))


def test_a_tail_edits_one_location_and_keeps_the_end() -> None:
    data = Sequences.of([(0, 1, 2), (2,), ()], SIZE)
    for locations in (None, 2):
        for neighborhood in (prefix_zs(candidates, SIZE, locations), PrefixSubstitutions(candidates, SIZE, locations)):
            compare(neighborhood.tail, {x: truth(x, 1) for x in SPACE})
            swap, append, remove = BeforeEnd(neighborhood).tail.edits(data).blocks
            assert [(b.removed, b.growth) for b in (swap, append, remove)] == [(1, 0), (0, 1), (1, -1)]
            compare(BeforeEnd(neighborhood).tail, {x: {(*y, x[-1]) for y in truth(x[:-1], 1)} for x in SPACE[1:]})


def test_no_sequence_at_all_has_edits() -> None:
    empty = Sequences.of([(), ()], SIZE)
    assert len(BeforeEnd(prefix_zs(candidates, SIZE)).edits(empty)) == 0
    assert len(BeforeEnd(zs()).edits(empty)) == 0


@pytest.mark.parametrize("kind", [PrefixSubstitutions, PrefixInsertionsDeletions, prefix_zs])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"top": 0}, "top: expected an integer of at least 1, found 0"),
        ({"top": True}, "top: expected an integer of at least 1, found True"),
        ({"top": 2, "locations": 0}, "locations: expected None (everywhere) or a number of at least 1, found 0"),
    ],
)
def test_refuses(kind: Any, arguments: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        kind(candidates, **arguments)


@pytest.mark.parametrize(
    ("codes", "found"),
    [
        (torch.zeros(2, 2, 1), "torch.float32 [2, 2, 1]"),
        (torch.zeros(2, 3, 1), "torch.float32 [2, 3, 1]"),
        (torch.zeros(2, 2, 1).long(), "torch.int64 [2, 2, 1]"),
        (torch.zeros(2, 3).long(), "torch.int64 [2, 3]"),
        (torch.zeros(2, 3, 4).long(), "torch.int64 [2, 3, 4]"),
    ],
)
def test_candidates_of_the_wrong_shape(codes: Tensor, found: str) -> None:
    message = (
        f"candidates: expected a long tensor [2, 3, up to 3] for 2 sequences 2 wide, found {found}; return one row"
    )
    for neighborhood in (PrefixSubstitutions(lambda x, top: codes, 3), prefix_zs(lambda x, top: codes, 3)):
        with pytest.raises(ValueError, match=re.escape(message)):
            neighborhood.edits(Sequences.of([[0, 1], [2]], SIZE))


def test_few_edits_of_a_large_alphabet() -> None:
    codes = torch.tensor([3, 5, 7])
    around = sparse_zs(codes, replacements=4)
    data = Sequences.of([[5, 90], [7], [], [40, 41]], alphabet=100)
    check_symmetric(around, data)
    edits = around.edits(data)
    coming = [y for y, x in zip(edits.apply(data).to_lists(), edits.owner.tolist(), strict=True) if x == 2]
    assert coming == [[3], [5], [7]]
    going = [y for y, x in zip(edits.apply(data).to_lists(), edits.owner.tolist(), strict=True) if x == 1 and not y]
    assert going == [[]]
    assert len([1 for owner in edits.owner.tolist() if owner == 3]) == 3 * 3 + 2 * 4  # nothing of it may go
    tail = around.tail.edits(data)
    assert len(tail.blocks) == 3
    assert [len(block) for block in tail.blocks] == [2, 12, 1]  # only 7 may be replaced or go


@pytest.mark.parametrize("codes", [None, [1, 2], torch.tensor([0.5]), torch.tensor([[1]]), torch.tensor([]).long()])
def test_wrong_codes(codes: Any) -> None:
    with pytest.raises(ValueError, match=r"codes: expected a long tensor \[K\] of distinct codes, found"):
        sparse_zs(codes, 3)


def test_symbols_are_replaced_freely_among_the_candidates() -> None:
    for neighborhood in (PrefixSubstitutions(candidates, SIZE), prefix_zs(candidates, SIZE, locations=2)):
        for own in (neighborhood, BeforeEnd(neighborhood)):
            assert own.replaces_freely
            assert_replaces_freely(own, SIZE)
    assert not PrefixInsertionsDeletions(candidates, SIZE).replaces_freely
    assert not sparse_zs(torch.tensor([0, 1]), 1).replaces_freely

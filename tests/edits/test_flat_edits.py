# SPDX-License-Identifier: Apache-2.0
"""The flat form of edits tells the same edits."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pyro_ksd.edits.flat_edits import FlatEdits
from pyro_ksd.edits.neighborhoods import CustomNeighborhood, DoubleSubstitutions, Neighborhood, Substitutions, zs
from pyro_ksd.edits.splices import Edits
from pyro_ksd.sequences.container import Sequences

AROUND: dict[str, Neighborhood] = {
    "zs": zs(),
    "zs, 1 location": zs(1),
    "single and double": zs() | DoubleSubstitutions(),
    "doubled": CustomNeighborhood(lambda x: [x[::-1], x + x, x[1:]]),
}


def edits_of_rows(flat: FlatEdits) -> list[tuple[int, int, int, list[int]]]:
    """Row, start, number of removed symbols and inserted symbols of each edit, in their order."""
    found = {}
    for block, (removed, arrived) in enumerate(flat.shapes.tolist()):
        for row in range(flat.places.shape[1] - 1):
            for place in range(flat.places[block, row], flat.places[block, row + 1]):
                for edit in range(flat.first[place], flat.first[place + 1]):
                    begin = int(flat.symbols[block]) + edit * arrived
                    symbols = flat.inserted[begin : begin + arrived].tolist()
                    found[edit] = (row, int(flat.start[place]), removed, symbols)
    return [found[edit] for edit in range(flat.num_edits)]


@pytest.mark.parametrize("name", AROUND)
@given(data=st.lists(st.lists(st.integers(0, 2), max_size=5), min_size=1, max_size=4))
@settings(max_examples=20, deadline=None)
def test_the_same_edits(name: str, data: list[list[int]]) -> None:
    sequences = Sequences.of(data, 3)
    edits = AROUND[name].edits(sequences)
    flat = edits.flat
    assert flat is not None
    expected = [
        (int(owner), int(start), block.removed, symbols.tolist())
        for block in edits.blocks
        for owner, start, symbols in zip(block.owner, block.start, block.inserted, strict=True)
    ]
    assert edits_of_rows(flat) == expected
    counts = torch.bincount(edits.owner, minlength=len(data))
    assert flat.work.tolist() == [0, *counts.cumsum(0).tolist()]
    assert flat.most_inserted == max([block.inserted.shape[1] for block in edits.blocks], default=0)
    created = [(row, len(symbols) + 2) for row, _, _, symbols in expected]
    assert flat.most_windows(3).tolist() == [sum(n for row, n in created if row == own) for own in range(len(data))]


def test_no_blocks() -> None:
    flat = Edits((), 2).flat
    assert flat is not None
    assert flat.work.tolist() == [0, 0, 0]
    assert flat.most_inserted == 0


def test_edits_in_another_order_have_no_flat_form() -> None:
    edits = Substitutions().edits(Sequences.of([[0, 1], [1]], 2))
    turned = Edits((edits.blocks[0].select(torch.tensor([2, 0, 1])),), 2)
    assert turned.flat is None

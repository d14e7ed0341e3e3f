# SPDX-License-Identifier: Apache-2.0
"""Edits found by compiled loops against those of torch."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pyro_ksd import Sequences
from pyro_ksd.common.compilation import is_compiled
from pyro_ksd.edits import Edits, Neighborhood, zs
from pyro_ksd.edits.compiled_edits import deletions, insertions, substitutions
from pyro_ksd.edits.neighborhoods import InsertionsDeletions, Substitutions

pytestmark = pytest.mark.skipif(not is_compiled(), reason="needs numba")


def edits(around: Neighborhood, sequences: Sequences, compiled: bool) -> Edits:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYRO_KSD_COMPILED", str(int(compiled)))
        return around.edits(sequences)


@settings(deadline=None, max_examples=80)
@given(
    rows=st.lists(st.lists(st.integers(0, 3), max_size=6), min_size=1, max_size=6),
    size=st.integers(4, 6),
    locations=st.none() | st.integers(1, 8),
    insertable=st.none() | st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True),
)
def test_edits_are_those_of_torch(
    rows: list[list[int]], size: int, locations: int | None, insertable: list[int] | None
) -> None:
    sequences = Sequences.of(rows, size)
    around = zs(locations, insertable=insertable)
    found, expected = (edits(around, sequences, compiled) for compiled in (True, False))
    assert len(found.blocks) == len(expected.blocks) == 3
    for own, other in zip(found.blocks, expected.blocks, strict=True):
        assert own.removed == other.removed
        for name in ("owner", "start", "inserted"):
            assert getattr(own, name).equal(getattr(other, name))
            assert getattr(own, name).dtype == torch.long


def test_a_few_edits() -> None:
    sequences = Sequences.of(["aab", ""], "abc")
    block = substitutions(sequences, 2)
    assert list(zip(block.owner.tolist(), block.start.tolist(), block.inserted[:, 0].tolist(), strict=True)) == [
        (0, 1, 1), (0, 1, 2), (0, 2, 2), (0, 2, 0)
    ]  # fmt: skip
    allowed = torch.tensor([True, False, True])
    block = insertions(sequences, allowed, 3)
    assert list(zip(block.owner.tolist(), block.start.tolist(), block.inserted[:, 0].tolist(), strict=True)) == [
        (0, 1, 0), (0, 1, 2), (0, 2, 2), (0, 3, 0), (0, 3, 2), (1, 0, 0), (1, 0, 2)
    ]  # fmt: skip
    block = deletions(sequences, allowed, None)
    assert (block.owner.tolist(), block.start.tolist(), block.inserted.shape) == ([0], [0], (1, 0))


@pytest.mark.parametrize("around", [Substitutions(), InsertionsDeletions()])
def test_of_parts_of_padded_sequences(around: Neighborhood) -> None:
    sequences = Sequences.of(["aab", "c", "abcab"], "abc")[:2].narrowed()
    assert not sequences.tokens.is_contiguous()
    found, expected = (edits(around, sequences, compiled) for compiled in (True, False))
    assert found.apply(sequences).to_lists() == expected.apply(sequences).to_lists()

# SPDX-License-Identifier: Apache-2.0
"""Weighted edits in chunks: every row once, and the same edits and weights at every visit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
import torch
from example_models import walk, walks
from hypothesis import given, settings
from hypothesis import strategies as st
from neighbor_lists import around

from pyro_ksd.edits.neighborhoods import (
    BeforeEnd,
    DoubleSubstitutions,
    InsertionsDeletions,
    Neighborhood,
    Substitutions,
    zs,
)
from pyro_ksd.edits.weighted_edits import WeightedEdits, chunk_rows, edit_bounds
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.operators import Operator, ZanellaOperator
from pyro_ksd.stein.weighting import weighted_edits

BOUNDED: dict[str, Neighborhood] = {
    "substitutions": Substitutions(),
    "ring": Substitutions(locations=2, symbols=1),
    "indel": InsertionsDeletions(),
    "indel of one symbol": InsertionsDeletions(3, insertable=[1]),
    "double": DoubleSubstitutions(2),
    "union": zs() | DoubleSubstitutions(),
    "before the end": BeforeEnd(zs()),
    "overlapping union": zs() | BeforeEnd(zs()),
}
rows_of_codes = st.lists(st.lists(st.integers(0, 2), max_size=6), min_size=1, max_size=8)

Jumps = dict[tuple[int, tuple[Any, ...]], float]


def jumps(chunks: Iterable[WeightedEdits]) -> Jumps:
    """The weight of every edit, by its row in the data and the neighbor to which it leads."""
    found: Jumps = {}
    for chunk in chunks:
        rows = (chunk.edits.owner + chunk.begin).tolist()
        neighbors = chunk.edits.apply(chunk.sequences).to_lists()
        for row, neighbor, weight in zip(rows, neighbors, chunk.weights.tolist(), strict=True):
            assert (row, tuple(neighbor)) not in found
            found[row, tuple(neighbor)] = weight
    return found


def first_pass(operator: Operator, sequences: Sequences) -> list[WeightedEdits]:
    """The edits of all chunks, weighted by a walk."""
    chunks = chunk_rows(operator.neighborhood, sequences)
    return [weighted_edits(walk(), operator, sequences[rows].narrowed(), rows.start) for rows in chunks]


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.EDITS", 150)


# ------------------------------------------------------------------------------------------------- chunks


@settings(deadline=None, max_examples=60)
@given(rows_of_codes, st.sampled_from(sorted(BOUNDED)), st.integers(1, 300))
def test_chunks_hold_every_row_once_and_about_as_many_edits_as_they_may(
    rows: list[list[int]], name: str, most: int
) -> None:
    data, neighborhood = Sequences.of(rows, 3), BOUNDED[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pyro_ksd.edits.weighted_edits.EDITS", most)
        chunks = chunk_rows(neighborhood, data)
    assert [row for chunk in chunks for row in range(len(data))[chunk]] == list(range(len(data)))
    bounds = edit_bounds(neighborhood, data)
    assert all(chunk.start < chunk.stop for chunk in chunks)
    assert all(int(bounds[chunk].sum()) < most + int(bounds.max()) for chunk in chunks)
    assert len(chunks) <= 1 + int(bounds.sum()) // most


def test_few_edits_are_one_chunk() -> None:
    assert chunk_rows(zs(), walks(40)) == [slice(0, 40)]


def test_no_sequences_are_no_chunks() -> None:
    assert chunk_rows(zs(), walks(3)[:0]) == []


@settings(deadline=None, max_examples=60)
@given(rows_of_codes, st.sampled_from(sorted(BOUNDED)))
def test_bounds_hold(rows: list[list[int]], name: str) -> None:
    neighborhood = BOUNDED[name]
    bounds = edit_bounds(neighborhood, Sequences.of(rows, 3)).tolist()
    found = around(neighborhood, [tuple(row) for row in rows], 3)
    assert len(bounds) == len(rows)
    assert all(len(own) <= bound for own, bound in zip(found, bounds, strict=True))
    assert bounds == [neighborhood.edit_bound(len(row), 3) for row in rows]


def test_bounds_of_single_substitutions_are_the_numbers_themselves() -> None:
    rows = [[0, 1, 1], [], [2]]
    found = around(Substitutions(), [tuple(row) for row in rows], 3)
    assert edit_bounds(Substitutions(), Sequences.of(rows, 3)).tolist() == list(map(len, found)) == [6, 0, 2]


# ---------------------------------------------------------------------------------------- all chunks as one


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("name", BOUNDED)
def test_all_chunks_as_one(name: str) -> None:
    data, operator = walks(12), ZanellaOperator(BOUNDED[name])
    chunks = first_pass(operator, data)
    whole = WeightedEdits.cat(chunks, data)
    assert (whole.begin, len(whole.edits)) == (0, sum(len(chunk.edits) for chunk in chunks))
    assert whole.sequences is data
    assert whole.edits.num_sequences == 12
    assert jumps([whole]) == jumps(chunks)
    assert jumps([whole]) == pytest.approx(jumps([weighted_edits(walk(), operator, data)]), rel=1e-12)
    if name in ("union", "common"):
        assert len(chunks) > 2


@pytest.mark.usefixtures("small_chunks")
def test_all_chunks_as_one_under_several_models() -> None:
    data, operator = walks(12), ZanellaOperator()
    chunks = first_pass(operator, data)
    doubled = [
        WeightedEdits(chunk.begin, chunk.sequences, chunk.edits, torch.stack([chunk.weights, -chunk.weights]))
        for chunk in chunks
    ]
    whole = WeightedEdits.cat(doubled, data)
    assert len(chunks) > 2
    assert whole.weights.shape == (2, len(whole.edits))
    for sign, weights in zip((1, -1), whole.weights, strict=True):
        own = WeightedEdits(0, data, whole.edits, sign * weights)
        assert jumps([own]) == jumps(chunks)


# ------------------------------------------------------------------------------------------ edits without weight


@pytest.mark.parametrize("models", [None, 2])
@pytest.mark.parametrize("with_ratios", [True, False])
@pytest.mark.parametrize("empty", [[], [0], [1, 2], [0, 1, 2]])
def test_blocks_without_weight_are_left_out_and_come_back_as_zeros(
    empty: list[int], with_ratios: bool, models: int | None
) -> None:
    data = walks(4)
    found = weighted_edits(walk(), ZanellaOperator(), data, begin=3)
    weights = found.weights.clone()
    for index in empty:
        found.edits.split(weights)[index].zero_()
    if models is not None:
        weights = torch.stack([torch.zeros_like(weights), weights])
    chunk = WeightedEdits(3, data, found.edits, weights, found.log_ratio if with_ratios else None)
    used = chunk.used()
    assert (used is chunk) == (not empty)
    kept = [index for index in range(3) if index not in empty]
    assert used.edits.blocks == tuple(found.edits.blocks[index] for index in kept)
    assert (used.begin, used.edits.num_sequences) == (3, 4)
    assert used.sequences is data
    own = [found.edits.split(weights)[index] for index in kept]
    assert used.weights.equal(torch.cat([weights[..., :0], *own], -1))
    assert (used.log_ratio is None) == (not with_ratios)
    if used.log_ratio is not None and found.log_ratio is not None:
        ratios = [found.edits.split(found.log_ratio)[index] for index in kept]
        assert used.log_ratio.equal(torch.cat([found.log_ratio[:0], *ratios]))
    values = torch.arange(1.0, len(used.edits) + 1)
    whole = chunk.whole(values)
    assert len(whole) == len(found.edits)
    assert whole[whole != 0].equal(values)
    for index, part in enumerate(found.edits.split(whole)):
        assert bool(part.any()) == (index in kept)


def test_all_chunks_as_one_have_all_log_ratios_or_none() -> None:
    data = walks(4)
    chunk = weighted_edits(walk(), ZanellaOperator(), data[:2])
    other = weighted_edits(walk(), ZanellaOperator(), data[2:], begin=2)
    assert chunk.log_ratio is not None
    assert other.log_ratio is not None
    whole = WeightedEdits.cat([chunk, other], data)
    assert whole.log_ratio is not None
    assert whole.log_ratio.equal(torch.cat([chunk.log_ratio, other.log_ratio]))
    bare = WeightedEdits(2, other.sequences, other.edits, other.weights)
    assert WeightedEdits.cat([chunk, bare], data).log_ratio is None


def test_under_one_of_several_models_what_kernels_remember_is_shared_if_the_same_blocks_have_weight() -> None:
    sequences = Sequences.of(["ab", "b"])
    edits = zs().edits(sequences)
    weights = torch.rand(3, len(edits), dtype=torch.double, generator=torch.Generator().manual_seed(0))
    first, second, _ = edits.split(weights)
    second[:] = 0.0
    first[2] = 0.0
    chunk = WeightedEdits(0, sequences, edits, weights, weights.log())
    for index in range(3):
        own = chunk.of_model(index)
        assert own.weights.equal(weights[index])
        assert own.log_ratio is not None
        assert own.log_ratio.equal(weights[index].log())
        alone = WeightedEdits(0, sequences, edits, weights[index])
        assert own.has_weight == alone.has_weight
        assert own.used().weights.equal(alone.used().weights)
        assert (own.remembered is chunk.remembered) == (index < 2)
        assert (
            (own.used().remembered is chunk.used().remembered)
            == (own.used().edits is chunk.used().edits)
            == (index < 2)
        )
    assert chunk.weights_by_edit.equal(weights.t())
    assert chunk.weights_by_edit.is_contiguous()

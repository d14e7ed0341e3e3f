# SPDX-License-Identifier: Apache-2.0
"""Weighted edits in chunks: every row once, and the same edits and weights at every visit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from example_models import Unsampled, walk, walks
from hypothesis import given, settings
from hypothesis import strategies as st
from neighbor_lists import around
from torch import Tensor

from pyro_ksd.edits.neighborhoods import (
    BeforeEnd,
    CustomNeighborhood,
    DoubleSubstitutions,
    InsertionsDeletions,
    Neighborhood,
    Substitutions,
    zs,
)
from pyro_ksd.edits.splices import Edits
from pyro_ksd.edits.weighted_edits import KeptEdits, WeightedEdits, chunk_rows, edit_bounds
from pyro_ksd.kernels import ContiguousKernel, HammingKernel
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.assembly import Assembly, assemble
from pyro_ksd.stein.operators import Operator, ZanellaOperator
from pyro_ksd.stein.views import View
from pyro_ksd.stein.weighting import weighted, weighted_edits

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


@dataclass(eq=False)
class CountingModel(Unsampled):
    """A walk that counts how often it is asked for ratios."""

    asked: int = 0

    def __post_init__(self) -> None:
        super().__init__(walk())

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        self.asked += 1
        return super().log_ratio(sequences, edits)


@dataclass(frozen=True, eq=False)
class CountingNeighborhood(Neighborhood):
    """Substitutions, insertions and deletions, which note for how many sequences they are asked."""

    costly: bool
    asked: list[int] = field(default_factory=list)

    @property
    def kinds(self) -> frozenset[str]:
        return zs().kinds

    def edits(self, sequences: Sequences) -> Edits:
        self.asked.append(len(sequences))
        return zs().edits(sequences)

    def edit_bound(self, width: int, alphabet_size: int) -> int:
        return zs().edit_bound(width, alphabet_size)

    @property
    def is_costly(self) -> bool:
        return self.costly


def kept_edits(
    model: CountingModel, neighborhood: Neighborhood, sequences: Sequences, *, pairwise: bool = False
) -> tuple[Assembly, KeptEdits]:
    operator = ZanellaOperator(neighborhood)
    kernels = [ContiguousKernel(1), *([HammingKernel()] if pairwise else [])]
    views = [View(str(index), operator, kernel) for index, kernel in enumerate(kernels)]  # type: ignore[arg-type]
    found = assemble(model, sequences, views, keep=True)
    return found, found.edits[neighborhood]


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


# ---------------------------------------------------------------------------------------------- kept edits


def swaps(x: Sequence[Any]) -> list[tuple[Any, ...]]:
    return [(*x[:i], x[i + 1], x[i], *x[i + 2 :]) for i in range(len(x) - 1)]


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("pairwise", [False, True], ids=["features", "pairs too"])
@pytest.mark.parametrize(
    "neighborhood",
    [zs(), zs() | CustomNeighborhood(swaps), CountingNeighborhood(costly=True), BeforeEnd(zs())],
    ids=["cheap", "custom", "costly", "before the end"],
)
def test_a_second_visit_finds_the_same_edits_and_weights(neighborhood: Neighborhood, pairwise: bool) -> None:
    data = walks(16)
    found, kept = kept_edits(CountingModel(), neighborhood, data, pairwise=pairwise)
    operator = ZanellaOperator(neighborhood)
    chunks = [weighted(scored, operator) for scored in kept.chunks()]
    assert len(chunks) > 2
    assert [chunk.begin for chunk in chunks] == [rows.start for rows in chunk_rows(neighborhood, data)]
    assert sum(len(chunk.sequences) for chunk in chunks) == 16
    assert all(chunk.sequences.width == int(chunk.sequences.lengths.max()) for chunk in chunks)
    expected = weighted_edits(walk(), operator, data)
    assert jumps(chunks) == jumps(weighted(scored, operator) for scored in kept.chunks())
    assert jumps(chunks) == pytest.approx(jumps([expected]), rel=1e-12)
    [rate] = found.rates.values()
    assert float(rate) == pytest.approx(float(expected.weights.sum()), rel=1e-12)


@pytest.mark.usefixtures("small_chunks")
def test_costly_edits_are_kept_and_not_asked_for_again() -> None:
    model, neighborhood, data = CountingModel(), CountingNeighborhood(costly=True), walks(16)
    _, kept = kept_edits(model, neighborhood, data)
    assert sum(neighborhood.asked) == 16
    calls, asked = len(neighborhood.asked), model.asked
    assert calls > 2
    list(kept.chunks())
    list(kept.chunks())
    assert (len(neighborhood.asked), model.asked) == (calls, asked)
    assert len(kept.edits) == len(kept.log_ratios) == calls


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("pairwise", [False, True], ids=["features", "pairs too"])
def test_cheap_edits_are_found_again_without_the_model(pairwise: bool) -> None:
    model, neighborhood, data = CountingModel(), CountingNeighborhood(costly=False), walks(16)
    _, kept = kept_edits(model, neighborhood, data, pairwise=pairwise)
    assert kept.edits == ()
    calls, asked = len(neighborhood.asked), model.asked
    assert calls == asked > 2
    list(kept.chunks())
    assert (len(neighborhood.asked), model.asked) == (2 * calls, asked)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("costly", [False, True])
def test_the_edits_under_one_of_several_models(costly: bool) -> None:
    data, operator = walks(12), ZanellaOperator(CountingNeighborhood(costly))
    chunks = first_pass(operator, data)
    own = [chunk.log_ratio for chunk in chunks if chunk.log_ratio is not None]
    assert len(own) == len(chunks) > 2
    log_ratios = tuple(torch.stack([ratio, 2 * ratio, -ratio]) for ratio in own)
    edits = tuple(chunk.edits for chunk in chunks) if costly else ()
    kept = KeptEdits(operator.neighborhood, data, log_ratios, edits)
    assert all(scored.log_ratio.shape == (3, len(scored.edits)) for scored in kept.chunks())
    together = [weighted(scored, operator) for scored in kept.chunks()]
    for model in range(3):
        alone = [weighted(scored, operator) for scored in kept.under(model).chunks()]
        for chunk, several, single in zip(chunks, together, alone, strict=True):
            assert chunk.log_ratio is not None
            assert single.weights.equal(several.weights[model])
            assert single.weights.equal(((1, 2, -1)[model] * chunk.log_ratio).sigmoid())
    assert jumps(weighted(scored, operator) for scored in kept.under(0).chunks()) == jumps(chunks)
    assert kept.under(1).edits == edits

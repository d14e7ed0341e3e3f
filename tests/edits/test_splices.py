# SPDX-License-Identifier: Apache-2.0
"""Edits against splicing of plain lists."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pyro_ksd.edits.neighborhoods import DoubleSubstitutions, zs
from pyro_ksd.edits.splices import Edits, SpliceBlock, check_edits
from pyro_ksd.sequences.container import Sequences

SIZE = 3
Splice = tuple[int, int, int, list[int]]  # owner, start, removed, inserted

symbols = st.integers(0, SIZE - 1)
rows_strategy = st.lists(st.lists(symbols, max_size=6), min_size=1, max_size=4)
quick = settings(deadline=None, max_examples=80)


@st.composite
def spliced(draw: st.DrawFn) -> tuple[list[list[int]], list[list[Splice]]]:
    """Sequences and, block by block, splices of one shape that fit into them."""
    rows = draw(rows_strategy)
    blocks = []
    for _ in range(draw(st.integers(0, 4))):
        removed, arrived = draw(st.integers(0, 3)), draw(st.integers(0, 3))
        fitting = [owner for owner, row in enumerate(rows) if len(row) >= removed]
        block: list[Splice] = []
        for _ in range(draw(st.integers(0, 4)) if fitting else 0):
            owner = draw(st.sampled_from(fitting))
            start = draw(st.integers(0, len(rows[owner]) - removed))
            block.append((owner, start, removed, draw(st.lists(symbols, min_size=arrived, max_size=arrived))))
        blocks.append(block)
    return rows, blocks


def as_block(splices: list[Splice], removed: int = 0, arrived: int = 0) -> SpliceBlock:
    owner = torch.tensor([splice[0] for splice in splices], dtype=torch.long)
    start = torch.tensor([splice[1] for splice in splices], dtype=torch.long)
    removed = splices[0][2] if splices else removed
    arrived = len(splices[0][3]) if splices else arrived
    inserted = torch.tensor([splice[3] for splice in splices], dtype=torch.long).reshape(len(splices), arrived)
    return SpliceBlock(owner, start, removed, inserted)


def as_edits(rows: list[list[int]], blocks: list[list[Splice]]) -> Edits:
    return Edits(tuple(as_block(block) for block in blocks), len(rows))


def by_hand(row: list[int], splice: Splice) -> list[int]:
    _, start, removed, inserted = splice
    result = list(row)
    result[start : start + removed] = inserted
    return result


@quick
@given(spliced())
def test_apply_is_list_splicing(case: tuple[list[list[int]], list[list[Splice]]]) -> None:
    rows, blocks = case
    data, edits = Sequences.of(rows, SIZE), as_edits(rows, blocks)
    flat = [splice for block in blocks for splice in block]
    expected = [by_hand(rows[splice[0]], splice) for splice in flat]
    assert edits.apply(data).to_lists() == expected
    assert edits.new_lengths(data.lengths).tolist() == list(map(len, expected))
    assert edits.owner.tolist() == [splice[0] for splice in flat]
    assert len(edits) == len(flat)
    assert [block.growth for block in edits.blocks if len(block)] == [
        len(block[0][3]) - block[0][2] for block in blocks if block
    ]


@quick
@given(rows_strategy)
def test_identity(rows: list[list[int]]) -> None:
    data = Sequences.of(rows, SIZE)
    edits = Edits.identity(data)
    assert edits.apply(data).to_lists() == rows
    assert edits.owner.tolist() == list(range(len(rows)))
    assert edits.new_lengths(data.lengths).equal(data.lengths)


def test_no_edits_at_all() -> None:
    data = Sequences.of(["ab", "b"])
    edits = Edits((), 2)
    assert len(edits) == len(edits.owner) == len(edits.apply(data)) == len(edits.new_lengths(data.lengths)) == 0
    assert edits.sum_by_owner(torch.zeros(0)).tolist() == [0, 0]


@quick
@given(rows_strategy, st.data())
def test_between_is_the_inverse_of_apply(rows: list[list[int]], data: st.DataObject) -> None:
    pairs = data.draw(
        st.lists(st.tuples(st.integers(0, len(rows) - 1), st.lists(symbols, max_size=7)), min_size=1, max_size=6)
    )
    pairs += [(owner, rows[owner]) for owner in range(len(rows))] + pairs[:2]  # identities and repeats
    sequences = Sequences.of(rows, SIZE)
    owner = torch.tensor([pair[0] for pair in pairs])
    edits = Edits.between(sequences, owner, Sequences.of([pair[1] for pair in pairs], SIZE))
    found = list(zip(edits.owner.tolist(), map(tuple, edits.apply(sequences).to_lists()), strict=True))
    expected = {(o, tuple(y)) for o, y in pairs if y != rows[o]}
    assert len(found) == len(set(found))
    assert set(found) == expected
    assert edits.num_sequences == len(rows)


@quick
@given(rows_strategy)
def test_between_finds_the_smallest_splice_of_single_edits(rows: list[list[int]]) -> None:
    data = Sequences.of(rows, SIZE)
    direct = zs().edits(data)
    again = Edits.between(data, direct.owner, direct.apply(data))
    assert len(again) == len(direct)
    assert {(block.removed, block.inserted.shape[1]) for block in again.blocks} <= {(1, 1), (0, 1), (1, 0)}


def test_between_of_identities_is_empty() -> None:
    data = Sequences.of(["ab", ""])
    assert len(Edits.between(data, torch.tensor([0, 1]), data)) == 0


def test_between_takes_the_common_prefix_first() -> None:
    data = Sequences.of(["aab"])
    (block,) = Edits.between(data, torch.tensor([0]), Sequences.of(["ab"])).blocks
    assert (block.start.tolist(), block.removed, block.inserted.tolist()) == ([1], 1, [[]])


@quick
@given(spliced(), st.data())
def test_select(case: tuple[list[list[int]], list[list[Splice]]], data: st.DataObject) -> None:
    rows, blocks = case
    sequences, edits = Sequences.of(rows, SIZE), as_edits(rows, blocks)
    chosen = sorted(data.draw(st.sets(st.integers(0, len(edits) - 1)))) if len(edits) else []
    some = edits.select(torch.tensor(chosen, dtype=torch.long))
    every = edits.apply(sequences).to_lists()
    assert some.apply(sequences).to_lists() == [every[index] for index in chosen]
    assert some.owner.tolist() == [edits.owner.tolist()[index] for index in chosen]
    assert some.num_sequences == len(rows)


def test_within_counts_in_some_of_the_sequences() -> None:
    data = Sequences.of(["ab", "b", "aab", "ba"])
    edits = zs().edits(data)
    some = edits.select(((edits.owner == 1) | (edits.owner == 2)).nonzero().squeeze(1))
    rows = torch.tensor([1, 2])
    within = some.within(rows)
    assert within.num_sequences == 2
    assert within.apply(data[rows]).to_lists() == some.apply(data).to_lists()


def test_select_within_a_block() -> None:
    block = as_block([(0, 0, 1, [2]), (1, 1, 1, [0]), (0, 1, 1, [1])])
    for index in (torch.tensor([1, 2]), torch.tensor([False, True, True])):
        some = block.select(index)
        assert (some.owner.tolist(), some.start.tolist(), some.inserted.tolist()) == ([1, 0], [1, 1], [[0], [1]])
        assert some.removed == 1
        assert len(some) == 2


@quick
@given(spliced())
def test_values_by_block_and_by_owner(case: tuple[list[list[int]], list[list[Splice]]]) -> None:
    rows, blocks = case
    edits = as_edits(rows, blocks)
    values = torch.arange(1, len(edits) + 1, dtype=torch.double)
    parts = edits.split(values)
    assert list(map(len, parts)) == list(map(len, blocks))
    assert [value for part in parts for value in part.tolist()] == values.tolist()
    sums = [0.0] * len(rows)
    for owner, value in zip(edits.owner.tolist(), values.tolist(), strict=True):
        sums[owner] += value
    assert edits.sum_by_owner(values).tolist() == sums


def test_cat() -> None:
    data = Sequences.of([[0, 1], [2]])
    left, right = zs().edits(data), DoubleSubstitutions().edits(data)
    both = Edits.cat([left, right])
    assert both.apply(data).to_lists() == left.apply(data).to_lists() + right.apply(data).to_lists()
    assert both.num_sequences == 2


def windows(
    row: list[int], splice: Splice, width: int, base: int, filler: int
) -> tuple[dict[int, int], dict[int, int]]:
    """Codes of all windows before and after a splice, by their last position; filler on both sides."""

    def codes(symbols: list[int]) -> dict[int, int]:
        padded = [filler] * (width - 1) + symbols + [filler] * (width + 3)
        found = {}
        for end in range(len(symbols) + width - 1 + 1):
            code = 0
            for symbol in padded[end : end + width]:
                code = code * base + symbol
            found[end] = code
        return found

    return codes(row), codes(by_hand(row, splice))


@quick
@given(spliced(), st.integers(1, 4), st.integers(0, 2))
def test_window_codes(case: tuple[list[list[int]], list[list[Splice]]], width: int, extra: int) -> None:
    rows, blocks = case
    base, filler, margin = SIZE + 1, SIZE, width - 1 + extra
    data = Sequences.of(rows, SIZE)
    padded = torch.nn.functional.pad(data.padded(filler), (margin, margin), value=filler)
    for splices in filter(None, blocks):
        block = as_block(splices)
        before, after = block.codes(padded, margin, width, base)
        assert before.shape == (block.removed + width - 1, len(splices))
        assert after.shape == (block.inserted.shape[1] + width - 1, len(splices))
        for edit, splice in enumerate(splices):
            row, start = rows[splice[0]], splice[1]
            old, new = windows(row, splice, width, base, filler)
            destroyed, created = before[:, edit].tolist(), after[:, edit].tolist()
            assert destroyed == [old[start + j] for j in range(len(destroyed))]
            assert created == [new[start + j] for j in range(len(created))]
            # All other windows are the same before and after, those after the splice moved by its growth.
            assert all(old[end] == new[end] for end in range(start))
            rest = range(start + len(destroyed), len(row) + width - 1)
            assert all(old[end] == new[end + block.growth] for end in rest)


@quick
@given(spliced(), st.integers(0, 8))
def test_symbol_at_a_position(case: tuple[list[list[int]], list[list[Splice]]], position: int) -> None:
    rows, blocks = case
    filler = SIZE
    padded = torch.nn.functional.pad(Sequences.of(rows, SIZE).padded(filler), (0, 12), value=filler)
    for splices in filter(None, blocks):
        after = [by_hand(rows[splice[0]], splice) for splice in splices]
        expected = [row[position] if position < len(row) else filler for row in after]
        assert as_block(splices).symbol(padded, position).tolist() == expected


@pytest.mark.parametrize("width", [1, 2, 3])
def test_window_codes_of_an_empty_sequence(width: int) -> None:
    padded = torch.full((1, 2 * (width - 1)), 2)
    (append,) = [as_block([(0, 0, 0, [1])])]
    before, after = append.codes(padded, width - 1, width, 3)
    assert before.shape == (width - 1, 1)
    assert after.shape == (width, 1)
    as_digits = [[2] * (width - 1 - j) + [1] + [2] * j for j in range(width)]
    assert after[:, 0].tolist() == [sum(digit * 3 ** (width - 1 - i) for i, digit in enumerate(d)) for d in as_digits]


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_pieces_are_the_blocks_in_parts(size: int) -> None:
    data = Sequences.of([[0, 1], [2], []])
    edits = (zs() | DoubleSubstitutions()).edits(data)
    pieces = list(edits.pieces(size))
    assert all(0 < len(piece) <= size for piece in pieces)
    assert Edits(tuple(pieces), len(data)).apply(data).to_lists() == edits.apply(data).to_lists()
    assert torch.cat([piece.owner for piece in pieces]).equal(edits.owner)


def test_edits_belong_to_their_sequences() -> None:
    data = Sequences.of(["ab", "b"])
    check_edits(zs().edits(data), data)
    for wrong, words in ((None, "None"), (zs().edits(data[:1]), "those around 1")):
        with pytest.raises(ValueError, match=rf"edits: expected the Edits around 2 sequence\(s\), .*, found {words}"):
            check_edits(wrong, data)

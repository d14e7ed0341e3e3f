# SPDX-License-Identifier: Apache-2.0
"""The largest shares, found chunk by chunk, against sorting all of them."""

from __future__ import annotations

import pytest
import torch
from example_models import walk
from torch import Tensor

from pyro_ksd.edits.weighted_edits import WeightedEdits
from pyro_ksd.fit_tests import largest_shares
from pyro_ksd.fit_tests.largest_shares import MOST_EDITS, LargestShares, TopEdits, stacked
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.weighting import weighted_edits

pytestmark = pytest.mark.usefixtures("engine")


def chunks(sizes: list[int]) -> list[WeightedEdits]:
    data = walk(hold=0.4).draw(sum(sizes), torch.Generator().manual_seed(3))
    begins = [sum(sizes[:index]) for index in range(len(sizes))]
    return [
        weighted_edits(walk(), ZanellaOperator(), data[begin : begin + size], begin)
        for begin, size in zip(begins, sizes, strict=True)
    ]


def edit_key(found: TopEdits) -> list[tuple[object, ...]]:
    columns = (found.sequence, found.position, found.removed, found.inserted)
    return list(zip(*(column.tolist() for column in columns), strict=True))  # type: ignore[arg-type]


@pytest.mark.parametrize("levels", [3, 10**9])  # many equal shares, and hardly any
def test_the_largest_of_all_chunks_are_found(levels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(largest_shares, "MOST_EDITS", 7)
    parts = chunks([3, 1, 5, 2, 6, 4, 3, 2])
    width = max(part.sequences.width for part in parts)
    found = LargestShares(width, 4)
    generator = torch.Generator().manual_seed(levels % 7)
    every: list[tuple[float, int, int, int]] = []
    rows: list[tuple[float, int]] = []
    places: dict[int, Tensor] = {}
    for part in parts:
        shares = torch.randint(levels, (len(part.edits),), generator=generator).double() - 1
        contribution = part.edits.sum_by_owner(shares)
        found.add(part, shares, contribution)
        starts = torch.cat([block.start for block in part.edits.blocks])
        for row, total in enumerate(contribution.tolist()):
            rows.append((-total, part.begin + row))
            own = torch.full((width + 1,), torch.nan, dtype=torch.double)
            own[: int(part.sequences.lengths[row]) + 1] = 0.0
            for edit in (part.edits.owner == row).nonzero().squeeze(1).tolist():
                own[starts[edit]] += shares[edit]
            places[part.begin + row] = own
        edits = zip(shares.tolist(), part.edits.owner.tolist(), starts.tolist(), strict=True)
        every += [
            (-share, len(every) + place, part.begin + row, start) for place, (share, row, start) in enumerate(edits)
        ]
    best = sorted(rows)[:4]
    assert found.sequences.sequence.tolist() == [row for _, row in best]
    assert found.sequences.share.tolist() == [-share for share, _ in best]
    torch.testing.assert_close(
        found.sequences.attribution, torch.stack([places[row] for _, row in best]), equal_nan=True
    )
    best_edits = sorted(every)[:7]
    assert found.edits.share.tolist() == [-share for share, _, _, _ in best_edits]
    assert found.edits.sequence.tolist() == [row for _, _, row, _ in best_edits]
    assert found.edits.position.tolist() == [start for _, _, _, start in best_edits]


def test_of_equal_edits_the_first_are_told() -> None:
    [part] = chunks([4])
    assert len(part.edits) > MOST_EDITS
    shares = torch.ones(len(part.edits), dtype=torch.double)
    shares[50] = 2.0
    first = TopEdits.of(part, shares)
    in_order = part.edits.select(torch.arange(MOST_EDITS))
    assert first.sequence.tolist() == in_order.owner.tolist()
    assert TopEdits.cat([first, first]).share[:3].tolist() == [2.0, 2.0, 1.0]
    assert edit_key(TopEdits.cat([first]))[1:40] == edit_key(first)[:39]
    assert len(TopEdits.of(part, shares, above=1.0).share) == 1
    assert len(TopEdits.of(part, shares, above=2.0).share) == 0


def test_of_equal_edits_of_later_parts_the_first_hundred_are_told() -> None:
    place = torch.arange(150)
    part = TopEdits(place, place, place[:, None], place[:, None], torch.ones(150).double())
    later = TopEdits(place + 150, place, place[:, None], place[:, None], torch.ones(150).double())
    assert TopEdits.cat([part, later]).sequence.tolist() == list(range(100))


def test_nothing() -> None:
    [part] = chunks([2])
    none = part.edits.select(torch.zeros(0, dtype=torch.long))
    empty = WeightedEdits(5, part.sequences, none, part.weights[:0])
    found = LargestShares(part.sequences.width, 3)
    found.add(empty, part.weights[:0], torch.zeros(2, dtype=torch.double))
    assert found.sequences.sequence.tolist() == [5, 6]
    assert found.sequences.attribution.nansum() == 0
    assert len(found.edits.share) == 0


def test_codes_are_integers_also_after_a_chunk_without_edits() -> None:
    one, other = chunks([2, 3])
    none = one.edits.select(torch.zeros(0, dtype=torch.long))
    empty = TopEdits.of(WeightedEdits(0, one.sequences, none, one.weights[:0]), one.weights[:0])
    some = TopEdits.of(other, torch.ones(len(other.edits), dtype=torch.double))
    for found in (empty, TopEdits.cat([empty, some])):
        assert {found.sequence.dtype, found.position.dtype, found.removed.dtype, found.inserted.dtype} == {torch.long}
    assert edit_key(TopEdits.cat([empty, some])) == edit_key(some)
    assert (stacked([]).shape, stacked([]).dtype) == ((0, 0), torch.long)
    assert stacked([torch.ones(1, 1), torch.ones(1, 2)], torch.nan)[0, 1].isnan()

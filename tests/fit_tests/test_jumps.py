# SPDX-License-Identifier: Apache-2.0
"""Jumps: against tilted models and plain sums."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from example_models import small_mrf
from neighbor_lists import Codes
from tilted_spaces import SPACE, bounded, spread_chain

from pyro_ksd.edits.counts import Count
from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.fit_tests.jumps import jumps_of, length_jumps
from pyro_ksd.models.wrappers.tilted import TiltedModel
from pyro_ksd.sequences.container import Sequences

COUNTS = [Count("ngram", (0, 1)), Count("ngram", (2,)), Count("first", (1,)), Count("last", (0,))]


def test_counts_that_have_enough_leave_the_others_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever of two counts has enough first, and no further chunk is looked at once both have."""
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.EDITS", 2000)
    model = bounded(spread_chain())
    data = SPACE[torch.randint(1, len(SPACE), (100,), generator=torch.Generator().manual_seed(1))]
    counts = [Count("ngram", (0,)), Count("ngram", (2, 2, 2))]
    whole = [part.count.bincount(minlength=2).tolist() for part in jumps_of(model, data, zs(), counts)]
    enough = whole[0][0]
    assert sum(rare for _, rare in whole) < enough
    for order in (counts, counts[::-1]):
        found = [part.count.bincount(minlength=2).tolist() for part in jumps_of(model, data, zs(), order, enough)]
        expected = [whole[0], *([0, rare] for _, rare in whole[1:])]
        assert found == (expected if order is counts else [own[::-1] for own in expected])
    assert len(jumps_of(model, data, zs(), counts[:1], enough)) == 1 < len(whole)


def test_tilted_jumps_are_those_of_the_tilted_model() -> None:
    model = bounded(spread_chain())
    data = SPACE[(model.log_joint(SPACE) > -torch.inf).nonzero().squeeze(1)[::7]]
    theta = torch.tensor([0.5, -1.0, 2.0, 0.1], dtype=torch.double)
    [plain] = jumps_of(model, data, zs(), COUNTS)
    [expected] = jumps_of(TiltedModel(model, dict(zip(COUNTS, theta.tolist(), strict=True))), data, zs(), COUNTS)
    found = plain.tilted(theta)
    torch.testing.assert_close(found.log_ratio, expected.log_ratio, rtol=1e-6, atol=1e-6)
    assert float((found.log_ratio - plain.log_ratio).abs().min()) > 0.05
    assert found.count.tolist() == plain.count.tolist()


def test_growth_in_plain_sums() -> None:
    model = small_mrf(longest=7)
    data = Sequences.of([[0, 1], [], [2, 2, 1, 0, 0, 1, 2]], 3)
    [jumps] = length_jumps(model, data, zs())
    rows: list[Codes] = [tuple(x) for x in data.to_lists()]  # type: ignore[misc]

    def p(x: Codes) -> float:
        return float(model.log_joint(Sequences.of([x], 3)).exp())

    def block(x: Codes) -> float:
        return sum(p((*x, symbol)) for symbol in range(3))

    up = [(row, math.log(block(x) / p(x)), 1) for row, x in enumerate(rows) if block(x) > 0]
    down = [(row, math.log(p(x[:-1]) / block(x[:-1])), -1) for row, x in enumerate(rows) if x]
    owners, ratios, changes = zip(*up, *down, strict=True)
    assert jumps.owner.tolist() == list(owners)
    assert jumps.change.tolist() == list(changes)
    torch.testing.assert_close(jumps.log_ratio, torch.tensor(ratios, dtype=torch.double), rtol=1e-10, atol=1e-12)


def test_sums_and_tables_in_plain_loops() -> None:
    model = bounded(spread_chain())
    data = SPACE[(model.log_joint(SPACE) > -torch.inf).nonzero().squeeze(1)[:9]]
    [jumps] = jumps_of(model, data, zs(), COUNTS)
    generator = torch.Generator().manual_seed(0)
    of_edits = torch.rand(len(jumps.log_ratio), 2, dtype=torch.double, generator=generator)
    of_changes = torch.rand(len(jumps.change), dtype=torch.double, generator=generator)
    by_owner = torch.zeros(9, 2, dtype=torch.double)
    for owner, value in zip(jumps.owner.tolist(), of_edits, strict=True):
        by_owner[owner] += value
    sums = torch.zeros(9, len(COUNTS), dtype=torch.double)
    table = torch.zeros(len(jumps.log_ratio), 2, dtype=torch.double)
    chosen = [3, 1]
    columns = zip(jumps.edit.tolist(), jumps.count.tolist(), jumps.change.tolist(), of_changes.tolist(), strict=True)
    for edit, count, change, value in columns:
        sums[jumps.owner[edit], count] += value
        if count in chosen:
            table[edit, chosen.index(count)] = change
    torch.testing.assert_close(jumps.by_owner(of_edits), by_owner)
    torch.testing.assert_close(jumps.sums(of_changes, len(COUNTS)), sums)
    assert jumps.matrix(chosen).equal(table)
    assert len(table.unique()) > 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sequences": ["ab"]}, "sequences"),
        ({"neighborhood": 3}, "neighborhood"),
        ({"counts": [Count("ngram", (9,))]}, "9"),
    ],
)
def test_wrong_arguments(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"sequences": SPACE[:3], "neighborhood": zs(), "counts": COUNTS}
    with pytest.raises(ValueError, match=message):
        jumps_of(bounded(spread_chain()), **(arguments | change))

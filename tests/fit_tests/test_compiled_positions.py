# SPDX-License-Identifier: Apache-2.0
"""Shares of positions in compiled loops against those of torch."""

from __future__ import annotations

import pytest
import torch
from example_models import walk

from pyro_ksd.common.compilation import is_compiled
from pyro_ksd.edits import zs
from pyro_ksd.fit_tests.compiled_positions import position_sums
from pyro_ksd.fit_tests.largest_shares import TopSequences
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.weighting import weighted_edits

pytestmark = pytest.mark.skipif(not is_compiled(), reason="needs numba")


def test_sums_are_those_of_plain_additions() -> None:
    data = walk(hold=0.4).draw(9, torch.Generator().manual_seed(3))
    edits = zs().edits(data)
    values = torch.rand(len(edits), dtype=torch.double, generator=torch.Generator().manual_seed(0))
    rows = torch.tensor([7, 0, 3])
    expected = torch.zeros(3, data.width + 2, dtype=torch.double)
    starts = torch.cat([block.start for block in edits.blocks])
    for owner, start, value in zip(edits.owner.tolist(), starts.tolist(), values, strict=True):
        if owner in rows:
            expected[(rows == owner).nonzero().item(), start] += value
    assert edits.flat is not None
    assert position_sums(edits.flat, rows, values, data.width + 2).equal(expected)


def test_sequences_are_the_same_with_torch_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    data = walk(hold=0.4).draw(30, torch.Generator().manual_seed(3))
    part = weighted_edits(walk(), ZanellaOperator(), data)
    shares = torch.rand(len(part.edits), dtype=torch.double, generator=torch.Generator().manual_seed(0))
    found = []
    for switch in ("0", "1"):
        monkeypatch.setenv("PYRO_KSD_COMPILED", switch)
        contribution = part.edits.sum_by_owner(shares)
        found.append(TopSequences.of(part, shares, contribution, data.width, 7).attribution)
    torch.testing.assert_close(found[0], found[1], rtol=1e-12, atol=0, equal_nan=True)
    assert found[0].isnan().any()

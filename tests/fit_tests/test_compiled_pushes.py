# SPDX-License-Identifier: Apache-2.0
"""Pushes in a compiled loop against those of torch."""

from __future__ import annotations

import pytest
import torch

from pyro_ksd.common.compilation import is_compiled
from pyro_ksd.fit_tests.removal import Pushes
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.stein.sums import SteinSums

pytestmark = pytest.mark.skipif(not is_compiled(), reason="needs numba")


@pytest.mark.parametrize("least", [0.0, 1.0, 100.0])
@pytest.mark.parametrize("codes", [None, torch.tensor([1, 2, 5, 8])])
def test_pushes_are_those_of_torch(least: float, codes: torch.Tensor | None, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(2)
    values = torch.randn(40, 4, dtype=torch.double, generator=generator).exp_()
    values *= torch.randint(-1, 3, values.shape, generator=generator)
    values[3, 2] = 1e-9  # far weaker than all classes
    whole = FeatureMatrix(torch.cat([values, -values[:, :2]], 1) if codes is None else values, codes)
    part = FeatureMatrix(whole.values[:25], codes)
    found = []
    for switch in ("0", "1"):
        monkeypatch.setenv("PYRO_KSD_COMPILED", switch)
        found.append(Pushes.none(SteinSums.of(whole), least).plus(part))
    expected, own = found
    assert own.count == 25
    assert own.number.equal(expected.number)
    assert own.largest.equal(expected.largest)
    torch.testing.assert_close(own.sum, expected.sum, rtol=1e-12, atol=0)
    assert bool(own.number.any()) == (least < 100)

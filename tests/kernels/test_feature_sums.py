# SPDX-License-Identifier: Apache-2.0
"""Sums over groups of sequences against plain loops, compiled and in torch, dense and sparse."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from pyro_ksd.common.compilation import SWITCH
from pyro_ksd.kernels.feature_sums import FeatureSums

PSI = torch.randn(6, 4, dtype=torch.double, generator=torch.Generator().manual_seed(0))
PSI[PSI.abs() < 0.3] = 0.0
FORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "dense": lambda values: values,
    "not contiguous": lambda values: values.t().contiguous().t(),
    "sparse": lambda values: values.to_sparse().coalesce(),
}


@pytest.mark.parametrize("compiled", ["0", "1"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_sums_over_groups(size: int, form: str, compiled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, compiled)
    sums = FeatureSums.of(FORMS[form](PSI), size)
    for group, rows in enumerate(PSI.split(size)):
        columns = rows.t().tolist()
        assert sums.total[group].tolist() == pytest.approx([sum(column) for column in columns])
        assert sums.squares[group].tolist() == pytest.approx([sum(v * v for v in column) for column in columns])
        assert sums.gains[group].tolist() == pytest.approx([sum(max(v, 0.0) for v in column) for column in columns])
        values = rows.flatten().tolist()
        assert float(sums.squared_losses[group]) == pytest.approx(sum(min(v, 0.0) ** 2 for v in values))
        norms = [sum(v * v for v in row) for row in rows.tolist()]
        assert float(sums.squared_norms[group]) == pytest.approx(sum(norm**2 for norm in norms))
        pairs = [float(a @ b) for i, a in enumerate(rows) for j, b in enumerate(rows) if i != j]
        assert float(sums.off_diagonal[group]) == pytest.approx(sum(pairs))


@pytest.mark.parametrize("compiled", ["0", "1"])
def test_sums_over_each_of_several_tensors(compiled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, compiled)
    parts = [PSI, PSI.flip(0) * 2, FORMS["not contiguous"](PSI + 1)]
    found = FeatureSums.of_each(parts)
    for index, values in enumerate(parts):
        for name, expected in vars(FeatureSums.of(values, len(values))).items():
            assert getattr(found, name)[index].equal(expected[0])


@pytest.mark.parametrize("compiled", ["0", "1"])
@pytest.mark.parametrize("form", FORMS)
def test_sums_over_nothing(form: str, compiled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, compiled)
    sums = FeatureSums.of(FORMS[form](PSI[:0]), 0)
    assert sums.total.tolist() == sums.squares.tolist() == sums.gains.tolist() == [[0.0] * 4]
    assert sums.squared_losses.tolist() == sums.squared_norms.tolist() == sums.off_diagonal.tolist() == [0.0]

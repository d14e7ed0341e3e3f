# SPDX-License-Identifier: Apache-2.0
"""Sums in compiled loops against those of torch."""

from __future__ import annotations

from dataclasses import fields

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pyro_ksd.common.compilation import is_compiled
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.stein.signs import Signs
from pyro_ksd.stein.sums import SteinSums

pytestmark = pytest.mark.skipif(not is_compiled(), reason="needs numba")


def features(rows: int, columns: int, is_sparse: bool, seed: int) -> FeatureMatrix:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(rows, columns, dtype=torch.double, generator=generator).exp_()
    values *= torch.randint(-1, 2, values.shape, generator=generator)
    if not is_sparse:
        return FeatureMatrix(values)
    return FeatureMatrix(values.to_sparse().coalesce(), 3 * torch.arange(columns))


def sums(matrix: FeatureMatrix, signs: Signs, begin: int, compiled: bool) -> SteinSums:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYRO_KSD_COMPILED", str(int(compiled)))
        return SteinSums.of(matrix, signs.of_rows(begin, len(matrix)))


@settings(deadline=None, max_examples=60)
@given(
    rows=st.integers(0, 70),
    columns=st.sampled_from([0, 1, 5, 63, 64, 65, 130]),
    draws=st.sampled_from([0, 1, 127, 128, 129, 300]),
    is_sparse=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_sums_are_those_of_torch(rows: int, columns: int, draws: int, is_sparse: bool, seed: int) -> None:
    matrix = features(rows, columns, is_sparse, seed)
    signs = Signs(seed, draws, first_draw=seed % 300)
    found, expected = (sums(matrix, signs, seed, compiled) for compiled in (True, False))
    for field in fields(SteinSums):
        own, other = getattr(found, field.name), getattr(expected, field.name)
        if isinstance(own, torch.Tensor):
            assert own.dtype == other.dtype
            torch.testing.assert_close(own, other, rtol=1e-10, atol=1e-10)
        else:
            assert own == other


@pytest.mark.parametrize("is_sparse", [False, True])
def test_results_do_not_depend_on_the_number_of_threads(is_sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.common.compilation._WORK_OF_A_THREAD", 1)
    matrix = features(50, 300, is_sparse, 0)
    found = []
    for threads in (1, 2, 3):
        monkeypatch.setattr("pyro_ksd.common.compilation.num_threads", lambda: threads)  # noqa: B023
        found.append(sums(matrix, Signs(0, 600), 0, compiled=True))
    for other in found[1:]:
        assert other.signed.equal(found[0].signed)
        assert other.total.equal(found[0].total)
        assert other.squares.equal(found[0].squares)

# SPDX-License-Identifier: Apache-2.0
"""The leave-one-out witness against sums over all other sequences."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.kernels.witness import Witness

PSI = torch.randn(6, 5, dtype=torch.double, generator=torch.Generator().manual_seed(0))
PSI[PSI.abs() < 0.4] = 0.0
PSI[:, 3] = 0.0
PSI[2] = 0.0
STEP = 10**15  # between the codes of a sparse matrix


def sparse(psi: Tensor) -> FeatureMatrix:
    row, column = psi.nonzero().unbind(1)
    return FeatureMatrix.from_entries(row, column * STEP, psi[row, column], len(psi))


both_forms = pytest.mark.parametrize(("form", "step"), [(FeatureMatrix, 1), (sparse, STEP)], ids=["dense", "sparse"])


def others(row: int | Tensor) -> Tensor:
    """The sum of the features of all other sequences, ``[D]``."""
    return torch.stack([PSI[j] for j in range(len(PSI)) if j != row]).sum(0)


@both_forms
@pytest.mark.parametrize(("begin", "count"), [(0, 6), (0, 2), (2, 1), (2, 3), (5, 1)])
def test_coefficients_leave_out_the_sequence_itself(
    form: Callable[[Tensor], FeatureMatrix], step: int, begin: int, count: int
) -> None:
    witness = Witness.of(form(PSI), begin, count)
    rows = torch.arange(count)[:, None].expand(count, 5).reshape(-1)
    columns = torch.arange(5).repeat(count)
    expected = torch.stack([others(begin + row) for row in range(count)])
    found = witness.at(rows, columns * step).view(count, 5)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-13)
    kept = expected if form is FeatureMatrix else expected[:, [0, 1, 2, 4]]
    torch.testing.assert_close(witness.dense(), kept, rtol=1e-12, atol=1e-13)


def test_features_that_no_sequence_has_have_no_coefficient() -> None:
    witness = Witness.of(sparse(PSI), 1, 3)
    codes = torch.tensor([1, STEP - 1, STEP + 1, 3 * STEP, 5 * STEP, 2**62 - 1])
    assert witness.at(torch.tensor([0, 1, 2, 0, 1, 2]), codes).tolist() == [0.0] * 6


@both_forms
def test_any_features_in_any_order(form: Callable[[Tensor], FeatureMatrix], step: int) -> None:
    witness = Witness.of(form(PSI), 1, 4)
    rows, columns = torch.tensor([3, 0, 0, 2, 3, 1]), torch.tensor([4, 0, 0, 1, 2, 4])
    expected = torch.stack(
        [others(1 + row)[column] for row, column in zip(rows.tolist(), columns.tolist(), strict=True)]
    )
    torch.testing.assert_close(witness.at(rows, columns * step), expected, rtol=1e-12, atol=1e-13)


def test_sequences_without_any_feature() -> None:
    some = sparse(PSI).rows(2, 3)
    assert some.values.values().numel() == 0
    nothing = sparse(torch.zeros(3, 5, dtype=torch.double))
    assert Witness.of(nothing, 0, 3).at(torch.tensor([0, 2]), torch.tensor([0, 7])).tolist() == [0.0, 0.0]


@both_forms
@pytest.mark.parametrize("factor", [0.25, 3.0])
def test_the_witness_of_a_scaled_kernel(form: Callable[[Tensor], FeatureMatrix], step: int, factor: float) -> None:
    """Features have the root of the factor, so that their products have the factor."""
    expected = Witness.of(form(factor**0.5 * PSI), 0, 6).dense()
    torch.testing.assert_close(Witness.of(form(PSI), 0, 6).scaled(factor).dense(), expected)

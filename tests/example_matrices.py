# SPDX-License-Identifier: Apache-2.0
"""One Stein kernel matrix in every form in which it can be held."""

from __future__ import annotations

import torch
from torch import Tensor

from pyro_ksd.kernels.stein_matrices import FeatureMatrix, GramMatrix, SteinMatrix, SumMatrix

PSI = torch.randn(7, 4, dtype=torch.double, generator=torch.Generator().manual_seed(0))
PSI[:, 2] = 0.0
PSI[3] = 0.0


def sparse(psi: Tensor) -> FeatureMatrix:
    row, code = psi.nonzero().unbind(1)
    return FeatureMatrix.from_entries(row, code * 10**15, psi[row, code], len(psi))


MATRICES: dict[str, SteinMatrix] = {
    "features": FeatureMatrix(PSI),
    "sparse features": sparse(PSI),
    "gram": GramMatrix(PSI @ PSI.T),
    "sum": SumMatrix((FeatureMatrix(PSI[:, :2]), GramMatrix(PSI[:, 2:] @ PSI[:, 2:].T))),
    "scaled": FeatureMatrix(PSI / 2).scaled(4.0),
    "scaled sparse": sparse(PSI / 2).scaled(4.0),
    "scaled rows": FeatureMatrix(PSI / 2).scaled_rows(torch.full((7,), 2.0, dtype=torch.double)),
    "scaled sparse rows": sparse(PSI / 2).scaled_rows(torch.full((7,), 2.0, dtype=torch.double)),
    "scaled sum": SumMatrix((FeatureMatrix(PSI / 2), GramMatrix(0 * PSI @ PSI.T))).scaled(4.0),
    "rows put together": FeatureMatrix.cat([FeatureMatrix(PSI[:3]), FeatureMatrix(PSI[3:])]),
    "sparse rows put together": FeatureMatrix.cat([sparse(PSI[:3]), sparse(PSI[3:])]),
    "sums put together": SumMatrix.cat(
        [SumMatrix((FeatureMatrix(rows[:, :2]), FeatureMatrix(rows[:, 2:]))) for rows in PSI.split([2, 5])]
    ),
}

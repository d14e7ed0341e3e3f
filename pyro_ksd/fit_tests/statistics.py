# SPDX-License-Identifier: Apache-2.0
"""Statistics of a Stein kernel matrix and p-values from null draws."""

from __future__ import annotations

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_instance
from pyro_ksd.common.tensor_checks import check_tensor
from pyro_ksd.kernels.stein_matrices import SteinMatrix

TIE_TOLERANCE = 1e-10
"""Statistics closer than this, relative to the largest one, are equal: the order of a sum changes its last bits."""


def u_statistic(matrix: SteinMatrix) -> Tensor:
    r"""The unbiased estimate of KSD², :math:`U = \frac{1}{n(n-1)} \sum_{i \ne j} H_{ij}`; it can be negative.

    >>> from pyro_ksd.kernels.stein_matrices import GramMatrix
    >>> u_statistic(GramMatrix(torch.tensor([[4.0, 1.0], [1.0, 2.0]]))).item()
    1.0
    """
    _check_matrix(matrix)
    return weighted_u_statistics(matrix, _ones(matrix))[0]


def v_statistic(matrix: SteinMatrix) -> Tensor:
    r"""The biased estimate of KSD², :math:`V = \frac{1}{n^2} \sum_{i, j} H_{ij} \ge 0`.

    >>> from pyro_ksd.kernels.stein_matrices import GramMatrix
    >>> v_statistic(GramMatrix(torch.tensor([[4.0, 1.0], [1.0, 2.0]]))).item()
    2.0
    """
    _check_matrix(matrix)
    n = len(matrix)
    return (matrix.off_diagonal_form(_ones(matrix))[0] + matrix.diagonal().sum()) / n**2


def weighted_u_statistics(matrix: SteinMatrix, weights: Tensor) -> Tensor:
    r""":math:`\frac{1}{n(n-1)} \sum_{i \ne j} w_i w_j H_{ij}` for each row of weights ``[B, n]``: ``[B]``.

    >>> from pyro_ksd.kernels.stein_matrices import GramMatrix
    >>> matrix = GramMatrix(torch.tensor([[4.0, 1.0], [1.0, 2.0]]))
    >>> weighted_u_statistics(matrix, torch.tensor([[1.0, 1.0], [1.0, -1.0]])).tolist()
    [1.0, -1.0]
    """
    _check_matrix(matrix)
    n = len(matrix)
    check_sample_size(n)
    check_tensor("weights", weights, "B", n)
    values = matrix.off_diagonal_form(weights) / (n * (n - 1))
    if not values.isfinite().all():
        raise ValueError(
            "the statistic overflows: the model finds some edits far more probable than the data; "
            "use a bounded balancing function (barker or metropolis) in place of mpf"
        )
    return values


def check_sample_size(n: int) -> None:
    """A U-statistic needs pairs of sequences."""
    if n < 2:
        raise ValueError(f"expected at least 2 sequences, found {n}; the statistic compares pairs of sequences")


def p_value(observed: Tensor, null: Tensor) -> Tensor:
    r""":math:`(1 + \#\{b : U^*_b \ge U\}) / (B + 1)`, which is never 0; ties count, within a tolerance.

    :param observed: ``[V]`` or a scalar.
    :param null: ``[B, V]`` or ``[B]``.

    >>> p_value(torch.tensor(2.0), torch.tensor([1.0, 2.0, 3.0])).item()
    0.75
    """
    check_tensor("observed", observed, "...")
    check_tensor("null", null, "B", *observed.shape)
    tolerance = TIE_TOLERANCE * torch.maximum(observed.abs(), null.abs().amax(0))
    return (1 + (null >= observed - tolerance).sum(0)).double() / (len(null) + 1)


def _check_matrix(matrix: object) -> None:
    check_instance("matrix", matrix, SteinMatrix, "a Stein kernel matrix, such as stein_matrices(...)[0]")


def _ones(matrix: SteinMatrix) -> Tensor:
    diagonal = matrix.diagonal()
    return torch.ones(1, len(matrix), dtype=diagonal.dtype)

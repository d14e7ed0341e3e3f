# SPDX-License-Identifier: Apache-2.0
"""Statistics of a Stein kernel matrix and p-values from null draws."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_instance
from pyro_ksd.common.tensor_checks import check_tensor
from pyro_ksd.kernels.stein_matrices import SteinMatrix
from pyro_ksd.stein.signs import Signs
from pyro_ksd.stein.summation import SteinState
from pyro_ksd.stein.sums import SteinSums, SumsOfModels

TIE_TOLERANCE = 1e-10
"""Statistics closer than this, relative to the largest one, are equal: the order of a sum changes its last bits."""


def u_statistic(found: SteinState) -> Tensor:
    r"""The unbiased estimate of KSD², :math:`U = \frac{1}{n(n-1)} \sum_{i \ne j} H_{ij}`; it can be negative.

    :param found: a Stein kernel matrix, or the sums of its features.

    >>> from pyro_ksd.kernels.stein_matrices import GramMatrix
    >>> u_statistic(GramMatrix(torch.tensor([[4.0, 1.0], [1.0, 2.0]]))).item()
    1.0
    """
    _check_state(found)
    if isinstance(found, SteinSums):
        return _u_statistics(found.off_diagonal_sum(), len(found))
    return weighted_u_statistics(found, _ones(found))[0]


def v_statistic(found: SteinState) -> Tensor:
    r"""The biased estimate of KSD², :math:`V = \frac{1}{n^2} \sum_{i, j} H_{ij} \ge 0`.

    >>> from pyro_ksd.kernels.stein_matrices import GramMatrix
    >>> v_statistic(GramMatrix(torch.tensor([[4.0, 1.0], [1.0, 2.0]]))).item()
    2.0
    """
    _check_state(found)
    n = len(found)
    return ((n - 1) * u_statistic(found) + diagonal_sums(found)[0] / n) / n


def diagonal_sums(found: SteinState) -> tuple[Tensor, Tensor]:
    """``Σ_i H_ii`` and ``Σ_i H_ii²``, scalars."""
    if isinstance(found, SteinSums):
        return found.norms, found.squared_norms
    return found.diagonal().sum(), found.diagonal().square().sum()


def signed_u_statistics(found: SteinState, signs: Signs, missing: SteinSums | None = None) -> Tensor:
    r""":math:`\frac{1}{n(n-1)} \sum_{i \ne j} \varepsilon_i \varepsilon_j H_{ij}` with random signs, ``[B]``.

    :param signs: those with which the sums were formed.
    :param missing: see :meth:`~pyro_ksd.stein.sums.SteinSums.signed_sums`.

    >>> from pyro_ksd.kernels.stein_matrices import FeatureMatrix
    >>> signs, features = Signs(seed=0, num_draws=3), FeatureMatrix(torch.tensor([[1.0, 2.0], [3.0, -1.0]]).double())
    >>> sums = SteinSums.of(features, signs.of_rows(0, 2))
    >>> signed_u_statistics(sums, signs).equal(signed_u_statistics(features, signs))
    True
    """
    if isinstance(found, SteinSums):
        return _u_statistics(found.signed_sums(missing), len(found))
    return weighted_u_statistics(found, signs.of_rows(0, len(found)).double())


def weighted_u_statistics(matrix: SteinMatrix, weights: Tensor) -> Tensor:
    r""":math:`\frac{1}{n(n-1)} \sum_{i \ne j} w_i w_j H_{ij}` for each row of weights ``[B, n]``: ``[B]``.

    >>> from pyro_ksd.kernels.stein_matrices import GramMatrix
    >>> matrix = GramMatrix(torch.tensor([[4.0, 1.0], [1.0, 2.0]]))
    >>> weighted_u_statistics(matrix, torch.tensor([[1.0, 1.0], [1.0, -1.0]])).tolist()
    [1.0, -1.0]
    """
    _check_matrix(matrix)
    n = len(matrix)
    check_tensor("weights", weights, "B", n)
    return _u_statistics(matrix.off_diagonal_form(weights), n)


def _u_statistics(sums: Tensor, n: int) -> Tensor:
    """The statistics of ``n`` sequences from sums over all pairs."""
    check_sample_size(n)
    values = sums / (n * (n - 1))
    if not values.isfinite().all():
        raise ValueError(
            "the statistic overflows: the model finds some edits far more probable than the data; "
            "use a bounded balancing function (barker or metropolis) in place of mpf"
        )
    return values


def check_states(name: str, found: object) -> None:
    """Checks that an argument is a list of what is known of the views, one of each."""
    check_instance(name, found, Sequence, "a list of Stein kernel matrices or their sums, one for each view")
    for own in found:  # type: ignore[attr-defined]  # it is a sequence
        _check_state(own, name)


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


def p_values_of_largest(observed: Tensor, null: Tensor) -> Tensor:
    """The p-values of many values against null draws of the largest of them, as :func:`p_value`; ``[M]``.

    :param observed: ``[M]``.
    :param null: ``[B]``.

    >>> p_values_of_largest(torch.tensor([2.0, 5.0]), torch.tensor([1.0, 2.0, 3.0]))
    tensor([0.7500, 0.2500], dtype=torch.float64)
    """
    check_tensor("observed", observed, "...")
    check_tensor("null", null, "B")
    tolerance = TIE_TOLERANCE * torch.maximum(observed.abs(), null.abs().amax())
    below = torch.searchsorted(null.sort().values, observed - tolerance)
    return (1 + len(null) - below).double() / (len(null) + 1)


def u_statistics_under_each(states: Sequence[SteinState]) -> Tensor:
    """The statistic of :func:`u_statistic` under each of ``K`` models, ``[K]``."""
    if isinstance(states, SumsOfModels):
        return _u_statistics(states.off_diagonal_sums(), states.num_sequences)
    return torch.stack([u_statistic(state) for state in states])


def _check_state(found: object, name: str = "found") -> None:
    expected = "a Stein kernel matrix, such as stein_matrices(...)[0], or the sums of its features"
    check_instance(name, found, (SteinMatrix, SteinSums), expected)


def _check_matrix(matrix: object) -> None:
    check_instance("matrix", matrix, SteinMatrix, "a Stein kernel matrix, such as stein_matrices(...)[0]")


def _ones(matrix: SteinMatrix) -> Tensor:
    diagonal = matrix.diagonal()
    return torch.ones(1, len(matrix), dtype=diagonal.dtype)

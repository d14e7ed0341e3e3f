# SPDX-License-Identifier: Apache-2.0
"""The relative test of fit: which of several models comes closer to the data, in tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from scipy.special import stdtr
from torch import Tensor

from pyro_ksd.common.option_checks import check_instance
from pyro_ksd.common.tensor_checks import check_tensor
from pyro_ksd.kernels.stein_matrices import SteinMatrix

_ROUNDING = 1e-6
"""Differences are nothing but rounding, of single precision, if they are smaller than this fraction of the terms."""


@dataclass(frozen=True, eq=False)
class RowSums:
    """What a comparison needs of the Stein kernel matrices of a model, in ``V`` views of ``n`` sequences.

    :ivar others: double ``[V, n]``, the sums ``Σ_{j≠i} H_ij``.
    :ivar diagonal: double ``[V, n]``, the entries ``H_ii``.
    """

    others: Tensor
    diagonal: Tensor

    @staticmethod
    def of(matrices: Sequence[SteinMatrix]) -> RowSums:
        """The sums of the matrices of a model, one matrix for each view."""
        check_instance("matrices", matrices, Sequence, "a list of Stein kernel matrices, one for each view")
        if not matrices:
            raise ValueError("matrices: expected at least one Stein kernel matrix, found none")
        for matrix in matrices:
            check_instance("matrices", matrix, SteinMatrix, "a list of Stein kernel matrices, one for each view")
        return RowSums(
            torch.stack([matrix.others() for matrix in matrices]),
            torch.stack([matrix.diagonal() for matrix in matrices]),
        )


@dataclass(frozen=True, eq=False)
class RelativeFit:
    """How ``K`` models compare in ``V`` views and, in the last place, in all views together.

    :ivar statistic: double ``[K, V + 1]``, the U-statistics; the smaller, the better.
    :ivar standard_error: double ``[K, V + 1]``, their jackknife standard errors.
    :ivar difference: double ``[K, K, V + 1]``, the statistic of the first model minus that of the second.
    :ivar difference_error: double ``[K, K, V + 1]``, their jackknife standard errors.
    :ivar z: double ``[K, K, V + 1]``, the differences over their standard errors; 0 where they do not vary.
    :ivar p_value: double ``[K, K, V + 1]``, two-sided, of the hypothesis that both models fit equally well.
    :ivar rank: long ``[K, V + 1]``, the number of better models, so 0 for the best one.
    """

    statistic: Tensor
    standard_error: Tensor
    difference: Tensor
    difference_error: Tensor
    z: Tensor
    p_value: Tensor
    rank: Tensor


def relative_fit(sums: Sequence[RowSums], weights: Tensor | None = None) -> RelativeFit:
    r"""Compares the discrepancies of models on the same sequences.

    The difference :math:`U_p - U_q` is a U-statistic with the kernel :math:`H^p - H^q`, and asymptotically normal
    (Bounliphone et al., 2016; Kanagawa et al., 2019). :math:`z` divides it by its jackknife standard error, which is
    itself uncertain. So p-values are those of a t distribution with :math:`n - 1` degrees of freedom.

    All views together are the sum of the views' statistics, :math:`\sum_v \omega_v U^{(v)} / s_v`, with the
    scale :math:`s_v` the mean of :math:`H_{ii}` over all sequences and models. The scales are common to all models, so
    that only a model that is close to the data in all views has a small sum. The jackknife leaves a sequence out of the
    ratios of the scales as well; their geometric mean, which only sets the unit, is held fixed.

    If both models are right in a view, both statistics estimate 0 and the limit is not normal. The jackknife variance
    is then about twice the true variance, and the test conservative. If the difference does not vary beyond rounding,
    the models cannot be told apart: :math:`z = 0` and the p-value is 1.

    :param sums: one for each model, all of them of the same views and sequences.
    :param weights: ``[V]``, positive, how much the views count, :math:`\omega_v`; all the same if left out.

    >>> from pyro_ksd import Sequences, default_views
    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.stein import stein_matrices
    >>> data, views = Sequences.of(["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"]), default_views()
    >>> models = random_walk(3), random_walk(3, hold=0.5)
    >>> relative_fit([RowSums.of(stein_matrices(model, data, views)) for model in models]).rank[:, -1]
    tensor([1, 0])
    """
    _check_sums(sums)
    others = torch.stack([one.others for one in sums])
    diagonal = torch.stack([one.diagonal for one in sums])
    n = others.shape[-1]
    check_comparable(n)
    weights = torch.ones(others.shape[1]) if weights is None else weights
    check_tensor("weights", weights, others.shape[1])
    weight, weight_left_out = (weights.double()[:, None] * scale for scale in _scales(diagonal.mean(0)))
    statistic = _with_overall(others.mean(-1, keepdim=True) / (n - 1), weight).squeeze(-1)
    size = _with_overall(diagonal.mean(-1, keepdim=True), weight).squeeze(-1)
    left_out = _with_overall(leave_one_out(others), weight_left_out)
    if not left_out.isfinite().all():
        raise ValueError(
            "the statistic overflows: a model finds some edits far more probable than the data; "
            "use a bounded balancing function (barker or metropolis) in place of mpf"
        )
    difference = statistic[:, None] - statistic
    error = torch.stack([jackknife_error(one - left_out) for one in left_out])
    spread = error * n**0.5 / 2  # of the sequences' own terms
    varies = spread > _ROUNDING * (size[:, None] + size) / 2
    z = torch.where(varies, difference / error, 0.0)
    return RelativeFit(
        statistic=statistic,
        standard_error=jackknife_error(left_out),
        difference=difference,
        difference_error=error,
        z=z,
        p_value=torch.from_numpy(2 * stdtr(n - 1, -z.abs().numpy())),
        rank=(z > 0).sum(1),
    )


def _check_sums(sums: Sequence[RowSums]) -> None:
    check_instance("sums", sums, Sequence, "a list of RowSums, one for each model")
    for one in sums:
        check_instance("sums", one, RowSums, "a list of RowSums, made by RowSums.of(matrices)")
    shapes = sorted({tuple(one.others.shape) for one in sums})
    if len(shapes) != 1:
        raise ValueError(f"sums: expected those of the same views and sequences for all models, found shapes {shapes}")


def check_comparable(n: int) -> None:
    """The jackknife needs pairs of sequences also when one sequence is left out."""
    if n < 3:
        raise ValueError(
            f"expected at least 3 sequences, found {n}; the error of a difference is estimated by leaving out "
            "one sequence after the other, and the statistic compares pairs of the others"
        )


def leave_one_out(others: Tensor) -> Tensor:
    r"""The U-statistic without each of the sequences,

    .. math:: U_{(-i)} = \frac{1}{(n-1)(n-2)} \Big(\sum_k r_k - 2 r_i\Big), \qquad r_i = \sum_{j \ne i} H_{ij}.

    :param others: ``[..., n]``, the sums :math:`r_i`.
    :returns: ``[..., n]``

    >>> matrix = torch.tensor([[9.0, 1.0, 2.0], [1.0, 9.0, 3.0], [2.0, 3.0, 9.0]])
    >>> leave_one_out(matrix.sum(1) - matrix.diagonal()).tolist()  # what is left is one pair each
    [3.0, 2.0, 1.0]
    """
    check_tensor("others", others, "...", "n")
    n = others.shape[-1]
    if n < 3:
        raise ValueError(f"others: expected the sums of at least 3 sequences, found those of {n}")
    return (others.sum(-1, keepdim=True) - 2 * others) / ((n - 1) * (n - 2))


def jackknife_error(left_out: Tensor) -> Tensor:
    r"""The jackknife standard error, the root of :math:`\frac{n-1}{n} \sum_i (U_{(-i)} - \bar U)^2`.

    For a U-statistic, what is under the root equals :math:`\frac{4}{n(n-1)(n-2)^2} \sum_i (r_i - \bar r)^2`, and its
    expectation is no smaller than the variance of the statistic (Efron and Stein, 1981).

    :param left_out: ``[..., n]``, the statistic without each of the sequences.
    :returns: ``[...]``

    >>> round(jackknife_error(torch.tensor([3.0, 2.0, 1.0])).item(), 4)
    1.1547
    """
    check_tensor("left_out", left_out, "...", "n")
    n = left_out.shape[-1]
    if n < 2:
        raise ValueError(f"left_out: expected at least 2 statistics, found {n}")
    error: Tensor = left_out.std(-1) * (n - 1) / n**0.5
    return error


def _scales(diagonal: Tensor) -> tuple[Tensor, Tensor]:
    """What brings the views to one scale, ``[V, 1]``, and the same without each of the sequences, ``[V, n]``.

    It is 0 for a view in which no model sees anything.

    :param diagonal: ``[V, n]``, the mean of ``H_ii`` over the models.
    """
    n = diagonal.shape[-1]
    total = diagonal.sum(-1, keepdim=True)
    seen = total > 0
    scale = torch.where(seen, n / total, 0.0)
    change = torch.where(seen, (total - diagonal) / total * n / (n - 1), 1.0).clamp(min=1e-9)
    in_common = (change.log().sum(0) / seen.sum().clamp(min=1)).exp()
    return scale, scale * in_common / change


def _with_overall(values: Tensor, weight: Tensor) -> Tensor:
    """Values ``[K, V, m]`` of the views, and their sums with weights ``[V, m]`` in a last place: ``[K, V + 1, m]``."""
    return torch.cat([values, (values * weight).sum(1, keepdim=True)], 1)

# SPDX-License-Identifier: Apache-2.0
r"""How many sequences must be removed until the rest agrees with the model, feature by feature.

Data agree with a model if no score :math:`z_u = \sum_i \psi_u(x_i) / \sqrt{v_u}` of the Stein features exceeds a
critical value (:mod:`pyro_ksd.fit_tests.feature_scores`). For one feature the best sequences to remove are those that
push its sum the furthest, so the minimum over all subsets is a sort:

.. math::
    z_u(m) = \frac{s \sum_i \psi_u(x_i) - \sum_{j \le m} (s\,\psi_u)_{(j)}}{\sqrt{v_u}}, \qquad
    s = \operatorname{sign} \sum_i \psi_u(x_i),

with :math:`(s\,\psi_u)_{(1)} \ge (s\,\psi_u)_{(2)} \ge \dots` the positive parts in descending order. The spread
:math:`\sqrt{v_u}` stays that of all sequences.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from pyro_ksd.common.chunk_sizes import ENTRIES
from pyro_ksd.fit_tests.feature_scores import scores
from pyro_ksd.kernels.stein_matrices import FeatureMatrix


def fewest_removals(matrix: FeatureMatrix, critical: Tensor) -> Tensor:
    r"""The smallest :math:`m` with :math:`z_u(m) \le c` for each critical value and feature, long ``[C, D]``.

    :param critical: ``[C]``, values of :math:`c` of at least 0.

    >>> psi = torch.tensor([[5.0, 1.0], [4.0, -1.0], [3.0, 1.0], [-1.0, -1.0]]).double()
    >>> fewest_removals(FeatureMatrix(psi), torch.tensor([1.0, 0.5]))  # 11 exceeds √51 by 3.9, √51 / 2 by 7.4
    tensor([[1, 0],
            [2, 0]])
    """
    total, spread = scores(matrix)
    excess = total.abs() - critical[:, None] * spread
    removed = torch.zeros(excess.shape, dtype=torch.long)
    for columns, sums in _largest_sums(matrix, (excess > 0).any(0).nonzero().squeeze(1), total.sign()):
        for row, over in zip(removed, excess, strict=True):
            short = (sums < over[columns, None]).sum(1) + 1
            row[columns] = short.clamp_(max=sums.shape[1]).masked_fill_(over[columns] <= 0, 0)
    return removed


def score_after_removal(matrix: FeatureMatrix, num_removed: int) -> Tensor:
    r"""The largest :math:`z_u(m)` of all features after the removal of ``num_removed`` sequences, at least 0; a scalar.

    >>> psi = torch.tensor([[5.0, 1.0], [4.0, -1.0], [3.0, 1.0], [-1.0, -1.0]]).double()
    >>> score_after_removal(FeatureMatrix(psi), 1)  # (11 - 5) / √51
    tensor(0.8402, dtype=torch.float64)
    """
    total, spread = scores(matrix)
    spread = spread.clamp(min=torch.finfo(spread.dtype).tiny)
    before = total.abs() / spread
    largest = total.new_zeros(())
    for columns, sums in _largest_sums(matrix, before.argsort(descending=True), total.sign()):
        if before[columns[0]] <= largest:  # removal only lowers a score, and the next ones are no larger
            break
        gone = sums[:, min(num_removed, sums.shape[1]) - 1] if num_removed else 0.0
        largest = torch.maximum(largest, ((total[columns].abs() - gone) / spread[columns]).amax())
    return largest


def _largest_sums(matrix: FeatureMatrix, columns: Tensor, signs: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """The sums of the ``1, 2, ..., L`` largest positive parts of ``sign · ψ`` in each column.

    :param columns: long ``[C]``, those to visit, in this order.
    :param signs: ``[D]``.
    :returns: some columns at a time, long ``[c]``, and their sums ``[c, L]``.
    """
    for part, values in _column_values(matrix, columns):
        pushing = (values * signs[part, None]).clamp_(min=0)
        # numpy sorts several times faster, for want of indices
        descending = -torch.from_numpy(np.sort(pushing.neg_().numpy(), axis=1))
        yield part, descending.cumsum(1)


def _column_values(matrix: FeatureMatrix, columns: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Some columns at a time, long ``[c]``, and what they hold, ``[c, L]``, filled up by zeros."""
    if not len(columns):
        return
    if not matrix.values.is_sparse:
        for part in columns.split(max(1, ENTRIES // len(matrix))):
            yield part, matrix.values[:, part].t().contiguous()
        return
    place = columns.new_full((matrix.values.shape[1],), len(columns)).index_copy_(
        0, columns, torch.arange(len(columns))
    )
    owner = place[matrix.values.indices()[1]]
    order = owner.argsort()
    owner = owner[order]
    values = matrix.values.values()[order]
    ends = owner.bincount(minlength=len(columns) + 1)[: len(columns)].cumsum(0)
    begins = torch.cat([ends.new_zeros(1), ends])
    longest = max(1, int((ends - begins[:-1]).max()))
    for first in range(0, len(columns), max(1, ENTRIES // longest)):
        part = columns[first : first + max(1, ENTRIES // longest)]
        inside = slice(int(begins[first]), int(begins[first + len(part)]))
        row = owner[inside] - first
        rank = torch.arange(inside.start, inside.stop) - begins[owner[inside]]
        yield part, values.new_zeros(len(part), longest).index_put_((row, rank), values[inside])

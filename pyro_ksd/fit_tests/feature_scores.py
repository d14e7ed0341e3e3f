# SPDX-License-Identifier: Apache-2.0
r"""Which features (n-grams, first symbols, the length) are too frequent or too rare under the model.

Under a true model the mean of every Stein feature :math:`\psi_u` is 0. A positive mean says that the model's own jumps
would bring more of :math:`u` into the data: it is too frequent under the model; a negative mean, too rare. The score is

.. math::
    z_u = \frac{\sum_i \psi_u(x_i)}{\sqrt{v_u}}, \qquad
    v_u = \max\Bigl(\sum_i \psi_u(x_i)^2,\; h \sum_i \psi_u(x_i)_+ + h^2\Bigr), \qquad
    h = \frac{\sum_{u,i} (\psi_u(x_i)_-)^2}{\sum_{u,i} \psi_u(x_i)_-}.

The second bound of the variance is what keeps rare features honest. Many sequences could receive :math:`u` by an edit
and add a little, few contain it and take away much. Where these few are missing from the data by chance, the sum of
squares knows nothing of them. But as much is to be lost as can be gained, in portions of about :math:`h`, the typical
loss of a sequence, and the variance of a sum of rare portions is the sum times the portion. One portion more, the
:math:`h^2`, keeps features apart that almost no edit could bring about.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pyro_ksd.kernels.feature_sums import FeatureSums
from pyro_ksd.stein.sums import SteinSums


def group_scores(sums: FeatureSums) -> tuple[Tensor, Tensor]:
    """The sums of the features in groups of sequences and their spreads ``√v``, ``[G, D]`` each."""
    return sums.total, _spread(sums.total, sums.squares, sums.gains, sums.squared_losses)


def scores(sums: SteinSums) -> tuple[Tensor, Tensor]:
    """The sums of the features over all sequences and their spreads, ``[D]`` each."""
    spread = _spread(sums.total[None], sums.squares[None], sums.gains[None], sums.squared_losses[None])
    return sums.total, spread[0]


def _spread(total: Tensor, squares: Tensor, gains: Tensor, squared_losses: Tensor) -> Tensor:
    """``√v`` of groups of sequences, ``[G, D]``, from their sums, ``[G, D]``, and all squared losses, ``[G]``."""
    losses = (gains - total).sum(1).clamp_(min=torch.finfo(total.dtype).tiny)
    typical = (squared_losses / losses)[:, None]
    return torch.maximum(squares, (gains + typical) * typical).sqrt_()


def largest_score(total: Tensor, spread: Tensor) -> Tensor:
    """The largest ``|z|`` in each row of ``[G, D]`` sums and spreads, ``[G]``; a feature without spread has none."""
    if not total.shape[1]:
        return total.new_zeros(len(total))
    return (total.abs() / spread.clamp(min=torch.finfo(spread.dtype).tiny)).amax(1)

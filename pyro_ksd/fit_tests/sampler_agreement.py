# SPDX-License-Identifier: Apache-2.0
r"""Does a model draw its sequences from the distribution that it scores?

A program has two parts that may disagree: one scores sequences, the other draws them. P-values from drawn data sets are
wrong then, in either direction. If both agree, Stein's identity holds for drawn sequences, and each U-statistic
:math:`U_b` of a drawn data set has the mean 0, whatever its size. So they disagree if

.. math:: \bar U = \frac{1}{B} \sum_{b=1}^{B} U_b > \max(t_{B-1}\, B^{-1/2}, 0.5) \cdot \mathrm{sd}(U_1, \dots, U_B) .

with the quantile :math:`t_{B-1}` that a t variable exceeds with probability :math:`10^{-9}`, about 6. U-statistics are
skewed to the right, which makes large studentized means rarer. A shift of less than half a standard deviation hardly
matters for p-values.

This does not see lengths where the lengths of the data are compared with those of draws. So the draws are compared with
the ratios of probabilities, by the bounded features of :mod:`~pyro_ksd.stein.length_features`. Each has the variance 1
where stopping does not depend on symbols. For the mean :math:`\bar\psi` of ``n`` draws, both

.. math:: n\, \bar\psi^\top \hat\Sigma^{-1} \bar\psi \qquad \text{and} \qquad n\, \lVert \bar\psi \rVert^2

must be so large that Hotelling's test rejects at :math:`10^{-6}`. The second one is not fooled by lengths that are rare
and happen to be missing, without which the empirical covariance :math:`\hat\Sigma` is too small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from scipy.special import fdtri, stdtrit
from torch import Tensor

from pyro_ksd.edits.neighborhoods import Neighborhood
from pyro_ksd.fit_tests.null_draws import NullDraws
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.balancing import Balancing
from pyro_ksd.stein.length_views import length_view
from pyro_ksd.stein.views import View
from pyro_ksd.stein.visits import Visits

_CHANCE = 1e-9
_SHIFT = 0.5  # standard deviations that hardly matter
_ROUNDING = 1e-9
_LEVEL = 1e-6
_REASON = (
    "so p-values from drawn data would be wrong. Draw with the parameters that the score has, until every sequence has "
    "ended, and give probability zero to sequences that are never drawn, such as the empty one; or leave out the "
    "sampler, and null draws come from the wild bootstrap"
)


def check_null_draws(null: NullDraws, views: Sequence[View]) -> None:
    """Checks the statistics of data sets that were drawn from a model, and scored with the same parameters.

    :param null: the statistics; one draw alone shows nothing.
    :raises ValueError: naming the views that show that the model does not draw from what it scores.

    >>> from pyro_ksd.stein import default_views
    >>> draws = torch.tensor([[0.1], [-0.1]] * 50).double()
    >>> check_null_draws(NullDraws(draws, draws), default_views()[:1])
    >>> check_null_draws(NullDraws(draws + 1, draws), default_views()[:1])
    Traceback (most recent call last):
    ValueError: draw: expected sequences from the distribution that the model scores, found data sets that do not fit it
    (view 'content-1'), so p-values from drawn data would be wrong. ...
    """
    names = [repr(view.name) for view, found in zip(views, _is_shifted(null.statistic).tolist(), strict=True) if found]
    if names:
        raise ValueError(
            "draw: expected sequences from the distribution that the model scores, found data sets that do not fit it "
            f"(view {', '.join(names)}), {_REASON}"
        )


def _is_shifted(statistics: Tensor) -> Tensor:
    """Whether the mean of statistics ``[B, V]`` is too large for a true mean of 0, boolean ``[V]``."""
    mean = statistics.mean(0)
    if len(statistics) < 2:
        return torch.zeros_like(mean, dtype=torch.bool)
    least = max(float(stdtrit(len(statistics) - 1, 1 - _CHANCE)) / math.sqrt(len(statistics)), _SHIFT)
    return (mean > _ROUNDING) & (mean > least * statistics.std(0))


def check_drawn_lengths(model: SequenceModel, drawn: Sequences, tail: Neighborhood, balancing: Balancing) -> None:
    """Checks that the lengths of sequences drawn from a model agree with its ratios of probabilities.

    :param drawn: all of them possible under the model.
    :param tail: what replaces, appends and removes the last symbol, see :attr:`pyro_ksd.edits.Neighborhood.tail`.
    :param balancing: of the weights of these edits.
    :raises ValueError: if the lengths do not agree.

    >>> from pyro_ksd.edits import zs
    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.stein import barker
    >>> walk, drawn = random_walk(3, mean_length=5), random_walk(3, mean_length=8).draw(500)
    >>> check_drawn_lengths(walk, drawn, zs().tail, barker)
    Traceback (most recent call last):
    ValueError: draw: expected sequences from the distribution that the model scores, found lengths that do not fit it
    (drawn: ...
    """
    view = length_view(model, drawn, tail, balancing)
    if view is None:
        return
    [matrix] = Visits(model, drawn, [view], kept_bytes=0).whole(view)
    if isinstance(matrix, FeatureMatrix) and _has_mean(matrix.values):
        raise ValueError(
            "draw: expected sequences from the distribution that the model scores, found lengths that do not fit it "
            f"(drawn: from {int(drawn.lengths.min())} to {int(drawn.lengths.max())} symbols, "
            f"{float(drawn.lengths.double().mean()):.3g} on average), {_REASON}"
        )


def _has_mean(features: Tensor) -> bool:
    """Whether the mean of some features ``[n, D]``, with variances of about 1, is not 0."""
    size, count = features.shape
    if size <= count:
        return False
    mean = features.mean(0)
    largest = count * (size - 1) / (size - count) * fdtri(count, size - count, 1 - _LEVEL)
    studentized = mean @ torch.linalg.pinv(torch.cov(features.T), hermitian=True) @ mean
    return bool(size * torch.minimum(studentized, mean @ mean) > largest)

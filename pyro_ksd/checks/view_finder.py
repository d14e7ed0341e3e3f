# SPDX-License-Identifier: Apache-2.0
r"""Finds the one combination of features along which the data and the model disagree most.

Of ``N`` sequences to learn from, let :math:`\bar\psi_u` be the mean of the Stein feature :math:`u` of a view, and
:math:`v_u` the mean of its square, averaged over the data and, if the model can be sampled, over draws from it. The
direction of the view is

.. math:: w_u = \frac{\bar\psi_u}{v_u + \bar v}

with :math:`\bar v` the mean of all :math:`v_u`: a linear discriminant with a diagonal covariance, where the ridge
:math:`\bar v` keeps rare features from dominating. How much a direction is worth is measured on sequences that it was
not learned from (five folds): :math:`z`, the mean of :math:`\langle w, \psi \rangle` over its standard error. The views
of one operator are combined with the weights :math:`\max(z, 0)^2`, in units of their spread, and the operator whose
best view has the largest :math:`z` is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from pyro_ksd.checks.check_setup import model_and_views
from pyro_ksd.checks.data_argument import as_sequences
from pyro_ksd.common.option_checks import check_flag
from pyro_ksd.edits.neighborhoods import Neighborhood
from pyro_ksd.kernels.base import FeatureKernel
from pyro_ksd.kernels.direction import DirectionKernel, DirectionPart
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.models.duck_typing import adapted
from pyro_ksd.results.misfit_groups import labels_of
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.assembly import assemble
from pyro_ksd.stein.balancing import Balancing
from pyro_ksd.stein.views import View

_FOLDS = 5
_NAMED = 4  # features in the name of a direction
_TINY = torch.finfo(torch.double).tiny


def find_view(
    model: Any,
    data: Any,
    *,
    views: str | View | Sequence[str | View] | None = None,
    neighborhood: Neighborhood | None = None,
    balancing: str | Balancing | None = None,
    progress: bool = True,
) -> View:
    """Learns from data the single view that sees their misfit best, for a check of **other data**.

    The view has one feature, a linear combination of the features of the given views. Its name, such as ``"bb + cc - ab
    ..."``, lists the most important features, the first one with a plus. Never check the sequences that the view was
    learned from, because such a check would reject true models. Split the data first, see :func:`~pyro_ksd.split`.

    :param model: what :func:`~pyro_ksd.ksd_check` takes.
    :param data: the sequences to learn from, at least 5.
    :param views: whose features to combine; as for ``ksd_check``. Views whose kernels have no features are left out.
    :param neighborhood: as for ``ksd_check``.
    :param balancing: as for ``ksd_check``.
    :param progress: whether to show a progress bar.
    :returns: a view called ``"found"``, for ``ksd_check(..., views=view)``.

    >>> from pyro_ksd import ksd_check, split, verdict
    >>> from pyro_ksd.examples import random_walk
    >>> data = random_walk(3, hold=0.3).draw(60, torch.Generator().manual_seed(0)).over("abc")
    >>> to_learn, to_check = split(data, 0.5)
    >>> view = find_view(random_walk(3), to_learn, progress=False)
    >>> verdict(ksd_check(random_walk(3), to_check, views=view, num_bootstrap=99, progress=False))
    "the model does not fit (p = 0.010): 'bb + ...' is too small under the model...
    """
    check_flag("progress", progress)
    sequences = as_sequences(data, adapted(model))
    setup = model_and_views(model, sequences, views, neighborhood, balancing)
    sequences = sequences[setup.impossible.others]
    if len(sequences) < _FOLDS:
        raise ValueError(
            f"data: expected at least {_FOLDS} possible sequences to learn from, found {len(sequences)}; check "
            "the model with all of them instead, without find_view"
        )
    usable = [view for view in setup.views if isinstance(view.kernel, FeatureKernel)]
    if not usable:
        names = [view.name for view in setup.views]
        raise ValueError(
            f"views: expected a view whose kernel has features, found {names}; pass names of default views, or views "
            "with a FeatureKernel"
        )
    together = sequences if setup.drawn is None else Sequences.cat([sequences, setup.drawn])
    matrices = assemble(setup.model, together, usable, progress=progress).matrices
    learned = [
        _learned(view, matrix.features, len(sequences))
        for view, matrix in zip(usable, matrices, strict=True)
        if matrix.features is not None
    ]
    best = max(learned, key=lambda direction: direction.z)
    combined = _combined([direction for direction in learned if direction.view.operator is best.view.operator])
    parts = tuple(direction.part for direction in combined)
    return View("found", best.view.operator, DirectionKernel(parts, _name(combined, sequences)))


@dataclass(frozen=True, eq=False)
class _Learned:
    """The direction of one view, and how much it is worth.

    :ivar gain: double ``[D]``, what each feature adds to the mean of the direction's Stein feature.
    :ivar z: the mean over sequences that it was not learned from, over its standard error.
    :ivar spread: the root mean square of its values.
    """

    view: View
    part: DirectionPart
    gain: Tensor
    z: float
    spread: float


def _learned(view: View, matrix: FeatureMatrix, count: int) -> _Learned:
    """The direction of a view, from the Stein features of ``count`` data and of the draws after them."""
    fold = torch.arange(count) % _FOLDS
    others = torch.stack([*(fold != index for index in range(_FOLDS)), torch.ones(count, dtype=torch.bool)]).double()
    own = others / others.sum(1, keepdim=True)
    num_drawn = len(matrix) - count
    none = own.new_zeros(len(own), num_drawn)
    mean = matrix.weighted_sum(torch.cat([own, none], 1))
    both = torch.cat([own / 2, none + 0.5 / num_drawn], 1) if num_drawn else own
    second = FeatureMatrix(matrix.values * matrix.values).weighted_sum(both)
    directions = mean / (second + second.mean(1, keepdim=True)).clamp(min=_TINY)
    values = _products(matrix, directions[:-1].t().contiguous())
    held_out = values[:count].gather(1, fold[:, None])
    squares = held_out.square().mean()
    if num_drawn:
        squares = (squares + values[count:].square().mean()) / 2
    spread = float(squares.sqrt().clamp(min=_TINY))
    assert isinstance(view.kernel, FeatureKernel)
    codes = torch.arange(mean.shape[1]) if matrix.codes is None else matrix.codes
    part = DirectionPart(view.kernel, codes, directions[-1])
    z = float(held_out.mean()) / spread * count**0.5
    return _Learned(view, part, directions[-1] * mean[-1], z, spread)


def _combined(learned: Sequence[_Learned]) -> list[_Learned]:
    """The directions of several views, weighted for one sum; those that are worth nothing are left out.

    The sign is such that the feature that adds most has a positive weight.
    """
    best = max(learned, key=lambda direction: direction.z)
    useful = [direction for direction in learned if direction.z > 0] or [best]
    factors = [direction.z**2 / direction.spread for direction in useful]
    tops = [factor * direction.gain.max() for factor, direction in zip(factors, useful, strict=True)]
    leading = useful[tops.index(max(tops))]
    sign = 1.0 if leading.part.weights[leading.gain.argmax()] > 0 else -1.0
    return [_scaled(direction, sign, factor) for factor, direction in zip(factors, useful, strict=True)]


def _scaled(direction: _Learned, sign: float, factor: float) -> _Learned:
    """A direction with other weights; its gains keep their sign, as they do not depend on that of the weights."""
    part = replace(direction.part, weights=sign * factor * direction.part.weights)
    return replace(direction, part=part, gain=factor * direction.gain)


def _name(directions: Sequence[_Learned], sequences: Sequences) -> str:
    """The features that add most to a sum of directions, with their signs."""
    symbols = [str(symbol) for symbol in sequences.symbols]
    named = []
    for direction in directions:
        top = direction.gain.topk(min(_NAMED, len(direction.gain))).indices
        codes = direction.part.codes[top]
        labels = labels_of(direction.view.name, direction.part.kernel, codes, symbols)
        weights = direction.part.weights[top].tolist()
        named += list(zip(direction.gain[top].tolist(), weights, labels, strict=True))
    named.sort(reverse=True)
    signed = [f"{'+' if weight > 0 else '-'} {label}" for _, weight, label in named[:_NAMED]]
    rest = " ..." if sum(len(direction.gain) for direction in directions) > len(signed) else ""
    return " ".join(signed).removeprefix("+ ") + rest


def _products(matrix: FeatureMatrix, weights: Tensor) -> Tensor:
    """The features times weights ``[D, K]``, ``[N, K]``."""
    values = matrix.values
    found: Tensor = torch.sparse.mm(values, weights) if values.is_sparse else values @ weights
    return found

# SPDX-License-Identifier: Apache-2.0
"""Views of the length, for what is known of the lengths of a model."""

from __future__ import annotations

from dataclasses import replace

from pyro_ksd.edits.neighborhoods import Neighborhood
from pyro_ksd.kernels.length import LengthDistribution, LengthKernel
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.balancing import Balancing, as_balancing
from pyro_ksd.stein.length_features import length_kernel, smooth_kernel
from pyro_ksd.stein.operators import LengthOperator, TailBlockOperator, changes_lengths
from pyro_ksd.stein.views import View


def length_view(
    model: SequenceModel, sequences: Sequences, tail: Neighborhood, balancing: Balancing, *, drawn: bool = False
) -> View | None:
    """The view of the length for a model that needs only probability ratios.

    Edits of the last symbol show how probable longer and shorter sequences are, see
    :mod:`~pyro_ksd.stein.length_features`.

    :param sequences: draws from the model, or the data in place of them; all of them possible under the model.
    :param tail: what replaces, appends and removes the last symbol, see :attr:`pyro_ksd.edits.Neighborhood.tail`.
    :param balancing: of the operator.
    :param drawn: whether they are draws.
    :returns: ``None`` if the edits cannot change some lengths.

    >>> from pyro_ksd.edits import zs
    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.stein import barker
    >>> view = length_view(random_walk(3, mean_length=8), Sequences.of(["ab"], "abc"), zs(locations=1), barker)
    >>> view.name, round(view.kernel.distribution.mean, 1)
    ('length', 8.0)
    """
    kernel = length_kernel(model, sequences, tail, balancing, drawn=drawn)
    return None if kernel is None else View("length", TailBlockOperator(balancing, tail), kernel)


def known_length_view(distribution: LengthDistribution, tail: Neighborhood, balancing: Balancing) -> View | None:
    """The view of the length for a model with a known distribution of the length.

    It sees wrong lengths whatever the probability to stop depends on.

    :param tail: and the balancing function, as for :func:`length_view`.
    :returns: ``None`` if the edits cannot change some length of the distribution, or it has only one.

    >>> import torch
    >>> from pyro_ksd.edits import zs
    >>> from pyro_ksd.stein import barker
    >>> uniform = LengthDistribution(1, torch.full((5,), 0.2, dtype=torch.double))
    >>> known_length_view(uniform, zs(locations=1), barker).operator.distribution.mean
    3.0
    """
    found = distribution.without_gaps()
    if len(found.probability) < 2 or not changes_lengths(tail, found):
        return None
    return View("length", LengthOperator(found, balancing, tail), smooth_kernel(found, balancing))


def with_estimated_lengths(view: View) -> View:
    """A view of :func:`length_view` as if the distribution that was estimated from draws were exact; else the same.

    For null draws that come from the model: the error of the estimate is the same in them and in the data, so that it
    does not change the level. Random signs would take it for a fault.

    :param view: any view.
    """
    operator = view.operator
    if not isinstance(operator, TailBlockOperator) or not isinstance(view.kernel, LengthKernel):
        return view
    if view.kernel.distribution is None:
        return view
    known = known_length_view(view.kernel.distribution, operator.neighborhood, as_balancing(operator.balancing))
    return view if known is None else replace(known, name=view.name, weight=view.weight)

# SPDX-License-Identifier: Apache-2.0
r"""A variance that knows what could be lost: the part of sequences that the data lack by chance.

Random signs know the spread of the Stein features of the data. Where many sequences add a little to their sum and few
would take away much, those few may be missing from the data, and then the signs give a spread that is far too
small. But a sequence that is missing is an edit of one that is there. By detailed balance, under a true model,

.. math::
    \mathbb{E}\,\psi(x) \psi(x)^\top
    = \mathbb{E} \sum_{y \in \partial x} w(x, y)\,\frac{\psi(y) \psi(y)^\top}{W(y)}
    = -\,\mathbb{E} \sum_{y \in \partial x} w(x, y)\,(\varphi(y) - \varphi(x))\,\psi(y)^\top ,

with :math:`W(y) = \sum_{z \in \partial y} w(y, z)`: the Stein features one jump ahead tell the variance as well. Some
edits are drawn, those that change the features a lot more often than others. Where they show a larger variance than the
data, they join in, with the weight that makes up for the difference. The first form shows in which directions variance
is missing, the second one shows best how much, for kernels with few features.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pyro_ksd.edits.weighted_edits import WeightedEdits
from pyro_ksd.kernels.base import FeatureKernel
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.views import View
from pyro_ksd.stein.visits import Visits
from pyro_ksd.stein.weighting import weighted_edits

FEW_CHUNKS = 8
"""Out of so many chunks edits are drawn: some sequences of large data show what is needed."""

_DRAWN = 128  # edits


def missing_rows(
    visits: Visits, view: View, variance_of_data: Tensor, generator: torch.Generator, num_sequences: int | None = None
) -> FeatureMatrix | None:
    """Stein features of edited sequences, in so far as they show a variance that those of the data do not.

    :param visits: of the data, or of a sample of them, under one model.
    :param variance_of_data: a scalar, the sum of the squares of all Stein features of the data.
    :param num_sequences: how many data there are; left out, the visits are those of all of them.
    :returns: rows to add to those of the data when their signs are drawn; ``None`` if none are needed.
    """
    kernel = view.kernel
    if not isinstance(kernel, FeatureKernel):
        return None
    size = len(visits.sequences)
    drawn = _drawn_edits(view, kernel, visits, generator, (size if num_sequences is None else num_sequences) / size)
    if drawn is None:
        return None
    ahead = weighted_edits(visits.model, view.operator, drawn.edited)
    features = kernel.stein_features_each(ahead.used())[0]
    jumps = ahead.edits.sum_by_owner(ahead.weights)
    variance = (drawn.share / jumps) @ features.diagonal()
    foreseen = variance if drawn.change is None else -(drawn.share[:, None] * drawn.change * features.values).sum()
    lacking = foreseen - variance_of_data
    if lacking <= 0:
        return None
    return features.scaled_rows((drawn.share / jumps * lacking / variance).sqrt())


@dataclass(frozen=True, eq=False)
class _DrawnEdits:
    """``K`` edits of the data.

    :param edited: the edited sequences.
    :param share: double ``[K]``, how many edits with their weights each stands for: a sum over all edits of the data,
        weighted, is about the sum over the drawn ones times their shares.
    :param change: what they change of few features, double ``[K, D]``, or ``None``.
    """

    edited: Sequences
    share: Tensor
    change: Tensor | None


def _drawn_edits(
    view: View, kernel: FeatureKernel, visits: Visits, generator: torch.Generator, times: float = 1.0
) -> _DrawnEdits | None:
    """Edits of the data, drawn in proportion to their weight times the size of what they change.

    :param times: how many sequences of the data each of those that are visited stands for.
    :returns: ``None`` if no edit has a weight and changes anything.
    """
    around = view.operator.neighborhood
    order = torch.randperm(len(visits.rows(around)), generator=generator).tolist()
    chunks = visits.chunks(around, order)
    totals = torch.stack([_sizes(chunk.weighted(view.operator), kernel)[0].sum() for chunk in chunks])
    if not totals.any():
        return None
    whole = totals.sum() * times
    numbers = torch.multinomial(totals, _DRAWN, replacement=True, generator=generator).bincount(minlength=len(totals))
    edited: list[Sequences] = []
    shares: list[Tensor] = []
    changes: list[Tensor] = []
    for visited, number in zip(visits.chunks(around, order), numbers.tolist(), strict=True):
        if not number:
            continue
        chunk = visited.weighted(view.operator)
        size, change = _sizes(chunk, kernel)
        chosen = torch.multinomial(size, number, replacement=True, generator=generator).sort().values
        edited.append(chunk.edits.select(chosen).apply(chunk.sequences))
        shares.append(chunk.weights[chosen] / size[chosen] * whole / _DRAWN)
        if change is not None:
            changes.append(change[chosen])
    return _DrawnEdits(Sequences.cat(edited), torch.cat(shares), torch.cat(changes) if changes else None)


def _sizes(chunk: WeightedEdits, kernel: FeatureKernel) -> tuple[Tensor, Tensor | None]:
    """How often each edit is to be drawn, up to a factor, ``[E]``, and what it changes of few features, ``[E, D]``."""
    change = kernel.few_changes(chunk)
    return (chunk.weights if change is None else chunk.weights * change.abs().sum(1)), change

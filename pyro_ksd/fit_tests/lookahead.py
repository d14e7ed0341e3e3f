# SPDX-License-Identifier: Apache-2.0
r"""A variance that knows what could be lost: of sequences that the data lack by chance.

Random signs know the spread of the Stein features of the data. Where many sequences add a little to their sum and few
would take away much, those few may be missing from the data, and then the signs believe in a spread that is far too
small. But a sequence that is missing is an edit of one that is there. By detailed balance, under a true model,

.. math::
    \mathbb{E}\,\psi(x)^2 = -\,\mathbb{E} \sum_{y \in \partial x} w(x, y)\,(\varphi(y) - \varphi(x))\,\psi(y) ,

so the Stein features one jump ahead tell the variance as well. Edits are drawn in proportion to
:math:`w(x, y)\,|\varphi(y) - \varphi(x)|`, so that rare ones that matter are among them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pyro_ksd.edits.weighted_edits import KeptEdits
from pyro_ksd.kernels.base import FeatureKernel
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.views import View
from pyro_ksd.stein.weighting import weighted, weighted_edits

_DRAWN = 128  # edits


def missing_spread(
    model: SequenceModel, view: View, kept: KeptEdits, matrix: FeatureMatrix, generator: torch.Generator
) -> Tensor | None:
    """The part of the spread of each feature's sum that the data do not show, ``[D]``.

    :param kept: the edits of the view's neighborhood around the data.
    :param matrix: the Stein features of the data under the view.
    :returns: what must be added, in squares, to the spread of the data; ``None`` for a kernel with many features, whose
        sums no single sequence carries.
    """
    kernel = view.kernel
    if not isinstance(kernel, FeatureKernel):
        return None
    sizes = []
    for scored in kept.chunks():
        chunk = weighted(scored, view.operator)
        change = kernel.few_changes(chunk)
        if change is None:
            return None
        sizes.append(chunk.edits.sum_by_owner(chunk.weights * change.abs().sum(1)))
    size = torch.cat(sizes)
    if not size.any():
        return None
    rows = torch.multinomial(size, _DRAWN, replacement=True, generator=generator).sort().values
    step, edited = _drawn_edits(model, view, kernel, kept.sequences[rows].narrowed(), generator)
    ahead = kernel.stein_features_each(weighted_edits(model, view.operator, edited))[0].values
    variance = -(step * ahead).mean(0) * size.sum()
    shown = matrix.values.square().sum(0)
    return (variance - shown).clamp(min=0).sqrt()


def _drawn_edits(
    model: SequenceModel, view: View, kernel: FeatureKernel, sequences: Sequences, generator: torch.Generator
) -> tuple[Tensor, Sequences]:
    """One edit of each sequence, drawn in proportion to the weighted size of its change.

    :returns: the changes over their sizes, ``[N, D]``, and the edited sequences.
    """
    chunk = weighted_edits(model, view.operator, sequences)
    change = kernel.few_changes(chunk)
    assert change is not None  # as for the data
    size = change.abs().sum(1)
    uniform = torch.rand(len(size), generator=generator, dtype=torch.double).clamp(min=1e-300)
    score = (chunk.weights * size).log() - (-uniform.log()).log()  # the largest one is a draw (Gumbel)
    owner = chunk.edits.owner
    best = score.new_full((len(sequences),), -torch.inf).scatter_reduce_(0, owner, score, "amax")
    chosen = (score == best.index_select(0, owner)).nonzero().squeeze(1)
    return change[chosen] / size[chosen, None], chunk.edits.select(chosen).apply(sequences)

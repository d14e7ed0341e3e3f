# SPDX-License-Identifier: Apache-2.0
"""From a model and sequences to the Stein kernel matrix of each view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from pyro_ksd.common.chunk_sizes import PAIR_BYTES
from pyro_ksd.common.option_checks import check_number
from pyro_ksd.common.progress import PartOfBar
from pyro_ksd.kernels.stein_matrices import SteinMatrix
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.duck_typing import required_model
from pyro_ksd.models.impossible_sequences import check_possible
from pyro_ksd.sequences.argument_checks import check_sequences
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.operators import Operator
from pyro_ksd.stein.summation import sum_views
from pyro_ksd.stein.views import View, check_views
from pyro_ksd.stein.visits import Visits

_FEW = 5.0  # jumps of all sequences together, and of one on average
_RARE = 0.05


@dataclass(frozen=True, eq=False)
class Assembly:
    """The Stein kernel matrices of sequences, seen by ``V`` views.

    :ivar matrices: one for each view.
    :ivar rates: for each operator of the views, the sum of all weights, double ``[1]``: how many jumps from all
        sequences are to be expected in a unit of time.
    """

    matrices: list[SteinMatrix]
    rates: Mapping[Operator, Tensor]


def allows_few_jumps(rates: Tensor, num_sequences: int) -> bool:
    """Whether models allow fewer than a handful of an operator's edits in all of the data.

    :param rates: the sums of all weights under ``K`` models, ``[K]``; the largest counts.

    >>> import torch
    >>> allows_few_jumps(torch.tensor([0.2]), 20), allows_few_jumps(torch.tensor([7.0]), 1000)
    (True, False)
    """
    return bool(rates.max() < min(_FEW, _RARE * num_sequences))


def stein_matrices(
    model: SequenceModel, sequences: Sequences, views: Sequence[View], max_bytes: int = PAIR_BYTES
) -> list[SteinMatrix]:
    """The Stein kernel matrices of the sequences, one for each view.

    :param max_bytes: for kernels without features, see :meth:`pyro_ksd.kernels.Kernel.stein`.
    :raises ValueError: if the model gives probability 0 to a sequence, or NaN to an edit.

    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.stein import default_views
    >>> data = Sequences.of(["aabb", "bbccc", "caa"])
    >>> matrices = stein_matrices(random_walk(3), data, default_views())
    >>> len(matrices), matrices[0].dense().shape
    (10, torch.Size([3, 3]))
    """
    model = required_model(model)
    check_sequences("sequences", sequences)
    check_possible(model, sequences)
    return assemble(model, sequences, views, max_bytes).matrices


def assemble(
    model: SequenceModel,
    sequences: Sequences,
    views: Sequence[View],
    max_bytes: int = PAIR_BYTES,
    *,
    progress: bool = False,
    outer: PartOfBar | None = None,
) -> Assembly:
    """The Stein kernel matrices of the sequences, one for each view, for what needs the features of every sequence.

    Every chunk of sequences is visited once for each neighborhood, so that memory never holds all edits. Kernels that
    compare every pair of neighbors get all edits at once.

    :param sequences: all of them possible under the model.
    :param outer: see :func:`~pyro_ksd.stein.summation.sum_views`.

    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.stein import default_views
    >>> found = assemble(random_walk(3), Sequences.of(["ab", "bca"]), default_views())
    >>> len(found.matrices)
    10
    """
    check_sequences("sequences", sequences)
    check_views(views)
    check_number("max_bytes", max_bytes, least=1)
    visits = Visits(required_model(model), sequences, views, kept_bytes=0)
    found = sum_views(visits, None, max_bytes, progress=progress, outer=outer)
    return Assembly([own for own in found.under(0) if isinstance(own, SteinMatrix)], found.rates)

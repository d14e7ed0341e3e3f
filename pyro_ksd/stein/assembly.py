# SPDX-License-Identifier: Apache-2.0
"""From a model and sequences to the Stein kernel matrix of each view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import torch
from torch import Tensor
from tqdm.auto import tqdm

from pyro_ksd.common.chunk_sizes import PAIR_BYTES
from pyro_ksd.common.option_checks import check_number
from pyro_ksd.edits.weighted_edits import KeptEdits, WeightedEdits, chunk_rows, edit_bounds
from pyro_ksd.kernels.base import Kernel
from pyro_ksd.kernels.stein_matrices import SteinMatrix
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.duck_typing import required_model
from pyro_ksd.models.impossible_sequences import check_possible
from pyro_ksd.models.model_batch import ModelBatch
from pyro_ksd.sequences.argument_checks import check_sequences
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.operators import Operator
from pyro_ksd.stein.views import View, check_views
from pyro_ksd.stein.weighting import weighted_edits

_FEW = 5.0  # jumps of all sequences together, and of one on average
_RARE = 0.05


@dataclass(frozen=True, eq=False)
class Assembly:
    """The Stein kernel matrices of sequences, seen by ``V`` views under ``K`` models.

    :ivar matrices: ``K`` times one for each view.
    :ivar rates: for each operator of the views, the sums of all weights, double ``[K]``: how many jumps from all
        sequences are to be expected in a unit of time.
    :ivar edits: for each operator, its edits and their weights; empty if they were not to be kept.
    :ivar model_seconds: the time that the models took.
    """

    matrices: list[list[SteinMatrix]]
    rates: Mapping[Operator, Tensor]
    edits: Mapping[Operator, KeptEdits]
    model_seconds: float


def allows_few_jumps(rates: Tensor, num_sequences: int) -> bool:
    """Whether models allow fewer than a handful of an operator's edits in all of the data.

    :param rates: the sums of all weights under ``K`` models, ``[K]``; the largest counts.

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
    (5, torch.Size([3, 3]))
    """
    model = required_model(model)
    check_sequences("sequences", sequences)
    check_possible(model, sequences)
    return assemble(model, sequences, views, max_bytes).matrices[0]


def assemble(
    model: SequenceModel | ModelBatch,
    sequences: Sequences,
    views: Sequence[View],
    max_bytes: int = PAIR_BYTES,
    *,
    keep: bool = False,
    progress: bool = False,
) -> Assembly:
    """The Stein kernel matrices of the sequences, one for each view, under each model.

    Every chunk of sequences is visited once: its edits are weighted by the model, and all kernels with features compute
    those of the chunk, so that memory never holds all edits. Kernels that compare every pair of neighbors get all edits
    at once. Views that share an operator share its edits and weights.

    :param sequences: all of them possible under the model.
    :param keep: whether to keep the weights for a second visit.

    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.stein import default_views
    >>> found = assemble(random_walk(3), Sequences.of(["ab", "bca"]), default_views())
    >>> len(found.matrices), len(found.matrices[0])
    (1, 5)
    """
    check_sequences("sequences", sequences)
    check_views(views)
    check_number("max_bytes", max_bytes, least=1)
    if not isinstance(model, ModelBatch):
        model = required_model(model)
    operators = list(dict.fromkeys(view.operator for view in views))
    passes = {}
    with tqdm(total=len(operators) * len(sequences), desc="Stein features", unit="step", disable=not progress) as bar:
        if progress:
            edits = sum(int(edit_bounds(operator.neighborhood, sequences).sum()) for operator in operators)
            bar.set_postfix_str(f"up to {edits:,} edits")
        for operator in operators:
            kernels = [view.kernel for view in views if view.operator is operator]
            passes[operator] = _one_pass(model, operator, sequences, kernels, max_bytes, keep, bar)
    own = {operator: iter(found.matrices) for operator, found in passes.items()}
    by_view = [next(own[view.operator]) for view in views]
    return Assembly(
        matrices=[list(matrices) for matrices in zip(*by_view, strict=True)],
        rates={operator: found.rate for operator, found in passes.items()},
        edits={operator: found.kept for operator, found in passes.items() if found.kept is not None},
        model_seconds=sum(found.model_seconds for found in passes.values()),
    )


@dataclass(frozen=True, eq=False)
class _Pass:
    """What one pass over the data found for one operator: matrices of each kernel, ``K`` of them."""

    matrices: list[list[SteinMatrix]]
    rate: Tensor
    kept: KeptEdits | None
    model_seconds: float


def _one_pass(
    model: SequenceModel | ModelBatch,
    operator: Operator,
    sequences: Sequences,
    kernels: Sequence[Kernel[Any]],
    max_bytes: int,
    keep: bool,
    bar: tqdm,
) -> _Pass:
    neighborhood = operator.neighborhood
    needs_all = not all(kernel.has_features for kernel in kernels)
    parts: list[list[Sequence[SteinMatrix]]] = [[] for _ in kernels]
    chunks: list[WeightedEdits] = []
    weights: list[Tensor] = []
    rate = torch.zeros(1, dtype=torch.double)
    model_seconds = 0.0
    for rows in chunk_rows(neighborhood, sequences):
        started = perf_counter()
        chunk = weighted_edits(model, operator, sequences[rows].narrowed(), rows.start)
        model_seconds += perf_counter() - started
        rate = rate + torch.atleast_2d(chunk.weights).sum(1)
        for part, kernel in zip(parts, kernels, strict=True):
            if kernel.has_features:
                part.append(_matrices(kernel, chunk, max_bytes))
        if keep:
            weights.append(chunk.weights)
        if needs_all or (keep and neighborhood.is_costly):
            chunks.append(chunk)
        bar.update(len(chunk.sequences))
    for part, kernel in zip(parts, kernels, strict=True):
        if not kernel.has_features:
            part.append(_matrices(kernel, WeightedEdits.cat(chunks, sequences), max_bytes))
    edits = tuple(chunk.edits for chunk in chunks) if neighborhood.is_costly else ()
    return _Pass(
        matrices=[[type(own[0]).cat(own) for own in zip(*part, strict=True)] for part in parts],
        rate=rate,
        kept=KeptEdits(neighborhood, sequences, tuple(weights), edits) if keep else None,
        model_seconds=model_seconds,
    )


def _matrices(kernel: Kernel[Any], chunk: WeightedEdits, max_bytes: int) -> Sequence[SteinMatrix]:
    return kernel.stein_each(chunk.sequences, chunk.edits, torch.atleast_2d(chunk.weights), max_bytes)

# SPDX-License-Identifier: Apache-2.0
"""From a model and sequences to the Stein kernel matrix of each view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

import torch
from torch import Tensor

from pyro_ksd.common.chunk_sizes import PAIR_BYTES
from pyro_ksd.common.option_checks import check_number
from pyro_ksd.common.progress import ProgressBar, progress_bar
from pyro_ksd.edits.neighborhoods import Neighborhood
from pyro_ksd.edits.weighted_edits import KeptEdits, ScoredEdits, WeightedEdits, chunk_rows, edit_bounds
from pyro_ksd.kernels.stein_matrices import SteinMatrix
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.duck_typing import required_model
from pyro_ksd.models.impossible_sequences import check_possible
from pyro_ksd.models.model_batch import ModelBatch
from pyro_ksd.sequences.argument_checks import check_sequences
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.operators import Operator
from pyro_ksd.stein.views import View, check_views
from pyro_ksd.stein.weighting import scored_edits, weighted

_FEW = 5.0  # jumps of all sequences together, and of one on average
_RARE = 0.05


@dataclass(frozen=True, eq=False)
class Assembly:
    """The Stein kernel matrices of sequences, seen by ``V`` views under ``K`` models.

    :ivar matrices: ``K`` times one for each view.
    :ivar rates: for each operator of the views, the sums of all weights, double ``[K]``: how many jumps from all
        sequences are to be expected in a unit of time.
    :ivar edits: for each neighborhood, its edits and their log-ratios; empty if they were not to be kept.
    :ivar model_seconds: the time that the models took.
    """

    matrices: list[list[SteinMatrix]]
    rates: Mapping[Operator, Tensor]
    edits: Mapping[Neighborhood, KeptEdits]
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
    (10, torch.Size([3, 3]))
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

    Every chunk of sequences is visited once for each neighborhood: the model scores its edits, operators weight them,
    and all kernels with features compute those of the chunk, so that memory never holds all edits. Kernels that compare
    every pair of neighbors get all edits at once. Operators that share a neighborhood object share its edits and
    log-ratios, and views that share an operator share its weights.

    :param sequences: all of them possible under the model.
    :param keep: whether to keep the log-ratios for a second visit.

    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.stein import default_views
    >>> found = assemble(random_walk(3), Sequences.of(["ab", "bca"]), default_views())
    >>> len(found.matrices), len(found.matrices[0])
    (1, 10)
    """
    check_sequences("sequences", sequences)
    check_views(views)
    check_number("max_bytes", max_bytes, least=1)
    if not isinstance(model, ModelBatch):
        model = required_model(model)
    operators = list(dict.fromkeys(view.operator for view in views))
    neighborhoods = list(dict.fromkeys(operator.neighborhood for operator in operators))
    passes = []
    with progress_bar(
        total=len(neighborhoods) * len(sequences), desc="Stein features", unit="step", show=progress
    ) as bar:
        if not bar.disable:
            edits = sum(int(edit_bounds(around, sequences).sum()) for around in neighborhoods)
            bar.set_postfix_str(f"up to {edits:,} edits")
        for around in neighborhoods:
            own = [view for view in views if view.operator.neighborhood is around]
            passes.append(_one_pass(model, around, sequences, own, max_bytes, keep, bar))
    matrices = {view: matrices for found in passes for view, matrices in found.matrices.items()}
    rates = {operator: rate for found in passes for operator, rate in found.rates.items()}
    return Assembly(
        matrices=[list(of_model) for of_model in zip(*(matrices[view] for view in views), strict=True)],
        rates={operator: rates[operator] for operator in operators},
        edits={found.kept.neighborhood: found.kept for found in passes if found.kept is not None},
        model_seconds=sum(found.model_seconds for found in passes),
    )


@dataclass(frozen=True, eq=False)
class _Pass:
    """What one pass over the data found for one neighborhood: ``K`` matrices of each view."""

    matrices: Mapping[View, list[SteinMatrix]]
    rates: Mapping[Operator, Tensor]
    kept: KeptEdits | None
    model_seconds: float


def _one_pass(
    model: SequenceModel | ModelBatch,
    neighborhood: Neighborhood,
    sequences: Sequences,
    views: Sequence[View],
    max_bytes: int,
    keep: bool,
    bar: ProgressBar,
) -> _Pass:
    operators = list(dict.fromkeys(view.operator for view in views))
    by_features = [view for view in views if view.kernel.has_features]
    by_pairs = [view for view in views if not view.kernel.has_features]
    parts: dict[View, list[Sequence[SteinMatrix]]] = {view: [] for view in views}
    rates = {operator: torch.zeros(1, dtype=torch.double) for operator in operators}
    chunks: list[ScoredEdits] = []
    log_ratios: list[Tensor] = []
    model_seconds = 0.0
    for rows in chunk_rows(neighborhood, sequences):
        started = perf_counter()
        scored = scored_edits(model, neighborhood, sequences[rows].narrowed(), rows.start)
        model_seconds += perf_counter() - started
        for operator in operators:
            chunk = weighted(scored, operator)
            rates[operator] = rates[operator] + torch.atleast_2d(chunk.weights).sum(1)
            for view in by_features:
                if view.operator is operator:
                    parts[view].append(view.kernel.stein_each(chunk, max_bytes))
        if keep:
            log_ratios.append(scored.log_ratio)
        if by_pairs or (keep and neighborhood.is_costly):
            chunks.append(scored)
        bar.update(len(scored.sequences))
    for view in by_pairs:
        whole = WeightedEdits.cat([weighted(scored, view.operator) for scored in chunks], sequences)
        parts[view].append(view.kernel.stein_each(whole, max_bytes))
    edits = tuple(scored.edits for scored in chunks) if neighborhood.is_costly else ()
    return _Pass(
        matrices={view: [type(own[0]).cat(own) for own in zip(*part, strict=True)] for view, part in parts.items()},
        rates=rates,
        kept=KeptEdits(neighborhood, sequences, tuple(log_ratios), edits) if keep else None,
        model_seconds=model_seconds,
    )

# SPDX-License-Identifier: Apache-2.0
"""The edits of an operator around sequences, weighted by a model."""

from __future__ import annotations

from contextlib import nullcontext

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_instance
from pyro_ksd.common.tensor_checks import check_tensor
from pyro_ksd.common.torch_threads import chosen_torch_threads
from pyro_ksd.edits.neighborhoods import Neighborhood, check_neighborhood
from pyro_ksd.edits.splices import Edits
from pyro_ksd.edits.weighted_edits import ScoredEdits, WeightedEdits
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.duck_typing import required_model
from pyro_ksd.models.model_batch import ModelBatch
from pyro_ksd.sequences.argument_checks import check_sequences
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.operators import Operator


def scored_edits(
    model: SequenceModel | ModelBatch, neighborhood: Neighborhood, sequences: Sequences, begin: int = 0
) -> ScoredEdits:
    """The edits of a neighborhood around the sequences, with their log-ratios, ``[E]``, or ``[K, E]`` for ``K`` models.

    :param sequences: all of them possible under the model.
    :param begin: the row of the first sequence in the data.
    :raises ValueError: if the model gives NaN to an edit.

    >>> from pyro_ksd.edits import zs
    >>> from pyro_ksd.examples import random_walk
    >>> found = scored_edits(random_walk(3), zs(), Sequences.of(["ab", "bca"]))
    >>> len(found.edits)  # 10 substitutions, 16 insertions, 5 deletions
    31
    """
    check_neighborhood("neighborhood", neighborhood)
    check_sequences("sequences", sequences)
    if not isinstance(model, ModelBatch):
        model = required_model(model)
    asked = model.for_rows(begin) if isinstance(model, SequenceModel) else model
    edits, log_ratio = edits_with_ratios(asked, neighborhood, sequences, begin)
    return ScoredEdits(begin, sequences, edits, log_ratio)


def weighted(scored: ScoredEdits, operator: Operator) -> WeightedEdits:
    """Edits with the weights that an operator with their neighborhood gives them.

    >>> from pyro_ksd.edits import zs
    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.stein import ZanellaOperator
    >>> scored = scored_edits(random_walk(3), zs(), Sequences.of(["ab", "bca"]))
    >>> weighted(scored, ZanellaOperator()).weights.equal(scored.log_ratio.sigmoid())
    True
    """
    check_instance("scored", scored, ScoredEdits, "edits with log-ratios, such as scored_edits(...)")
    check_instance("operator", operator, Operator, "an operator, such as ZanellaOperator()")
    (sequences, edits, log_ratio) = (scored.sequences, scored.edits, scored.log_ratio)
    if log_ratio.ndim == 1:
        weights = operator.weights(sequences, edits, log_ratio)
    else:
        weights = operator.weights_each(sequences, edits, log_ratio)
    return WeightedEdits(scored.begin, sequences, edits, weights, log_ratio)


def weighted_edits(
    model: SequenceModel | ModelBatch, operator: Operator, sequences: Sequences, begin: int = 0
) -> WeightedEdits:
    """The edits of the operator around the sequences, with their weights, ``[E]``, or ``[K, E]`` for ``K`` models.

    :param sequences: all of them possible under the model.
    :param begin: the row of the first sequence in the data.
    :raises ValueError: if the model gives NaN to an edit.

    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.stein import ZanellaOperator
    >>> found = weighted_edits(random_walk(3), ZanellaOperator(), Sequences.of(["ab", "bca"]))
    >>> len(found.edits)  # 10 substitutions, 16 insertions, 5 deletions
    31
    """
    check_instance("operator", operator, Operator, "an operator, such as ZanellaOperator()")
    return weighted(scored_edits(model, operator.neighborhood, sequences, begin), operator)


def edits_with_ratios(
    model: SequenceModel | ModelBatch, neighborhood: Neighborhood, sequences: Sequences, begin: int | None = None
) -> tuple[Edits, Tensor]:
    """The edits around the sequences, and their log-ratios, double ``[E]``, or ``[K, E]`` for ``K`` models.

    :param begin: the row of the first sequence in the data, for the error; ``None`` if they are no data.
    :raises ValueError: showing an edit to which the model gives NaN.
    """
    edits = neighborhood.edits(sequences)
    is_quick = isinstance(model, SequenceModel) and model.has_quick_ratios
    with torch.no_grad(), nullcontext() if is_quick else chosen_torch_threads():
        found = model.log_ratio(sequences, edits)
    log_ratio = found.double() if isinstance(found, Tensor) else found
    check_tensor("log_ratio", log_ratio, "...", len(edits))
    if log_ratio.sum().isnan() and log_ratio.isnan().any():
        edit = log_ratio.isnan().nonzero()[:1, -1]
        row = int(edits.owner[edit])
        before = sequences[row : row + 1].to_lists()[0]
        after = edits.select(edit).apply(sequences).to_lists()[0]
        where = f"{before} becomes" if begin is None else f"sequence {begin + row}, {before}, becomes"
        raise ValueError(
            f"expected a log-ratio for every edit, found NaN where {where} {after}; the model gives NaN there"
        )
    return edits, log_ratio

# SPDX-License-Identifier: Apache-2.0
"""Cheap checks that a model of the user's own scores each sequence by itself."""

from __future__ import annotations

import torch
from torch import Tensor

from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.chunked_model import ChunkedModel
from pyro_ksd.models.distributions.base import SequenceDistribution
from pyro_ksd.models.programs.program_errors import BY_ROW
from pyro_ksd.models.programs.vectorized import VectorizedProgram
from pyro_ksd.sequences.batch_probes import BatchFault, batch_fault, few_rows, in_many_rows, padding_fault, widened
from pyro_ksd.sequences.container import Sequences


def check_scores_alone(model: SequenceModel, data: Sequences) -> None:
    """Checks that the log-joint of a sequence depends on the sequence alone, as all edits are scored in batches.

    Distributions of this package, programs, which are checked when they become models, and models that score one
    sequence at a time are not looked at.

    :raises ValueError: saying what else it depends on.

    >>> class ByRow(SequenceModel):
    ...     alphabet_size = 2
    ...     def log_joint(self, sequences):
    ...         return -sequences.lengths * torch.arange(1.0, len(sequences) + 1)
    >>> data = Sequences.of(["ab", "b", "aba"])
    >>> check_scores_alone(ByRow(), data)
    Traceback (most recent call last):
    ValueError: the log-joint of a sequence under ByRow depends on the row of the batch: ...
    """
    if model.is_costly or not len(data) or isinstance(model, SequenceDistribution | VectorizedProgram):
        return
    few = data[few_rows(data.lengths)].narrowed()
    many = in_many_rows(few.lengths, data)
    with torch.no_grad():
        own = model.log_joint(few).double()
        try:
            fault = batch_fault(lambda index, wide: _log_joint(model, few[index], wide), own, many)
        except (IndexError, KeyError, RuntimeError) as error:
            raise ValueError(
                f"{model.name} scores {len(few)} sequences, but fails on {len(many.which)} with "
                f"{type(error).__name__}: {error}; if it looks up tables by symbols, they need "
                f"{data.alphabet_size} rows; {BY_ROW}"
            ) from error
        if fault is None and not isinstance(model, ChunkedModel):  # which never has more padding than it needs
            fault = _padding_fault(model, few, own)
    if fault is not None:
        raise fault.error(
            f"the log-joint of a sequence under {model.name}",
            alone="a model must neither sum nor standardize over the batch",
            masked="one value: tokens are 0 after the end, so count only where sequences.mask is true",
        )


def _log_joint(model: SequenceModel, sequences: Sequences, wide: bool) -> Tensor:
    return model.log_joint(sequences if wide else sequences.narrowed()).double()


def _padding_fault(model: SequenceModel, few: Sequences, own: Tensor) -> BatchFault | None:
    try:
        padded = model.log_joint(widened(few)).double()
    except Exception:  # some models take no more columns than the data have, such as those with tables of positions
        return None
    return padding_fault(lambda: _log_joint(model, few, True), own, padded)

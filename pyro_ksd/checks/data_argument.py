# SPDX-License-Identifier: Apache-2.0
"""The data, from what the user passes."""

from __future__ import annotations

from typing import Any

from pyro_ksd.models.base import SequenceModel
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.partitions import PartitionedSequences


def as_sequences(data: Any, model: Any) -> Sequences:
    """The data; integers are codes of the model's symbols, also of those that the data lack.

    :param model: the model, or ``None`` if no model knows the number of symbols.
    """
    if isinstance(data, SequenceModel) or callable(data):
        raise ValueError(f"data: expected sequences, found {type(data).__name__}; the model comes first, then the data")
    if isinstance(data, PartitionedSequences):
        raise ValueError(f"data: expected data in memory, found {data}; pass data.load(), or some: data.take(rows)")
    if hasattr(data, "__dask_graph__"):
        raise ValueError(
            f"data: expected sequences, found the Dask collection {type(data).__name__}; make parts of it, with all "
            "symbols: PartitionedSequences.from_dask(data, alphabet=...)"
        )
    found = Sequences.of(data)
    if isinstance(data, Sequences):
        return found
    if not found.lengths.any():
        raise ValueError(
            f"data: expected symbols, found {len(found)} empty sequences only; look at how the data were read, or, if "
            "they are all empty, say over which symbols: Sequences.of(data, alphabet)"
        )
    if not isinstance(model, SequenceModel) or not isinstance(found.alphabet, int):
        return found
    # The data may be iterators, which cannot be read again.
    return Sequences(found.tokens, found.lengths, model.alphabet_size)

# SPDX-License-Identifier: Apache-2.0
"""Ratios by evaluating the log-joints of edited sequences, each once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from pyro_ksd.common.chunk_sizes import EDITED_SEQUENCES
from pyro_ksd.common.row_groups import distinct_rows
from pyro_ksd.edits.splices import Edits, check_edits
from pyro_ksd.sequences.argument_checks import check_sequences
from pyro_ksd.sequences.container import Sequences


class HasLogJoint(Protocol):
    """A model, or a batch of models that are evaluated in one call."""

    def log_joint(self, sequences: Sequences) -> Tensor:
        """``log p(x)`` up to a constant, ``[N]``; ``[K, N]`` under ``K`` models."""


class HasLogJointEach(Protocol):
    """A batch of models, each of which is asked about sequences of its own."""

    def log_joint_each(self, sequences: Sequences, which: Tensor) -> Tensor:
        """``log p(x)`` of each sequence under its own model ``which``, ``[N]``."""


def evaluated_ratio(model: HasLogJoint, sequences: Sequences, edits: Edits) -> Tensor:
    """``log p(y) - log p(x)`` for every edit ``y`` of its owner ``x``, from log-joints; ``[E]`` or ``[K, E]``.

    Every edited sequence is evaluated once, whichever sequences it is a neighbor of.
    """
    check_sequences("sequences", sequences)
    check_edits(edits, sequences)
    same = torch.zeros_like(sequences.lengths)
    return _ratio_in_chunks(lambda found, _: model.log_joint(found), sequences, edits, same)


def evaluated_ratio_each(models: HasLogJointEach, sequences: Sequences, edits: Edits, which: Tensor) -> Tensor:
    """The same for sequences that each have their own model, long ``which [N]``; ``[E]``."""
    return _ratio_in_chunks(models.log_joint_each, sequences, edits, which)


def _ratio_in_chunks(
    log_joint: Callable[[Sequences, Tensor], Tensor], sequences: Sequences, edits: Edits, which: Tensor
) -> Tensor:
    """Builds edited sequences around sequences of similar length, so that little of them is padding."""
    rank = torch.empty_like(sequences.lengths)
    rank[sequences.lengths.argsort(stable=True)] = torch.arange(len(rank))
    indices = []
    parts = []
    for some in rank[edits.owner].argsort(stable=True).split(EDITED_SEQUENCES):
        index = some.sort().values
        chosen = edits.select(index)
        rows = chosen.owner.unique()
        indices.append(index)
        parts.append(_ratio(log_joint, sequences[rows].narrowed(), chosen.within(rows), which[rows]))
    found = torch.cat(parts, -1)
    return torch.empty_like(found).index_copy_(-1, torch.cat(indices), found)


def _ratio(
    log_joint: Callable[[Sequences, Tensor], Tensor], sequences: Sequences, edits: Edits, which: Tensor
) -> Tensor:
    everything = Edits.cat([Edits.identity(sequences), edits])
    edited = everything.apply(sequences)
    which = which[everything.owner]
    told_by = [which[:, None], edited.lengths[:, None], edited.tokens]
    if edited.covariates is not None:
        told_by.append(edited.covariates.rows[:, None])
    first, inverse = distinct_rows(torch.cat(told_by, 1))
    values = log_joint(edited[first], which[first])
    own = inverse[: len(sequences)].index_select(0, edits.owner)
    neighbor = inverse[len(sequences) :]
    return values.index_select(-1, neighbor) - values.index_select(-1, own)

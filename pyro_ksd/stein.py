# SPDX-License-Identifier: Apache-2.0
"""From a model and sequences to the Stein kernel matrix of each view."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from pyro_ksd.edits import Edits
from pyro_ksd.kernels.base import DEFAULT_MAX_BYTES
from pyro_ksd.kernels.matrices import SteinMatrix, cat_rows
from pyro_ksd.models.base import SequenceModel, impossible_sites
from pyro_ksd.operators import Operator
from pyro_ksd.sequences import Sequences
from pyro_ksd.views import View

EDITS_PER_CHUNK = 2**17
"""How many edits are held at once; enough to keep tensors busy, few enough to stay in the processor's cache."""


def stein_matrices(
    model: SequenceModel,
    sequences: Sequences,
    views: Sequence[View],
    max_bytes: int = DEFAULT_MAX_BYTES,
    rates: dict[Operator, float] | None = None,
) -> list[SteinMatrix]:
    """The Stein kernel matrices of the sequences, one for each view.

    Kernels with features are computed for a chunk of sequences at a time, so that memory holds the features of all
    sequences but never all edits. Other kernels compare every pair of neighbors and need all edits at once.

    :param max_bytes: for kernels without features, see :meth:`pyro_ksd.kernels.Kernel.stein`.
    :param rates: if given, takes the sum of the weights of all edits, for each operator of the views.
    :raises ValueError: if the model gives probability 0 to a sequence, or NaN to an edit.
    """
    check_possible(model, sequences)
    rates = {} if rates is None else rates
    found: dict[int, SteinMatrix] = {}
    for operator in dict.fromkeys(view.operator for view in views):
        own = [(index, view.kernel) for index, view in enumerate(views) if view.operator is operator]
        by_features = [(index, kernel) for index, kernel in own if kernel.has_features]
        by_pairs = [(index, kernel) for index, kernel in own if not kernel.has_features]
        if by_features:
            parts: list[list[SteinMatrix]] = [[] for _ in by_features]
            for chunk in _chunks(sequences, operator):
                edits, weights = weighted_edits(model, operator, chunk)
                rates[operator] = rates.get(operator, 0.0) + float(weights.sum())
                for part, (_, kernel) in zip(parts, by_features, strict=True):
                    part.append(kernel.stein(chunk, edits, weights))
            found |= {index: cat_rows(part) for part, (index, _) in zip(parts, by_features, strict=True)}
        if by_pairs:
            edits, weights = weighted_edits(model, operator, sequences)
            rates[operator] = float(weights.sum())
            found |= {index: kernel.stein(sequences, edits, weights, max_bytes) for index, kernel in by_pairs}
    return [found[index] for index in range(len(views))]


def _chunks(sequences: Sequences, operator: Operator) -> Iterator[Sequences]:
    """The sequences in consecutive parts with about ``EDITS_PER_CHUNK`` edits each, no wider than they need to be."""
    lengths, inverse = sequences.lengths.unique(return_inverse=True)
    bounds = [operator.neighborhood.edit_bound(length, sequences.alphabet_size) for length in lengths.tolist()]
    edits = torch.tensor(bounds, device=sequences.device)[inverse].cumsum(0)
    counts = (edits // EDITS_PER_CHUNK).unique_consecutive(return_counts=True)[1]
    for rows in torch.arange(len(sequences), device=sequences.device).split(counts.tolist()):
        yield sequences[rows].narrowed()


def weighted_edits(model: SequenceModel, operator: Operator, sequences: Sequences) -> tuple[Edits, Tensor]:
    """The edits of the operator around the sequences, and their weights ``[E]``."""
    edits = operator.neighborhood.edits(sequences)
    log_ratio = model.log_ratio(sequences, edits).double()
    if log_ratio.isnan().any():
        edit = log_ratio.isnan().nonzero()[:1, 0]
        row = int(edits.owner[edit])
        raise ValueError(
            f"expected a log-ratio for every edit, found NaN where sequence {row}, "
            f"{sequences[row : row + 1].to_lists()[0]}, becomes {edits.select(edit).apply(sequences).to_lists()[0]}; "
            "the model gives NaN there"
        )
    return edits, operator.weights(sequences, edits, log_ratio)


def check_possible(model: SequenceModel, sequences: Sequences) -> None:
    """Checks that the model gives every sequence a positive probability.

    :raises ValueError: naming the sequences to which it does not: the model is wrong about them, and no test is needed
        to say so.
    """
    log_joint = model.log_joint(sequences)
    bad = (log_joint.isnan() | (log_joint == -torch.inf)).nonzero().squeeze(1)
    if len(bad):
        few = sequences[bad[:3]]
        sites = impossible_sites(model, few)
        shown = [f"sequence {row}, {x}" for row, x in zip(bad.tolist(), few.to_lists(), strict=False)]
        if sites is not None:
            shown = [f"{text}, at site {site}" for text, site in zip(shown, sites, strict=True)]
        raise ValueError(
            f"the model gives probability zero (or NaN) to {len(bad)} of {len(sequences)} sequences: {'; '.join(shown)}"
            f"{'; ...' if len(bad) > 3 else ''}. It cannot have made them: widen the model, or leave them out to check "
            "the fit to the others"
        )

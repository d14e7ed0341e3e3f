# SPDX-License-Identifier: Apache-2.0
"""From a model and sequences to the Stein kernel matrix of each view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from tqdm.auto import tqdm

from pyro_ksd.jumps import Jumps
from pyro_ksd.kernels.base import DEFAULT_MAX_BYTES
from pyro_ksd.kernels.matrices import SteinMatrix, cat_rows
from pyro_ksd.models.base import SequenceModel, impossible_sites, model_from
from pyro_ksd.operators import Operator
from pyro_ksd.sequences import Sequences
from pyro_ksd.views import View


def stein_matrices(
    model: SequenceModel, sequences: Sequences, views: Sequence[View], max_bytes: int = DEFAULT_MAX_BYTES
) -> list[SteinMatrix]:
    """The Stein kernel matrices of the sequences, one for each view.

    :param max_bytes: for kernels without features, see :meth:`pyro_ksd.kernels.Kernel.stein`.
    :raises ValueError: if the model gives probability 0 to a sequence, or NaN to an edit.

    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.views import default_views
    >>> data = Sequences.of(["aabb", "bbccc", "caa"])
    >>> matrices = stein_matrices(random_walk(3), data, default_views())
    >>> len(matrices), matrices[0].dense().shape
    (5, torch.Size([3, 3]))
    """
    check_possible(model, sequences)
    return matrices_of(find_jumps(model, sequences, views), views, max_bytes)


def find_jumps(
    model: SequenceModel, sequences: Sequences, views: Sequence[View], *, keep: bool = False
) -> dict[Operator, Jumps]:
    """The jumps of each operator of the views; views that share an operator share its jumps.

    :param sequences: all of them possible under the model.
    :param keep: see :class:`~pyro_ksd.jumps.Jumps`.

    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.views import default_views
    >>> data, views = Sequences.of(["ab", "bca"]), default_views()
    >>> jumps = find_jumps(random_walk(3), data, views)
    >>> len(jumps)  # four views share an operator, the length has its own
    2
    >>> len(jumps[views[0].operator].at_once().edits)  # 10 substitutions, 16 insertions, 5 deletions
    31
    """
    return {view.operator: Jumps.under(model, view.operator, sequences, keep=keep) for view in views}


def matrices_of(
    jumps: Mapping[Operator, Jumps],
    views: Sequence[View],
    max_bytes: int = DEFAULT_MAX_BYTES,
    *,
    progress: bool = False,
) -> list[SteinMatrix]:
    """The Stein kernel matrices of the sequences that the jumps leave from, one for each view.

    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.views import default_views
    >>> model, data, views = random_walk(3), Sequences.of(["ab", "bca"]), default_views()
    >>> found = matrices_of(find_jumps(model, data, views), views)
    >>> all(a.dense().equal(b.dense()) for a, b in zip(found, stein_matrices(model, data, views)))
    True
    """
    return matrices_of_each(jumps, views, max_bytes, progress=progress)[0]


def matrices_of_each(
    jumps: Mapping[Operator, Jumps],
    views: Sequence[View],
    max_bytes: int = DEFAULT_MAX_BYTES,
    *,
    progress: bool = False,
) -> list[list[SteinMatrix]]:
    """The Stein kernel matrices under each of the ``K`` models of the jumps, ``K`` times one for each view.

    Kernels with features are computed for a chunk of sequences at a time, so that memory holds the features of all
    sequences but never all edits. Other kernels compare every pair of neighbors and need all edits at once.
    """
    found: dict[int, Sequence[SteinMatrix]] = {}
    total = sum(len(own.sequences) for own in jumps.values())
    with tqdm(total=total, desc="Stein features", unit="step", disable=not progress) as bar:
        for operator, own in jumps.items():
            kernels = [(index, view.kernel) for index, view in enumerate(views) if view.operator is operator]
            by_features = [(index, kernel) for index, kernel in kernels if kernel.has_features]
            parts: list[list[Sequence[SteinMatrix]]] = [[] for _ in by_features]
            if by_features:
                for chunk in own:
                    weights = torch.atleast_2d(chunk.weights)
                    for part, (_, kernel) in zip(parts, by_features, strict=True):
                        part.append(kernel.stein_each(chunk.sequences, chunk.edits, weights))
                    bar.update(len(chunk.sequences))
            for part, (index, _) in zip(parts, by_features, strict=True):
                found[index] = [cat_rows(chunks) for chunks in zip(*part, strict=True)]
            if len(by_features) < len(kernels):
                whole = own.at_once()
                weights = torch.atleast_2d(whole.weights)
                for index, kernel in kernels:
                    if not kernel.has_features:
                        found[index] = kernel.stein_each(whole.sequences, whole.edits, weights, max_bytes)
                bar.update(0 if by_features else len(own.sequences))
    return [list(own) for own in zip(*(found[index] for index in range(len(views))), strict=True)]


def impossible_rows(model: SequenceModel, sequences: Sequences) -> Tensor:
    """The rows of the sequences to which the model gives probability 0, long ``[M]``.

    :raises ValueError: if the model gives NaN to a sequence.
    """
    log_joint = model.log_joint(sequences)
    bad = log_joint.isnan().nonzero().squeeze(1)
    if len(bad):
        raise ValueError(
            f"expected a log-probability for every sequence, found NaN for {_shown(model, sequences, bad)}; "
            "the model gives NaN there"
        )
    return (log_joint == -torch.inf).nonzero().squeeze(1)


def check_possible(model: SequenceModel, sequences: Sequences) -> None:
    """Checks that the model gives every sequence a positive probability.

    :raises ValueError: naming the sequences to which it does not.
    """
    rows = impossible_rows(model, sequences)
    if len(rows):
        raise ValueError(f"{called_impossible(model, sequences, rows)}: widen the model, or leave them out")


def called_impossible(model: SequenceModel, sequences: Sequences, rows: Tensor) -> str:
    """The words for sequences to which the model gives probability 0: no test is needed to see that it is wrong."""
    return (
        f"the model gives probability zero to {len(rows)} of {len(sequences)} sequences: "
        f"{_shown(model, sequences, rows)}. It cannot have made them"
    )


def _shown(model: SequenceModel, sequences: Sequences, rows: Tensor) -> str:
    """The first few of some sequences, with the sites that are to blame if the model can name them."""
    shown = []
    for row in rows[:3].tolist():
        only = sequences[row : row + 1]
        [site] = impossible_sites(model_from(model, row), only)
        shown.append(f"sequence {row}, {only.to_lists()[0]}{f', at site {site}' if site else ''}")
    return f"{'; '.join(shown)}{'; ...' if len(rows) > len(shown) else ''}"

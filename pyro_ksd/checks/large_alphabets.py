# SPDX-License-Identifier: Apache-2.0
"""Fewer edits where a large alphabet would make too many."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pyro_ksd.common.user_warnings import warn_user
from pyro_ksd.edits.neighborhoods import BeforeEnd, Neighborhood, Substitutions, Union, zs
from pyro_ksd.edits.prefix_neighborhoods import sparse_zs
from pyro_ksd.edits.symbol_relations import RandomReplacements
from pyro_ksd.edits.weighted_edits import edit_bounds
from pyro_ksd.models.base import SequenceModel, draw_data_sets
from pyro_ksd.sequences.container import Sequences

_MOST_SCORED = 300_000  # edits of all sequences; a program scores about 20,000 of them in a second
_MOST_COMPARED = 10_000_000  # for models that compare a sequence with its edits by formulas of their own
_FEW = 64  # replacements of a symbol, and symbols that are inserted or deleted
_DRAWN = 500  # sequences from which the most probable symbols are found


def affordable(
    around: Neighborhood, models: Sequence[SequenceModel], sequences: Sequences, *, lengths: bool
) -> Neighborhood:
    """The edits, or a few of them with a warning, if there are too many.

    :param around: all substitutions, or all substitutions, insertions and deletions, perhaps in front of the end.
    :param lengths: whether all models give probabilities to lengths.
    """
    size = sequences.alphabet_size
    total = int(edit_bounds(around, sequences).sum())
    most = _MOST_COMPARED if all(model.has_quick_ratios for model in models) else _MOST_SCORED
    if size <= 2 * _FEW or total <= most:
        return around
    fewer: Neighborhood = Substitutions(symbols=RandomReplacements(_FEW))
    said = f"each symbol is replaced by {_FEW} others, chosen at random"
    if lengths:
        codes = torch.cat([_most_probable(model, sequences, _FEW // len(models)) for model in models]).unique()
        fewer = sparse_zs(codes, _FEW)
        if int(edit_bounds(zs(locations=1), sequences).sum()) <= most:
            fewer = _AllAtTheEnd((fewer,))
        said = f"{said}, and only the {len(codes)} most probable symbols under the model are inserted or deleted"
    fewer = BeforeEnd(fewer) if isinstance(around, BeforeEnd) else fewer
    warn_user(
        f"{size} symbols make {total:,} edits of the {len(sequences)} sequences, which would take long: {said}, about "
        f"{int(edit_bounds(fewer, sequences).sum()):,} edits in all. Pass neighborhood=zs() for all edits, or choose "
        "others"
    )
    return fewer


class _AllAtTheEnd(Union):
    """Few edits, but all of the last symbol for the view of the length, which needs no others."""

    @property
    def tail(self) -> Neighborhood:
        return zs(locations=1)


def _most_probable(model: SequenceModel, sequences: Sequences, count: int) -> Tensor:
    """The codes of the symbols that are most probable under the model, long ``[K]``, whatever the data are."""
    size = sequences.alphabet_size
    if model.can_draw and not model.is_costly:
        known = sequences[torch.arange(_DRAWN) % len(sequences)].covariates
        drawn = draw_data_sets(model, 1, _DRAWN, known, torch.Generator().manual_seed(0))
        weight = drawn.tokens[drawn.mask].bincount(minlength=size).double()
    else:
        single = torch.arange(size)[:, None]
        if model.ends:
            single = torch.cat([single, torch.full_like(single, model.ends[0])], 1)
        lengths = torch.full((size,), single.shape[1])
        weight = model.log_joint(sequences.derived(single, lengths, torch.zeros_like(lengths))).exp()
    weight[list(model.ends)] = 0.0
    best = weight.argsort(descending=True, stable=True)[:count]
    return best[weight[best] > 0]

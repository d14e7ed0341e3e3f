# SPDX-License-Identifier: Apache-2.0
"""Models of sequences that end with one symbol, which is part of the data."""

from __future__ import annotations

import torch
from torch import Tensor

from pyro_ksd.edits.neighborhoods import BeforeEnd, Neighborhood, zs
from pyro_ksd.edits.splices import Edits
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.model_batch import ModelBatch
from pyro_ksd.models.wrappers.constrained import ConstrainedModel, stays_inside
from pyro_ksd.sequences.container import Sequences

ENDED_EDITS = BeforeEnd(zs())
"""The edits of all sequences that end with a symbol; one object, so that several models share them."""

_LEAST = 5  # sequences from which on a common last symbol is no coincidence


def ends_once(sequences: Sequences, end: int) -> Tensor:
    """Which sequences have ``end`` as their last symbol, and nowhere before; boolean ``[N]``.

    >>> ends_once(Sequences.of([[0, 2], [2, 2], [0], []], 3), end=2).tolist()
    [True, False, False, False]
    """
    ends = (sequences.tokens == end) & sequences.mask
    return (ends.cumsum(1) == 0).sum(1) == sequences.lengths - 1


def common_end(sequences: Sequences) -> int | None:
    """The code of the symbol that ends every sequence and stands nowhere else, if there is one.

    >>> common_end(Sequences.of(["ab.", ".", "b.", "ba.", "a."]))
    0
    """
    if len(sequences) < _LEAST or not sequences.lengths.all() or sequences.lengths.max() < 2:
        return None
    end = int(sequences.tokens[0, sequences.lengths[0] - 1])
    return end if bool(ends_once(sequences, end).all()) else None


class EndedModel(ConstrainedModel):
    r"""A model whose sequences are over when a certain symbol, ``end``, has come.

    .. math:: p(x) \propto \prod_{t=1}^{\ell} p(x_t \mid x_1 \ldots x_{t-1}), \quad x_\ell = \text{end},
        \quad x_t \ne \text{end} \text{ for } t < \ell

    For a program that draws symbol after symbol, the end symbol among them, and says nothing else of the length. Edits
    happen in front of ``end``.

    :param model: gives a probability to every beginning of a sequence.
    :param end: the code of the symbol.

    >>> from pyro_ksd.examples import random_walk
    >>> EndedModel(random_walk(3), end=2).log_joint(Sequences.of([[0, 2], [2, 0, 2]])).exp()
    tensor([0.0182, 0.0000], dtype=torch.float64)
    """

    def __init__(self, model: SequenceModel, end: int) -> None:
        super().__init__(model, lambda sequences: ends_once(sequences, end))
        self._end = end

    @property
    def end(self) -> int:
        return self._end

    @property
    def default_neighborhood(self) -> Neighborhood:
        return ENDED_EDITS

    def check_data(self, sequences: Sequences) -> None:
        """Checks that all data have come to an end.

        :raises ValueError: naming those that have not.
        """
        other = (~self.contains(sequences)).nonzero().squeeze(1)
        if len(other):
            row = int(other[0])
            raise ValueError(
                f"end: expected {sequences.symbols[self._end]!r} as the last symbol of every sequence, and nowhere "
                f"else, found others in {len(other)} of {len(sequences)}, first sequence {row}, "
                f"{sequences[[row]].to_lists()[0]}; add the end symbol, and leave out sequences that were cut off"
            )


class EndedBatch(ModelBatch):
    """A batch of models whose sequences are over when ``end`` has come, see :class:`EndedModel`."""

    def __init__(self, models: ModelBatch, end: int) -> None:
        self._models = models
        self._end = end

    def __len__(self) -> int:
        return len(self._models)

    def log_joint_each(self, sequences: Sequences, which: Tensor) -> Tensor:
        return self._models.log_joint_each(sequences, which).masked_fill(~self._contains(sequences), -torch.inf)

    def log_joint(self, sequences: Sequences) -> Tensor:
        return self._models.log_joint(sequences).masked_fill(~self._contains(sequences), -torch.inf)

    def log_ratio_each(self, sequences: Sequences, edits: Edits, which: Tensor) -> Tensor:
        inside = stays_inside(self._contains, sequences, edits)
        ratio = self._models.log_ratio_each(sequences, edits.select(inside), which)
        return ratio.new_full((len(edits),), -torch.inf).index_copy_(0, inside, ratio)

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        inside = stays_inside(self._contains, sequences, edits)
        ratio = self._models.log_ratio(sequences, edits.select(inside))
        return ratio.new_full((len(self), len(edits)), -torch.inf).index_copy_(1, inside, ratio)

    def _contains(self, sequences: Sequences) -> Tensor:
        return ends_once(sequences, self._end)

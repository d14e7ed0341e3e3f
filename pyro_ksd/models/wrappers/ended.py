# SPDX-License-Identifier: Apache-2.0
"""Models of sequences that end with one symbol, which is part of the data."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_number
from pyro_ksd.edits.neighborhoods import BeforeEnd, Neighborhood, zs
from pyro_ksd.edits.splices import Edits
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.model_batch import ModelBatch
from pyro_ksd.models.wrappers.constrained import ConstrainedModel, stays_inside
from pyro_ksd.sequences.alphabets import shown_alphabet
from pyro_ksd.sequences.container import Sequences

ENDED_EDITS = BeforeEnd(zs())
"""The edits of all sequences that end with a symbol; one object, so that several models share them."""

_LEAST = 5  # sequences for each end symbol, from which on it is no coincidence


def ends_once(sequences: Sequences, ends: Sequence[int]) -> Tensor:
    """Which sequences have one of the symbols ``ends`` as their last one, and none before; boolean ``[N]``.

    >>> ends_once(Sequences.of([[0, 2], [2, 2], [0], []], 3), ends=[2]).tolist()
    [True, False, False, False]
    """
    found = torch.isin(sequences.tokens, torch.tensor(ends)) & sequences.mask
    return (found.cumsum(1) == 0).sum(1) == sequences.lengths - 1


def common_ends(sequences: Sequences) -> tuple[int, ...]:
    """The codes of symbols that end the sequences and stand nowhere else; none if some sequence ends otherwise.

    Each of them must end several sequences on average, as it may be a coincidence that a symbol occurs once.

    >>> common_ends(Sequences.of(["ab.", ".", "b.", "ba.", "a."]))
    (0,)
    """
    if not sequences.lengths.all() or not len(sequences) or sequences.lengths.max() < 2:
        return ()
    last = sequences.tokens.gather(1, sequences.lengths[:, None] - 1)[:, 0]
    ends = tuple(last.unique().tolist())
    few = _LEAST * len(ends) <= len(sequences) and len(ends) < sequences.alphabet_size
    return ends if few and bool(ends_once(sequences, ends).all()) else ()


def end_codes(end: Any, sequences: Sequences) -> tuple[int, ...]:
    """The codes of the end symbols that a user names.

    :param end: a symbol of the alphabet, or several in a list, tuple or set.
    :raises ValueError: if the alphabet does not have them.
    """
    symbols = sequences.symbols
    several = isinstance(end, list | tuple | set | frozenset) and not (isinstance(end, Hashable) and end in symbols)
    named = list(end) if several else [end]
    if not named or any(not isinstance(one, Hashable) or isinstance(one, bool) or one not in symbols for one in named):
        raise ValueError(
            f"end: expected the symbol with which every sequence ends, or a list of them, out of "
            f"{shown_alphabet(sequences.alphabet)}, found {end!r}"
        )
    return tuple(sorted(set(sequences.encode(named))))


class EndedModel(ConstrainedModel):
    r"""A model whose sequences are over when one of certain symbols, the ends, has come.

    .. math:: p(x) \propto \prod_{t=1}^{\ell} p(x_t \mid x_1 \ldots x_{t-1}), \quad x_\ell \in \text{ends},
        \quad x_t \notin \text{ends} \text{ for } t < \ell

    For a program that draws symbol after symbol, the end symbols among them, and does not define lengths otherwise.
    Edits happen in front of the last symbol.

    :param model: gives a probability to every beginning of a sequence.
    :param ends: the codes of the end symbols.

    >>> from pyro_ksd.examples import random_walk
    >>> EndedModel(random_walk(3), ends=[2]).log_joint(Sequences.of([[0, 2], [2, 0, 2]])).exp()
    tensor([0.0182, 0.0000], dtype=torch.float64)
    """

    def __init__(self, model: SequenceModel, ends: Sequence[int]) -> None:
        codes = [check_number("ends", end, least=0, most=model.alphabet_size - 1) for end in ends]
        super().__init__(model, lambda sequences: ends_once(sequences, codes))
        self._ends = tuple(codes)

    @property
    def ends(self) -> tuple[int, ...]:
        return self._ends

    @property
    def is_normalized(self) -> bool:
        return self.model.is_normalized

    @property
    def is_threadsafe(self) -> bool:
        return self.model.is_threadsafe

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
            named = " or ".join(repr(sequences.symbols[end]) for end in self._ends)
            raise ValueError(
                f"end: expected {named} as the last symbol of every sequence, and nowhere else, found others in "
                f"{len(other)} of {len(sequences)}, first sequence {row}, {sequences[[row]].to_lists()[0]}; add the "
                "end symbol, and leave out sequences that were cut off"
            )


class EndedBatch(ModelBatch):
    """A batch of models whose sequences are over when one of the ends has come, see :class:`EndedModel`."""

    def __init__(self, models: ModelBatch, ends: Sequence[int]) -> None:
        self._models = models
        self._ends = ends

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
        return ends_once(sequences, self._ends)

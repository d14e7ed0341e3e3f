# SPDX-License-Identifier: Apache-2.0
"""Models of a known order, by a table of all short sequences."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pyro_ksd.common.chunk_sizes import EVALUATED_SEQUENCES, in_chunks
from pyro_ksd.common.user_warnings import warn_user
from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.edits.splices import Edits
from pyro_ksd.kernels.length import LengthDistribution
from pyro_ksd.models.base import SequenceModel, check_alphabet_size
from pyro_ksd.models.distributions.factor_table import FactorTable, check_order
from pyro_ksd.models.distributions.log_space import subtract
from pyro_ksd.models.distributions.sampling import PAD
from pyro_ksd.models.distributions.stopping_lengths import table_lengths
from pyro_ksd.models.wrappers.base import ModelWrapper
from pyro_ksd.sequences.container import Sequences

_TOLERANCE = 1e-6
_EDITED = 50  # of how many sequences, and how many edits of each, the table is verified on
_NEIGHBORS = 5
_TOGETHER = 5 * EVALUATED_SEQUENCES  # words that a model is asked for at once


class TabulatedModel(ModelWrapper):
    r"""A model of order ``k`` whose log-joint is a sum over its windows of ``k + 1`` symbols.

    If a symbol, and whether it is the last one, depends on no more than the ``k`` symbols before it, then

    .. math:: \log p(x) = \sum_i \log p(x_{i-k}, \ldots, x_i) - \log p(x_{i-k}, \ldots, x_{i-1}),

    where windows that reach over the start are cut there and an empty window counts as 0. So the log-joints of all
    sequences of up to ``k + 1`` symbols say everything, and an edit changes only ``O(k)`` terms.

    Whether the model is of that order is *verified* on the data, every sequence of them, and on some of their edits.
    Where the table disagrees with the model, a warning says so and the model itself is used instead. A dependence so
    rare that none of these sequences shows it stays unseen: the order is the user's word.

    :param model: the model, known by its log-joint.
    :param order: ``k``.
    :param data: the sequences that the model is for; left out, the order is taken on trust.

    >>> from pyro_ksd.examples import random_walk
    >>> walk, data = random_walk(3), Sequences.of(["abacb", "bcab"])
    >>> torch.allclose(TabulatedModel(walk, order=1, data=data).log_joint(data), walk.log_joint(data))
    True
    """

    def __init__(self, model: SequenceModel, order: int, data: Sequences | None = None) -> None:
        super().__init__(model)
        if self.takes_covariates:
            raise ValueError(
                f"order: expected a model without covariates, found {self.name}, whose table would be another one for "
                "each sequence; leave out order="
            )
        check_order(order, self.alphabet_size)
        if data is not None:
            check_alphabet_size(self.model, data)
        table = tabulate(lambda words: self.model.log_joint(words)[None], self.alphabet_size, order)
        self._table = table if data is None or agrees(self.model, table, data) else None
        if self._table is None:
            warn_user(
                f"the model is not of order {order}: its table disagrees with the log-joint of the data or of their "
                "edits (a longer memory, or a length distribution that is not a stop at each step?); every edited "
                "sequence is evaluated instead, which takes longer. Leave out order=, or raise it"
            )

    @property
    def is_local(self) -> bool:
        """Whether the table is still in use."""
        return self._table is not None

    def log_joint(self, sequences: Sequences) -> Tensor:
        """``log p(x)`` up to a constant, double ``[N]``, from the table where it holds."""
        if self._table is None:
            return self.model.log_joint(sequences)
        return _log_joint(self._table, sequences)

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        """``log p(y) - log p(x)`` for every edit, double ``[E]``, from the table where it holds."""
        if self._table is None:
            return self.model.log_ratio(sequences, edits)
        return self._table.log_ratio(sequences, edits)

    def length_distribution(self) -> LengthDistribution | None:
        return None if self._table is None else table_lengths(self._table)

    @property
    def has_quick_ratios(self) -> bool:
        return self.is_local or self.model.has_quick_ratios

    @property
    def is_threadsafe(self) -> bool:
        return self.is_local


def agrees(model: SequenceModel, table: FactorTable, data: Sequences) -> bool:
    """Whether a table gives the log-joints of the sequences and of some of their edits."""
    some = some_sequences(data)
    expected = model.log_joint(some).double()
    return torch.allclose(_log_joint(table, some), expected, rtol=_TOLERANCE, atol=_TOLERANCE)


def some_sequences(data: Sequences) -> Sequences:
    """The sequences, and some of their edits, on which a table is verified."""
    generator = torch.Generator().manual_seed(0)
    few = data[torch.randperm(len(data), generator=generator)[:_EDITED]]
    edits = zs().edits(few)
    picked = torch.randint(len(edits), (_NEIGHBORS * len(few),), generator=generator).unique()
    return Sequences.cat([data, edits.select(picked).apply(few)])


def tabulate(log_joint: Callable[[Sequences], Tensor], alphabet_size: int, order: int) -> FactorTable:
    """The tables of ``K`` models of one order, from their log-joints of all sequences of up to ``order + 1`` symbols.

    :param log_joint: gives the log-joints of ``W`` sequences under each model, ``[K, W]``.
    """
    size = alphabet_size
    width = order + 1
    nothing, *values = (_of_all_words(log_joint, size, length) for length in range(width + 1))
    table = torch.full([len(nothing)] + [size + 1] * width, -torch.inf, dtype=torch.double)
    before = torch.zeros_like(nothing)
    for length, own in enumerate(values, start=1):
        entries = subtract(own, before.repeat_interleave(size, 1))
        if length == width:
            _fill_in(entries.view(len(entries), -1, size), before, order, log_joint)
        # Windows that are cut at the start of the sequence begin with boundary symbols.
        windows: list[int | slice] = [slice(None), *[size] * (width - length), *[slice(size)] * length]
        table[tuple(windows)] = entries.view(-1, *[size] * length)
        before = own
    table[..., size] = 0.0  # the stop is part of every entry
    table.view(len(table), -1)[:, -1] = nothing[:, 0]
    return FactorTable(table)


def _fill_in(entries: Tensor, possible: Tensor, order: int, log_joint: Callable[[Sequences], Tensor]) -> None:
    """Finds entries ``[K, C, S]`` of contexts that are impossible at the start, but not behind another symbol.

    :param possible: the log-joints of the contexts, ``[K, C]``.
    """
    missing = (possible == -torch.inf).any(0).nonzero().squeeze(1)
    if not len(missing) or not order:
        return
    size = entries.shape[-1]
    number = size**order
    # Contexts behind each symbol are words with one more symbol, which comes first in their number.
    behind = (torch.arange(size) * number + missing[:, None]).view(-1)
    before = _of_words(log_joint, behind, size, order + 1).view(len(possible), -1, size)
    best, first = before.max(2)
    # Only the symbol behind which a context is most probable counts; that may be another one under each model.
    chosen, inverse = (first * number + missing).unique(return_inverse=True)
    followed = (chosen[:, None] * size + torch.arange(size)).view(-1)
    after = _of_words(log_joint, followed, size, order + 2).view(len(possible), -1, size)
    after = after.gather(1, inverse[..., None].expand(-1, -1, size))
    own = entries[:, missing]
    unknown = (possible[:, missing] == -torch.inf)[..., None]
    entries[:, missing] = torch.where(unknown, subtract(after, best[..., None].expand_as(after)), own)


def _of_all_words(log_joint: Callable[[Sequences], Tensor], size: int, length: int) -> Tensor:
    """The log-joints of all sequences of a length, in ascending order, ``[K, S^length]``."""
    return _of_words(log_joint, torch.arange(size**length), size, length)


def _of_words(log_joint: Callable[[Sequences], Tensor], numbers: Tensor, size: int, length: int) -> Tensor:
    """The log-joints of sequences of a length that are given by their numbers in ascending order, ``[K, W]``."""
    places = size ** torch.arange(length - 1, -1, -1)
    parts = []
    for some in in_chunks(numbers, _TOGETHER):
        tokens = some[:, None] // places % size
        parts.append(log_joint(Sequences(tokens, torch.full((len(tokens),), length), size)))
    return torch.cat(parts, 1)


def _log_joint(table: FactorTable, sequences: Sequences) -> Tensor:
    return table.log_joint(sequences.padded(PAD), torch.zeros_like(sequences.lengths))

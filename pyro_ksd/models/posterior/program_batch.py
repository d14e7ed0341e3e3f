# SPDX-License-Identifier: Apache-2.0
"""A vectorized Pyro program under a batch of draws of its global parameters, evaluated in one call."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import torch
from torch import Tensor

from pyro_ksd.common.chunk_sizes import SCORED_PAIRS, in_chunks
from pyro_ksd.models.model_batch import ModelBatch, ModelList
from pyro_ksd.models.programs.empty_sequence import beside_another
from pyro_ksd.models.programs.session_state import isolated
from pyro_ksd.models.programs.vectorized import VectorizedProgram
from pyro_ksd.sequences.container import Sequences

_FEW = 2**12  # with more sequences of its own than this, a draw runs faster alone


class ProgramBatch(ModelBatch):
    """A program under ``K`` draws of its global parameters.

    The draws run at once where the program's operations can be vectorized over them, else one after the other.

    :param draws: ``[K, ...]`` by name.
    """

    def __init__(self, program: VectorizedProgram, draws: Mapping[str, Tensor]) -> None:
        self._program = program
        self._draws = dict(draws)

    def __len__(self) -> int:
        return len(next(iter(self._draws.values())))

    def log_joint(self, sequences: Sequences) -> Tensor:
        try:
            return self._log_joint(sequences)
        except (RuntimeError, ValueError):  # operations or control flow that vmap does not know
            return self._one_by_one.log_joint(sequences)

    def log_joint_each(self, sequences: Sequences, which: Tensor) -> Tensor:
        if len(which) and which.bincount().max() > _FEW:
            return self._one_by_one.log_joint_each(sequences, which)
        try:
            return self._log_joint_each(sequences, which)
        except (RuntimeError, ValueError):
            return self._one_by_one.log_joint_each(sequences, which)

    @cached_property
    def _one_by_one(self) -> ModelList:
        points = zip(*self._draws.values(), strict=True)
        return ModelList([self._program.at(dict(zip(self._draws, point, strict=True))) for point in points])

    def _log_joint(self, sequences: Sequences) -> Tensor:
        values = torch.empty(len(self), len(sequences), dtype=torch.double)
        empty, order = _by_length(sequences.lengths)
        if len(empty):
            values[:, empty] = self._empty_log_joint[:, None]
        for rows in in_chunks(order, max(1, SCORED_PAIRS // len(self))):
            part = sequences[rows].narrowed()
            values[:, rows] = self._score(self._draws, part.tokens, part.lengths)
        return values

    def _log_joint_each(self, sequences: Sequences, which: Tensor) -> Tensor:
        """Runs blocks of as many sequences, each of one draw, those of similar length together."""
        values = torch.empty(len(sequences), dtype=torch.double)
        empty, order = _by_length(sequences.lengths)
        if len(empty):
            values[empty] = self._empty_log_joint[which[empty]]
        for rows in in_chunks(order, SCORED_PAIRS):
            # Four blocks for the average draw: few enough to be large, enough to lose little where a draw ends.
            draws, own = _blocks(which[rows], len(rows) // (4 * len(self)) + 1)
            part = sequences[rows[own.view(-1)]].narrowed()
            theirs = {name: value[draws] for name, value in self._draws.items()}
            values[rows[own]] = self._score(theirs, part.tokens.view(*own.shape, -1), part.lengths.view(own.shape))
        return values

    def _score(self, draws: dict[str, Tensor], tokens: Tensor, lengths: Tensor) -> Tensor:
        """The log-joints ``[D, N]`` of the same sequences ``[N, T]`` under all draws, or of others ``[D, N, T]``."""
        dim = 0 if tokens.ndim == 3 else None
        with isolated(validate=False):
            found: Tensor = torch.func.vmap(self._program.score, in_dims=(0, dim, dim))(draws, tokens, lengths)
        if found.isnan().any():
            raise ValueError("found NaN")  # alone, the program will name the site
        return found.double()

    @cached_property
    def _empty_log_joint(self) -> Tensor:
        """The log-joint of the empty sequence under each draw, double ``[K]``."""
        if not self._program.defines_empty:
            return torch.full((len(self),), -torch.inf, dtype=torch.double)
        tokens, lengths = beside_another(self._program.alphabet_size)
        totals = [self._score(self._draws, padded, lengths)[:, 0] for padded in tokens]
        return torch.where(totals[0] == totals[-1], totals[0], -torch.inf)


def _by_length(lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The rows of the empty sequences, and those of all others in the order of their lengths."""
    order = lengths.argsort(stable=True)
    empty = int((lengths == 0).sum())
    return order[:empty], order[empty:]


def _blocks(groups: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Cuts groups of items into blocks of the same size; where a group ends, its last item is repeated.

    :param groups: long ``[M]``, the group of each item.
    :returns: the group of each block, long ``[B]``, and its items, long ``[B, size]``.

    >>> _blocks(torch.tensor([7, 2, 7, 7]), 2)
    (tensor([2, 7, 7]), tensor([[1, 1],
            [0, 2],
            [3, 3]]))
    """
    found, counts = groups.unique(return_counts=True)
    blocks = (counts + size - 1) // size
    block = torch.arange(len(found)).repeat_interleave(blocks)
    nth = torch.arange(len(block)) - (blocks.cumsum(0) - blocks)[block]
    end = counts.cumsum(0)[block]
    place = (end - counts[block] + nth * size)[:, None] + torch.arange(size)
    return found[block], groups.argsort(stable=True)[torch.minimum(place, end[:, None] - 1)]

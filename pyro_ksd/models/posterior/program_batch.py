# SPDX-License-Identifier: Apache-2.0
"""A vectorized Pyro program under a batch of draws of its global parameters, evaluated in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from pyro_ksd.common.chunk_sizes import SCORED_PAIRS, in_chunks
from pyro_ksd.common.lazy_values import computed_once
from pyro_ksd.models.model_batch import ModelBatch, ModelList
from pyro_ksd.models.programs.call_conventions import Rows, each_covariate
from pyro_ksd.models.programs.vectorized import VectorizedProgram
from pyro_ksd.models.session_state import isolated
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

    @computed_once
    def _one_by_one(self) -> ModelList:
        points = zip(*self._draws.values(), strict=True)
        return ModelList([self._program.at(dict(zip(self._draws, point, strict=True))) for point in points])

    def _log_joint(self, sequences: Sequences) -> Tensor:
        values = torch.empty(len(self), len(sequences), dtype=torch.double)
        empty, order = _by_length(sequences.lengths)
        if len(empty):
            values[:, empty] = self._of_empty(sequences[empty])
        for rows in in_chunks(order, max(1, SCORED_PAIRS // len(self))):
            values[:, rows] = self._under_each(self._program.score, self._program.rows_of(sequences[rows].narrowed()))
        return values

    def _log_joint_each(self, sequences: Sequences, which: Tensor) -> Tensor:
        """Runs blocks of as many sequences, each of one draw, those of similar length together."""
        values = torch.empty(len(sequences), dtype=torch.double)
        empty, order = _by_length(sequences.lengths)
        if len(empty):
            values[empty] = self._of_empty(sequences[empty])[which[empty], torch.arange(len(empty))]
        for rows in in_chunks(order, SCORED_PAIRS):
            # Four blocks for the average draw: few enough to be large, enough to lose little where a draw ends.
            draws, own = _blocks(which[rows], len(rows) // (4 * len(self)) + 1)
            part = self._program.rows_of(sequences[rows[own.view(-1)]].narrowed())
            theirs = {name: value[draws] for name, value in self._draws.items()}
            values[rows[own]] = self._score_blocks(theirs, part, own.shape)
        return values

    def _of_empty(self, sequences: Sequences) -> Tensor:
        """The log-joints of empty sequences under each draw, double ``[K, N]``."""
        if not self._program.takes_covariates:
            return self._without_symbols.expand(-1, len(sequences))
        return self._score_empty(sequences)

    @computed_once
    def _without_symbols(self) -> Tensor:
        """The log-joint of the empty sequence under each draw, where there are no covariates; double ``[K, 1]``."""
        nothing = torch.zeros(1, 0, dtype=torch.long)
        return self._score_empty(Sequences(nothing, nothing.sum(1), self._program.alphabet_size))

    def _score_empty(self, sequences: Sequences) -> Tensor:
        if not self._program.defines_empty:
            return torch.full((len(self), len(sequences)), -torch.inf, dtype=torch.double)
        return self._under_each(self._program.score_empty, self._program.rows_of(sequences))

    def _under_each(self, score: Callable[[Mapping[str, Tensor], Rows], Tensor], rows: Rows) -> Tensor:
        """The log-joints ``[K, N]`` of the same rows under each draw."""
        with isolated(validate=False):
            return _numbers(torch.func.vmap(lambda values: score(values, rows))(self._draws))

    def _score_blocks(self, draws: dict[str, Tensor], rows: Rows, shape: torch.Size) -> Tensor:
        """The log-joints ``[B, M]`` of blocks of ``M`` rows, each under its own draw.

        :param rows: of all blocks, one after the other.
        :param shape: ``[B, M]``.
        """

        def in_blocks(values: Tensor) -> Tensor:
            return values.view(*shape, *values.shape[1:])

        # Every leaf of what is passed must be a tensor, so covariates that do not exist are not passed.
        blocks = [in_blocks(rows.tokens), in_blocks(rows.lengths), each_covariate(rows.covariates, in_blocks)]
        known = blocks[: 2 if rows.covariates is None else 3]
        with isolated(validate=False):
            return _numbers(torch.func.vmap(lambda values, own: self._program.score(values, Rows(*own)))(draws, known))


def _numbers(found: Tensor) -> Tensor:
    if found.isnan().any():
        raise ValueError("found NaN")  # alone, the program will name the site
    return found.double()


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

# SPDX-License-Identifier: Apache-2.0
"""Draws in blocks, each with random numbers of its own, so that any process may compute any block, in any order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from pyro_ksd.common.checkpoints import Checkpoint, counted_if_stopped
from pyro_ksd.common.part_runs import active_client, run_each
from pyro_ksd.common.progress import ProgressBar
from pyro_ksd.common.random_numbers import drawn_seed

_STEP = 0x9E3779B97F4A7C15  # odd, so that 2^32 seeds differ in the 32 bits that torch's generators use
_SEEDS = 2**62


@dataclass(frozen=True)
class DrawBlock:
    """Some consecutive draws.

    :ivar begin: the number of the first one.
    :ivar size: how many they are.
    :ivar seed: of their random numbers.
    """

    begin: int
    size: int
    seed: int

    @property
    def end(self) -> int:
        """The number after the last one."""
        return self.begin + self.size

    def generator(self) -> torch.Generator:
        """Gives the random numbers of the block, the same ones from each call."""
        return torch.Generator().manual_seed(self.seed)


Result = TypeVar("Result")

BlockTask = Callable[[DrawBlock], dict[str, Tensor]]
"""Computes the draws of a block, as tensors by name."""


def draw_blocks(num_draws: int, size: int, generator: torch.Generator) -> list[DrawBlock]:
    """Cuts draws into blocks of at most ``size``.

    :param generator: of one number; it and the number of a block decide about the seed of the block.

    >>> blocks = draw_blocks(5, 2, torch.Generator().manual_seed(0))
    >>> [(block.begin, block.size) for block in blocks]
    [(0, 2), (2, 2), (4, 1)]
    >>> torch.rand(1, generator=blocks[0].generator()).equal(torch.rand(1, generator=blocks[1].generator()))
    False
    """
    first = drawn_seed(generator)
    begins = range(0, num_draws, size)
    return [
        DrawBlock(begin, min(size, num_draws - begin), (first + index * _STEP) % _SEEDS)
        for index, begin in enumerate(begins)
    ]


def spread(
    task: Callable[[DrawBlock], Result], blocks: Sequence[DrawBlock], *, name: str, in_threads: bool = False
) -> Iterator[Result]:
    """The results of a task for each block, in their order.

    Several blocks are computed on the workers of the active Dask client, else in this process.

    :param name: what the task needs to be sent for, such as ``"model"``; for errors.
    :param in_threads: whether several threads of one process may run the task at once.

    >>> blocks = draw_blocks(5, 2, torch.Generator().manual_seed(0))
    >>> list(spread(lambda block: block.size, blocks, name="sizes"))
    [2, 2, 1]
    """
    if len(blocks) > 1 and (in_threads or active_client() is not None):
        return run_each(task, blocks, name=name, in_threads=in_threads)
    return map(task, blocks)  # with as many threads of torch as the user lets a model have


def run_blocks(
    task: BlockTask,
    blocks: Sequence[DrawBlock],
    *,
    name: str,
    kept_as: str,
    what: str,
    bar: ProgressBar,
    checkpoint: Checkpoint | None = None,
    in_threads: bool = False,
) -> Iterator[dict[str, Tensor]]:
    """The draws of each block, in their order: those that a checkpoint has, and new ones, which it keeps.

    :param name: as for :func:`spread`, as is ``in_threads``.
    :param kept_as: the name of these draws in the checkpoint.
    :param what: the draws in words, such as ``"null draws"``.
    :param bar: counts the draws.
    """
    kept = {block: None if checkpoint is None else checkpoint.get(_name(kept_as, block)) for block in blocks}
    missing = [block for block in blocks if kept[block] is None]
    computed = spread(task, missing, name=name, in_threads=in_threads)
    for block in blocks:
        with counted_if_stopped(block.begin, blocks[-1].end, what, checkpoint):
            found = kept.pop(block)
            if found is None:
                found = next(computed)
                if checkpoint is not None:
                    checkpoint.put(_name(kept_as, block), found)
        bar.update(block.end - bar.done)
        yield found


def _name(kept_as: str, block: DrawBlock) -> str:
    return f"{kept_as}, block from {block.begin}"

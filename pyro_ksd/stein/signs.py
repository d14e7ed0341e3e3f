# SPDX-License-Identifier: Apache-2.0
"""Random signs that depend on nothing but their seed, their draw and their row."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_number
from pyro_ksd.common.random_numbers import Seed, as_seed

_TOGETHER = 256
"""Draws whose signs of one row come from one step of the generator: four numbers of 64 bits."""


@dataclass(frozen=True)
class Signs:
    r"""The signs :math:`\varepsilon_{bi} \in \{-1, 1\}` of some draws ``b`` of the wild bootstrap, for any rows ``i``.

    They come from the counter-based generator Philox (Salmon et al. 2011, *Parallel random numbers: as easy as 1, 2,
    3*), so that they are the same however the rows are cut, and whoever asks for them.

    :param seed: of the signs.
    :param num_draws: how many draws.
    :param first_draw: the number of the first one.

    >>> signs = Signs(seed=0, num_draws=3)
    >>> whole = signs.of_rows(0, 1000)
    >>> whole.shape, whole.unique().tolist()
    (torch.Size([3, 1000]), [-1, 1])
    >>> torch.cat([signs.of_rows(0, 10), signs.of_rows(10, 990)], 1).equal(whole)
    True
    """

    seed: Seed
    num_draws: int
    first_draw: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", as_seed(self.seed))
        check_number("num_draws", self.num_draws, least=0)
        check_number("first_draw", self.first_draw, least=0)

    def of_rows(self, begin: int, count: int) -> Tensor:
        """The signs of ``count`` consecutive rows from ``begin`` on, int8 ``[num_draws, count]``."""
        last = self.first_draw + self.num_draws
        parts = []
        for block in range(self.first_draw // _TOGETHER, -(-last // _TOGETHER)):
            parts.append(self._bits(block, begin, count))
        if not parts:
            return torch.zeros(0, count, dtype=torch.int8)
        skipped = self.first_draw % _TOGETHER
        bits = np.concatenate(parts, 1)[:, skipped : skipped + self.num_draws]
        return torch.from_numpy(bits.astype(np.int8)).mul_(2).sub_(1).t()

    def part(self, begin: int, count: int) -> Signs:
        """Those of ``count`` of the draws, from the draw ``begin`` of these on."""
        return replace(self, first_draw=self.first_draw + begin, num_draws=count)

    def _bits(self, block: int, begin: int, count: int) -> np.ndarray:
        """Bits of one block of draws, uint8 ``[count, 256]``."""
        key = np.array([as_seed(self.seed), block], dtype=np.uint64)
        counter = np.array([begin, 0, 0, 0], dtype=np.uint64)
        words = np.random.Philox(key=key, counter=counter).random_raw(4 * count).astype("<u8")
        return np.unpackbits(words.view(np.uint8).reshape(count, _TOGETHER // 8), axis=1, bitorder="little")

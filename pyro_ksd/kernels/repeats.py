# SPDX-License-Identifier: Apache-2.0
"""The kernel of repeats: how often one symbol comes many times in a row."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import pad

from pyro_ksd.common.compilation import is_compiled
from pyro_ksd.common.option_checks import check_number
from pyro_ksd.edits.splices import SpliceBlock
from pyro_ksd.kernels.local_kernel import LocalKernel
from pyro_ksd.kernels.ngram_codes import LONGEST_CODED
from pyro_ksd.sequences.container import Sequences


@dataclass(frozen=True, eq=False)
class RepeatsKernel(LocalKernel):
    """The product of the numbers of windows of ``width`` equal symbols.

    A run of ``r`` equal symbols has ``r - width + 1`` such windows, so that long runs count more.

    :param width: how many equal symbols in a row count as repeats.

    >>> data = Sequences.of(["aaab", "aabb", "bbbbb"])
    >>> RepeatsKernel(3).features(data).values.tolist()
    [[1.0], [0.0], [3.0]]
    """

    width: int = 4

    def __post_init__(self) -> None:
        check_number("width", self.width, least=2, most=LONGEST_CODED)

    def num_features(self, alphabet_size: int) -> int:
        return 1

    def entries(self, sequences: Sequences) -> tuple[Tensor, Tensor, Tensor]:
        tokens = pad(sequences.tokens, (0, max(0, self.width - sequences.width)))
        windows = tokens.unfold(1, self.width, 1)
        exists = torch.arange(windows.shape[1]) + self.width <= sequences.lengths[:, None]
        equal = (windows == windows[..., :1]).all(-1) & exists
        rows = torch.arange(len(sequences))
        return rows, torch.zeros_like(rows), equal.sum(1).double()

    def changes(self, sequences: Sequences, block: SpliceBlock) -> tuple[Tensor, Tensor]:
        if is_compiled():
            from pyro_ksd.kernels.compiled_changes import repeats_changes

            return repeats_changes(sequences, block, self.width)
        margin = self.width - 1
        padded = pad(sequences.tokens, (margin, margin))
        before, after = block.symbols_around(padded, margin, self.width)
        change = self._equal(sequences, block, after, block.growth) - self._equal(sequences, block, before, 0)
        return torch.zeros_like(block.owner)[None], change[None]

    def _equal(self, sequences: Sequences, block: SpliceBlock, symbols: list[Tensor], growth: int) -> Tensor:
        """How many windows of some consecutive symbols, ``[E]`` each, exist and have equal symbols, double ``[E]``."""
        to_end = sequences.lengths.index_select(0, block.owner) + growth - block.start
        steps = [one == other for one, other in pairwise(symbols)]
        count = torch.zeros(len(block), dtype=torch.double)
        for window in range(len(symbols) - self.width + 1):
            equal = torch.stack(steps[window : window + self.width - 1]).all(0)
            count += equal & (window >= self.width - 1 - block.start) & (window < to_end)
        return count

    @property
    def feature_kind(self) -> Literal["repeats"]:
        return "repeats"

    def feature_label(self, code: int, alphabet_size: int) -> str:
        return f"runs of {self.width} equal symbols"

    @property
    def meaning(self) -> str:
        return f"runs of {self.width} or more equal symbols"

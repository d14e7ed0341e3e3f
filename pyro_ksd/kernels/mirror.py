# SPDX-License-Identifier: Apache-2.0
"""The mirror kernel: how much of a sequence reads the same backwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from pyro_ksd.common.compilation import is_compiled
from pyro_ksd.edits.splices import SpliceBlock
from pyro_ksd.kernels.local_kernel import LocalKernel
from pyro_ksd.sequences.container import Sequences


@dataclass(frozen=True, eq=False)
class MirrorKernel(LocalKernel):
    r"""The product of the numbers of positions :math:`i < \ell / 2` with :math:`x_i = x_{\ell - 1 - i}`.

    Sees palindromes, and sequences that end as they begin.

    >>> data = Sequences.of(["abba", "abca", "abc"])
    >>> MirrorKernel().features(data).values.tolist()
    [[2.0], [1.0], [0.0]]
    """

    def num_features(self, alphabet_size: int) -> int:
        return 1

    def entries(self, sequences: Sequences) -> tuple[Tensor, Tensor, Tensor]:
        position = torch.arange(sequences.width).expand(len(sequences), -1)
        opposite = sequences.lengths[:, None] - 1 - position
        equal = (sequences.tokens == sequences.tokens.gather(1, opposite.clamp(min=0))) & (position < opposite)
        rows = torch.arange(len(sequences))
        return rows, torch.zeros_like(rows), equal.sum(1).double()

    def changes(self, sequences: Sequences, block: SpliceBlock) -> tuple[Tensor, Tensor] | None:
        if block.removed != 1 or block.growth:
            return None  # all other symbols get other partners
        if is_compiled():
            from pyro_ksd.kernels.compiled_changes import mirror_changes

            return mirror_changes(sequences, block)
        opposite = sequences.lengths[block.owner] - 1 - block.start
        partner = sequences.tokens[block.owner, opposite]
        old = sequences.tokens[block.owner, block.start]
        change = (block.inserted[:, 0] == partner).double() - (old == partner).double()
        change = change.masked_fill(opposite == block.start, 0.0)
        return torch.zeros_like(block.owner)[None], change[None]

    @property
    def feature_kind(self) -> Literal["mirror"]:
        return "mirror"

    def feature_label(self, code: int, alphabet_size: int) -> str:
        return "mirrored symbols"

    @property
    def meaning(self) -> str:
        return "symbols that equal their mirror image"

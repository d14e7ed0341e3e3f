# SPDX-License-Identifier: Apache-2.0
"""The composition kernel: how uneven the symbols of a sequence are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from pyro_ksd.edits.splices import SpliceBlock
from pyro_ksd.kernels.local_kernel import LocalKernel
from pyro_ksd.sequences.container import Sequences


@dataclass(frozen=True, eq=False)
class CompositionKernel(LocalKernel):
    r"""The product of :math:`\frac{1}{\ell} \sum_s c_s(x)^2`, with :math:`c_s` the number of symbols :math:`s`.

    Large if a sequence keeps to few symbols. It sees sequences that differ from each other more than those of the
    model, as sequences out of several sources do.

    >>> data = Sequences.of(["aaaa", "aabb", ""])
    >>> CompositionKernel().features(data).values.tolist()
    [[4.0], [2.0], [0.0]]
    """

    def num_features(self, alphabet_size: int) -> int:
        return 1

    def entries(self, sequences: Sequences) -> tuple[Tensor, Tensor, Tensor]:
        rows = torch.arange(len(sequences))
        value = _counts(sequences).square().sum(1) / sequences.lengths.clamp(min=1)
        return rows, torch.zeros_like(rows), value

    def changes(self, sequences: Sequences, block: SpliceBlock) -> tuple[Tensor, Tensor] | None:
        if block.removed != 1 or block.growth:
            return None
        counts = _counts(sequences)
        old = sequences.tokens[block.owner, block.start]
        new = block.inserted[:, 0]
        change = 2 * (counts[block.owner, new] - counts[block.owner, old] + (new != old).double())
        return torch.zeros_like(block.owner)[None], (change / sequences.lengths[block.owner])[None]

    @property
    def feature_kind(self) -> Literal["composition"]:
        return "composition"

    def feature_label(self, code: int, alphabet_size: int) -> str:
        return "unevenness"

    @property
    def meaning(self) -> str:
        return "how uneven the symbols of a sequence are"


def _counts(sequences: Sequences) -> Tensor:
    """How often each symbol occurs, double ``[N, S]``."""
    ones = sequences.mask.double()
    return ones.new_zeros(len(sequences), sequences.alphabet_size).scatter_add_(1, sequences.tokens, ones)

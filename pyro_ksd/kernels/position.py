# SPDX-License-Identifier: Apache-2.0
"""The position kernel: which symbols stand where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from pyro_ksd.common.compilation import is_compiled
from pyro_ksd.common.option_checks import check_number
from pyro_ksd.edits.splices import SpliceBlock
from pyro_ksd.kernels.local_kernel import LocalKernel
from pyro_ksd.kernels.ngram_codes import ngram_symbols
from pyro_ksd.sequences.container import Sequences


@dataclass(frozen=True, eq=False)
class PositionKernel(LocalKernel):
    r"""Compares how often each symbol stands at each position modulo a period.

    The feature :math:`\varphi_{r,s}(x)` is the number of positions :math:`i \equiv r` (modulo the period, counted from
    0) with :math:`x_i = s`.

    :param period: after how many positions the counts start again; 1 counts symbols wherever they stand.

    >>> data = Sequences.of(["aba", "ab"])
    >>> PositionKernel(2).gram(data, data).tolist()
    [[5.0, 3.0], [3.0, 2.0]]
    """

    period: int = 3

    def __post_init__(self) -> None:
        check_number("period", self.period, least=1)

    def num_features(self, alphabet_size: int) -> int:
        return self.period * alphabet_size

    def entries(self, sequences: Sequences) -> tuple[Tensor, Tensor, Tensor]:
        row, position = sequences.mask.nonzero().unbind(1)
        code = position % self.period * sequences.alphabet_size + sequences.tokens[row, position]
        return row, code, torch.ones(len(row), dtype=torch.double)

    def changes(self, sequences: Sequences, block: SpliceBlock) -> tuple[Tensor, Tensor] | None:
        if block.removed != 1 or block.growth:
            return None  # all symbols after the splice get other positions
        if is_compiled():
            from pyro_ksd.kernels.compiled_changes import position_changes

            return position_changes(sequences, block, self.period)
        here = block.start % self.period * sequences.alphabet_size
        old = sequences.tokens[block.owner, block.start]
        codes = torch.stack([here + block.inserted[:, 0], here + old])
        return codes, torch.tensor([[1.0], [-1.0]], dtype=torch.double).expand(2, len(block))

    @property
    def feature_kind(self) -> Literal["position"]:
        return "position"

    def feature_label(self, code: int, alphabet_size: int) -> str:
        return f"position {code // alphabet_size + 1} of {self.period}"

    def feature_symbols(self, codes: Tensor, alphabet_size: int) -> Tensor:
        return ngram_symbols(codes % alphabet_size, 1, alphabet_size)

    @property
    def meaning(self) -> str:
        return f"symbols by position modulo {self.period}"

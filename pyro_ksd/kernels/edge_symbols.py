# SPDX-License-Identifier: Apache-2.0
"""What the kernels of the first and the last symbols share: each sequence has one feature, the code of its edges."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from pyro_ksd.edits.splices import SpliceBlock
from pyro_ksd.kernels.local_kernel import LocalKernel
from pyro_ksd.kernels.ngram_codes import ngram_code, ngram_symbols
from pyro_ksd.sequences.container import Sequences


@dataclass(frozen=True, eq=False)
class EdgeKernel(LocalKernel):
    """1 if two sequences have the same symbols at certain places counted from the start and from the end, else 0.

    The feature is the one-hot code of these symbols. A place that a sequence does not have counts as a symbol of its
    own kind, so that :math:`k(x, x) = 1`.
    """

    @property
    @abstractmethod
    def places(self) -> tuple[int, ...]:
        """The places of the symbols, ``0, 1, ...`` from the start and ``-1, -2, ...`` from the end."""

    def num_features(self, alphabet_size: int) -> int:
        return int((alphabet_size + 1) ** len(self.places))

    def entries(self, sequences: Sequences) -> tuple[Tensor, Tensor, Tensor]:
        rows = torch.arange(len(sequences))
        return rows, self._codes(sequences), torch.ones(len(rows), dtype=torch.double)

    def changes(self, sequences: Sequences, block: SpliceBlock) -> tuple[Tensor, Tensor]:
        size = sequences.alphabet_size
        tokens = pad(sequences.padded(size), (0, block.removed + self._reach), value=size)
        lengths = sequences.lengths.index_select(0, block.owner) + block.growth
        symbols = []
        for place in self.places:
            position = lengths + place if place < 0 else torch.full_like(lengths, place)
            symbol = block.symbol(tokens, position.clamp(min=0))
            symbols.append(symbol.masked_fill(position < 0, size))
        codes = torch.stack([ngram_code(symbols, size + 1), self._codes(sequences).index_select(0, block.owner)])
        moved = (codes[0] != codes[1]).double()
        return codes, torch.stack([moved, -moved])

    def feature_symbols(self, codes: Tensor, alphabet_size: int) -> Tensor:
        return ngram_symbols(codes, len(self.places), alphabet_size + 1)  # S where the sequence has no such place

    @property
    def _reach(self) -> int:
        """How many symbols from the start are looked at, at least one."""
        return max(0, *self.places) + 1

    def _codes(self, sequences: Sequences) -> Tensor:
        """The codes of the sequences, long ``[N]``."""
        size = sequences.alphabet_size
        tokens = pad(sequences.padded(size), (0, self._reach), value=size)
        symbols = []
        for place in self.places:
            position = sequences.lengths + place if place < 0 else torch.full_like(sequences.lengths, place)
            symbol = tokens.gather(1, position.clamp(min=0)[:, None])[:, 0]
            symbols.append(symbol.masked_fill(position < 0, size))
        return ngram_code(symbols, size + 1)

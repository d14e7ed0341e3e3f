# SPDX-License-Identifier: Apache-2.0
"""The start kernel: how sequences begin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import pad

from pyro_ksd.common.option_checks import check_number
from pyro_ksd.edits.splices import Edits
from pyro_ksd.kernels.base import FeatureKernel
from pyro_ksd.kernels.feature_places import FeaturePlaces
from pyro_ksd.kernels.ngram_codes import LONGEST_CODED, ngram_code, ngram_symbols
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.kernels.witness import Witness
from pyro_ksd.sequences.container import Sequences


@dataclass(frozen=True, eq=False)
class StartKernel(FeatureKernel):
    r"""1 if two sequences begin with the same ``width`` symbols, else 0.

    The feature is the one-hot code of the prefix; a sequence shorter than ``width`` has a prefix of its own kind. Hence
    :math:`k(x, x) = 1`.

    :param width: how many symbols from the start are compared.

    >>> data = Sequences.of(["abc", "ab", "b"])
    >>> StartKernel(2).gram(data, data).tolist()
    [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    width: int = 1

    def __post_init__(self) -> None:
        check_number("width", self.width, least=1, most=LONGEST_CODED)

    def features(self, sequences: Sequences) -> FeatureMatrix:
        code = self._own(sequences)
        rows = torch.arange(len(sequences))
        places = FeaturePlaces.number([(rows, code)], len(sequences), self._num_codes(sequences))
        values = torch.zeros(places.size, dtype=torch.double)
        return places.matrix(values.index_fill_(0, places.of(rows, code), 1.0))

    def stein_features_each(self, sequences: Sequences, edits: Edits, weights: Tensor) -> list[FeatureMatrix]:
        own = self._own(sequences)
        rows = torch.arange(len(sequences))
        edited = self._edited(sequences, edits)
        places = FeaturePlaces.number([(rows, own), (edits.owner, edited)], len(sequences), self._num_codes(sequences))
        before = own.index_select(0, edits.owner)
        moving = (edited != before).nonzero().squeeze(1)
        come, gone = (places.of(edits.owner[moving], codes[moving]) for codes in (edited, before))
        psi = torch.zeros(len(weights), places.size, dtype=torch.double)
        for values, weight in zip(psi, weights.double()[:, moving], strict=True):
            values.index_add_(0, come, weight).index_add_(0, gone, weight, alpha=-1)
        return [places.matrix(values) for values in psi]

    def steps_along(self, sequences: Sequences, edits: Edits, witness: Witness) -> Tensor:
        before = self._own(sequences).index_select(0, edits.owner)
        owner = edits.owner
        return witness.at(owner, self._edited(sequences, edits)) - witness.at(owner, before)

    @property
    def feature_kind(self) -> Literal["start"]:
        return "start"

    def feature_symbols(self, codes: Tensor, alphabet_size: int) -> Tensor:
        return ngram_symbols(codes, self.width, alphabet_size + 1)  # S where the sequence is over

    @property
    def meaning(self) -> str:
        return "the first symbol" if self.width == 1 else f"the first {self.width} symbols"

    def _num_codes(self, sequences: Sequences) -> int:
        return int((sequences.alphabet_size + 1) ** self.width)

    def _own(self, sequences: Sequences) -> Tensor:
        """The codes of the prefixes, long ``[N]``; the end of the sequence counts as a symbol."""
        tokens = pad(sequences.padded(sequences.alphabet_size), (0, self.width), value=sequences.alphabet_size)
        return ngram_code(tokens[:, : self.width].unbind(1), sequences.alphabet_size + 1)

    def _edited(self, sequences: Sequences, edits: Edits) -> Tensor:
        """The codes of the prefixes of the edited sequences, long ``[E]``."""
        size = sequences.alphabet_size
        reach = max((block.removed for block in edits.blocks), default=0) + self.width
        tokens = pad(sequences.padded(size), (0, reach), value=size)
        codes = [
            ngram_code([block.symbol(tokens, position) for position in range(self.width)], size + 1)
            for block in edits.blocks
        ]
        return torch.cat(codes) if codes else edits.owner

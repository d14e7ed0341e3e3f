# SPDX-License-Identifier: Apache-2.0
"""The start kernel: how sequences begin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from pyro_ksd.common.compilation import is_compiled
from pyro_ksd.common.option_checks import check_number
from pyro_ksd.edits.splices import SpliceBlock
from pyro_ksd.kernels.edge_symbols import EdgeKernel
from pyro_ksd.kernels.ngram_codes import LONGEST_CODED
from pyro_ksd.sequences.container import Sequences


@dataclass(frozen=True, eq=False)
class StartKernel(EdgeKernel):
    r"""1 if two sequences begin with the same ``width`` symbols, else 0.

    The feature is the one-hot code of the prefix; a sequence shorter than ``width`` has a prefix of its own kind. Hence
    :math:`k(x, x) = 1`.

    :param width: how many symbols from the start are compared.

    >>> from pyro_ksd import Sequences
    >>> data = Sequences.of(["abc", "ab", "b"])
    >>> StartKernel(2).gram(data, data).tolist()
    [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    width: int = 1

    def __post_init__(self) -> None:
        check_number("width", self.width, least=1, most=LONGEST_CODED)

    @property
    def places(self) -> tuple[int, ...]:
        return tuple(range(self.width))

    def changes(self, sequences: Sequences, block: SpliceBlock) -> tuple[Tensor, Tensor]:
        if is_compiled():
            from pyro_ksd.kernels.compiled_changes import start_changes

            return start_changes(sequences, block, self.width)
        return super().changes(sequences, block)

    @property
    def feature_kind(self) -> Literal["start"]:
        return "start"

    @property
    def meaning(self) -> str:
        return "the first symbol" if self.width == 1 else f"the first {self.width} symbols"

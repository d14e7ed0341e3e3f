# SPDX-License-Identifier: Apache-2.0
"""The end kernel: how sequences end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pyro_ksd.common.option_checks import check_number
from pyro_ksd.kernels.edge_symbols import EdgeKernel
from pyro_ksd.kernels.ngram_codes import LONGEST_CODED


@dataclass(frozen=True, eq=False)
class EndKernel(EdgeKernel):
    r"""1 if two sequences end with the same ``width`` symbols, else 0. Hence :math:`k(x, x) = 1`.

    :param width: how many symbols from the end are compared.

    >>> from pyro_ksd import Sequences
    >>> data = Sequences.of(["abc", "bbc", "c"])
    >>> EndKernel().gram(data, data).tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    >>> EndKernel(2).gram(data, data).tolist()
    [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    width: int = 1

    def __post_init__(self) -> None:
        check_number("width", self.width, least=1, most=LONGEST_CODED)

    @property
    def places(self) -> tuple[int, ...]:
        return tuple(range(-self.width, 0))

    @property
    def feature_kind(self) -> Literal["end"]:
        return "end"

    @property
    def meaning(self) -> str:
        return "the last symbol" if self.width == 1 else f"the last {self.width} symbols"

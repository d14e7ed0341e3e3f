# SPDX-License-Identifier: Apache-2.0
"""The kernel of both ends: how the first and the last symbol go together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pyro_ksd.kernels.edge_symbols import EdgeKernel


@dataclass(frozen=True, eq=False)
class EndsKernel(EdgeKernel):
    r"""1 if two sequences have the same first symbol and the same last symbol, else 0. Hence :math:`k(x, x) = 1`.

    >>> from pyro_ksd import Sequences
    >>> data = Sequences.of(["abc", "ac", "bc"])
    >>> EndsKernel().gram(data, data).tolist()
    [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    @property
    def places(self) -> tuple[int, ...]:
        return (0, -1)

    @property
    def feature_kind(self) -> Literal["ends"]:
        return "ends"

    @property
    def meaning(self) -> str:
        return "the first with the last symbol"

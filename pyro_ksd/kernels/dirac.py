# SPDX-License-Identifier: Apache-2.0
"""The Dirac kernel, on whole sequences or on their lengths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_choice
from pyro_ksd.kernels.base import PairwiseKernel
from pyro_ksd.sequences.argument_checks import check_pair
from pyro_ksd.sequences.container import Sequences


@dataclass(frozen=True, eq=False)
class DiracKernel(PairwiseKernel):
    """``k(x, y) = 1`` if ``x`` and ``y`` are equal, else 0; hence ``k(x, x) = 1``.

    On sequences it compares probabilities one by one, which takes data that repeat. On lengths it makes a product with
    another kernel compare only sequences of the same length.

    :param on: what has to be equal: ``"sequence"`` or only the ``"length"``.

    >>> x, y = Sequences.of(["ab"], "ab"), Sequences.of(["ab", "ba", "a"], "ab")
    >>> DiracKernel().gram(x, y).tolist(), DiracKernel(on="length").gram(x, y).tolist()
    ([[1.0, 0.0, 0.0]], [[1.0, 1.0, 0.0]])
    """

    on: Literal["sequence", "length"] = "sequence"

    def __post_init__(self) -> None:
        check_choice("on", self.on, ("sequence", "length"))

    @property
    def zero_across_lengths(self) -> bool:
        return True

    @property
    def meaning(self) -> str:
        return "the length" if self.on == "length" else super().meaning

    def gram(self, x: Sequences, y: Sequences) -> Tensor:
        check_pair(x, y)
        if self.on == "length":
            return (x.lengths[:, None] == y.lengths).double()
        both = Sequences.cat([x, y])
        rows = torch.cat([both.lengths[:, None], both.tokens], 1)
        names: Tensor = rows.unique(dim=0, return_inverse=True)[1]
        return (names[: len(x), None] == names[len(x) :]).double()

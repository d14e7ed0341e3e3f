# SPDX-License-Identifier: Apache-2.0
"""The frequency kernel: how often each n-gram occurs for each symbol of a sequence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from pyro_ksd.common.option_checks import check_number
from pyro_ksd.kernels.ngram_codes import LONGEST_CODED
from pyro_ksd.kernels.window_kernel import Shape, WindowKernel


@dataclass(frozen=True, eq=False)
class FrequencyKernel(WindowKernel):
    r"""Compares the frequencies of n-grams.

    With :math:`c_u(x)` the number of windows of :math:`x` equal to the n-gram :math:`u`, the features are
    :math:`\varphi_u = c_u / \ell`, with the length :math:`\ell` of the sequence.

    A substitution changes at most ``length`` windows, so it changes :math:`\langle g, \varphi \rangle` by at most
    :math:`t\,(\max g - \min g) / \ell`. That bounds the Stein features of a
    :class:`~pyro_ksd.stein.HeatBathOperator` for substitutions, which has :math:`\ell` places, whatever the model is.

    :param length: the length ``t`` of the n-grams.

    >>> from pyro_ksd import Sequences
    >>> data = Sequences.of(["abab", "ab"])
    >>> FrequencyKernel(2).gram(data, data).tolist()  # "abab" has 2/4 "ab" and 1/4 "ba", "ab" has 1/2 "ab"
    [[0.3125, 0.25], [0.25, 0.25]]
    """

    length: int = 2

    def __post_init__(self) -> None:
        check_number("length", self.length, least=1, most=LONGEST_CODED)

    @property
    def shapes(self) -> list[Shape]:
        return [Shape(self.length)]

    @property
    def power(self) -> float:
        return 1.0

    _by_energy = False

    def _divisors(self, lengths: Tensor) -> Tensor:
        return lengths.clamp(min=1).double().square()

    @property
    def feature_kind(self) -> Literal["ngram"]:
        return "ngram"

    @property
    def meaning(self) -> str:
        return {1: "single symbols", 2: "pairs of neighbors"}.get(self.length, f"runs of {self.length} symbols")

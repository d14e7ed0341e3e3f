# SPDX-License-Identifier: Apache-2.0
"""The contiguous subsequence kernel: how often each n-gram occurs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pyro_ksd.common.option_checks import check_choice, check_number
from pyro_ksd.kernels.ngram_codes import LONGEST_CODED
from pyro_ksd.kernels.window_kernel import Shape, WindowKernel


@dataclass(frozen=True, eq=False)
class ContiguousKernel(WindowKernel):
    r"""Compares the n-grams of two sequences, wherever they stand (CSK).

    With :math:`c_u(x)` the number of windows of :math:`x` equal to the n-gram :math:`u`, the features of one length
    :math:`t` are

    .. math::
        \varphi_u(x) = \sqrt{c_u(x) / \textstyle\sum_v c_v(x)} \quad (\text{form "sqrt"}), \qquad
        \varphi_u(x) = c_u(x) / \sqrt{\textstyle\sum_v c_v(x)^2} \quad (\text{form "cosine"}).

    A range of lengths averages the kernels of those lengths that fit into the sequence. Hence :math:`k(x, x) = 1`, or 0
    for a sequence shorter than the shortest n-gram.

    The cosine form is the one that Baum, Kanagawa and Gretton (2023) print, the square-root form the one that their
    figures were made with.

    :param length: the length ``t`` of the n-grams.
    :param max_length: for a range of lengths ``length .. max_length``.
    :param form: ``"sqrt"`` or ``"cosine"``.

    >>> from pyro_ksd import Sequences
    >>> data = Sequences.of(["hallo", "hello"])
    >>> round(ContiguousKernel(1).gram(data, data)[0, 1].item(), 12)
    0.8
    >>> round(ContiguousKernel(1, form="cosine").gram(data, data)[0, 1].item(), 12)  # 6/7
    0.857142857143
    """

    length: int = 2
    max_length: int | None = None
    form: Literal["sqrt", "cosine"] = "sqrt"

    def __post_init__(self) -> None:
        check_number("length", self.length, least=1, most=LONGEST_CODED)
        if self.max_length is not None:
            check_number("max_length", self.max_length, least=self.length, most=LONGEST_CODED)
        check_choice("form", self.form, ("sqrt", "cosine"))

    @property
    def lengths(self) -> range:
        """The lengths of the n-grams."""
        return range(self.length, (self.max_length or self.length) + 1)

    @property
    def shapes(self) -> list[Shape]:
        return [Shape(length) for length in self.lengths]

    @property
    def power(self) -> float:
        return 0.5 if self.form == "sqrt" else 1.0

    @property
    def feature_kind(self) -> Literal["ngram"]:
        return "ngram"

    @property
    def meaning(self) -> str:
        if len(self.lengths) > 1:
            return f"runs of {self.length} to {self.max_length} symbols"
        return {1: "single symbols", 2: "pairs of neighbors"}.get(self.length, f"runs of {self.length} symbols")

# SPDX-License-Identifier: Apache-2.0
"""The skip kernel: which symbols stand at a distance from each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from pyro_ksd.common.option_checks import check_number, found
from pyro_ksd.kernels.ngram_codes import LONGEST_CODED
from pyro_ksd.kernels.window_kernel import Shape, WindowKernel


@dataclass(frozen=True, eq=False)
class SkipKernel(WindowKernel):
    r"""Compares the pairs of symbols at certain distances, whatever stands between them.

    With :math:`c_{ab}(x)` the number of positions with :math:`x_i = a` and :math:`x_{i+d} = b`, the features of the
    distance :math:`d` are :math:`\varphi_{ab} = c_{ab} / \sqrt{\ell}`, with the length :math:`\ell` of the sequence.
    What a sequence shows grows with its length, and the noise with the root of it, so that long sequences count more,
    but no few of them carry the sum.

    :param distances: between the symbols of a pair, in ascending order; neighbors have the distance 1.

    >>> from pyro_ksd import Sequences
    >>> data = Sequences.of(["abac", "aaab", "bc"])
    >>> SkipKernel((2,)).gram(data, data).tolist()
    [[0.5, 0.25, 0.0], [0.25, 0.5, 0.0], [0.0, 0.0, 0.0]]
    """

    distances: tuple[int, ...] = (2, 3)

    def __post_init__(self) -> None:
        distances = self.distances
        if not isinstance(distances, tuple) or not distances or list(distances) != sorted(set(distances)):
            raise ValueError(
                f"distances: expected a tuple of distances in ascending order, such as (2, 3), found {found(distances)}"
            )
        for distance in distances:
            check_number("distances", distance, least=1, most=LONGEST_CODED - 1)

    @property
    def shapes(self) -> list[Shape]:
        return [Shape(distance + 1, between=False) for distance in self.distances]

    @property
    def power(self) -> float:
        return 1.0

    _by_energy = False

    def _divisors(self, lengths: Tensor) -> Tensor:
        return lengths.clamp(min=1).double()

    @property
    def feature_kind(self) -> Literal["skip"]:
        return "skip"

    def feature_label(self, code: int, alphabet_size: int) -> str:
        return "_" * (self.distances[code // alphabet_size**2] - 1)

    @property
    def meaning(self) -> str:
        shown = [str(distance) for distance in self.distances]
        words = shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
        return f"pairs of symbols at distance {words}"

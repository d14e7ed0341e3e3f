# SPDX-License-Identifier: Apache-2.0
"""The length kernel: how long sequences are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_function, check_instance
from pyro_ksd.edits.splices import SpliceBlock
from pyro_ksd.kernels.local_kernel import LocalKernel
from pyro_ksd.sequences.container import Sequences

_NEGLIGIBLE = 1e-9


@dataclass(frozen=True, eq=False)
class LengthDistribution:
    """Probabilities of lengths.

    :param shortest: the smallest length.
    :param probability: double ``[M]``, the probabilities of ``shortest, shortest + 1, ...``.
    :param bounds: what the distribution is if all log-ratios of successive lengths are smaller, and if they are larger,
        by as much as they may be wrong; ``None`` if it comes from draws.
    :param is_complete: whether hardly any longer lengths are missing.

    >>> found = LengthDistribution(3, torch.tensor([0.5, 0.25, 0.25], dtype=torch.double))
    >>> found.mean, round(found.deviation, 3)
    (3.75, 0.829)
    """

    shortest: int
    probability: Tensor
    bounds: tuple[LengthDistribution, LengthDistribution] | None = None
    is_complete: bool = True

    @staticmethod
    def of(probability: Tensor) -> LengthDistribution | None:
        """The distribution with given probabilities of the lengths ``0, 1, ...``, up to a constant, double ``[M]``.

        :returns: ``None`` if there are none but 0.

        >>> LengthDistribution.of(torch.tensor([0.0, 2.0, 6.0, 0.0])).probability
        tensor([0.2500, 0.7500])
        """
        possible = probability.nonzero()[:, 0]
        if not len(possible):
            return None
        first = int(possible[0])
        known = probability[first : int(possible[-1]) + 1]
        return LengthDistribution(first, known / known.sum())

    def without_gaps(self) -> LengthDistribution:
        """Without negligible probabilities at both ends, and with a negligible one where a length in between has 0.

        >>> LengthDistribution.of(torch.tensor([1e-12, 0.5, 0.0, 0.5], dtype=torch.double)).without_gaps().probability
        tensor([5.0000e-01, 1.0000e-09, 5.0000e-01], dtype=torch.float64)
        """
        known = (self.probability > _NEGLIGIBLE).nonzero()[:, 0]
        begin, end = int(known[0]), int(known[-1]) + 1
        probability = self.probability[begin:end].clamp(min=_NEGLIGIBLE)
        return LengthDistribution(self.shortest + begin, probability / probability.sum())

    @property
    def lengths(self) -> Tensor:
        """The lengths, long ``[M]``."""
        return torch.arange(self.shortest, self.shortest + len(self.probability))

    @property
    def mean(self) -> float:
        """The mean length."""
        return float(self.probability @ self.lengths.double())

    @property
    def deviation(self) -> float:
        """The standard deviation of the length."""
        return float((self.probability @ (self.lengths.double() - self.mean).square()).sqrt())


def squared_length(lengths: Tensor) -> Tensor:
    """``ℓ²``, which compares the mean length where lengths are about geometric."""
    return lengths.double().square()


@dataclass(frozen=True, eq=False)
class LengthKernel(LocalKernel):
    r"""The inner product of features of the length, :math:`k(x, y) = \langle f(\ell_x), f(\ell_y) \rangle`.

    With the default :math:`f(\ell) = \ell^2`, :math:`k(x, x) = \ell^4`. Meant for the
    :class:`~pyro_ksd.stein.TailBlockOperator`.

    :param feature: takes lengths, long ``[N]``, gives ``[N]`` or ``[N, D]``.
    :param names: what the features are called, one name for each.
    :param distribution: the model's own length distribution, if the features were made from it; for reports.

    >>> data = Sequences.of(["abc", "b"])
    >>> LengthKernel().gram(data, data).tolist()
    [[81.0, 9.0], [9.0, 1.0]]
    """

    feature: Callable[[Tensor], Tensor] = squared_length
    names: tuple[str, ...] = ("length",)
    distribution: LengthDistribution | None = None

    def __post_init__(self) -> None:
        check_function("feature", self.feature, "lengths")
        check_instance("names", self.names, tuple, "a tuple with one name for each feature")

    def num_features(self, alphabet_size: int) -> int:
        return self._feature(torch.zeros(1, dtype=torch.long)).shape[1]

    def entries(self, sequences: Sequences) -> tuple[Tensor, Tensor, Tensor]:
        values = self._feature(sequences.lengths)
        rows = torch.arange(len(values))[:, None].expand_as(values)
        codes = torch.arange(values.shape[1]).expand_as(values)
        return rows.reshape(-1), codes.reshape(-1), values.reshape(-1)

    def changes(self, sequences: Sequences, block: SpliceBlock) -> tuple[Tensor, Tensor]:
        longest = sequences.width + max(block.growth, 0)
        table = self._feature(torch.arange(longest + 1))
        own = sequences.lengths.index_select(0, block.owner)
        change = (table.index_select(0, own + block.growth) - table.index_select(0, own)).t()
        return torch.arange(len(change))[:, None].expand_as(change), change

    @property
    def feature_kind(self) -> Literal["length"]:
        return "length"

    def feature_label(self, code: int, alphabet_size: int) -> str:
        return self.names[code] if code < len(self.names) else f"{self.names[-1]} {code}"

    @property
    def meaning(self) -> str:
        return "the length"

    def _feature(self, lengths: Tensor) -> Tensor:
        values = self.feature(lengths)
        check_instance("feature", values, Tensor, "a function that gives a tensor")
        values = values.double()
        values = values[:, None] if values.ndim == 1 else values
        if values.ndim != 2 or len(values) != len(lengths):
            raise ValueError(
                f"feature: expected [{len(lengths)}] or [{len(lengths)}, D] values for {len(lengths)} lengths, "
                f"found shape {list(values.shape)}"
            )
        if not values.isfinite().all():
            length = int(lengths[(~values.isfinite()).any(1)][0])
            raise ValueError(f"feature: expected finite values, found others at length {length}")
        return values

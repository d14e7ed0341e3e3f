# SPDX-License-Identifier: Apache-2.0
r"""Sums over sequences: all that a test needs to know of the Stein features of a view.

With the Stein features :math:`\psi_i` of the sequence :math:`i`, the statistic is
:math:`U = (\|\sum_i \psi_i\|^2 - \sum_i \|\psi_i\|^2) / (n (n - 1))`, and its null draws are the same with random signs
:math:`\varepsilon_{bi}` in front of the features. So features need not be kept: sums of parts of the data add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from operator import add
from typing import Any

import torch
from torch import Tensor

from pyro_ksd.common.compilation import is_compiled
from pyro_ksd.kernels.feature_sums import FeatureSums, off_diagonal_rest
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.kernels.witness import Witness


@dataclass(frozen=True, eq=False)
class SteinSums:
    r"""Sums of the Stein features ``ψ [N, D]`` of one view over some sequences.

    :param count: the number ``N`` of sequences.
    :param codes: long ``[D]``, what each column means, ascending; ``None`` for ``0 .. D-1``.
    :param total: ``[D]``, :math:`\sum_i \psi_i`.
    :param squares: ``[D]``, :math:`\sum_i \psi_i^2`, element by element.
    :param gains: ``[D]``, :math:`\sum_i \max(\psi_i, 0)`.
    :param squared_losses: a scalar, the sum of :math:`\min(\psi_i, 0)^2` over all sequences and columns.
    :param norms: a scalar, :math:`\sum_i \|\psi_i\|^2`.
    :param squared_norms: a scalar, :math:`\sum_i \|\psi_i\|^4`.
    :param signed: ``[D, B]``, :math:`\sum_i \varepsilon_{bi} \psi_i` for ``B`` draws of signs.

    >>> features = FeatureMatrix(torch.tensor([[1.0, 2.0], [3.0, -1.0]]).double())
    >>> whole = SteinSums.of(features, torch.tensor([[1, -1]], dtype=torch.int8))
    >>> whole.total.tolist(), whole.signed.tolist(), whole.norms.item()
    ([4.0, 1.0], [[-2.0], [3.0]], 15.0)
    >>> twice = whole + whole
    >>> twice.count, twice.total.tolist()
    (4, [8.0, 2.0])
    """

    count: int
    codes: Tensor | None
    total: Tensor
    squares: Tensor
    gains: Tensor
    squared_losses: Tensor
    norms: Tensor
    squared_norms: Tensor
    signed: Tensor

    @staticmethod
    def of(features: FeatureMatrix, signs: Tensor | None = None) -> SteinSums:
        """The sums of the features of some sequences.

        :param signs: int8 ``[B, N]``, -1 and 1, those of these sequences; left out, there are no draws.
        """
        return SteinSums.of_parts([features], signs)

    @staticmethod
    def of_parts(parts: Sequence[FeatureMatrix], signs: Tensor | None = None) -> SteinSums:
        """As :meth:`of`, from the features of the first sequences, the next ones, and so on; dense ones stay apart."""
        if len(parts) > 1 and any(part.values.is_sparse for part in parts):
            parts = [FeatureMatrix.cat(parts)]
        n = sum(map(len, parts))
        signs = torch.zeros(0, n, dtype=torch.int8) if signs is None else signs
        sums = reduce(add, [FeatureSums.of(part.values, len(part)) for part in parts])
        return SteinSums(
            count=n,
            codes=parts[0].codes,
            total=sums.total[0],
            squares=sums.squares[0],
            gains=sums.gains[0],
            squared_losses=sums.squared_losses[0],
            norms=sums.squares.sum(),
            squared_norms=sums.squared_norms[0],
            signed=_signed_sums(parts, signs),
        )

    @staticmethod
    def each_of(features: Sequence[FeatureMatrix]) -> Sequence[SteinSums]:
        """The sums of :meth:`of` without signs, for each of ``K`` models of the same sequences."""
        n = len(features[0])
        if not n or any(own.values.is_sparse or own.codes is not None for own in features):
            return [SteinSums.of(own) for own in features]
        return SumsOfModels(n, FeatureSums.of_each([own.values for own in features]))

    def __len__(self) -> int:
        return self.count

    def __add__(self, other: SteinSums) -> SteinSums:
        """The sums over the sequences of both; columns are matched by their codes."""
        codes, left, right = _columns(self, other)
        size = len(codes) if codes is not None else max(len(self.total), len(other.total))
        values: dict[str, Any] = {"count": self.count + other.count, "codes": codes}
        for field in fields(SteinSums)[2:]:
            own, others = getattr(self, field.name), getattr(other, field.name)
            if not own.ndim or (left is None and right is None):
                values[field.name] = own + others
            elif right is None:
                values[field.name] = others.index_add(0, left, own)
            else:
                values[field.name] = _placed(own, left, size).index_add_(0, right, others)
        return SteinSums(**values)

    def without_signs(self) -> SteinSums:
        """The same without the sums for draws of signs, which take most of the memory."""
        return self.with_draws(0)

    def with_draws(self, count: int) -> SteinSums:
        """The same with the first of the draws of signs only."""
        return self if count == self.signed.shape[1] else replace(self, signed=self.signed[:, :count].clone())

    def off_diagonal_sum(self) -> Tensor:
        """``Σ_{i≠j} <ψ_i, ψ_j>``, a scalar."""
        return off_diagonal_rest(self.total.square().sum(), self.norms)

    def signed_sums(self, missing: SteinSums | None = None) -> Tensor:
        """``Σ_{i≠j} ε_bi ε_bj <ψ_i, ψ_j>`` for each draw, ``[B]``.

        :param missing: sums over further sequences, whose signs join in; the diagonal stays that of the data.
        """
        signed = self.signed if missing is None else (self + missing).signed
        return off_diagonal_rest(signed.square().sum(0), self.norms)

    def witness(self, features: FeatureMatrix) -> Witness:
        """The witness of all sequences without the one that it is asked of, for sequences with these features."""
        return Witness(self.total_in(features), features)

    def total_in(self, features: FeatureMatrix) -> Tensor:
        """The sums of the features in the columns of some others, ``[D']``."""
        if self.codes is None:
            return self.total if features.codes is None else self.total[features.codes]
        columns = features.values.shape[1]
        codes = torch.arange(columns) if features.codes is None else features.codes
        if not len(self.codes):
            return self.total.new_zeros(columns)
        place = torch.searchsorted(self.codes, codes).clamp_(max=len(self.codes) - 1)
        return self.total[place] * (self.codes[place] == codes)


@dataclass(frozen=True, eq=False)
class SumsOfModels(Sequence[SteinSums]):
    """The sums without signs of the same sequences under each of ``K`` models, with a column for every code.

    They are held together: a check of many posterior draws needs a few of them one by one.

    :param num_sequences: how many there are.
    :param sums: of the features under each model, ``[K, D]``.

    >>> psi = FeatureMatrix(torch.tensor([[1.0, 2.0], [3.0, -1.0]]).double())
    >>> both = SumsOfModels(2, FeatureSums.of_each([psi.values, 2 * psi.values]))
    >>> len(both), both[1].total.tolist(), both.off_diagonal_sums().tolist()
    (2, [8.0, 2.0], [2.0, 8.0])
    """

    num_sequences: int
    sums: FeatureSums

    def __len__(self) -> int:
        return len(self.sums.total)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(len(self)))]
        sums = self.sums
        return SteinSums(
            count=self.num_sequences,
            codes=None,
            total=sums.total[index],
            squares=sums.squares[index],
            gains=sums.gains[index],
            squared_losses=sums.squared_losses[index],
            norms=sums.squares[index].sum(),
            squared_norms=sums.squared_norms[index],
            signed=sums.total.new_zeros(sums.total.shape[1], 0),
        )

    def off_diagonal_sums(self) -> Tensor:
        """:meth:`SteinSums.off_diagonal_sum` under each model, ``[K]``."""
        return self.sums.off_diagonal


def added_each(left: Sequence[SteinSums], right: Sequence[SteinSums]) -> Sequence[SteinSums]:
    """The sums over the sequences of both, for each model."""
    if isinstance(left, SumsOfModels) and isinstance(right, SumsOfModels):
        return SumsOfModels(left.num_sequences + right.num_sequences, left.sums + right.sums)
    return [one + other for one, other in zip(left, right, strict=True)]


def _signed_sums(parts: Sequence[FeatureMatrix], signs: Tensor) -> Tensor:
    r""":math:`\sum_i \varepsilon_{bi} \psi_i`, ``[D, B]``, from signs ``[B, N]``."""
    if not len(signs):
        return parts[0].values.new_zeros(parts[0].values.shape[1], 0, layout=torch.strided)
    if not is_compiled() or not signs.numel():
        own_signs = signs.double().split(list(map(len, parts)), 1)
        sums = [part.weighted_sum(own) for part, own in zip(parts, own_signs, strict=True)]
        return reduce(add, sums).t().contiguous()
    from pyro_ksd.stein.compiled_sums import signed_sums, signed_sums_of_entries

    values = parts[0].values
    if not values.is_sparse:
        return signed_sums([part.values for part in parts], signs)
    (row, column) = values.indices()
    return signed_sums_of_entries(row, column, values.values(), signs, values.shape[1])


def _columns(left: SteinSums, right: SteinSums) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """The codes of both, and the places of each one's columns among them; ``None`` where places do not change."""
    if left.codes is None and right.codes is None:
        return None, None, None
    if left.codes is None or right.codes is None:  # one of them has a column for every code
        return None, left.codes, right.codes
    if left.codes.equal(right.codes):
        return left.codes, None, None
    codes = torch.cat([left.codes, right.codes]).unique()
    places = [None if len(own) == len(codes) else torch.searchsorted(codes, own) for own in (left.codes, right.codes)]
    return codes, places[0], places[1]


def _placed(values: Tensor, place: Tensor | None, size: int) -> Tensor:
    """Values of columns, ``[D, ...]``, in new memory, at the places of these among ``size``."""
    if place is None:
        return values.clone()
    return values.new_zeros(size, *values.shape[1:]).index_copy_(0, place, values)

# SPDX-License-Identifier: Apache-2.0
r"""How many sequences must be removed until the rest agrees with the model, feature by feature.

Data agree with a model if no score :math:`z_u = \sum_i \psi_u(x_i) / \sqrt{v_u}` of the Stein features exceeds a
critical value (:mod:`pyro_ksd.fit_tests.feature_scores`). For one feature the best sequences to remove are those that
push its sum the furthest:

.. math::
    z_u(m) = \frac{s \sum_i \psi_u(x_i) - \sum_{j \le m} (s\,\psi_u)_{(j)}}{\sqrt{v_u}}, \qquad
    s = \operatorname{sign} \sum_i \psi_u(x_i),

with :math:`(s\,\psi_u)_{(1)} \ge (s\,\psi_u)_{(2)} \ge \dots` the positive parts in descending order. The spread
:math:`\sqrt{v_u}` stays that of all sequences.

The positive parts are not sorted but counted, in classes of about equal strength. Of a class the number, the sum and
the largest part are known, and those add up over parts of the data. Where only some sequences of a class are to be
removed, each of them counts as the largest one. So never more removals are stated than needed; the difference is at
most 2 %, and nothing if the parts of the class are equal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pyro_ksd.common.compilation import is_compiled
from pyro_ksd.fit_tests.feature_scores import scores
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.stein.sums import SteinSums

_STEPS = 32  # classes for each factor of 2
_CLASSES = 20 * _STEPS
_MOST_PARTS = 2**27  # of all sequences and columns together, which takes seconds
_LEAST_COLUMNS = 16


@dataclass(frozen=True, eq=False)
class Pushes:
    """How strongly sequences push the sums of ``C`` features, in ``K`` classes of descending strength.

    :param count: the number of sequences.
    :param codes: long ``[C]``, the codes of the features, ascending.
    :param total: double ``[C]``, the sums of the features over all of the data.
    :param spread: double ``[C]``, the spreads of these sums.
    :param reach: double ``[C]``, what no push can exceed.
    :param number: double ``[C, K]``, how many sequences push.
    :param sum: double ``[C, K]``, the sums of their pushes.
    :param largest: double ``[C, K]``, their largest push, 0 if there is none.
    """

    count: int
    codes: Tensor
    total: Tensor
    spread: Tensor
    reach: Tensor
    number: Tensor
    sum: Tensor
    largest: Tensor

    @staticmethod
    def none(sums: SteinSums, least: float = 0.0) -> Pushes:
        """For features whose score is above ``least``, before any sequence was looked at.

        For very large data, those are taken whose scores are largest.

        :param sums: over all of the data.
        """
        total, spread = scores(sums)
        z = total.abs() / spread.clamp(min=torch.finfo(spread.dtype).tiny)
        most = max(_LEAST_COLUMNS, _MOST_PARTS // max(1, len(sums)))
        columns = z.argsort(descending=True, stable=True)[:most]
        columns = columns[z[columns] > least].sort().values
        shape = (len(columns), _CLASSES)
        return Pushes(
            count=0,
            codes=columns if sums.codes is None else sums.codes[columns],
            total=total[columns],
            spread=spread[columns],
            reach=sums.squares[columns].sqrt(),
            number=total.new_zeros(shape),
            sum=total.new_zeros(shape),
            largest=total.new_zeros(shape),
        )

    def __add__(self, other: Pushes) -> Pushes:
        """The pushes of the sequences of both, towards the same features."""
        return replace(
            self,
            count=self.count + other.count,
            number=self.number + other.number,
            sum=self.sum + other.sum,
            largest=torch.maximum(self.largest, other.largest),
        )

    def plus(self, features: FeatureMatrix) -> Pushes:
        """With the sequences that have these features; takes over the tables of this one, which is of no use then."""
        if is_compiled() and not features.values.is_sparse:
            from pyro_ksd.fit_tests.compiled_pushes import add_pushes

            tables = (self.number, self.sum, self.largest)
            directions = (self.total.sign(), self.reach)
            add_pushes(features.values, *self._shared_columns(features), *directions, _STEPS, *tables)
            return replace(self, count=self.count + len(features))
        column, value = self._pushing(features)
        strength = (self.reach[column] / value).log2_().mul_(_STEPS).long().clamp_(0, _CLASSES - 1)
        place = column * _CLASSES + strength
        self.number.view(-1).index_add_(0, place, torch.ones_like(value))
        self.sum.view(-1).index_add_(0, place, value)
        self.largest.view(-1).scatter_reduce_(0, place, value, "amax")
        return replace(self, count=self.count + len(features))

    def _pushing(self, features: FeatureMatrix) -> tuple[Tensor, Tensor]:
        """The columns, long ``[M]``, and the strengths, ``[M]``, of all pushes in the direction of the total."""
        codes = torch.arange(features.values.shape[1]) if features.codes is None else features.codes
        if not len(self.codes) or not len(codes):
            return self.codes.new_zeros(0), self.total.new_zeros(0)
        if features.values.is_sparse:
            own = torch.searchsorted(self.codes, codes).clamp_(max=len(self.codes) - 1)
            own = own.masked_fill(self.codes[own] != codes, -1)[features.values.indices()[1]]
            column = own[own >= 0]
            value = features.values.values()[own >= 0] * self.total.sign()[column]
        else:
            place, known = self._shared_columns(features)
            part = features.values[:, place] * self.total.sign()[known]
            column = known.expand_as(part).reshape(-1)
            value = part.reshape(-1)
        pushing = value > 0
        return column[pushing], value[pushing]

    def _shared_columns(self, features: FeatureMatrix) -> tuple[Tensor, Tensor]:
        """The columns of some features that are among those here, and which ones these are; long ``[M]`` each."""
        if features.codes is None:
            known = (self.codes < features.values.shape[1]).nonzero().squeeze(1)
            return self.codes[known], known
        codes = features.codes
        if not len(codes):
            return codes, codes
        place = torch.searchsorted(codes, self.codes).clamp_(max=len(codes) - 1)
        known = (codes[place] == self.codes).nonzero().squeeze(1)
        return place[known], known

    def fewest(self, critical: Tensor) -> Tensor:
        r"""The smallest :math:`m` with :math:`z_u(m) \le c` for each critical value and feature, long ``[C', C]``.

        :param critical: ``[C']``, values of :math:`c` of at least 0.

        >>> psi = FeatureMatrix(torch.tensor([[5.0, 1.0], [4.0, -1.0], [3.0, 1.0], [-1.0, -1.0]]).double())
        >>> sums = SteinSums.of(psi)
        >>> pushes = Pushes.none(sums).plus(psi)
        >>> pushes.fewest(torch.tensor([1.0, 0.5]))  # 11 exceeds √51 by 3.9, √51 / 2 by 7.4
        tensor([[1],
                [2]])
        """
        excess = self.total.abs() - critical[:, None] * self.spread
        removed = self.sum.cumsum(1)
        whole = (removed < excess[..., None]).sum(-1)  # classes that go as a whole
        before = torch.where(whole > 0, _at(removed, whole - 1), 0.0)
        rest = excess - before
        number = torch.where(whole > 0, _at(self.number.cumsum(1), whole - 1), 0.0)
        largest = _at(self.largest, whole)
        some = torch.where(largest > 0, (rest / largest - 1e-9).ceil(), 0.0)
        return torch.where(excess > 0, (number + some).clamp(max=self.count), 0.0).long()

    def score_after(self, num_removed: int) -> Tensor:
        r"""The largest :math:`z_u(m)` of all features after the removal of ``num_removed`` sequences, at least 0.

        >>> psi = FeatureMatrix(torch.tensor([[5.0, 1.0], [4.0, -1.0], [3.0, 1.0], [-1.0, -1.0]]).double())
        >>> sums = SteinSums.of(psi)
        >>> Pushes.none(sums).plus(psi).score_after(1)  # (11 - 5) / √51
        tensor(0.8402, dtype=torch.float64)
        """
        if not len(self.codes):
            return self.total.new_zeros(())
        number = self.number.cumsum(1)
        whole = (number <= num_removed).sum(1)
        gone = torch.where(whole > 0, _at(self.sum.cumsum(1)[None], (whole - 1)[None])[0], 0.0)
        left = num_removed - torch.where(whole > 0, _at(number[None], (whole - 1)[None])[0], 0.0)
        gone = gone + torch.minimum(left * _at(self.largest[None], whole[None])[0], _at(self.sum[None], whole[None])[0])
        spread = self.spread.clamp(min=torch.finfo(self.spread.dtype).tiny)
        return ((self.total.abs() - gone) / spread).amax().clamp(min=0)


def _at(values: Tensor, index: Tensor) -> Tensor:
    """``values[..., c, index[r, c]]`` for ``[C, K]`` values and indices ``[R, C]``; 0 for an index beyond the last."""
    inside = index.clamp(0, values.shape[-1] - 1)
    found = values.expand(len(index), *values.shape[-2:]).gather(2, inside[..., None])[..., 0]
    return torch.where(index < values.shape[-1], found, 0.0)

# SPDX-License-Identifier: Apache-2.0
"""Kernels that compare sequences with similar covariates only, such as answers to the same prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_function, check_instance
from pyro_ksd.common.tensor_checks import shown
from pyro_ksd.edits.weighted_edits import WeightedEdits
from pyro_ksd.kernels.base import FeatureKernel
from pyro_ksd.kernels.feature_places import LARGEST_CODE
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.kernels.witness import Witness
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.covariate_groups import CovariateFeatures, OwnFeatures
from pyro_ksd.sequences.covariates import Covariates

COUNTED = ("ngram", "start", "end", "ends", "skip", "position")
"""Kinds of features that are numbers of occurrences."""

_COLUMNS = 2**20
"""At most so many features of covariates; the code of a product is that of the sequence times this, plus the column."""
_DENSE = 2**10  # up to so many features a dense matrix takes less time than a sparse one


@dataclass(frozen=True, eq=False)
class ConditionalKernel(FeatureKernel):
    r"""The product of a kernel on sequences and a kernel on their covariates.

    .. math:: k\bigl((x, c), (x', c')\bigr) = \langle \varphi(x), \varphi(x') \rangle\,
        \langle g(c), g(c') \rangle.

    Edits do not change covariates, so the Stein features are products as well,
    :math:`\psi(x, c) = \psi(x) \otimes g(c)`, and take time that is linear in the number of sequences. Under the
    model, their mean is 0 for each value of the covariates. So this kernel sees faults that cancel in the mean over all
    covariates: answers to prompts that were exchanged, for example.

    :param kernel: the kernel on sequences.
    :param covariate_features: takes the :class:`~pyro_ksd.sequences.covariates.Covariates` of ``N`` sequences and
        returns ``g``, a tensor ``[N, G]``, dense or sparse (COO), such as the indicators of groups.

    >>> from pyro_ksd.kernels import StartKernel
    >>> data = Sequences.of(["ab", "ab", "b"]).with_covariates([0, 1, 1])
    >>> same = ConditionalKernel(StartKernel(), lambda known: torch.nn.functional.one_hot(known.values, 2))
    >>> same.gram(data, data).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    kernel: FeatureKernel
    covariate_features: Callable[[Covariates], Tensor]

    def __post_init__(self) -> None:
        check_instance("kernel", self.kernel, FeatureKernel, "a kernel with features, such as ContiguousKernel(2)")
        check_function("covariate_features", self.covariate_features, "covariates")
        if not isinstance(self.covariate_features, CovariateFeatures):
            object.__setattr__(self, "covariate_features", OwnFeatures(self.covariate_features))

    @property
    def is_threadsafe(self) -> bool:
        return self.kernel.is_threadsafe and not isinstance(self.covariate_features, OwnFeatures)

    def check_data(self, sequences: Sequences) -> None:
        self.kernel.check_data(sequences)
        if not len(sequences):
            return
        rows = torch.arange(min(len(sequences), 20))
        few = sequences[rows]
        alone = torch.cat([self._features_of(few[row : row + 1]).to_dense() for row in rows.tolist()])
        together = self._features_of(few).to_dense()
        if alone.shape != together.shape or not torch.allclose(alone, together, rtol=1e-5, atol=1e-9):
            raise ValueError(
                "covariate_features: expected features of each row of covariates by itself, found that they change "
                "with the other rows; do not center or scale them within the batch (use constants)"
            )

    def features(self, sequences: Sequences) -> FeatureMatrix:
        return _multiplied(self.kernel.features(sequences), self._features_of(sequences))

    def stein_features_each(self, chunk: WeightedEdits) -> list[FeatureMatrix]:
        factors = self._features_of(chunk.sequences)
        return [_multiplied(own, factors) for own in self.kernel.stein_features_each(chunk)]

    def steps_along(self, chunk: WeightedEdits, witness: Witness) -> Tensor:
        factors = self._features_of(chunk.sequences)
        steps = torch.zeros(len(chunk.edits), dtype=torch.double)
        for part in _parts(chunk, factors, witness):
            steps[part.edits] += self.kernel.steps_along(part.chunk, part.witness) * part.factors
        return steps

    @property
    def feature_kind(self) -> Literal["grouped", "feature", ""]:
        if not self.kernel.feature_kind:
            return ""
        return "grouped" if self.kernel.feature_kind in COUNTED else "feature"

    def group_label(self, column: int) -> str:
        """What a feature of the covariates is called."""
        return self._named.label(column)

    def split_codes(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        """The features of sequences and of covariates, long ``[D]`` each, of which ``codes`` are the products.

        >>> from pyro_ksd.kernels import StartKernel
        >>> kernel = ConditionalKernel(StartKernel(), lambda known: known.values)
        >>> kernel.split_codes(torch.tensor([5 * 2**20 + 1]))
        (tensor([5]), tensor([1]))
        """
        return codes // _COLUMNS, codes % _COLUMNS

    @property
    def meaning(self) -> str:
        return f"{self.kernel.meaning}, given {self._named.name}"

    @property
    def _named(self) -> CovariateFeatures:
        assert isinstance(self.covariate_features, CovariateFeatures)
        return self.covariate_features

    def _features_of(self, sequences: Sequences) -> Tensor:
        """``g`` of the sequences, ``[N, G]``, dense or sparse."""
        if sequences.covariates is None:
            raise ValueError(
                "covariate_features: expected sequences with covariates, found none; pass data.with_covariates(...)"
            )
        with torch.no_grad():
            values = self.covariate_features(sequences.covariates)
        size = len(sequences)
        if not isinstance(values, Tensor) or values.ndim != 2 or len(values) != size or values.shape[1] > _COLUMNS:
            raise ValueError(
                f"covariate_features: expected a tensor [{size}, G] with up to {_COLUMNS} features for {size} rows of "
                f"covariates, found {shown(values)}"
            )
        numbers = values.coalesce().values() if values.is_sparse else values
        if not numbers.isfinite().all():
            raise ValueError("covariate_features: expected finite numbers, found NaN or infinity")
        return values.double()


def _multiplied(matrix: FeatureMatrix, factors: Tensor) -> FeatureMatrix:
    """The products of all features with all features of the covariates, ``[N, D G]``."""
    size = factors.shape[1]
    codes = torch.arange(matrix.values.shape[1]) if matrix.codes is None else matrix.codes
    if len(codes) and int(codes[-1]) >= LARGEST_CODE // _COLUMNS:
        raise ValueError(
            f"covariate_features: expected a kernel with at most {LARGEST_CODE // _COLUMNS} different features, found "
            "more; use shorter n-grams or a smaller alphabet"
        )
    if not matrix.values.is_sparse and len(codes) * size <= _DENSE:
        values = matrix.values[:, :, None] * factors.to_dense()[:, None, :]
        return FeatureMatrix(values.flatten(1), (codes[:, None] * _COLUMNS + torch.arange(size)).flatten())
    row, code, value = matrix.entries()
    begin, column, factor = _by_row(factors)
    count = begin.diff()[row]
    # Each entry of the features meets all entries of the covariates of its row.
    entry = torch.arange(len(row)).repeat_interleave(count)
    step = torch.arange(len(entry)) - (count.cumsum(0) - count)[entry]
    other = begin[row[entry]] + step
    return FeatureMatrix.from_entries(
        row[entry], code[entry] * _COLUMNS + column[other], value[entry] * factor[other], len(matrix)
    )


def _by_row(factors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Where the entries of each row begin, long ``[N + 1]``, their columns and values ``[M]``; without zeros."""
    if factors.is_sparse:
        row, column = factors.coalesce().indices()
        values = factors.coalesce().values()
    else:
        row, column = factors.nonzero().unbind(1)
        values = factors[row, column]
    return torch.searchsorted(row, torch.arange(len(factors) + 1)), column, values


@dataclass(frozen=True, eq=False)
class _Part:
    """The sequences of a chunk for which one feature of the covariates is not 0.

    :param edits: the flat positions of their edits, long ``[E']``.
    :param chunk: the sequences with these edits.
    :param witness: the witness of the sequences in this feature.
    :param factors: the feature itself, for each of the edits, ``[E']``.
    """

    edits: Tensor
    chunk: WeightedEdits
    witness: Witness
    factors: Tensor


def _parts(chunk: WeightedEdits, factors: Tensor, witness: Witness) -> Iterator[_Part]:
    """The parts of a chunk, one for each feature of the covariates."""
    own = witness.own
    codes = torch.arange(len(witness.total)) if own.codes is None else own.codes
    in_order = (codes % _COLUMNS).argsort(stable=True)
    columns_of = (codes % _COLUMNS)[in_order]
    by_column = factors.to_dense().t() if not factors.is_sparse else factors.t().coalesce()
    begin, row, value = _by_row(by_column)
    owner = chunk.edits.owner
    for column in (begin.diff() > 0).nonzero().squeeze(1).tolist():
        rows = row[begin[column] : begin[column + 1]]
        first, last = torch.searchsorted(columns_of, torch.tensor([column, column + 1])).tolist()
        places = in_order[first:last]
        factor = torch.zeros(len(factors), dtype=torch.double)
        factor[rows] = value[begin[column] : begin[column + 1]]
        is_own = torch.zeros(len(factors), dtype=torch.bool)
        is_own[rows] = True
        edits = is_own[owner].nonzero().squeeze(1)
        some = own.values.index_select(0, rows).index_select(1, places)
        matrix = FeatureMatrix(some.coalesce() if some.is_sparse else some, codes[places] // _COLUMNS)
        part = WeightedEdits(
            chunk.begin,
            chunk.sequences[rows],
            chunk.edits.select(edits).within(rows),
            chunk.weights[..., edits],
            None if chunk.log_ratio is None else chunk.log_ratio[..., edits],
        )
        yield _Part(edits, part, Witness(witness.total[places], matrix), factor[owner[edits]])

# SPDX-License-Identifier: Apache-2.0
"""Kernels given covariates, against products of kernel matrices."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from pyro_ksd import Sequences
from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.edits.weighted_edits import WeightedEdits
from pyro_ksd.examples import random_walk
from pyro_ksd.kernels import ConditionalKernel, ContiguousKernel, FeatureKernel, PairwiseKernel, StartKernel
from pyro_ksd.kernels.embedding import EmbeddingKernel
from pyro_ksd.kernels.length import LengthKernel
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.kernels.surprise import SurpriseKernel
from pyro_ksd.kernels.witness import Witness
from pyro_ksd.sequences.covariate_groups import CovariateGroups
from pyro_ksd.sequences.covariates import Covariates
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.sums import SteinSums
from pyro_ksd.stein.weighting import weighted_edits

SIZE = 4
GROUPS = [7, 2, 7, 5, 2, 7, 7, 5, 2, 2]
DATA = Sequences.of(["abca", "ab", "bcd", "aabb", "c", "dcba", "abab", "b", "cd", "bc"], "abcd").with_covariates(GROUPS)


def one_hot(covariates: Covariates) -> Tensor:
    return CovariateGroups.of(DATA, "group")(covariates)


def dense(covariates: Covariates) -> Tensor:
    value = covariates.values
    assert isinstance(value, Tensor)
    return torch.stack([value.double().sin(), (value - 4).clamp(min=0).double(), value.double() / 3], 1)


KERNELS: dict[str, FeatureKernel] = {
    "single": ContiguousKernel(1),
    "pairs": ContiguousKernel(2),
    "long n-grams": ContiguousKernel(4),
    "start": StartKernel(2),
    "length": LengthKernel(),
    "surprise": SurpriseKernel(),
    "embedding": EmbeddingKernel(lambda x: torch.stack([x.lengths.double().cos(), x.tokens.sum(1).double()], 1)),
}


def chunk() -> WeightedEdits:
    return weighted_edits(random_walk(SIZE, hold=0.3), ZanellaOperator(zs()), DATA)


class Product(PairwiseKernel):
    """The definition: the product of the values of both kernels."""

    def __init__(self, kernel: FeatureKernel, features: Any) -> None:
        self.kernel = kernel
        self.covariate_features = features

    def gram(self, x: Sequences, y: Sequences) -> Tensor:
        left, right = (self.covariate_features(own.covariates).to_dense() for own in (x, y))
        product: Tensor = self.kernel.gram(x, y) * (left @ right.t())
        return product


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("features", [one_hot, dense])
def test_stein_matrices_are_products(name: str, features: Any) -> None:
    kernel = KERNELS[name]
    [own] = ConditionalKernel(kernel, features).stein_each(chunk())
    [plain] = kernel.stein_each(chunk())
    assert DATA.covariates is not None
    factors = features(DATA.covariates).to_dense()
    assert (plain.dense() * (factors @ factors.t())).abs().max() > 1e-3
    torch.testing.assert_close(own.dense(), plain.dense() * (factors @ factors.t()), rtol=1e-12, atol=1e-12)
    assert own.codes is not None
    assert (own.codes.diff() > 0).all()


@pytest.mark.parametrize("name", [name for name in KERNELS if name != "surprise"])
@pytest.mark.parametrize("features", [one_hot, dense])
def test_edits_move_along_the_witness_as_by_definition(name: str, features: Any) -> None:
    kernel = ConditionalKernel(KERNELS[name], features)
    product = Product(KERNELS[name], features)
    edits = chunk()
    torch.testing.assert_close(kernel.gram(DATA, DATA), product.gram(DATA, DATA), rtol=1e-12, atol=1e-12)
    [theirs] = product.stein_each(edits)
    [own] = kernel.stein_each(edits)
    torch.testing.assert_close(own.dense(), theirs.dense(), rtol=1e-10, atol=1e-10)
    used = edits.weights > 0
    found = kernel.edit_products(edits, own)
    torch.testing.assert_close(found[used], product.edit_products(edits, theirs)[used], rtol=1e-9, atol=1e-9)
    # And by the sums that a check keeps.
    by_sums = kernel.edit_products(edits, SteinSums.of(own).witness(own))
    torch.testing.assert_close(by_sums[used], found[used], rtol=1e-12, atol=1e-12)


def test_the_witness_of_surprise() -> None:
    kernel = ConditionalKernel(SurpriseKernel(), one_hot)
    edits = chunk()
    [own] = kernel.stein_each(edits)
    moved = edits.edits.sum_by_owner(edits.weights * kernel.edit_products(edits, own))
    torch.testing.assert_close(moved, own.others(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_parts_of_the_data_add_up(name: str) -> None:
    kernel = ConditionalKernel(KERNELS[name], one_hot)
    edits = chunk()
    [whole] = kernel.stein_each(edits)
    rows = [torch.arange(4), torch.arange(4, 10)]
    parts = []
    for own in rows:
        index = torch.isin(edits.edits.owner, own).nonzero().squeeze(1)
        assert edits.log_ratio is not None
        part = WeightedEdits(
            int(own[0]),
            DATA[own],
            edits.edits.select(index).within(own),
            edits.weights[index],
            edits.log_ratio[index],
        )
        parts.append(kernel.stein_each(part)[0])
    torch.testing.assert_close(FeatureMatrix.cat(parts).dense(), whole.dense(), rtol=1e-12, atol=1e-12)
    total = SteinSums.of(parts[0]) + SteinSums.of(parts[1])
    assert float(total.off_diagonal_sum()) == pytest.approx(float(whole.others().sum()), rel=1e-10)
    some = Witness(total.total_in(parts[1]), parts[1])
    assert some.dense().isfinite().all()


def test_several_models_at_once() -> None:
    kernel = ConditionalKernel(ContiguousKernel(2), one_hot)
    edits = chunk()
    both = WeightedEdits(0, DATA, edits.edits, torch.stack([edits.weights, edits.weights.square()]))
    one, two = kernel.stein_each(both)
    [alone] = kernel.stein_each(WeightedEdits(0, DATA, edits.edits, edits.weights.square()))
    torch.testing.assert_close(two.dense(), alone.dense(), rtol=1e-12, atol=1e-12)
    assert not torch.allclose(one.dense(), two.dense())


def test_what_features_mean() -> None:
    groups = CovariateGroups.of(DATA, "dose")
    kernel = ConditionalKernel(ContiguousKernel(2), groups)
    assert (kernel.feature_kind, kernel.meaning) == ("grouped", "pairs of neighbors, given dose")
    assert ConditionalKernel(LengthKernel(), groups).feature_kind == "feature"
    [own] = kernel.stein_each(chunk())
    assert own.codes is not None
    codes, columns = kernel.split_codes(own.codes)
    assert codes.max() < SIZE**2
    assert columns.unique().tolist() == [0, 1, 2]
    assert [kernel.group_label(column) for column in range(3)] == ["dose 2", "dose 5", "dose 7"]
    assert ConditionalKernel(StartKernel(), dense).group_label(1) == "dense 1"


def test_refuses() -> None:
    with pytest.raises(ValueError, match="kernel: expected a kernel with features"):
        ConditionalKernel(Product(StartKernel(), dense), dense)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"found none; pass data\.with_covariates"):
        ConditionalKernel(StartKernel(), dense).features(Sequences.of(["ab"]))
    for wrong in (
        lambda known: None,
        lambda known: known.values.double(),
        lambda known: known.values[:1, None].double(),
        lambda known: torch.zeros(len(known), 2**21).to_sparse(),
    ):
        with pytest.raises(ValueError, match=r"covariate_features: expected a tensor \[10, G\]"):
            ConditionalKernel(StartKernel(), wrong).features(DATA)
    with pytest.raises(ValueError, match="expected finite numbers"):
        ConditionalKernel(StartKernel(), lambda known: known.values[:, None] / 0.0).features(DATA)

    def centered(known: Covariates) -> Tensor:
        values = known.values
        assert isinstance(values, Tensor)
        return (values - values.double().mean())[:, None]

    with pytest.raises(ValueError, match="found that they change with the other rows; do not center"):
        ConditionalKernel(StartKernel(), centered).check_data(DATA)
    large = Sequences.of([[0, 1]], alphabet=2**22).with_covariates([0])
    with pytest.raises(ValueError, match="use shorter n-grams or a smaller alphabet"):
        ConditionalKernel(ContiguousKernel(2), lambda known: torch.ones(1, 1)).features(
            Sequences.of([[2**22 - 1, 1]], alphabet=2**22).with_covariates(large.covariates.values)  # type: ignore[union-attr]
        )


def test_a_million_features_of_covariates_are_allowed() -> None:
    data = Sequences.of(["a"]).with_covariates([0])
    for count, allowed in ((2**20, True), (2**20 + 1, False)):
        last = torch.sparse_coo_tensor(
            torch.tensor([[0], [count - 1]]), torch.ones(1), (1, count), check_invariants=True
        )
        kernel = ConditionalKernel(StartKernel(), lambda known, last=last: last)
        if allowed:
            assert kernel.split_codes(kernel.features(data).codes)[1].tolist() == [count - 1]  # type: ignore[arg-type]
        else:
            with pytest.raises(ValueError, match="with up to 1048576 features for 1 rows of covariates"):
                kernel.features(data)


def test_covariate_features_are_a_function() -> None:
    with pytest.raises(ValueError, match=r"covariate_features: expected a function of \(covariates\)"):
        ConditionalKernel(StartKernel(), torch.eye(3))  # type: ignore[arg-type]

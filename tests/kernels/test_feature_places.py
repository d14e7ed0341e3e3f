# SPDX-License-Identifier: Apache-2.0
"""Places of features, in a table or found by sorting: the same features in the end."""

from __future__ import annotations

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.kernels.base import FeatureKernel
from pyro_ksd.kernels.contiguous import ContiguousKernel
from pyro_ksd.kernels.feature_places import DensePlaces, FeaturePlaces, SparsePlaces
from pyro_ksd.kernels.start import StartKernel
from pyro_ksd.sequences.container import Sequences

ROWS, CODES = 4, 6
features_in_use = st.lists(st.tuples(st.integers(0, ROWS - 1), st.integers(0, CODES - 1)), min_size=1, max_size=30)


def both(entries: list[tuple[int, int]]) -> tuple[Tensor, Tensor, list[FeaturePlaces]]:
    """Rows and codes of features, and their places in both forms."""
    rows, codes = torch.tensor(entries).T.contiguous()
    return rows, codes, [DensePlaces(ROWS, CODES), SparsePlaces(rows, codes, ROWS)]


def as_dict(places: FeaturePlaces, values: Tensor) -> dict[tuple[int, int], float]:
    """The entries of the matrix that are not 0."""
    matrix = places.matrix(values)
    assert len(matrix) == ROWS
    dense = matrix.values.to_dense()
    codes = torch.arange(dense.shape[1]) if matrix.codes is None else matrix.codes
    return {(int(row), int(codes[column])): float(dense[row, column]) for row, column in dense.nonzero()}


@settings(deadline=None, max_examples=60)
@given(features_in_use)
def test_both_forms_agree(entries: list[tuple[int, int]]) -> None:
    rows, codes, forms = both(entries)
    values = torch.arange(1, len(entries) + 1, dtype=torch.double)
    expected: dict[tuple[int, int], float] = {}
    for feature, value in zip(entries, values.tolist(), strict=True):
        expected[feature] = expected.get(feature, 0.0) + value
    for places in forms:
        place = places.of(rows, codes)
        assert int(place.min()) >= 0
        assert int(place.max()) < places.size
        assert as_dict(places, torch.zeros(places.size).double().index_add_(0, place, values)) == expected


@settings(deadline=None, max_examples=60)
@given(features_in_use)
def test_places_know_their_features(entries: list[tuple[int, int]]) -> None:
    rows, codes, (dense, sparse) = both(entries)
    for places in (dense, sparse):
        row, code = places.entries()
        assert len(row) == len(code) == places.size
        place = places.of(rows, codes)
        assert row[place].equal(rows)
        assert code[place].equal(codes)
        assert places.of(row, code).tolist() == list(range(places.size))
        of_rows = torch.tensor([3.0, 1.0, 4.0, 1.5]).double()
        assert places.spread(of_rows).equal(of_rows[row])
    assert list(zip(*(part.tolist() for part in sparse.entries()), strict=True)) == sorted(set(entries))


def test_rows_and_codes_broadcast() -> None:
    rows, codes = torch.tensor([0, 2]), torch.tensor([[1, 5], [3, 0], [1, 1]])
    for places in (DensePlaces(3, 6), SparsePlaces(rows.expand_as(codes).reshape(-1), codes.reshape(-1), 3)):
        place = places.of(rows, codes)
        assert place.shape == (3, 2)
        row, code = places.entries()
        assert row[place].equal(rows.expand(3, 2))
        assert code[place].equal(codes)


def test_codes_may_be_as_large_as_they_like() -> None:
    rows, codes = torch.tensor([1, 0, 1]), torch.tensor([2**62 - 1, 5, 2**61])
    places = FeaturePlaces.number([(rows, codes)], 2, 2**62)
    assert isinstance(places, SparsePlaces)
    assert places.size == 3
    matrix = places.matrix(torch.zeros(3).double().index_add_(0, places.of(rows, codes), torch.ones(3).double()))
    assert matrix.codes is not None
    assert matrix.codes.tolist() == [5, 2**61, 2**62 - 1]
    assert matrix.values.to_dense().tolist() == [[1, 0, 0], [0, 1, 1]]


def test_more_codes_than_that_are_refused() -> None:
    message = f"expected at most 2**62 different features, found {2**62 + 1}; use shorter n-grams (or prefixes) or"
    with pytest.raises(ValueError, match=re.escape(message)):
        FeaturePlaces.number([], 1, 2**62 + 1)


def test_a_table_is_taken_where_it_is_small_or_well_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    few = [(torch.arange(3), torch.arange(3))]
    many = [(torch.arange(3), torch.zeros(100, 3, dtype=torch.long))]
    assert isinstance(FeaturePlaces.number(few, 3, 800), DensePlaces)
    monkeypatch.setattr("pyro_ksd.kernels.feature_places._DENSE_PLACES", 0)
    assert isinstance(FeaturePlaces.number(few, 3, 800), SparsePlaces)
    assert isinstance(FeaturePlaces.number(many, 3, 800), DensePlaces)


def test_a_table_that_is_hardly_filled_gives_a_sparse_matrix() -> None:
    places = DensePlaces(2, 50)
    for used, is_sparse in ((12, True), (13, False)):
        matrix = places.matrix((torch.arange(100) < used).double())
        assert matrix.values.is_sparse == is_sparse
        assert int(matrix.values.to_dense().sum()) == used


@pytest.mark.parametrize("kernel", [ContiguousKernel(2), ContiguousKernel(1, 2, form="cosine"), StartKernel(2)])
def test_kernels_do_not_depend_on_the_form(kernel: FeatureKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYRO_KSD_COMPILED", "0")
    data = Sequences.of([[0, 199, 7, 7], [3], [], [7, 7, 7, 3, 150]], 200)
    edits = zs(symbols=1, insertable=[7]).edits(data)
    weights = torch.rand(len(edits), dtype=torch.double, generator=torch.Generator().manual_seed(0))
    numbered = []
    number = FeaturePlaces.number

    def noted(*arguments: object) -> FeaturePlaces:
        numbered.append(number(*arguments))  # type: ignore[arg-type]
        return numbered[-1]

    monkeypatch.setattr(FeaturePlaces, "number", staticmethod(noted))
    table = kernel.stein(data, edits, weights).dense()
    assert {type(places) for places in numbered} == {DensePlaces}
    numbered.clear()
    monkeypatch.setattr("pyro_ksd.kernels.feature_places._DENSE_PLACES", -1)
    again = kernel.stein(data, edits, weights).dense()
    assert SparsePlaces in {type(places) for places in numbered}
    torch.testing.assert_close(again, table, rtol=1e-12, atol=1e-13)
    assert bool(table.diagonal().any())


@pytest.mark.parametrize(("features", "sparse"), [(15, False), (16, False), (17, True)])
def test_up_to_sixteen_features_are_never_sparse(features: int, sparse: bool) -> None:
    places = DensePlaces(4, features)
    values = torch.zeros(4 * features, dtype=torch.double)
    values[3] = 1.0
    assert places.matrix(values).values.is_sparse is sparse

# SPDX-License-Identifier: Apache-2.0
"""A Stein kernel matrix in every form against the matrix itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from example_matrices import MATRICES, PSI, sparse
from torch import Tensor

from pyro_ksd.kernels.stein_matrices import FeatureMatrix, GramMatrix, SumMatrix

H = PSI @ PSI.T
both_forms = pytest.mark.parametrize("form", [FeatureMatrix, sparse], ids=["dense", "sparse"])


def assert_same(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", MATRICES)
def test_every_form_is_the_same_matrix(name: str) -> None:
    matrix, hollow = MATRICES[name], H - H.diagonal().diag()
    assert len(matrix) == 7
    assert_same(matrix.dense(), H)
    assert_same(matrix.diagonal(), H.diagonal())
    assert_same(matrix.others(), hollow.sum(1))
    assert_same(matrix.off_diagonal_sums(7), hollow.sum()[None])
    assert_same(matrix.scaled(3.0).dense(), 3 * H)
    assert matrix.copied().dense().equal(matrix.dense())
    weights = torch.tensor([[1, -1, 1, 1, -1, -1, 1], [2, 0, -1, 3, 0, 1, 0.5]], dtype=torch.double)
    assert_same(matrix.off_diagonal_form(weights), torch.stack([w @ hollow @ w for w in weights]))


def test_dense_and_sparse_rows_put_together_match_their_codes() -> None:
    one = FeatureMatrix(torch.tensor([[1.0, 0.0, 2.0]], dtype=torch.double))
    other = FeatureMatrix.from_entries(
        torch.tensor([0, 0]), torch.tensor([2, 7]), torch.tensor([3.0, 4.0], dtype=torch.double), 1
    )
    together = FeatureMatrix.cat([one, other])
    assert together.codes is not None
    assert together.codes.tolist() == [0, 2, 7]
    assert together.values.to_dense().tolist() == [[1, 2, 0], [0, 3, 4]]


def test_many_rows_of_weights_come_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = torch.randn(50, 7, dtype=torch.double, generator=torch.Generator().manual_seed(1))
    whole = {name: matrix.off_diagonal_form(weights) for name, matrix in MATRICES.items()}
    monkeypatch.setattr("pyro_ksd.kernels.stein_matrices.ENTRIES", 20)
    for name, matrix in MATRICES.items():
        torch.testing.assert_close(matrix.off_diagonal_form(weights), whole[name], rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(matrix.dense(), PSI @ PSI.T, rtol=1e-12, atol=1e-13)


@both_forms
def test_without_a_common_feature_nothing_is_left_and_not_its_rounding(form: Callable[[Tensor], FeatureMatrix]) -> None:
    rows, columns = torch.arange(40), torch.arange(40 * 25).view(40, 25)
    values = torch.rand(40, 25, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    matrix = form(torch.zeros(40, 1_000, dtype=torch.double).index_put_((rows[:, None], columns), values))
    signs = torch.tensor([[1.0, -1.0] * 20, [1.0] * 40], dtype=torch.double)
    assert matrix.off_diagonal_form(signs).tolist() == [0.0, 0.0]
    assert matrix.off_diagonal_sums(20).tolist() == [0.0, 0.0]
    assert matrix.diagonal().min() > 0


def test_what_has_features() -> None:
    for name, matrix in MATRICES.items():
        assert matrix.features is (matrix if isinstance(matrix, FeatureMatrix) else None), name


@both_forms
@pytest.mark.parametrize(("begin", "end"), [(0, 7), (0, 3), (2, 5), (3, 4), (6, 7), (4, 4)])
def test_some_rows(form: Callable[[Tensor], FeatureMatrix], begin: int, end: int) -> None:
    part = form(PSI).rows(begin, end)
    assert len(part) == end - begin
    assert_same(part.dense(), H[begin:end, begin:end])
    assert (part.codes is None) == (form is FeatureMatrix)
    if part.codes is not None:
        assert part.codes.tolist() == [0, 10**15, 3 * 10**15]  # those of all rows
        assert part.values.is_coalesced()


@both_forms
@pytest.mark.parametrize("entries", [1, 2**24])
def test_sums_over_groups(
    form: Callable[[Tensor], FeatureMatrix], entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyro_ksd.kernels.stein_matrices.ENTRIES", entries)
    matrix = form(PSI[:6])
    kept = PSI[:6] if form is FeatureMatrix else PSI[:6][:, [0, 1, 3]]
    assert len(list(matrix.group_sums(2))) == (3 if entries == 1 else 1)
    assert_same(torch.cat([sums.total for sums in matrix.group_sums(2)]), kept.view(3, 2, -1).sum(1))
    assert_same(torch.cat([sums.squares for sums in matrix.group_sums(3)]), kept.view(2, 3, -1).square().sum(1))
    assert_same(matrix.total, kept.sum(0))
    hollow = PSI[:6] @ PSI[:6].T
    hollow.fill_diagonal_(0.0)
    expected = torch.stack([hollow[rows, rows].sum() for rows in (slice(0, 2), slice(2, 4), slice(4, 6))])
    assert_same(matrix.off_diagonal_sums(2), expected)
    assert_same(GramMatrix(PSI[:6] @ PSI[:6].T).off_diagonal_sums(2), expected)


@both_forms
def test_products_of_some_rows(form: Callable[[Tensor], FeatureMatrix], monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = torch.tensor([5, 0, 0]), torch.tensor([6, 1, 3, 2])
    for entries in (2**24, 1):
        monkeypatch.setattr("pyro_ksd.kernels.stein_matrices.ENTRIES", entries)
        assert_same(form(PSI).products(left, right), H[left][:, right])


def test_no_sequences_have_no_sum() -> None:
    assert FeatureMatrix(PSI[:0]).total.tolist() == [0.0] * 4
    for none in (FeatureMatrix(PSI[:0]), GramMatrix(H[:0, :0])):
        assert none.off_diagonal_form(torch.zeros(3, 0, dtype=torch.double)).tolist() == [0.0] * 3
        assert none.others().tolist() == []


def test_entries_at_one_place_are_added_up() -> None:
    rows, codes = torch.tensor([1, 0, 1, 1]), torch.tensor([9, 4, 9, 2**61])
    matrix = FeatureMatrix.from_entries(rows, codes, torch.tensor([1.0, 2.0, 3.0, 5.0]).double(), 3)
    assert matrix.codes is not None
    assert matrix.codes.tolist() == [4, 9, 2**61]
    assert matrix.values.to_dense().tolist() == [[2, 0, 0], [0, 4, 5], [0, 0, 0]]


@pytest.mark.parametrize("forms", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_columns_side_by_side(forms: tuple[int, int]) -> None:
    one, two = PSI[:, :2], PSI[:, 1:]
    parts = []
    for columns, is_sparse in zip((one, two), forms, strict=True):
        row, code = columns.nonzero().unbind(1)
        entries = FeatureMatrix.from_entries(row, code, columns[row, code], 7)
        parts.append(entries if is_sparse else FeatureMatrix(columns))
    together = FeatureMatrix.side_by_side(parts, [2, 3])
    assert_same(together.dense(), one @ one.T + two @ two.T)
    expected = torch.cat([one, two], 1)
    codes = torch.arange(5) if together.codes is None else together.codes
    assert (together.codes is None) == (forms == (0, 0))
    assert_same(together.values.to_dense(), expected[:, codes])
    assert set(expected.any(0).nonzero().squeeze(1).tolist()) <= set(codes.tolist())
    assert FeatureMatrix.side_by_side(parts[:1], [2]) is parts[0]


def test_a_gram_matrix_cannot_be_put_together_from_parts() -> None:
    gram = GramMatrix(H)
    assert GramMatrix.cat([gram]) is gram
    with pytest.raises(ValueError, match="too many values"):
        GramMatrix.cat([gram, gram])
    with pytest.raises(ValueError, match="too many values"):
        SumMatrix.cat([SumMatrix((FeatureMatrix(PSI), gram))] * 2)


def test_rows_are_multiplied_by_factors() -> None:
    factors = torch.tensor([1.0, 0.0, 2.0, -1.0, 0.5, 3.0, 1.5], dtype=torch.double)
    row, code = PSI.nonzero().unbind(1)
    for matrix in (FeatureMatrix(PSI), FeatureMatrix.from_entries(row, 2 * code, PSI[row, code], len(PSI))):
        found = matrix.scaled_rows(factors)
        assert_same(found.values.to_dense(), factors[:, None] * matrix.values.to_dense())
        assert (found.codes is None) == (matrix.codes is None)
        if matrix.codes is not None:
            assert found.codes is not None
            assert found.codes.equal(matrix.codes)
        assert_same(found.dense(), factors[:, None] * matrix.dense() * factors)

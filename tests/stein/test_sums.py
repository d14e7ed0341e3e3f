# SPDX-License-Identifier: Apache-2.0
"""Sums of features against plain loops, in parts and in all forms of the features."""

from __future__ import annotations

from dataclasses import fields

import pytest
import torch
from torch import Tensor

from pyro_ksd.fit_tests.statistics import diagonal_sums, signed_u_statistics, u_statistic, v_statistic
from pyro_ksd.kernels.stein_matrices import FeatureMatrix, GramMatrix
from pyro_ksd.stein.signs import Signs
from pyro_ksd.stein.sums import SteinSums, SumsOfModels, added_each

pytestmark = pytest.mark.usefixtures("engine")

N, D = 9, 6
PSI = torch.randn(N, D, dtype=torch.double, generator=torch.Generator().manual_seed(0)) + 0.3
PSI[PSI.abs() < 0.5] = 0.0
PSI[:, 4] = 0.0
SIGNS = Signs(5, 7)


def sparse(psi: Tensor) -> FeatureMatrix:
    """Features that know only the columns in use."""
    row, code = psi.nonzero().unbind(1)
    return FeatureMatrix.from_entries(row, code, psi[row, code], len(psi))


FORMS = {"dense": FeatureMatrix, "sparse": sparse}
forms = pytest.mark.parametrize("form", FORMS)


def in_all_columns(sums: SteinSums, values: Tensor) -> Tensor:
    if sums.codes is None:
        return values
    return values.new_zeros(D, *values.shape[1:]).index_copy_(0, sums.codes, values)


def check_sums(found: SteinSums, psi: Tensor = PSI, begin: int = 0) -> None:
    signs = SIGNS.of_rows(begin, len(psi))
    assert found.count == len(found) == len(psi)
    plain = {
        "total": torch.stack([sum((row[u] for row in psi), torch.tensor(0.0)) for u in range(D)]),
        "squares": torch.stack([sum((row[u] ** 2 for row in psi), torch.tensor(0.0)) for u in range(D)]),
        "gains": torch.stack([sum((row[u] for row in psi if row[u] > 0), torch.tensor(0.0)) for u in range(D)]),
        "signed": torch.stack([torch.stack([(signs[b] * psi[:, u]).sum() for b in range(7)]) for u in range(D)]),
    }
    for name, expected in plain.items():
        torch.testing.assert_close(in_all_columns(found, getattr(found, name)), expected.double())
    norms = [float(sum(value**2 for value in row)) for row in psi.tolist()]
    assert float(found.norms) == pytest.approx(sum(norms))
    assert float(found.squared_norms) == pytest.approx(sum(norm**2 for norm in norms))
    losses = sum(value**2 for row in psi.tolist() for value in row if value < 0)
    assert float(found.squared_losses) == pytest.approx(losses)


@forms
def test_sums_are_those_of_plain_loops(form: str) -> None:
    check_sums(SteinSums.of(FORMS[form](PSI), SIGNS.of_rows(0, N)))


@pytest.mark.parametrize("left", FORMS)
@pytest.mark.parametrize("right", FORMS)
@pytest.mark.parametrize("cut", [1, 4, N - 1])
def test_parts_add_up(left: str, right: str, cut: int) -> None:
    one = SteinSums.of(FORMS[left](PSI[:cut]), SIGNS.of_rows(0, cut))
    other = SteinSums.of(FORMS[right](PSI[cut:]), SIGNS.of_rows(cut, N - cut))
    check_sums(one + other)


def test_sparse_sums_keep_to_the_columns_in_use() -> None:
    one, other = (SteinSums.of(sparse(part)) for part in (PSI[:2], PSI[2:]))
    both = one + other
    assert both.codes is not None
    assert both.codes.tolist() == [u for u in range(D) if PSI[:, u].any()]
    same = one + one
    assert one.codes is not None
    assert same.codes is not None
    assert same.codes.equal(one.codes)


@forms
def test_statistics_are_those_of_the_matrix(form: str) -> None:
    features = FORMS[form](PSI)
    sums = SteinSums.of(features, SIGNS.of_rows(0, N))
    gram = GramMatrix(PSI @ PSI.t())
    for own in (sums, features):
        assert float(u_statistic(own)) == pytest.approx(float(u_statistic(gram)), rel=1e-12)
        assert float(v_statistic(own)) == pytest.approx(float((PSI @ PSI.t()).mean()), rel=1e-12)
        torch.testing.assert_close(torch.stack(diagonal_sums(own)), torch.stack(diagonal_sums(gram)))
        torch.testing.assert_close(signed_u_statistics(own, SIGNS), signed_u_statistics(gram, SIGNS))


def test_sequences_without_a_common_feature_leave_exactly_nothing() -> None:
    sums = SteinSums.of(FeatureMatrix(torch.diag(torch.rand(50, dtype=torch.double))), SIGNS.of_rows(0, 50))
    assert float(sums.off_diagonal_sum()) == 0.0
    assert sums.signed_sums().tolist() == [0.0] * 7


def test_missing_sequences_join_in_but_for_the_diagonal() -> None:
    missing = torch.ones(2, D, dtype=torch.double)
    sums = SteinSums.of(FeatureMatrix(PSI), SIGNS.of_rows(0, N))
    theirs = SteinSums.of(FeatureMatrix(missing), SIGNS.of_rows(100, 2))
    total = SIGNS.of_rows(0, N).double() @ PSI + SIGNS.of_rows(100, 2).double() @ missing
    expected = total.square().sum(1) - PSI.square().sum()
    torch.testing.assert_close(sums.signed_sums(theirs), expected)


@forms
@pytest.mark.parametrize("whole", FORMS)
def test_the_witness_in_the_columns_of_some_features(form: str, whole: str) -> None:
    sums = SteinSums.of(FORMS[whole](PSI))
    part = FORMS[form](PSI[2:5])
    witness = sums.witness(part)
    codes = torch.arange(D) if part.codes is None else part.codes
    rows, columns = torch.meshgrid(torch.arange(3), codes, indexing="ij")
    found = witness.at(rows.reshape(-1), columns.reshape(-1)).view(3, -1)
    torch.testing.assert_close(found, (PSI.sum(0) - PSI[2:5])[:, codes])


def test_without_signs_all_else_stays() -> None:
    sums = SteinSums.of(FeatureMatrix(PSI), SIGNS.of_rows(0, N))
    bare = sums.without_signs()
    assert bare.signed.shape == (D, 0)
    for field in fields(SteinSums):
        if field.name not in ("signed", "codes"):
            assert getattr(bare, field.name) is getattr(sums, field.name)


def test_no_columns() -> None:
    nothing = FeatureMatrix.from_entries(
        torch.zeros(0, dtype=torch.long), torch.zeros(0, dtype=torch.long), torch.zeros(0).double(), 3
    )
    sums = SteinSums.of(nothing, SIGNS.of_rows(0, 3))
    assert float(sums.off_diagonal_sum()) == 0.0
    both = sums + SteinSums.of(sparse(PSI), SIGNS.of_rows(3, N))
    assert both.count == N + 3
    torch.testing.assert_close(in_all_columns(both, both.total), PSI.sum(0))
    assert sums.total_in(FeatureMatrix(PSI)).tolist() == [0.0] * D


def test_one_column_in_the_columns_of_some_features() -> None:
    one = FeatureMatrix.from_entries(torch.tensor([0, 1]), torch.tensor([5, 5]), torch.tensor([2.0, 3.0]).double(), 2)
    others = FeatureMatrix(torch.zeros(1, 3, dtype=torch.double), torch.tensor([4, 5, 6]))
    assert SteinSums.of(one).total_in(others).tolist() == [0.0, 5.0, 0.0]
    assert SteinSums.of(one).total_in(FeatureMatrix(torch.zeros(1, 7).double())).tolist() == [0.0] * 5 + [5.0, 0.0]


@pytest.mark.parametrize("form", [*FORMS, "mixed"])
@pytest.mark.parametrize("rows", [0, 4])
def test_sums_of_several_models_are_those_of_each(form: str, rows: int) -> None:
    scaled = [PSI[:rows], 2 * PSI[:rows].flip(0), -PSI[:rows]]
    forms = [FORMS["dense"], FORMS["sparse"], FORMS["dense"]] if form == "mixed" else [FORMS[form]] * 3
    matrices = [own(psi) for own, psi in zip(forms, scaled, strict=True)]
    for found, matrix in zip(SteinSums.each_of(matrices), matrices, strict=True):
        expected = SteinSums.of(matrix)
        for field in fields(SteinSums):
            own, other = getattr(found, field.name), getattr(expected, field.name)
            if isinstance(own, Tensor):
                torch.testing.assert_close(own, other)
            else:
                assert own == other


def test_sums_of_several_models_are_held_together() -> None:
    matrices = [FeatureMatrix(PSI[:4]), FeatureMatrix(2 * PSI[:4].flip(0))]
    found = SteinSums.each_of(matrices)
    assert isinstance(found, SumsOfModels)
    assert len(found) == len(found[:]) == 2
    with pytest.raises(IndexError):
        found[2]
    later = SteinSums.each_of([FeatureMatrix(PSI[4:]), FeatureMatrix(PSI[4:])])
    assert isinstance(added_each(found, later), SumsOfModels)
    for others in (later, list(later)):
        for index, own in enumerate(added_each(found, others)):
            expected = found[index] + later[index]
            assert own.count == expected.count == N
            for name in ("total", "squares", "gains", "squared_losses", "norms", "squared_norms", "signed"):
                torch.testing.assert_close(getattr(own, name), getattr(expected, name))
    torch.testing.assert_close(found.off_diagonal_sums(), torch.stack([own.off_diagonal_sum() for own in found]))
    with_codes = SteinSums.each_of([FeatureMatrix(PSI, torch.arange(1, D + 1)), FeatureMatrix(PSI)])
    assert [own.codes is None for own in with_codes] == [False, True]


def sums_in_columns(codes: list[int] | None) -> SteinSums:
    """Sums of two sequences with two draws of signs, in some columns; ``None`` for all of them, without codes."""
    columns = list(range(D)) if codes is None else codes
    features = FeatureMatrix(PSI[:2, columns], None if codes is None else torch.tensor(codes, dtype=torch.long))
    return SteinSums.of(features, torch.tensor([[1, -1], [1, 1]], dtype=torch.int8))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([1, 4], [4]),
        ([4], [1, 4]),
        ([1, 4], [2, 4]),
        ([1, 4], [1, 4]),
        ([], [3]),
        ([3], []),
        ([1, 5], None),
        (None, [5]),
    ],
)
def test_columns_are_added_by_their_codes(left: list[int] | None, right: list[int] | None) -> None:
    """Also where those of one are among those of the other; neither of them changes."""
    both = sums_in_columns(left), sums_in_columns(right)
    found = both[0] + both[1]
    expected = torch.zeros(D, 2, dtype=torch.double)
    for codes, sums in zip((left, right), both, strict=True):
        fresh = sums_in_columns(codes)
        assert sums.signed.equal(fresh.signed)
        assert sums.total.equal(fresh.total)
        expected[list(range(D)) if codes is None else codes] += fresh.signed
    codes = None if left is None or right is None else sorted({*left, *right})
    assert codes is None if found.codes is None else found.codes.tolist() == codes
    assert found.signed.equal(expected if codes is None else expected[codes])

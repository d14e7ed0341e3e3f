# SPDX-License-Identifier: Apache-2.0
"""Compiled loops over windows give what torch gives: features, steps along a witness, in every form of the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
from feature_enumeration import NEIGHBORHOODS, runs
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from pyro_ksd.edits.neighborhoods import BeforeEnd, DoubleSubstitutions, Neighborhood, zs
from pyro_ksd.edits.splices import Edits, SpliceBlock
from pyro_ksd.edits.weighted_edits import WeightedEdits
from pyro_ksd.kernels.contiguous import ContiguousKernel
from pyro_ksd.kernels.feature_places import FeaturePlaces
from pyro_ksd.kernels.skip import SkipKernel
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.kernels.window_kernel import WindowKernel
from pyro_ksd.kernels.witness import Witness
from pyro_ksd.sequences.container import Sequences

pytest.importorskip("numba")

KERNELS: dict[str, WindowKernel] = {
    **{f"{form} {t}": ContiguousKernel(t, form=form) for t in (1, 2, 3, 4) for form in ("sqrt", "cosine")},  # type: ignore[arg-type]
    "sqrt 1 to 4": ContiguousKernel(1, 4),
    "cosine 2 to 3": ContiguousKernel(2, 3, form="cosine"),
    "skip": SkipKernel((1, 2, 4)),
}
AROUND: dict[str, Neighborhood] = {
    **NEIGHBORHOODS,
    "ring": zs(symbols=1, insertable=[0]),
    "before the end": BeforeEnd(zs()),
    "all of it": zs(2) | DoubleSubstitutions(),
}
# What has to be patched so that features are held in a certain form.
FORMS: dict[str, dict[str, int]] = {
    "as it comes": {},
    "dense": {"_DENSE_SHARE": 10**9},
    "sparse": {"_DENSE_SHARE": 0, "FEW_FEATURES": 0},
    "hash table": {"_DENSE_SHARE": 0, "FEW_FEATURES": 0, "_CODES_OF_A_FEATURE": 0},
    "hash table, sorted codes": {"_DENSE_SHARE": 0, "FEW_FEATURES": 0, "_CODES_OF_A_FEATURE": 0, "_MARKED_CODES": 0},
}


@contextmanager
def patched(form: str, *, compiled: bool = True) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYRO_KSD_COMPILED", str(int(compiled)))
        for name, value in FORMS[form].items():
            patch.setattr(f"pyro_ksd.kernels.compiled_windows.{name}", value)
        yield


def chunk_of(data: list[list[int]], size: int, around: Neighborhood, models: int = 1) -> WeightedEdits:
    sequences = Sequences.of(data, size)
    edits = around.edits(sequences)
    weights = torch.rand(models, len(edits), dtype=torch.double, generator=torch.Generator().manual_seed(len(edits)))
    return WeightedEdits(0, sequences, edits, weights)


def by_code(matrix: FeatureMatrix, num_codes: int) -> Tensor:
    values = matrix.values.to_dense()
    if matrix.codes is None:
        return values
    assert bool((matrix.codes.diff() > 0).all())
    return values.new_zeros(len(values), num_codes).index_copy_(1, matrix.codes, values)


def assert_same(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", KERNELS)
@given(
    data=st.lists(runs(9), min_size=1, max_size=5),
    around=st.sampled_from(sorted(AROUND)),
    size=st.integers(3, 5),
    models=st.integers(1, 3),
)
@example(data=[[], [0], [1, 1], [2, 2, 2], [0, 0, 0, 0, 0, 0, 0]], around="zs", size=3, models=2)
@settings(max_examples=10, deadline=None)
def test_features_and_steps_are_those_of_torch(
    name: str, form: str, data: list[list[int]], around: str, size: int, models: int
) -> None:
    kernel = KERNELS[name]
    chunk = chunk_of(data, size, AROUND[around], models)
    num_codes = sum(kernel._sizes(size))
    with patched(form, compiled=False):
        expected = kernel.stein_features_each(chunk)
    with patched(form):
        found = kernel.stein_features_each(chunk)
    assert len(found) == models
    for own, wanted in zip(found, expected, strict=True):
        assert_same(by_code(own, num_codes), by_code(wanted, num_codes))
    for matrix in (found[0], expected[0]):
        witness = Witness.of(matrix, 0, len(data))
        with patched(form, compiled=False):
            steps = kernel.steps_along(chunk, witness)
        with patched(form):
            assert_same(kernel.steps_along(chunk, witness), steps)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("codes", [range(9), range(2, 7)], ids=["all", "some"])
def test_a_witness_may_be_the_same_for_all_sequences(codes: range, form: str) -> None:
    """It has coefficients, but no entries of single sequences, neither dense nor sparse ones."""
    kernel = ContiguousKernel(2)
    chunk = chunk_of([[0, 1, 2, 1], [2, 2], [1]], 3, zs())
    total = torch.rand(len(codes), dtype=torch.double, generator=torch.Generator().manual_seed(0))
    own = torch.sparse_coo_tensor(
        torch.zeros(2, 0, dtype=torch.long), total[:0], (3, len(codes)), is_coalesced=True, check_invariants=False
    )
    witness = Witness(total, FeatureMatrix(own, torch.tensor(codes)))
    with patched(form, compiled=False):
        expected = kernel.steps_along(chunk, witness)
    assert expected.any()
    with patched(form):
        assert_same(kernel.steps_along(chunk, witness), expected)


@pytest.mark.parametrize("form", FORMS)
def test_a_witness_need_not_know_the_features_of_the_edits(form: str) -> None:
    kernel = ContiguousKernel(2)
    known = chunk_of([[0, 1, 2, 3], [3, 3]], 40, zs(symbols=1, insertable=[0]))
    asked = chunk_of([[0, 1, 2, 30], [3, 35]], 40, zs(symbols=1, insertable=[1]))
    with patched(form, compiled=False):
        [features] = kernel.stein_features_each(known)
        witness = Witness.of(features, 0, 2)
        expected = kernel.steps_along(asked, witness)
    assert features.values.is_sparse
    assert 0 < int((expected == 0).sum()) < len(expected)
    with patched(form):
        assert_same(kernel.steps_along(asked, witness), expected)
        nothing = Witness(
            torch.zeros(0, dtype=torch.double), FeatureMatrix(torch.zeros(2, 0).double(), torch.arange(0))
        )
        assert not kernel.steps_along(asked, nothing).any()


@pytest.mark.parametrize("name", KERNELS)
def test_several_models_at_once_give_the_bits_of_each_alone(name: str) -> None:
    kernel = KERNELS[name]
    for around in ("zs", "all of it"):
        chunk = chunk_of([[0, 1, 2, 1, 1, 0], [2, 2], [1], []], 3, AROUND[around], models=5)
        with patched("dense"):
            found = kernel.stein_features_each(chunk)
            for own, weights in zip(found, chunk.weights, strict=True):
                [alone] = kernel.stein_features_each(WeightedEdits(0, chunk.sequences, chunk.edits, weights))
                assert not own.values.is_sparse
                assert own.values.equal(alone.values)


def test_the_forms_are_what_their_names_say() -> None:
    chunk = chunk_of([[0, 1, 2, 3, 4, 5], [3, 3]], 20, zs())
    kernel = ContiguousKernel(2)
    for form, is_sparse in (("dense", False), ("sparse", True), ("hash table", True)):
        with patched(form):
            fast = kernel._compiled_windows(chunk.sequences, chunk.edits, kernel.shapes[0])
            assert fast is not None
            assert fast._is_direct == (form != "hash table")
            assert fast.stein_features(chunk)[0].values.is_sparse == is_sparse


@pytest.mark.parametrize(
    ("size", "kernel"),
    [(2, ContiguousKernel(62)), (3000, ContiguousKernel(3)), (10**6, SkipKernel((2,))), (1, ContiguousKernel(3))],
    ids=["longest", "2e10 codes", "1e12 codes", "one symbol"],
)
def test_codes_of_any_size(size: int, kernel: WindowKernel) -> None:
    generator = torch.Generator().manual_seed(size)
    row = torch.randint(0, size, (70,), generator=generator).tolist()
    rows = [row, row[:3], [], row[:65]]
    chunk = chunk_of(rows, size, zs(symbols=1, insertable=[0]))
    with patched("as it comes", compiled=False):
        [expected] = kernel.stein_features_each(chunk)
        steps = kernel.steps_along(chunk, Witness.of(expected, 0, 4))
    with patched("as it comes"):
        [found] = kernel.stein_features_each(chunk)
        again = kernel.steps_along(chunk, Witness.of(found, 0, 4))
    assert_same(found.dense(), expected.dense())
    assert_same(again, steps)
    assert size == 1 or bool(steps.any())


@pytest.mark.parametrize("form", FORMS)
def test_any_number_of_threads_gives_the_same_bits(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(1)
    rows = [torch.randint(0, 4, (length % 11,), generator=generator).tolist() for length in range(40)]
    chunk = chunk_of(rows, 4, zs())
    kernel = ContiguousKernel(3, form="cosine")
    monkeypatch.setattr("pyro_ksd.common.compilation._WORK_OF_A_THREAD", 1)
    found = []
    for threads in (1, 2, 3, 7):
        monkeypatch.setattr("pyro_ksd.common.compilation.num_threads", lambda threads=threads: threads)
        with patched(form):
            [matrix] = kernel.stein_features_each(chunk)
            steps = kernel.steps_along(chunk, Witness.of(matrix, 0, len(rows)))
        found.append((by_code(matrix, 64), steps))
    for matrix_values, steps in found[1:]:
        assert matrix_values.equal(found[0][0])
        assert steps.equal(found[0][1])


def test_torch_computes_if_edits_are_not_in_the_order_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    chunk = chunk_of([[0, 1, 2], [2, 1]], 3, zs())
    block = chunk.edits.blocks[0]
    order = torch.arange(len(block) - 1, -1, -1)
    turned = Edits((block.select(order),), 2)
    straight = Edits((block,), 2)
    weights = chunk.weights[:, : len(block)]
    monkeypatch.setenv("PYRO_KSD_COMPILED", "1")
    kernel = ContiguousKernel(2)
    assert turned.flat is None
    found = kernel.stein_features(chunk.sequences, turned, weights[:, order])
    assert_same(found.dense(), kernel.stein_features(chunk.sequences, straight, weights).dense())


def test_the_switch_decides_who_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    numbered = []
    number: Callable[..., FeaturePlaces] = FeaturePlaces.number

    def noted(*arguments: object) -> FeaturePlaces:
        numbered.append(arguments)
        return number(*arguments)

    monkeypatch.setattr(FeaturePlaces, "number", staticmethod(noted))
    chunk = chunk_of([[0, 1, 2], [2, 1]], 3, zs())
    for switch, torch_computes in (("1", False), ("0", True)):
        monkeypatch.setenv("PYRO_KSD_COMPILED", switch)
        ContiguousKernel(2).stein_features_each(chunk)
        assert bool(numbered) == torch_computes


def test_no_sequences_and_no_edits() -> None:
    one = torch.zeros(0, dtype=torch.long)
    none = Edits((SpliceBlock(one, one, 1, one[:, None]),), 2)
    for edits in (none, Edits((), 2)):
        chunk = WeightedEdits(0, Sequences.of([[0, 1], [1]], 2), edits, torch.zeros(0, dtype=torch.double))
        with patched("as it comes"):
            [matrix] = ContiguousKernel(2).stein_features_each(chunk)
            assert by_code(matrix, 4).equal(torch.zeros(2, 4, dtype=torch.double))
            assert ContiguousKernel(2).steps_along(chunk, Witness.of(matrix, 0, 2)).shape == (0,)

# SPDX-License-Identifier: Apache-2.0
"""Counts of n-grams by local changes against counts from scratch."""

from __future__ import annotations

import oracle
import pytest
import torch
from feature_enumeration import (
    NEIGHBORHOODS,
    Features,
    as_dicts,
    assert_close,
    expected_psi,
    ngram,
    random_weights,
    runs,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.kernels.contiguous import ContiguousKernel
from pyro_ksd.sequences.container import Sequences

pytestmark = pytest.mark.usefixtures("engine")


@pytest.mark.parametrize("form", ["sqrt", "cosine"])
@pytest.mark.parametrize(("length", "max_length"), [(1, None), (2, None), (3, None), (4, None), (1, 3), (2, 4)])
@pytest.mark.parametrize("neighborhood", NEIGHBORHOODS)
@given(data=st.lists(runs(), min_size=1, max_size=4))
@example(data=[[], [0], [1, 1], [2, 2, 2], [0, 0, 0, 0, 0, 0, 0]])
@settings(max_examples=8, deadline=None)
def test_contiguous_features_by_local_changes(
    data: list[list[int]], neighborhood: str, length: int, max_length: int | None, form: str
) -> None:
    sequences = Sequences.of(data, 3)
    edits = NEIGHBORHOODS[neighborhood].edits(sequences)
    weights = random_weights(edits)
    kernel = ContiguousKernel(length, max_length, form)  # type: ignore[arg-type]

    def phi(x: tuple[int, ...]) -> Features:
        return oracle.csk_features(x, length, max_length or length, form)

    def decode(code: int) -> tuple[int, ...]:
        return ngram(code, 3, kernel.lengths)

    assert_close(as_dicts(kernel.features(sequences), decode), [phi(tuple(x)) for x in data])
    found = as_dicts(kernel.stein_features(sequences, edits, weights), decode)
    assert_close(found, expected_psi(sequences, edits, weights, phi))


@pytest.mark.parametrize("form", ["sqrt", "cosine"])
@pytest.mark.parametrize(("length", "max_length"), [(1, None), (3, None), (1, 3)])
def test_contiguous_features_of_a_large_alphabet(length: int, max_length: int | None, form: str) -> None:
    size = 50_000
    data = [[49_999, 49_999, 49_999, 0, 49_998], [1, 49_999], [49_999] * 4, [7], []]
    sequences = Sequences.of(data, size)
    edits = zs(insertable=[49_999, 3], symbols=1).edits(sequences)
    weights = random_weights(edits)
    kernel = ContiguousKernel(length, max_length, form)  # type: ignore[arg-type]
    matrix = kernel.stein_features(sequences, edits, weights)
    assert matrix.values.is_sparse

    def decode(code: int) -> tuple[int, ...]:
        return ngram(code, size, kernel.lengths)

    def phi(x: tuple[int, ...]) -> Features:
        return oracle.csk_features(x, length, max_length or length, form)

    assert_close(as_dicts(matrix, decode), expected_psi(sequences, edits, weights, phi))
    gram = kernel.gram(sequences, sequences)
    for i, x in enumerate(data):
        for j, y in enumerate(data):
            expected = oracle.csk(tuple(x), tuple(y), length, max_length or length, form)
            assert float(gram[i, j]) == pytest.approx(expected, rel=1e-12, abs=1e-13)


def test_more_ngrams_than_codes_is_an_error() -> None:
    with pytest.raises(
        ValueError, match=r"at most 2\*\*62 different runs of 5 symbols, found 50000 symbols; use shorter"
    ):
        ContiguousKernel(5).features(Sequences.of([[0], [1]], 50_000))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"length": 0}, "length: expected an integer from 1 to 62, found 0"),
        ({"length": 3, "max_length": 2}, "max_length: expected an integer from 3 to 62, found 2"),
        ({"form": "square"}, "form: expected 'sqrt' or 'cosine', found 'square'"),
    ],
)
def test_contiguous_kernel_refuses(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ContiguousKernel(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize(("length", "max_length"), [(1, None), (2, None), (3, None), (1, 2), (1, 3), (2, 4)])
def test_symbols_of_all_ngrams(length: int, max_length: int | None, size: int) -> None:
    kernel = ContiguousKernel(length, max_length)
    codes = torch.arange(sum(size**t for t in kernel.lengths))
    expected = [ngram(code, size, kernel.lengths) for code in codes.tolist()]
    widest = max_length or length
    found = kernel.feature_symbols(codes, size)
    assert found.dtype == torch.long
    assert found.tolist() == [[*gram, *[-1] * (widest - len(gram))] for gram in expected]
    some = torch.tensor([len(codes) - 1, 0])
    assert kernel.feature_symbols(some, size).equal(found[some])
    assert kernel.feature_symbols(codes[:0], size).shape == (0, widest)


@pytest.mark.parametrize(("length", "max_length"), [(1, None), (3, None), (1, 3), (2, 3)])
@pytest.mark.parametrize("size", [4, 50_000])
def test_symbols_of_the_features_of_a_sequence_are_its_ngrams(length: int, max_length: int | None, size: int) -> None:
    row = [3, 0, size - 1, size - 1, 1, 3, 0]
    kernel = ContiguousKernel(length, max_length)
    matrix = kernel.features(Sequences.of([row], size))
    [used] = matrix.values.to_dense()
    codes = torch.arange(len(used)) if matrix.codes is None else matrix.codes
    found = kernel.feature_symbols(codes[used != 0], size).tolist()
    windows = {tuple(row[i : i + t]) for t in kernel.lengths for i in range(len(row) - t + 1)}
    assert sorted(tuple(code for code in gram if code >= 0) for gram in found) == sorted(windows)


def test_words_for_lengths() -> None:
    assert [ContiguousKernel(t).meaning for t in (1, 2, 3)] == [
        "single symbols",
        "pairs of neighbors",
        "runs of 3 symbols",
    ]
    assert ContiguousKernel(2, 4).meaning == "runs of 2 to 4 symbols"
    assert ContiguousKernel(2, 2).meaning == "pairs of neighbors"
    assert ContiguousKernel().feature_kind == "ngram"

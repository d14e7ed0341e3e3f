# SPDX-License-Identifier: Apache-2.0
"""Beginnings of edited sequences against beginnings read off from scratch."""

from __future__ import annotations

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

from pyro_ksd.edits.neighborhoods import Substitutions, zs
from pyro_ksd.kernels.start import StartKernel
from pyro_ksd.sequences.container import Sequences

pytestmark = pytest.mark.usefixtures("engine")


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("neighborhood", NEIGHBORHOODS)
@given(data=st.lists(runs(), min_size=1, max_size=4))
@example(data=[[], [0], [1, 1], [2, 2, 2], [0, 0, 0, 0, 0, 0, 0]])
@settings(max_examples=8, deadline=None)
def test_start_features_by_local_changes(data: list[list[int]], neighborhood: str, width: int) -> None:
    sequences = Sequences.of(data, 3)
    edits = NEIGHBORHOODS[neighborhood].edits(sequences)
    weights = random_weights(edits)
    kernel = StartKernel(width)

    def phi(x: tuple[int, ...]) -> Features:
        return {(*x, *[3] * width)[:width]: 1.0}

    def decode(code: int) -> tuple[int, ...]:
        return ngram(code, 4, range(width, width + 1))

    assert_close(as_dicts(kernel.features(sequences), decode), [phi(tuple(x)) for x in data])
    found = as_dicts(kernel.stein_features(sequences, edits, weights), decode)
    assert_close(found, expected_psi(sequences, edits, weights, phi))


def test_start_of_a_large_alphabet() -> None:
    sequences = Sequences.of([[49_999, 0, 49_999], [5], []], 50_000)
    edits = zs(symbols=1, insertable=[2]).edits(sequences)
    weights = random_weights(edits)
    matrix = StartKernel(3).stein_features(sequences, edits, weights)

    def phi(x: tuple[int, ...]) -> Features:
        return {(*x, *[50_000] * 3)[:3]: 1.0}

    found = as_dicts(matrix, lambda code: ngram(code, 50_001, range(3, 4)))
    assert_close(found, expected_psi(sequences, edits, weights, phi))


def test_edits_that_keep_the_start_leave_no_trace() -> None:
    sequences = Sequences.of(["abcabc", "bcb"])
    edits = Substitutions(locations=2).edits(sequences)
    psi = StartKernel().stein_features(sequences, edits, random_weights(edits))
    assert not psi.values.to_dense().any()


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_symbols_of_all_prefixes(width: int, size: int) -> None:
    codes = torch.arange((size + 1) ** width)
    found = StartKernel(width).feature_symbols(codes, size)
    assert found.tolist() == [list(ngram(code, size + 1, range(width, width + 1))) for code in codes.tolist()]
    assert StartKernel(width).feature_symbols(codes[:0], size).shape == (0, width)


@pytest.mark.parametrize("size", [4, 50_000])
def test_symbols_of_the_feature_of_a_sequence_are_its_start(size: int) -> None:
    rows = [[size - 1, 0, 3, 1], [2], [], [0, size - 1]]
    for width in (1, 2, 3):
        kernel = StartKernel(width)
        matrix = kernel.features(Sequences.of(rows, size))
        values = matrix.values.to_dense()
        codes = torch.arange(values.shape[1]) if matrix.codes is None else matrix.codes
        row, column = values.nonzero().unbind(1)
        assert row.tolist() == [0, 1, 2, 3]
        assert kernel.feature_symbols(codes[column], size).tolist() == [[*x, *[size] * width][:width] for x in rows]


@pytest.mark.parametrize("width", [0, -2])
def test_a_width_below_one_is_refused(width: int) -> None:
    with pytest.raises(ValueError, match=f"width: expected an integer from 1 to 62, found {width}"):
        StartKernel(width)


def test_words_for_widths() -> None:
    assert [StartKernel(width).meaning for width in (1, 3)] == ["the first symbol", "the first 3 symbols"]
    assert StartKernel().feature_kind == "start"

# SPDX-License-Identifier: Apache-2.0
"""Codes of n-grams against numbers written digit by digit."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from pyro_ksd.kernels.ngram_codes import ngram_code, ngram_symbols


@pytest.mark.parametrize(("length", "base"), [(1, 1), (1, 5), (2, 3), (3, 2), (4, 3)])
def test_codes_count_the_ngrams_in_order(length: int, base: int) -> None:
    ngrams = torch.tensor(list(product(range(base), repeat=length)))
    codes = ngram_code(ngrams.unbind(1), base)
    assert codes.tolist() == list(range(base**length))
    assert ngram_symbols(codes, length, base).equal(ngrams)


def test_large_codes_are_exact() -> None:
    base, length = 50_000, 3
    ngrams = torch.tensor([[49_999, 49_999, 49_999], [0, 49_999, 1], [49_998, 0, 0]])
    codes = ngram_code(ngrams.unbind(1), base)
    assert codes.tolist() == [(a * base + b) * base + c for a, b, c in ngrams.tolist()]
    assert ngram_symbols(codes, length, base).equal(ngrams)
    assert ngram_symbols(torch.tensor([2**62 - 1]), 2, 2**31).tolist() == [[2**31 - 1, 2**31 - 1]]


def test_symbols_may_have_any_shape_and_are_left_alone() -> None:
    first, second = torch.tensor([[0, 1], [2, 0]]), torch.tensor([[1, 1], [0, 2]])
    assert ngram_code([first, second], 3).tolist() == [[1, 4], [6, 2]]
    assert first.tolist() == [[0, 1], [2, 0]]


def test_no_codes_have_no_symbols() -> None:
    assert ngram_symbols(torch.zeros(0, dtype=torch.long), 3, 2).shape == (0, 3)

# SPDX-License-Identifier: Apache-2.0
"""Comparisons position by position against plain loops."""

from __future__ import annotations

import math
import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pairwise_formulas import random_rows, refuse

from pyro_ksd.kernels import aligned_comparison as aligned
from pyro_ksd.kernels.aligned_comparison import aligned_sum, equal_length_exp, longest
from pyro_ksd.sequences.container import Sequences


@pytest.mark.parametrize("size", [5, 300])
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**16), copies=st.sampled_from([1, 30]))
def test_aligned_sum_of_an_asymmetric_table(size, seed, copies):
    xs, ys = random_rows(size, 4, 6, seed), random_rows(size, 5, 4, seed + 1)
    expected = [[sum(3 * a + b * b for a, b in zip(x, y, strict=False)) for y in ys] for x in xs]
    found = aligned_sum(Sequences.of(xs * copies, size), Sequences.of(ys * copies, size), lambda a, b: 3 * a + b * b)
    assert torch.equal(found, torch.tensor(expected, dtype=torch.double).repeat(copies, copies))


def test_aligned_sum_of_large_integers_is_exact(monkeypatch):
    """By the product of one-hots, where single precision would round."""
    monkeypatch.setattr(aligned, "_by_position", refuse)
    rows = random_rows(20, 60, 3, seed=6)
    expected = [[sum(12_345_679 * a + b for a, b in zip(x, y, strict=False)) for y in rows] for x in rows]
    x = Sequences.of(rows, 20)
    found = aligned_sum(x, x, lambda a, b: 12_345_679 * a + b)
    assert torch.equal(found, torch.tensor(expected, dtype=torch.double))


@pytest.mark.parametrize("other", [Sequences.of(["ac"]), Sequences.of(["ab"], "abc"), Sequences.of([[0, 1]], 2)])
def test_sequences_over_different_alphabets_are_not_compared(other: Sequences) -> None:
    x = Sequences.of(["ab"])
    assert aligned_sum(x, Sequences.of(["ba"]), torch.eq).tolist() == [[0.0]]
    message = f"expected sequences over one alphabet, found two different ones (of 2 and {other.alphabet_size} symbols)"
    with pytest.raises(ValueError, match=re.escape(message)):
        aligned_sum(x, other, torch.eq)


def test_the_longest_sequence() -> None:
    data = Sequences.of([[0], [0, 0, 0], []], 1)
    assert (longest(data), longest(data[[0, 2]]), longest(data[2:]), longest(data[:0])) == (3, 1, 0, 0)


def test_exponentials_for_pairs_of_one_length() -> None:
    x, y = Sequences.of([[0, 0], [0], []], 1), Sequences.of([[0, 0], [0, 0, 0], []], 1)
    found = equal_length_exp(torch.full((3, 3), 4.0, dtype=torch.double), x, y)
    assert found.tolist() == [[math.exp(-2), 0, 0], [0, 0, 0], [0, 0, math.exp(-4)]]
    same = equal_length_exp(torch.full((1, 1), 4.0, dtype=torch.double), x[:1], y[:1])
    assert same.tolist() == [[math.exp(-2)]]

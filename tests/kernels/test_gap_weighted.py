# SPDX-License-Identifier: Apache-2.0
"""The gap-weighted subsequence kernel against the sum over all subsequences."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pairwise_formulas import Sample, check_formula, two_samples

from pyro_ksd.kernels.gap_weighted import GapWeightedKernel
from pyro_ksd.sequences.container import Sequences


@pytest.mark.parametrize("name", ["gap-1", "gap-2", "gap-3", "gap-4"])
@settings(max_examples=40, deadline=None)
@given(samples=two_samples(), extra=st.integers(0, 2))
def test_gram_is_the_formula(name: str, samples: tuple[int, Sample, Sample], extra: int) -> None:
    check_formula(name, samples, extra)


@pytest.mark.parametrize("decay", [1e-200, 1e-3])
def test_a_small_decay_leaves_contiguous_subsequences(decay: float) -> None:
    x, y = Sequences.of(["abcd"], "abcd"), Sequences.of(["bcd", "acbd", "abcd"], "abcd")
    expected = torch.tensor([[2 / math.sqrt(6), 0.0, 1.0]], dtype=torch.double)
    torch.testing.assert_close(GapWeightedKernel(2, decay).gram(x, y), expected, rtol=0, atol=1e-14 + 10 * decay)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GapWeightedKernel(length=0), "length: expected an integer of at least 1, found 0"),
        (lambda: GapWeightedKernel(length=2.0), "length: .* found 2.0"),
        (lambda: GapWeightedKernel(length=True), "length: .* found True"),
        (lambda: GapWeightedKernel(decay=0.0), "decay: expected a number above 0 and at most 1, found 0.0"),
        (lambda: GapWeightedKernel(decay=1.5), "decay: .* found 1.5"),
        (lambda: GapWeightedKernel(decay=math.nan), "decay: .* found nan"),
    ],
)
def test_bad_parameters_are_named(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()

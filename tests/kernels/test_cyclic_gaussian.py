# SPDX-License-Identifier: Apache-2.0
"""The Gaussian kernel on a ring against its formula, and where it is positive."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pairwise_formulas import Sample, check_formula, check_value, two_samples

from pyro_ksd.kernels.cyclic_gaussian import CyclicGaussianKernel
from pyro_ksd.sequences.container import Sequences


@settings(max_examples=40, deadline=None)
@given(samples=two_samples(), extra=st.integers(0, 2))
def test_gram_is_the_formula(samples: tuple[int, Sample, Sample], extra: int) -> None:
    check_formula("cyclic", samples, extra)


def test_values_known_by_hand() -> None:
    check_value(CyclicGaussianKernel(), [0, 1, 2, 3], [0, 2, 2, 6], 8, math.exp(-2.5))


def test_cyclic_gaussian_has_negative_eigenvalues_on_four_symbols() -> None:
    ring = Sequences.of([[0, 0], [1, 0], [2, 0], [3, 0]], 4)
    gram = CyclicGaussianKernel().gram(ring, ring)
    signs = torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.double)
    assert float(signs @ gram @ signs) == pytest.approx(4 * (1 - 2 * math.exp(-0.5) + math.exp(-2)))
    assert float(torch.linalg.eigvalsh(gram)[0]) == pytest.approx(-0.0777, abs=1e-4)


@pytest.mark.parametrize(
    ("size", "first"), [(1, None), (2, None), (3, None), (4, 2), (5, 4), (6, 4), (7, 6), (8, 3), (9, 5), (10, 5)]
)
def test_cyclic_gaussian_is_positive_up_to_the_documented_length(size: int, first: int | None) -> None:
    """One symbol varies and the others agree: the Gram matrix of such sequences is the factor of one position."""
    negative = []
    for length in range(1, 12):
        ring = Sequences.of([[symbol] + [0] * (length - 1) for symbol in range(size)], size)
        if torch.linalg.eigvalsh(CyclicGaussianKernel().gram(ring, ring))[0] < -1e-10:
            negative.append(length)
    assert negative == ([] if first is None else list(range(first, 12)))

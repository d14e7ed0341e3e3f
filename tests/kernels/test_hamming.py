# SPDX-License-Identifier: Apache-2.0
"""The exponentiated Hamming kernel against its formula."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st
from pairwise_formulas import Sample, check_formula, check_value, two_samples

from pyro_ksd.kernels.hamming import HammingKernel


@settings(max_examples=40, deadline=None)
@given(samples=two_samples(), extra=st.integers(0, 2))
def test_gram_is_the_formula(samples: tuple[int, Sample, Sample], extra: int) -> None:
    check_formula("hamming", samples, extra)


def test_values_known_by_hand() -> None:
    check_value(HammingKernel(), [0, 1, 2, 3], [0, 2, 2, 6], 8, math.exp(-0.5))

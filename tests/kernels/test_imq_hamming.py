# SPDX-License-Identifier: Apache-2.0
"""The inverse multiquadric Hamming kernel against its formula."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairwise_formulas import Sample, check_formula, check_value, two_samples

from pyro_ksd.kernels.imq_hamming import IMQHammingKernel


@pytest.mark.parametrize("name", ["imq", "imq-sharp"])
@settings(max_examples=40, deadline=None)
@given(samples=two_samples(), extra=st.integers(0, 2))
def test_gram_is_the_formula(name: str, samples: tuple[int, Sample, Sample], extra: int) -> None:
    check_formula(name, samples, extra)


def test_values_known_by_hand() -> None:
    check_value(IMQHammingKernel(2.0, 1.0), [0, 1, 2, 3], [0, 2, 2, 6], 8, 3 / 4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: IMQHammingKernel(scale=0.0), "scale: expected a finite number above 0, found 0.0"),
        (lambda: IMQHammingKernel(scale=math.nan), "scale: .* found nan"),
        (lambda: IMQHammingKernel(exponent=-1.0), "exponent: expected a finite number above 0, found -1.0"),
        (lambda: IMQHammingKernel(exponent=math.inf), "exponent: .* found inf"),
    ],
)
def test_bad_parameters_are_named(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()

# SPDX-License-Identifier: Apache-2.0
"""The Dirac kernel on sequences and on lengths against plain comparison."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairwise_formulas import Sample, check_formula, two_samples

from pyro_ksd.kernels.dirac import DiracKernel


@pytest.mark.parametrize("name", ["dirac", "dirac-length"])
@settings(max_examples=40, deadline=None)
@given(samples=two_samples(), extra=st.integers(0, 2))
def test_gram_is_the_formula(name: str, samples: tuple[int, Sample, Sample], extra: int) -> None:
    check_formula(name, samples, extra)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DiracKernel(on="prefix"), "on: expected 'sequence' or 'length', found 'prefix'"),
    ],
)
def test_bad_parameters_are_named(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()

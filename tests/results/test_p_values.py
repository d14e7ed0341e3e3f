# SPDX-License-Identifier: Apache-2.0
"""p-values as people write them."""

from __future__ import annotations

import pytest

from pyro_ksd.results.p_values import p_text, rounded_p


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (1.0, "1.000"),
        (0.43, "0.430"),
        (0.0319, "0.032"),
        (0.0096, "0.010"),
        (0.0004999, "0.0005"),
        (0.001, "0.001"),
        (0.00099, "0.001"),
        (0.00051, "0.0005"),
        (1.999e-05, "2e-05"),
        (1e-300, "1e-300"),
    ],
)
def test_three_digits_or_one_that_counts(p: float, text: str) -> None:
    assert rounded_p(p) == text
    assert p_text(p) == f"p = {text}"

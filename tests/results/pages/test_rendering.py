# SPDX-License-Identifier: Apache-2.0
"""Numbers in pages, and templates."""

from __future__ import annotations

import pytest
from jinja2 import UndefinedError

from pyro_ksd.results.pages.rendering import number, render


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [
        (0.034667, 3, "0.0347"),
        (0.034667, 2, "0.035"),
        (0.0, 3, "0"),
        (-1.5, 3, "−1.5"),
        (999.0, 3, "999"),
        (1000.4, 3, "1,000"),
        (123.4, 2, "123"),
        (1e-9, 3, "1e−09"),
        (float("nan"), 3, ""),
        (float("inf"), 3, "∞"),
        (-float("inf"), 3, "−∞"),
    ],
)
def test_numbers(value: float, digits: int, shown: str) -> None:
    assert number(value, digits) == shown


def test_a_template_without_one_of_its_values_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        render("report.html.jinja", title="a report")

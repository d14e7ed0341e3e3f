# SPDX-License-Identifier: Apache-2.0
"""Checks of options: what passes, and what is said of everything else."""

from __future__ import annotations

import math
import re

import pytest

from pyro_ksd.common.option_checks import check_level, check_number


@pytest.mark.parametrize(("number", "least"), [(1, 1), (2, 1), (0, 0), (10**20, 1), (-3, -3)])
def test_numbers_that_pass(number: int, least: int) -> None:
    check_number("num", number, least)


@pytest.mark.parametrize("number", [0, -1, 1.0, 2.5, math.nan, True, "3", None, [2]])
def test_numbers_that_do_not(number: object) -> None:
    with pytest.raises(ValueError, match=re.escape(f"num: expected an integer of at least 1, found {number!r}")):
        check_number("num", number, 1)


def test_the_least_number_is_named() -> None:
    with pytest.raises(ValueError, match=r"^order: expected an integer of at least 7, found 6$"):
        check_number("order", 6, 7)


@pytest.mark.parametrize("level", [0.05, 1e-9, 0.999])
def test_levels_that_pass(level: float) -> None:
    check_level(level)


@pytest.mark.parametrize("level", [0, 1, 0.0, 1.0, -0.05, 5, math.nan, math.inf])
def test_levels_that_do_not(level: float) -> None:
    message = f"level: expected a number between 0 and 1, such as 0.05, found {level}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        check_level(level)

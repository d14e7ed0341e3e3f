# SPDX-License-Identifier: Apache-2.0
"""Checks of options: what passes, and what is said of everything else."""

from __future__ import annotations

import math
import re
from functools import partial
from typing import Any

import numpy as np
import pytest

from pyro_ksd.common.option_checks import (
    check_choice,
    check_flag,
    check_function,
    check_instance,
    check_level,
    check_mapping,
    check_number,
    check_positive,
    found,
    is_count,
    is_real,
)


@pytest.mark.parametrize(("number", "least"), [(1, 1), (2, 1), (0, 0), (10**20, 1), (-3, -3), (np.int8(2), 1)])
def test_numbers_that_pass(number: int, least: int) -> None:
    passed = check_number("num", number, least)
    assert passed == number
    assert type(passed) is int


@pytest.mark.parametrize("number", [0, -1, 1.0, 2.5, math.nan, True, "3", None, [2]])
def test_numbers_that_do_not(number: object) -> None:
    with pytest.raises(ValueError, match=re.escape(f"num: expected an integer of at least 1, found {number!r}")):
        check_number("num", number, 1)


def test_the_least_number_is_named() -> None:
    with pytest.raises(ValueError, match=r"^order: expected an integer of at least 7, found 6$"):
        check_number("order", 6, 7)


def test_the_largest_number_is_named() -> None:
    check_number("end", 3, 0, most=3)
    with pytest.raises(ValueError, match=r"^end: expected an integer from 0 to 3, found 4$"):
        check_number("end", 4, 0, most=3)


@pytest.mark.parametrize("level", [0.05, 1e-9, 0.999, np.float32(0.5)])
def test_levels_that_pass(level: float) -> None:
    check_level(level)


@pytest.mark.parametrize("level", [0, 1, 0.0, 1.0, -0.05, 5, math.nan, math.inf, "high", None, True, [0.05]])
def test_levels_that_do_not(level: object) -> None:
    message = f"level: expected a number between 0 and 1, such as 0.05, found {level!r}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        check_level(level)


def test_what_is_a_number() -> None:
    numbers: list[Any] = [2, 2.0, np.int8(2), np.float16(2.0), True, np.True_, "2", 2j, None, [2], np.array([2])]
    assert [is_real(number) for number in numbers] == [True] * 4 + [False] * 7
    assert [is_count(number) for number in numbers] == [True, False, True] + [False] * 8
    assert not is_count(0)


def test_positive_numbers() -> None:
    check_positive("time", np.float32(0.5))
    for wrong in (0, -1.0, math.inf, math.nan, True, "1", None):
        with pytest.raises(
            ValueError, match=f"^time: expected a finite number above 0, found {re.escape(repr(wrong))}$"
        ):
            check_positive("time", wrong)


def test_flags() -> None:
    check_flag("gram", False)
    check_flag("gram", np.True_)
    for wrong in (0, 1, "no", None):
        with pytest.raises(ValueError, match=f"^gram: expected True or False, found {wrong!r}$"):
            check_flag("gram", wrong)


def test_choices() -> None:
    check_choice("form", "sqrt", ["sqrt", "cosine", "flat"])
    for wrong in ("root", None, ["sqrt"], True):
        message = re.escape(f"form: expected 'sqrt', 'cosine' or 'flat', found {wrong!r}")
        with pytest.raises(ValueError, match=f"^{message}$"):
            check_choice("form", wrong, ["sqrt", "cosine", "flat"])


def test_mappings_have_names() -> None:
    check_mapping("dims", {"start": ["letter"]}, "names")
    for wrong in (None, ["start"], {3: "start"}):
        with pytest.raises(ValueError, match=re.escape(f"dims: expected names, found {wrong!r}; pass a dictionary")):
            check_mapping("dims", wrong, "names")


def test_instances() -> None:
    check_instance("text", "abc", str, "a string")
    with pytest.raises(ValueError, match=r"^text: expected a string, found 3$"):
        check_instance("text", 3, str, "a string")
    with pytest.raises(
        ValueError, match=r"^text: expected a string, found the class str; pass an instance, str\(...\)$"
    ):
        check_instance("text", str, str, "a string")


def test_functions_take_what_they_are_given() -> None:
    for right in (max, print, lambda x, y: x, lambda *args: args, lambda x, y=3, z=4: x, partial(lambda a, b, c: a, 1)):
        check_function("refit", right, "model", "data")
    for wrong, words in (
        (lambda: None, "found one of ()"),
        (lambda x, y, z: x, "found one of (x, y, z)"),
        (3, "found 3"),
        (int, "found the class int; pass an instance, int(...)"),
    ):
        message = f"refit: expected a function of (model, data), {words}"
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            check_function("refit", wrong, "model", "data")


def test_wrong_values_are_shown_in_short() -> None:
    assert found(["a", 3]) == "['a', 3]"
    assert found("a" * 100) == "str of 100"
    assert found(np.zeros((2, 3))) == "ndarray of shape [2, 3]"
    assert found(np.zeros(())) == "array(0.)"
    assert found(object()) == "object"
    assert found({key: key for key in range(100)}) == "dict"

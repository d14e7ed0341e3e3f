# SPDX-License-Identifier: Apache-2.0
"""Checks of the options that many functions take."""

from __future__ import annotations


def check_number(name: str, number: object, least: int) -> None:
    """Checks that an option is an integer of at least the given size.

    >>> check_number("num_bootstrap", 0, least=1)
    Traceback (most recent call last):
    ValueError: num_bootstrap: expected an integer of at least 1, found 0
    """
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise ValueError(f"{name}: expected an integer of at least {least}, found {number!r}")


def check_level(level: float) -> None:
    """Checks the p-value up to which a model is rejected.

    >>> check_level(5)
    Traceback (most recent call last):
    ValueError: level: expected a number between 0 and 1, such as 0.05, found 5
    """
    if not 0 < level < 1:
        raise ValueError(f"level: expected a number between 0 and 1, such as 0.05, found {level}")

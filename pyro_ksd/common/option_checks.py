# SPDX-License-Identifier: Apache-2.0
"""Checks of the options that many functions take."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np


def check_number(name: str, number: object, least: int, most: int | None = None) -> int:
    """Checks that an option is an integer of at least the given size; those of numpy count.

    :param most: the largest one; no bound if left out.
    :returns: the integer, as Python's own: torch does not take those of numpy everywhere.

    >>> check_number("num_bootstrap", np.int64(99), least=1)
    99
    >>> check_number("num_bootstrap", 0, least=1)
    Traceback (most recent call last):
    ValueError: num_bootstrap: expected an integer of at least 1, found 0
    >>> check_number("end", 7, least=0, most=3)
    Traceback (most recent call last):
    ValueError: end: expected an integer from 0 to 3, found 7
    """
    largest = math.inf if most is None else most
    if isinstance(number, Integral) and not isinstance(number, bool) and least <= int(number) <= largest:
        return int(number)
    size = f"of at least {least}" if most is None else f"from {least} to {most}"
    raise ValueError(f"{name}: expected an integer {size}, found {found(number)}")


def is_count(number: object) -> bool:
    """Whether something is an integer of at least 1, of Python or numpy.

    >>> is_count(2), is_count(0), is_count(True), is_count(2.0)
    (True, False, False, False)
    """
    return isinstance(number, Integral) and not isinstance(number, bool) and int(number) >= 1


def is_real(number: object) -> bool:
    """Whether something is a number, of Python or numpy: neither a boolean nor a tensor.

    >>> is_real(0.5), is_real(2), is_real(True), is_real("2")
    (True, True, False, False)
    """
    return isinstance(number, Real) and not isinstance(number, bool)


def check_positive(name: str, number: Any) -> None:
    """Checks that an option is a finite number above 0.

    >>> check_positive("time", "long")
    Traceback (most recent call last):
    ValueError: time: expected a finite number above 0, found 'long'
    """
    if not is_real(number) or not 0 < number < math.inf:
        raise ValueError(f"{name}: expected a finite number above 0, found {found(number)}")


def check_level(level: Any) -> None:
    """Checks the p-value up to which a model is rejected.

    >>> check_level(5)
    Traceback (most recent call last):
    ValueError: level: expected a number between 0 and 1, such as 0.05, found 5
    """
    if not is_real(level) or not 0 < level < 1:
        raise ValueError(f"level: expected a number between 0 and 1, such as 0.05, found {found(level)}")


def check_share(name: str, share: Any) -> None:
    """Checks that an option is a share.

    >>> check_share("tolerance", 1.0)
    Traceback (most recent call last):
    ValueError: tolerance: expected a share of at least 0 and below 1, such as 0.01, found 1.0
    """
    if not is_real(share) or not 0 <= share < 1:
        raise ValueError(f"{name}: expected a share of at least 0 and below 1, such as 0.01, found {found(share)}")


def check_flag(name: str, flag: object) -> None:
    """Checks that an option is true or false.

    >>> check_flag("progress", "no")
    Traceback (most recent call last):
    ValueError: progress: expected True or False, found 'no'
    """
    if not isinstance(flag, bool | np.bool_):
        raise ValueError(f"{name}: expected True or False, found {found(flag)}")


def check_choice(name: str, choice: object, choices: Sequence[str]) -> None:
    """Checks that an option is one of some words.

    >>> check_choice("form", "root", ["sqrt", "cosine"])
    Traceback (most recent call last):
    ValueError: form: expected 'sqrt' or 'cosine', found 'root'
    """
    if not isinstance(choice, str) or choice not in choices:
        *others, last = map(repr, choices)
        raise ValueError(f"{name}: expected {', '.join(others)} or {last}, found {found(choice)}")


def check_instance(name: str, value: object, kind: type | tuple[type, ...], words: str) -> None:
    """Checks that an argument is of some class.

    :param words: what is expected, and how to get it.

    >>> check_instance("size", int, float, "a float, such as 0.5")
    Traceback (most recent call last):
    ValueError: size: expected a float, such as 0.5, found the class int; pass an instance, int(...)
    """
    if not isinstance(value, kind):
        fix = f"; pass an instance, {value.__name__}(...)" if isinstance(value, type) else ""
        raise ValueError(f"{name}: expected {words}, found {found(value)}{fix}")


def check_mapping(name: str, value: object, words: str) -> None:
    """Checks that an argument has names for keys.

    >>> check_mapping("dims", ["letter"], "names of dimensions by site")
    Traceback (most recent call last):
    ValueError: dims: expected names of dimensions by site, found ['letter']; pass a dictionary
    """
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ValueError(f"{name}: expected {words}, found {found(value)}; pass a dictionary")


def check_function(name: str, function: object, *arguments: str) -> None:
    """Checks that an argument can be called with some arguments; a class cannot, what is expected is an instance.

    >>> check_function("sampler", lambda size: None, "num_sequences", "generator")
    Traceback (most recent call last):
    ValueError: sampler: expected a function of (num_sequences, generator), found one of (size)
    """
    words = f"a function of ({', '.join(arguments)})" if arguments else "a function without arguments"
    if not callable(function) or isinstance(function, type):
        check_instance(name, function, (), words)
    try:
        signature = inspect.signature(function)  # type: ignore[arg-type]
    except ValueError:  # some functions written in C do not state their arguments
        return
    try:
        signature.bind(*arguments)
    except TypeError:
        raise ValueError(f"{name}: expected {words}, found one of {signature}") from None


def found(value: object) -> str:
    """A wrong value as an error shows it: in full if that is short, else what it is.

    >>> found("high"), found(list(range(100))), found(int), found(len)
    ("'high'", 'list of 100', 'the class int', 'the function len')
    """
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if inspect.isroutine(value):
        return f"the function {value.__name__}"
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"{type(value).__name__} of shape {list(shape)}"
    shown = repr(value)
    if len(shown) <= 60 and "\n" not in shown and " object at 0x" not in shown:
        return shown
    return f"{type(value).__name__} of {len(value)}" if isinstance(value, list | tuple | str) else type(value).__name__

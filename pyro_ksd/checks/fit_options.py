# SPDX-License-Identifier: Apache-2.0
"""Options that tests of fit share, and how to name them."""

from __future__ import annotations

from typing import Any

from pyro_ksd.common.option_checks import (
    check_choice,
    check_flag,
    check_level,
    check_number,
)
from pyro_ksd.common.random_numbers import as_seed
from pyro_ksd.models.wrappers.sampler import check_sampler


def check_options(
    num_bootstrap: Any, level: Any, seed: Any, progress: Any, *, bootstrap: Any = "auto", sampler: Any = None
) -> tuple[int, int]:
    """Checks the options of a test, before anything is computed.

    :returns: the number of null draws and the seed, as integers of Python.

    >>> check_options(500, 0.05, 0, True, bootstrap="tame")
    Traceback (most recent call last):
    ValueError: bootstrap: expected 'auto', 'parametric' or 'wild', found 'tame'
    """
    check_level(level)
    check_flag("progress", progress)
    check_choice("bootstrap", bootstrap, ("auto", "parametric", "wild"))
    if sampler is not None:
        check_sampler(sampler)
    return check_number("num_bootstrap", num_bootstrap, least=1), as_seed(seed)


def passed(**arguments: Any) -> str:
    """Which of some arguments a user has passed, in words; ``""`` if none is.

    :param arguments: by their names; ``None``, ``False`` and ``"auto"`` mean that they are left out.

    >>> passed(gram=True, posterior=None, order="auto", tolerance=0.1)
    'gram=, tolerance='
    """
    left_out = (
        value is None or value is False or (isinstance(value, str) and value == "auto") for value in arguments.values()
    )
    return ", ".join(f"{name}=" for name, out in zip(arguments, left_out, strict=True) if not out)

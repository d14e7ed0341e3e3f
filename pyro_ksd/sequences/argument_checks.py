# SPDX-License-Identifier: Apache-2.0
"""Checks of the sequences that functions of the engine take."""

from __future__ import annotations

from pyro_ksd.common.option_checks import check_instance
from pyro_ksd.sequences.container import Sequences


def check_sequences(name: str, value: object) -> None:
    """Checks that an argument is :class:`~pyro_ksd.sequences.Sequences`; the engine reads no other data.

    >>> check_sequences("start", ["ab", "b"])
    Traceback (most recent call last):
    ValueError: start: expected Sequences, made by Sequences.of(data), found ['ab', 'b']
    """
    check_instance(name, value, Sequences, "Sequences, made by Sequences.of(data)")


def check_pair(x: object, y: object) -> None:
    """Checks that two arguments are sequences whose codes stand for the same symbols.

    >>> check_pair(Sequences.of(["ab"]), Sequences.of(["abc"]))
    Traceback (most recent call last):
    ValueError: x and y: expected sequences over one alphabet, found two different ones (of 2 and 3 symbols); give ...
    """
    check_sequences("x", x)
    check_sequences("y", y)
    if isinstance(x, Sequences) and isinstance(y, Sequences) and x.alphabet != y.alphabet:
        raise ValueError(
            f"x and y: expected sequences over one alphabet, found two different ones (of {x.alphabet_size} and "
            f"{y.alphabet_size} symbols); give both the same alphabet= in Sequences.of"
        )

# SPDX-License-Identifier: Apache-2.0
"""Alphabets: the symbols of sequences and their codes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from torch import Tensor

from pyro_ksd.common.option_checks import found

LARGEST_CODE = 2**63 - 1
"""Codes are long integers."""

Alphabet = int | tuple[Hashable, ...]
"""The number of symbols, or the symbols themselves in the order of their codes."""


def as_alphabet(alphabet: int | Iterable[Hashable]) -> Alphabet:
    if isinstance(alphabet, bool) or not isinstance(alphabet, int | np.integer | Iterable):
        raise ValueError(f"alphabet: expected a number of symbols or the symbols, found {found(alphabet)}")
    if isinstance(alphabet, tuple) and type(alphabet) is not tuple:
        check_alphabet(alphabet)
        return alphabet  # it knows more than its symbols, such as their vectors
    given: Alphabet = int(alphabet) if isinstance(alphabet, int | np.integer) else tuple(map(plain_symbol, alphabet))
    check_alphabet(given)
    return given


def check_alphabet(alphabet: Alphabet) -> None:
    size = alphabet if isinstance(alphabet, int) else len(alphabet)
    if size < 1:
        raise ValueError(f"alphabet: expected at least one symbol, found {alphabet!r}")
    if size > LARGEST_CODE:
        raise ValueError(f"alphabet: expected at most {LARGEST_CODE} symbols, found {size}")
    for symbol in () if isinstance(alphabet, int) else alphabet:
        if not isinstance(symbol, Hashable):
            raise ValueError(f"alphabet: expected hashable symbols, found {symbol!r}")
    if not isinstance(alphabet, int) and len(set(alphabet)) < size:
        twice = next(symbol for symbol in alphabet if alphabet.count(symbol) > 1)
        raise ValueError(f"alphabet: expected distinct symbols, found {twice!r} more than once")


def shown_alphabet(alphabet: Alphabet) -> str:
    if isinstance(alphabet, int):
        return f"0..{alphabet - 1}"
    return repr(alphabet) if len(alphabet) <= 30 else f"{alphabet[:30]!r} and {len(alphabet) - 30} more"


def unknown_symbol(
    row: int, position: int, symbol: Any, alphabet: Alphabet, argument: str = "the sequence"
) -> ValueError:
    """The error for a symbol outside of the alphabet.

    :param argument: what to fix.
    """
    return ValueError(
        f"sequence {row}, position {position}: found the symbol {symbol!r}, expected one of the alphabet "
        f"{shown_alphabet(alphabet)}; add it to alphabet= or fix {argument}"
    )


def plain_symbol(symbol: Any) -> Any:
    """A symbol without the wrapping of numpy or torch scalars, which compare or hash in other ways."""
    return symbol.item() if isinstance(symbol, np.generic | Tensor) and symbol.ndim == 0 else symbol

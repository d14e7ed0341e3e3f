# SPDX-License-Identifier: Apache-2.0
"""Names of features, for people."""

from __future__ import annotations

from collections.abc import Sequence


def spelled(code: int, length: int, symbols: Sequence[str]) -> str:
    """The symbols of an n-gram; with spaces between them, unless each symbol is one letter.

    >>> spelled(5, 2, "abc"), spelled(5, 2, ["AH", "B", "K"])
    ('bc', 'B K')
    """
    found = []
    for _ in range(length):
        code, symbol = divmod(code, len(symbols))
        found.append(symbols[symbol])
    return ("" if all(len(symbol) == 1 for symbol in symbols) else " ").join(reversed(found))

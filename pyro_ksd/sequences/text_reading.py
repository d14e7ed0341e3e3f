# SPDX-License-Identifier: Apache-2.0
"""Reading strings of words: where to split them, and which strings look as if they should have been split."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

from pyro_ksd.common.user_warnings import warn_user
from pyro_ksd.sequences.alphabets import Alphabet

SEPARATORS = ("\t", ";", "|", ",", "->", ">", " ")
"""What usually separates words. Of two that are equally common, the first is meant: ``","`` in ``"a, b"``."""


def split_rows(rows: list[Any], sep: str, alphabet: Alphabet | None) -> list[Any]:
    """The strings among rows, split into lists of symbols; missing rows stay as they are."""
    check_sep(sep)
    found = [_split(row, index, sep) for index, row in enumerate(rows)]
    if alphabet is None:
        parts = [row for row in found if isinstance(row, list)]
        _check_numbers(parts, sep)
        warn_if_never_split(parts, sep)
    return found


def check_sep(sep: object) -> None:
    """Checks that strings can be split at a separator."""
    if not isinstance(sep, str) or not sep:
        raise ValueError(
            f"sep: expected what separates the symbols, such as ' ' or ',', found {sep!r}; leave it out if each "
            "character is a symbol"
        )


def warn_of_words(rows: list[Any]) -> None:
    """Warns if most strings have a separator inside, which is about to become a symbol."""
    strings = [row.strip() for row in rows if isinstance(row, str) and row.strip()]
    counts = {sep: sum(sep in string for string in strings) for sep in SEPARATORS}
    sep = max(SEPARATORS, key=counts.__getitem__)
    if 2 * counts[sep] > len(strings):
        warn_user(
            f"found {sep!r} in {counts[sep]} of {len(strings)} strings, as if it separated words, and took every "
            f"character as a symbol, {sep!r} included. For words, pass sep={sep!r}; for "
            "characters, state the alphabet to silence this warning, such as alphabet=sorted(set(''.join(data)))"
        )


def _split(row: Any, index: int, sep: str) -> Any:
    if not isinstance(row, str):
        if isinstance(row, Iterable) and not isinstance(row, bytes):
            raise ValueError(
                f"sequence {index}: expected a string to split at sep={sep!r}, found {type(row).__name__}; leave out "
                "sep= if the sequences are split already"
            )
        return row
    if sep == " " or not row.strip():
        return row.split()
    parts = [part.strip() for part in row.split(sep)]
    if "" in parts:
        raise ValueError(
            f"sequence {index}, position {parts.index('')}: found no symbol before or after a separator {sep!r}, "
            "expected one; remove the separator, or write a symbol for what is missing"
        )
    return parts


def _check_numbers(rows: list[list[str]], sep: str) -> None:
    """Refuses numbers whose codes would be other numbers, since text is coded in sorted order: '10' before '9'."""
    symbols = sorted(set(chain.from_iterable(rows)))
    if not all(symbol.removeprefix("-").isdecimal() for symbol in symbols):
        return
    for code, symbol in enumerate(symbols):
        if int(symbol) != code:
            split = "line.split()" if sep == " " else f"line.split({sep!r})"
            raise ValueError(
                "found only numbers between the separators; as text they get their codes in sorted order, and "
                f"{symbol!r} would get the code {code}; pass integers, [[int(n) for n in {split}] for line in data], "
                "or state alphabet= in the order of the codes"
            )


def warn_if_never_split(rows: list[list[str]], sep: str) -> None:
    """Warns if no string has the separator inside."""
    if max(map(len, rows), default=0) == 1:
        warn_user(
            f"found the separator {sep!r} in none of {len(rows)} strings, and took each whole string as one symbol; "
            "correct sep=, or, if all sequences have one symbol, state alphabet= to silence this warning"
        )

# SPDX-License-Identifier: Apache-2.0
"""What the readers of all formats make of a file: one row of symbols a sequence, and where in the file each symbol "
"is."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Self

from pyro_ksd.common.user_warnings import warn_user
from pyro_ksd.sequences.alphabets import Alphabet, shown_alphabet
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.row_reading import coded_rows

_WHOLE = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)
_REAL = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?", re.ASCII)
_SHOWN = 3  # symbols in a warning


@dataclass(frozen=True)
class SymbolRows(ABC):
    """The sequences of a file.

    :param file: its name.
    :param rows: the symbols of each sequence: a string if its characters are the symbols, else a list.
    """

    file: str
    rows: Sequence[Sequence[Hashable]]

    @abstractmethod
    def place(self, row: int, position: int) -> str:
        """Where in the file a symbol is, such as ``"names.txt, line 3, column 5"``."""

    @abstractmethod
    def chosen(self, kept: list[int]) -> Self:
        """Some of the sequences."""

    def first(self, wanted: set[Any]) -> tuple[int, int]:
        """The sequence and the position of the first symbol that is one of those wanted."""
        return next(
            (index, position)
            for index, row in enumerate(self.rows)
            if not wanted.isdisjoint(row)
            for position, symbol in enumerate(row)
            if symbol in wanted
        )


@dataclass(frozen=True)
class LineRows(SymbolRows):
    """The sequences of a file that has one in each of its lines, or rows, as a string or a list.

    :param lines: the number of the line of each sequence.
    :param unit: what is counted, ``"line"`` or ``"row"``.
    :param field: the column, or the field, that has the sequence; ``None`` if that is the whole line.
    """

    lines: Sequence[int]
    unit: str = "line"
    field: Hashable = None

    def place(self, row: int, position: int) -> str:
        return f"{self.line_place(row)}, symbol {position + 1}"

    def line_place(self, row: int) -> str:
        """Where in the file a sequence is."""
        within = "" if self.field is None else f", column {self.field!r}"
        return f"{self.file}, {self.unit} {self.lines[row]}{within}"

    def chosen(self, kept: list[int]) -> Self:
        return replace(self, rows=[self.rows[row] for row in kept], lines=[self.lines[row] for row in kept])


def as_sequences(found: SymbolRows, alphabet: Alphabet | None, skip_unknown: bool) -> Sequences:
    """The sequences of a file over the alphabet that was stated, or that of their symbols.

    :param skip_unknown: whether sequences with other symbols are left out, with a warning.
    """
    if alphabet is not None:
        found = _without_unknown(found, alphabet, skip_unknown)
    return Sequences(*coded_rows(list(found.rows), alphabet))


def with_numbers(found: SymbolRows, alphabet: Alphabet | None) -> SymbolRows:
    """The sequences with whole numbers as integers, if all of their symbols are; unless the alphabet has texts.

    :raises ValueError: if all are numbers, but some have fractions, and the alphabet is not stated.
    """
    if isinstance(alphabet, tuple) and not all(isinstance(symbol, int) for symbol in alphabet):
        return found
    texts = set(chain.from_iterable(found.rows))
    if not texts or not all(isinstance(text, str) and _REAL.fullmatch(text) for text in texts):
        return found
    real = {text for text in texts if not re.fullmatch(r"-?[0-9]+", str(text))}
    if real and alphabet is None:
        row, position = found.first(real)
        raise ValueError(
            f"{found.place(row, position)}: found the number {found.rows[row][position]!r}, expected a discrete "
            "symbol; round the numbers to whole ones, or state alphabet= if each of them is a symbol"
        )
    if not all(_WHOLE.fullmatch(str(text)) for text in texts):  # such as '007', which is a name
        return found
    numbers = {text: int(str(text)) for text in texts}
    return replace(found, rows=[[numbers[text] for text in row] for row in found.rows])


def check_kinds(found: SymbolRows) -> None:
    """Refuses what is no symbol, and symbols of several kinds, in which 1 and '1' would differ."""
    kinds: dict[type, tuple[int, int]] = {}
    for index, row in enumerate(found.rows):
        for position, symbol in enumerate(row):
            kind = type(symbol)
            if kind in kinds:
                continue
            if kind not in (str, int, bool):
                raise ValueError(
                    f"{found.place(index, position)}: found {symbol!r}, expected a text or a whole number; symbols are "
                    "discrete and nothing may be missing"
                )
            kinds[kind] = (index, position)
            if len(kinds) > 1:
                row_before, before = next(iter(kinds.values()))
                raise ValueError(
                    f"{found.place(index, position)}: found {symbol!r}, expected a symbol of the same kind as "
                    f"{found.rows[row_before][before]!r} in {found.place(row_before, before)}; write all symbols as "
                    "text or all as whole numbers"
                )


def split_text(text: str, sep: str, place: str) -> list[str]:
    """The symbols of a text; ``" "`` separates at any run of white space.

    :param place: of the text, for errors.
    """
    if sep == " " or not text.strip():
        return text.split()
    parts = [part.strip() for part in text.split(sep)]
    if "" in parts:
        raise ValueError(
            f"{place}, symbol {parts.index('') + 1}: found no symbol before or after a separator {sep!r}, expected "
            "one; remove the separator, or write a symbol for what is missing"
        )
    return parts


def _without_unknown(found: SymbolRows, known: Alphabet, skip: bool) -> SymbolRows:
    symbols: Any = range(known) if isinstance(known, int) else frozenset(known)
    others = {symbol for symbol in set(chain.from_iterable(found.rows)) if symbol not in symbols}
    if not others:
        return found
    row, position = found.first(others)
    place, symbol = found.place(row, position), found.rows[row][position]
    if not skip:
        raise ValueError(
            f"{place}: found the symbol {symbol!r}, expected one of the alphabet {shown_alphabet(known)}; add it to "
            "alphabet=, fix the file, or leave out all sequences with other symbols, skip_unknown=True"
        )
    kept = [index for index, symbols_of_row in enumerate(found.rows) if others.isdisjoint(symbols_of_row)]
    if not kept:
        raise ValueError(
            f"{place}: found the symbol {symbol!r}, expected one of the alphabet {shown_alphabet(known)}; no sequence "
            "has symbols of the alphabet only; correct alphabet="
        )
    counts = Counter(symbol for row in found.rows for symbol in row if symbol in others)
    shown = ", ".join(f"{symbol!r} ({'once' if n == 1 else f'{n} times'})" for symbol, n in counts.most_common(_SHOWN))
    more = ", ..." if len(counts) > _SHOWN else ""
    warn_user(
        f"left out {len(found.rows) - len(kept)} of {len(found.rows)} sequences with symbols outside of the alphabet: "
        f"{shown}{more}, first in {place}; this changes the lengths, since long sequences are left out more often"
    )
    return found.chosen(kept)

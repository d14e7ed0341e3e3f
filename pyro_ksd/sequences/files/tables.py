# SPDX-License-Identifier: Apache-2.0
"""Tables of files, with named columns: a log with one event a row, or one column that has the sequences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from pyro_ksd.common.option_checks import found
from pyro_ksd.sequences.alphabets import Alphabet
from pyro_ksd.sequences.files.symbol_rows import LineRows, SymbolRows, check_kinds, split_text, with_numbers
from pyro_ksd.sequences.frame_reading import events_by_sequence, warn_of_ties
from pyro_ksd.sequences.text_reading import check_sep, warn_if_never_split, warn_of_words

_SHOWN = 20  # names of columns
_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?", re.ASCII)
_OFFSET = re.compile(r":[0-9]{2}(\.[0-9]+)? ?(Z|[-+][0-9]{2}(:?[0-9]{2})?)$", re.ASCII)
_CLOCK = re.compile(r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?", re.ASCII)


@dataclass(frozen=True)
class Log:
    """The columns of a log with one event a row, as a user names them.

    :param by: those that tell the sequences apart.
    :param symbol: that of the symbols.
    :param order: those that order the events of a sequence.
    """

    by: list[str]
    symbol: str
    order: list[str]

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys([*self.by, self.symbol, *self.order]))


@dataclass(frozen=True)
class Table:
    """Some columns of a file, with nothing missing.

    :param columns: the values of each column.
    :param first: the number of the first row in the file.
    :param unit: what is numbered, ``"line"`` or ``"row"``.
    """

    file: str
    columns: dict[str, list[Any]]
    first: int
    unit: str = "line"

    def place(self, row: int, column: str) -> str:
        return f"{self.file}, {self.unit} {row + self.first}, column {column!r}"


@dataclass(frozen=True)
class EventRows(SymbolRows):
    """The sequences of a log.

    :param table: the log.
    :param symbol: its column of symbols.
    :param events: the row of the log of each symbol.
    """

    table: Table = field(repr=False)
    symbol: str
    events: list[list[int]] = field(repr=False)

    def place(self, row: int, position: int) -> str:
        return self.table.place(self.events[row][position], self.symbol)

    def chosen(self, kept: list[int]) -> Self:
        return replace(self, rows=[self.rows[row] for row in kept], events=[self.events[row] for row in kept])


def log_rows(table: Table, log: Log, alphabet: Alphabet | None) -> SymbolRows:
    """The sequences of a log with one event a row."""
    import pandas as pd

    for name in dict.fromkeys([*log.by, *log.order]):
        _check_one_kind(table, name)
    columns = table.columns | {name: _sortable(table, name) for name in log.order}
    used = pd.DataFrame({name: pd.Series(columns[name]) for name in log.columns})
    events = events_by_sequence(used, list(log.by), list(log.order))
    warn_of_ties(used, list(log.by), log.symbol, list(log.order), table.first, table.unit)
    symbols = table.columns[log.symbol]
    rows = [[symbols[row] for row in rows] for rows in events]
    return typed(EventRows(table.file, rows, table, log.symbol, events), alphabet)


def column_rows(table: Table, column: str, sep: str | None, alphabet: Alphabet | None) -> SymbolRows:
    """The sequences of a table that has one in each cell of a column, as a string or a list."""
    rows = table.columns[column]
    lines = range(table.first, table.first + len(rows))
    return value_rows(LineRows(table.file, rows, lines, table.unit, column), sep, alphabet)


def value_rows(values: LineRows, sep: str | None, alphabet: Alphabet | None) -> SymbolRows:
    """The sequences of values that are all strings, or all lists.

    :param values: with the values in place of the symbols.
    """
    kinds = [str if isinstance(value, str) else list if isinstance(value, list) else None for value in values.rows]
    for row, (kind, value) in enumerate(zip(kinds, values.rows, strict=True)):
        if kind is None or kind is not kinds[0]:
            expected = "a string or a list of symbols"
            if kind is not None:
                kind_before = "a string" if kinds[0] is str else "a list"
                expected = f"{kind_before}, as in {values.line_place(0)}"
            raise ValueError(f"{values.line_place(row)}: found {found(value)}, expected {expected}; write all alike")
    if kinds and kinds[0] is list:
        if sep is not None:
            raise ValueError(f"sep: expected strings to split, found lists in {values.file}; leave it out")
        check_kinds(values)
        return values
    if sep is None:
        if alphabet is None:
            warn_of_words(list(values.rows))
        return values
    check_sep(sep)
    parts = [split_text(str(text), sep, values.line_place(row)) for row, text in enumerate(values.rows)]
    if alphabet is None:
        warn_if_never_split(parts, sep)
    return with_numbers(replace(values, rows=parts), alphabet)


def typed(rows: SymbolRows, alphabet: Alphabet | None) -> SymbolRows:
    """Rows of cells with texts that are whole numbers as integers; rows of other values, checked."""
    check_kinds(rows)
    return with_numbers(rows, alphabet)


def check_columns(file: str, columns: Sequence[str], needed: Iterable[str]) -> None:
    """Checks that a table has the columns that are asked for, once."""
    for name in needed:
        count = list(columns).count(name)
        if count != 1:
            fix = "correct the name" if not count else "rename the others"
            shown = ", ".join([*map(repr, columns[:_SHOWN]), *(["..."] if len(columns) > _SHOWN else [])])
            raise ValueError(
                f"{file}: expected one column {name!r}, found {count or 'none'} among the columns [{shown}]; {fix}"
            )


def _check_one_kind(table: Table, name: str) -> None:
    """Refuses a column that has texts and numbers: 7 and '7' would be two sequences, and have no order."""
    values = table.columns[name]
    for row, value in enumerate(values):
        if isinstance(value, list | dict):
            raise ValueError(f"{table.place(row, name)}: found {found(value)}, expected a text or a number")
        if isinstance(value, str) is not isinstance(values[0], str):
            raise ValueError(
                f"{table.place(row, name)}: found {value!r}, expected a value of the same kind as {values[0]!r} in "
                f"{table.place(0, name)}; write all as text or all as numbers"
            )


def _sortable(table: Table, name: str) -> list[Any]:
    """The values of a column that orders events, as numbers or times; times without a date stay texts.

    :raises ValueError: for values that would be sorted letter by letter.
    """
    values = table.columns[name]
    if not all(isinstance(value, str) for value in values):
        return values
    for pattern in (_NUMBER, _CLOCK):
        if pattern.fullmatch(values[0]):
            for row, text in enumerate(values):
                if not pattern.fullmatch(text):
                    raise _not_sortable(table, row, name)
            return values if pattern is _CLOCK else list(map(_number, values))
    import pandas as pd

    _check_time_zones(table, name)
    times = pd.to_datetime(pd.Series(values), format="ISO8601", utc=True, errors="coerce")
    bad = times.isna().to_numpy()
    if bad.any():
        raise _not_sortable(table, int(bad.argmax()), name)
    return list(times)


def _number(text: str) -> int | float:
    return int(text) if text.lstrip("+-").isdecimal() else float(text)


def _not_sortable(table: Table, row: int, name: str) -> ValueError:
    return ValueError(
        f"{table.place(row, name)}: found the text {table.columns[name][row]!r}, expected a number or a time such as "
        "'2024-01-31 09:30', in all rows alike; other text is sorted letter by letter, '10' before '9'; write the "
        "column as numbers or times, or sort the file yourself and leave out order_by="
    )


def _check_time_zones(table: Table, name: str) -> None:
    """Refuses times of which some have an offset from UTC and others have none."""
    values = table.columns[name]
    offsets = [_OFFSET.search(text) is not None for text in values]
    if any(offsets) and not all(offsets):
        row = offsets.index(not offsets[0])
        raise ValueError(
            f"{table.place(row, name)}: found the time {values[row]!r}, expected one "
            f"{'with' if offsets[0] else 'without'} an offset from UTC, as {values[0]!r} in {table.place(0, name)}; "
            "write all times in the same way"
        )

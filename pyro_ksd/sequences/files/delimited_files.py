# SPDX-License-Identifier: Apache-2.0
"""Reading CSV and TSV: one sequence a row, or a table with named columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from pyro_ksd.common.user_warnings import warn_user
from pyro_ksd.sequences.alphabets import Alphabet
from pyro_ksd.sequences.files.cells import cells_of, delimiter_of, is_blank, is_missing, plain
from pyro_ksd.sequences.files.file_contents import FileContent
from pyro_ksd.sequences.files.symbol_rows import LineRows, SymbolRows
from pyro_ksd.sequences.files.tables import Table, check_columns, typed

_NUMBERED = re.compile(r"(.*?)([0-9]+)", re.ASCII)
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?", re.ASCII)
_FEW_NAMED = 3  # rows after a line that may be names of columns
_FEW_ROWS = 10  # rows from which on distinct first cells seem to be names


@dataclass(frozen=True)
class DelimitedFile:
    """The cells of a file of CSV or TSV: those of line ``i + 1`` are ``rows[i]``."""

    name: str
    rows: list[list[str]]


@dataclass(frozen=True)
class CellRows(LineRows):
    """Rows of cells, so that positions are cells.

    :param dropped: the column that is no symbol.
    """

    dropped: int | None = None

    def place(self, row: int, position: int) -> str:
        shift = int(self.dropped is not None and self.dropped <= position)
        return f"{self.line_place(row)}, cell {position + 1 + shift}"


def delimited_file(content: FileContent, delimiter: str | None) -> DelimitedFile:
    """The cells of a file.

    :param delimiter: read off the file if it is left out.
    """
    lines = content.lines()
    separator = delimiter_of(content.name, lines) if delimiter is None else delimiter
    if not isinstance(separator, str) or len(separator) != 1 or separator in '" ':
        raise ValueError(
            f"sep: expected a single character that separates the cells, such as ';', found {separator!r}; for a "
            "column of strings to split, pass column= as well"
        )
    rows = []
    for number, line in enumerate(lines, 1):
        place = f"{content.name}, line {number}"
        if not line.strip(" "):
            raise ValueError(
                f'{place}: found a blank line, expected a row; remove it, or, if it is an empty sequence, write ""'
            )
        rows.append(cells_of(line, separator, place))
    return DelimitedFile(content.name, rows)


def delimited_table(file: DelimitedFile, needed: list[str]) -> Table:
    """The columns that are needed of a table whose first line names its columns."""
    names, *rows = file.rows
    check_columns(file.name, plain(names), needed)
    if not rows:
        raise ValueError(f"{file.name}: expected at least one row after the names of the columns, found none")
    for number, cells in enumerate(rows, 2):
        if len(cells) != len(names):
            raise ValueError(
                f"{file.name}, line {number}: found {len(cells)} cells, expected {len(names)}, one for each of the "
                f"columns {plain(names)}; put cells with separators inside into quotes"
            )
    table = Table(file.name, {name: [cells[names.index(name)] for cells in rows] for name in needed}, first=2)
    for name, column in table.columns.items():
        for row, cell in enumerate(column):
            if is_missing(cell):
                raise ValueError(
                    f"{table.place(row, name)}: found {_shown(cell)}, expected a value; remove the row, fill it, or, "
                    "if "
                    f'it is a text, put it into quotes, "{cell}"'
                )
        column[:] = plain(column)
    return table


def warn_of_unsorted_times(file: DelimitedFile, by: Sequence[str]) -> None:
    """Warns of a log without a column that orders it, if it has times that are not in order within a sequence.

    :param file: a table, see :func:`delimited_table`.
    :param by: the columns that tell the sequences apart.
    """
    names, *rows = file.rows
    places = [names.index(name) for name in by]
    for place, name in enumerate(names):
        if place in places or not all(_TIME.fullmatch(cells[place]) for cells in rows):
            continue
        latest: dict[tuple[str, ...], str] = {}
        for number, cells in enumerate(rows, 2):
            own = tuple(cells[one] for one in places)
            if cells[place] < latest.get(own, ""):
                warn_user(
                    f"{file.name}, line {number}, column {str(name)!r}: found a time before that of an earlier event "
                    "of its sequence, and kept the events in the order of the lines; pass "
                    f"order_by={str(name)!r} to sort them"
                )
                return
            latest[own] = cells[place]


def wide_rows(file: DelimitedFile, by: str | None, alphabet: Alphabet | None) -> SymbolRows:
    """The sequences of a table with one sequence a row; blank cells at the end of a row are no symbols.

    :param by: the name of the column that names the sequences; the first line then has names.
    """
    dropped = None
    first = int(by is not None)
    if by is not None:
        check_columns(file.name, plain(file.rows[0]), [by])
        dropped = file.rows[0].index(by)
        _check_names(file, dropped, by)
    elif alphabet is None:
        _check_several_cells(file)
        first = int(_has_numbered_names(file))
        if not first:
            _check_first_line(file)
        _check_first_cells(file, first)
    rows = [_symbols(file, row, dropped, alphabet) for row in range(first, len(file.rows))]
    if not rows:
        raise ValueError(f"{file.name}: expected at least one sequence after the names of the columns, found none")
    return typed(CellRows(file.name, rows, range(first + 1, len(file.rows) + 1), dropped=dropped), alphabet)


def _symbols(file: DelimitedFile, row: int, dropped: int | None, alphabet: Alphabet | None) -> list[str]:
    """The symbols of a row.

    :raises ValueError: for cells in which something is missing, unless it is a symbol of the alphabet that was stated.
    """
    cells = file.rows[row]
    end = max((column + 1 for column, cell in enumerate(cells) if column != dropped and not is_blank(cell)), default=0)
    columns = [column for column in range(end) if column != dropped]
    if len(columns) == 1 and not cells[columns[0]] and not _states(alphabet, ""):
        return []  # a single cell "" is the empty sequence
    for column in columns:
        cell = cells[column]
        if (not cell or is_missing(cell)) and not _states(alphabet, cell):
            raise ValueError(
                f"{file.name}, line {row + 1}, cell {column + 1}: found {_shown(cell)}, expected a symbol; blank cells "
                "stand at the end of a row only; remove the cell, write a symbol for what is missing, or, if "
                f"{str(cell)!r} is a symbol, state alphabet="
            )
    return plain([cells[column] for column in columns])


def _states(alphabet: Alphabet | None, cell: str) -> bool:
    return isinstance(alphabet, tuple) and cell in alphabet


def _check_names(file: DelimitedFile, column: int, by: str) -> None:
    """Checks that a column has a name of its own for each row."""
    lines: dict[str, int] = {}
    for number, cells in enumerate(file.rows[1:], 2):
        name = cells[column] if column < len(cells) else ""
        if is_missing(name):
            raise ValueError(
                f"{file.name}, line {number}, column {by!r}: found {_shown(name)}, expected the name of a sequence; "
                "fill it"
            )
        if name in lines:
            raise ValueError(
                f"{file.name}, line {number}, column {by!r}: found {str(name)!r} as in line {lines[name]}, expected "
                "another name in each row; for a log with one event a row, pass symbol= as well"
            )
        lines[name] = number


def _check_several_cells(file: DelimitedFile) -> None:
    """Refuses a file of one column of texts, which are sequences rather than symbols."""
    cells = [cell for row in file.rows for cell in row if cell]
    if _widest(file.rows) == 1 and any(len(cell) > 1 and not cell.isdecimal() for cell in cells):
        raise ValueError(
            f"{file.name}: found one cell in each line, such as {str(cells[0])!r}, expected several, which are the "
            f"symbols of a sequence; if each cell is a sequence, pass column={str(cells[0])!r} where line 1 names the "
            "column, or format='text' where it does not; if the cells are separated by another character, pass sep=; "
            "if each is a single symbol, state alphabet="
        )


def _has_numbered_names(file: DelimitedFile) -> bool:
    """Whether the first line is t1, t2, ..., which names the columns.

    :raises ValueError: if it is 0, 1, 2, ..., and may be a sequence as well.
    """
    names, *others = file.rows
    parts = [part for name in names if (part := _NUMBERED.fullmatch(name))]
    if len(parts) < len(names) or len(names) < max(2, _widest(others)):
        return False
    numbers = [int(part[2]) for part in parts]
    if len({part[1] for part in parts}) > 1 or numbers not in (list(range(len(names))), list(range(1, len(names) + 1))):
        return False
    cells = set(filter(None, chain.from_iterable(others)))
    if not parts[0][1] and all(cell.isdecimal() for cell in cells):
        raise ValueError(
            f"{file.name}, line 1: found {', '.join(names[:3])}, ..., which may name the columns or be a sequence; "
            "remove the line, or, if it is a sequence, state alphabet="
        )
    return cells.isdisjoint(names)


def _check_first_line(file: DelimitedFile) -> None:
    """Refuses a first line that seems to name columns."""
    names, *others = file.rows
    if len(others) < _FEW_NAMED or len(names) < max(2, _widest(others)) or len(set(names)) < len(names):
        return
    if set(chain.from_iterable(others)).isdisjoint(names):
        raise ValueError(
            f"{file.name}, line 1: found {', '.join(map(repr, plain(names[:3])))}, which are in no other line, as if "
            f"they named columns; if the first column names the sequences, pass by={str(names[0])!r}; for a log with "
            "one event a row, pass by= and symbol=; for a column of sequences, pass column=; if every row is a "
            "sequence, remove this line, or, if it is a sequence, state alphabet="
        )


def _check_first_cells(file: DelimitedFile, first: int) -> None:
    """Refuses first cells that seem to name, or number, the sequences."""
    rows = file.rows[first:]
    names = [row[0] for row in rows]
    cells = list(filter(None, chain.from_iterable(row[1:] for row in rows)))
    if len(rows) < _FEW_ROWS or not cells or len(set(names)) < len(names):
        return
    start = int(names[0]) if names[0].isdecimal() else None
    is_numbered = start is not None and names == [str(number) for number in range(start, start + len(names))]
    if is_numbered or (set(names).isdisjoint(cells) and 2 * len(set(cells)) < len(cells)):
        raise ValueError(
            f"{file.name}, line {first + 1}, cell 1: found {str(names[0])!r}, and something else in each line, as if "
            "the first cells named the sequences; remove them, or name the columns in line 1 and pass by= the name of "
            "the first one; if they are symbols, state alphabet="
        )


def _widest(rows: Sequence[Sequence[str]]) -> int:
    return max(map(len, rows), default=0)


def _shown(cell: str) -> str:
    return f"{str(cell)!r}, which marks a missing value" if cell else "an empty cell"

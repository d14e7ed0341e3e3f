# SPDX-License-Identifier: Apache-2.0
"""The cells of a line of CSV or TSV."""

from __future__ import annotations

import re

DELIMITERS = (",", ";", "\t", "|")
"""What may separate the cells of a file whose name ends in .csv."""

_QUOTED = re.compile(r' *"((?:[^"]|"")*+)" *')
_MISSING = frozenset({"", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null", "None", "<NA>"})


class Quoted(str):
    """A cell that is in quotes: a text, even if it is empty or ``NA``."""

    __slots__ = ()


def is_missing(cell: str) -> bool:
    """Whether a cell marks a missing value, as pandas, R and SQL write it."""
    return cell in _MISSING and not isinstance(cell, Quoted)


def is_blank(cell: str) -> bool:
    """Whether there is nothing in a cell, not even quotes."""
    return not cell and not isinstance(cell, Quoted)


def plain(cells: list[str]) -> list[str]:
    """Cells as texts, whether they are in quotes or not."""
    return [str(cell) for cell in cells]


def cells_of(line: str, delimiter: str, place: str) -> list[str]:
    """The cells of a line, without white space around those that are not in quotes.

    A cell in double quotes may have delimiters inside, and double quotes that are written twice.

    :param place: of the line, for errors.
    :raises ValueError: for a quote that is not closed in the line, or that is inside of a cell without quotes.

    >>> plain(cells_of('home, "a,b",', ",", "visits.csv, line 1"))
    ['home', 'a,b', '']
    """
    if '"' not in line:
        return [text.strip() for text in line.split(delimiter)]
    cells: list[str] = []
    start = 0
    while start <= len(line):
        quoted = _QUOTED.match(line, start)
        if quoted and (quoted.end() == len(line) or line.startswith(delimiter, quoted.end())):
            cells.append(Quoted(quoted[1].replace('""', '"')))
            start = quoted.end() + len(delimiter)
            continue
        end = line.find(delimiter, start)
        end = len(line) if end < 0 else end
        text = line[start:end]
        if '"' in text:
            raise _wrong_quote(line, start, quoted.end() if quoted else None, place)
        cells.append(text.strip())
        start = end + len(delimiter)
    return cells


def delimiter_of(file: str, lines: list[str]) -> str:
    """What separates the cells of a file: the first line that has a candidate outside of quotes decides.

    :raises ValueError: if that line has several candidates.
    """
    for number, line in enumerate(lines, 1):
        outside = re.sub(r'"(?:[^"]|"")*"', "", line)
        found = [delimiter for delimiter in DELIMITERS if delimiter in outside]
        if len(found) > 1:
            raise ValueError(
                f"{file}, line {number}: found {' and '.join(map(repr, found))}, expected one of them to separate the "
                f"cells; pass sep={found[0]!r} or sep={found[1]!r}, or put cells that have the other one into quotes"
            )
        if found:
            return found[0]
    return ","


def _wrong_quote(line: str, start: int, closed: int | None, place: str) -> ValueError:
    """The error for a cell that begins at ``start`` and has a quote that means nothing.

    :param closed: where its quotes end, if they do.
    """
    begins = start + len(line[start:]) - len(line[start:].lstrip())
    if closed is not None:
        return ValueError(
            f"{place}, column {closed + 1}: found {line[closed]!r} after a closing quote, expected the end of the "
            "cell; "
            'write a quote inside of a quoted cell twice, ""'
        )
    if line[begins] == '"':
        return ValueError(
            f"{place}, column {begins + 1}: found a quote that is not closed in this line, expected its end; close it, "
            'or, if it is a part of the text, quote the cell and write the quote twice, ""'
        )
    return ValueError(
        f"{place}, column {line.index(chr(34), start) + 1}: found a quote inside of a cell without quotes, expected "
        "none; "
        'quote the whole cell and write the quote twice, ""'
    )

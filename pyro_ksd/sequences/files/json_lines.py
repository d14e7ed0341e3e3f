# SPDX-License-Identifier: Apache-2.0
"""Reading JSON lines: a string, a list or an object in each line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pyro_ksd.common.option_checks import found
from pyro_ksd.sequences.alphabets import Alphabet
from pyro_ksd.sequences.files.file_contents import FileContent
from pyro_ksd.sequences.files.symbol_rows import LineRows, SymbolRows
from pyro_ksd.sequences.files.tables import Table, value_rows


def json_rows(content: FileContent, sep: str | None, alphabet: Alphabet | None) -> SymbolRows:
    """The sequences of a file with a string or a list in each line."""
    values = []
    for place, value in _values(content):
        if isinstance(value, dict):
            raise ValueError(
                f"{place}: found an object with the fields {list(value)}, expected a string or a list; pass column= "
                "the name of the field that has the sequence, or by= and symbol= for a log with one event a line"
            )
        values.append(value)
    return value_rows(LineRows(content.name, values, range(1, len(values) + 1)), sep, alphabet)


def json_table(content: FileContent, needed: list[str]) -> Table:
    """Some fields of a file with an object in each line."""
    columns: dict[str, list[Any]] = {name: [] for name in needed}
    for place, value in _values(content):
        if not isinstance(value, dict):
            raise ValueError(f"{place}: found {found(value)}, expected an object with the fields {needed}")
        for name, column in columns.items():
            entry = value.get(name)
            if entry is None or entry != entry:  # NaN
                state = f"only the fields {list(value)}" if name not in value else "a missing value"
                raise ValueError(
                    f"{place}, column {name!r}: found {state}, expected a value; fill it, or remove the line"
                )
            column.append(entry)
    return Table(content.name, columns, first=1)


def _values(content: FileContent) -> Iterator[tuple[str, Any]]:
    """The place and the value of each line."""
    for number, line in enumerate(content.lines(), 1):
        place = f"{content.name}, line {number}"
        if not line.strip():
            raise ValueError(
                f'{place}: found a blank line, expected a value of JSON; remove it, or write "" for an empty sequence'
            )
        try:
            value = json.loads(line, object_pairs_hook=_object)
        except json.JSONDecodeError as error:
            raise ValueError(
                f"{place}, column {error.colno}: expected one whole value of JSON in each line, found another text "
                f"({error.msg}); for a file that is a single list of sequences, use Sequences.of(json.load(file))"
            ) from None
        except _RepeatedFieldError as error:
            raise ValueError(
                f"{place}: found the field {error.args[0]!r} twice, expected it once; rename one"
            ) from None
        yield place, value


class _RepeatedFieldError(Exception):
    """An object has two fields of the same name."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        raise _RepeatedFieldError(next(name for name in names if names.count(name) > 1))
    return fields

# SPDX-License-Identifier: Apache-2.0
"""Reading pandas data frames: logs with one event a row, and which frames are padded arrays.

Frames are known by their methods, so that nothing here imports pandas.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any

import numpy as np

from pyro_ksd.common.user_warnings import warn_user
from pyro_ksd.sequences.alphabets import Alphabet
from pyro_ksd.sequences.row_reading import Coded, coded_rows

_TIME = r"\d\d:\d\d(:\d\d(\.\d+)?)?"
_DATED = re.compile(rf"\d{{4}}-\d\d-\d\d[T ]{_TIME}")
_SORTED_LIKE_TEXT = re.compile(rf"\d{{4}}-\d\d-\d\d([T ]{_TIME})?|{_TIME}")
_LOG = "for a log with one event a row, use Sequences.from_frame(data, by=..., symbol=...)"


def coded_log(frame: Any, by: Any, symbol: Hashable, order_by: Any, alphabet: Alphabet | None) -> Coded:
    """The codes of a log; see :meth:`~pyro_ksd.sequences.Sequences.from_frame`."""
    if not hasattr(frame, "columns") or not hasattr(frame, "sort_values"):
        raise ValueError(
            f"expected a pandas data frame, found {type(frame).__name__}; convert it, such as pandas.DataFrame(log)"
        )
    groups = column_names(frame, "by", by)
    order = [] if order_by is None else column_names(frame, "order_by", order_by)
    column_names(frame, "symbol", [symbol])
    used = frame[list(dict.fromkeys([*groups, symbol, *order]))].reset_index(drop=True)
    _check_nothing_missing(used)
    events = events_by_sequence(used, groups, order)
    symbols = used[symbol].tolist()
    coded = coded_rows([[symbols[row] for row in rows] for rows in events], alphabet)
    warn_of_ties(used, groups, symbol, order)
    if not order:
        _warn_of_unsorted_times(frame, groups)
    return coded


def events_by_sequence(used: Any, groups: list[Hashable], order: list[Hashable]) -> list[list[int]]:
    """The rows of a log by sequence, in order; the sequences in the order in which they first appear.

    :param used: a pandas data frame with nothing missing and the index 0, 1, ...
    """
    keys = _tuples(used, groups)
    events: dict[tuple[Any, ...], list[int]] = {key: [] for key in keys}
    for row in _sorted_rows(used, order):
        events[keys[row]].append(row)
    return list(events.values())


def check_table(table: Any, is_padded: bool) -> None:
    """Checks that a pandas table is a padded array, and neither a log nor a table with a column of sequences.

    :param is_padded: whether the user says so, by ``lengths=`` or ``pad=``.
    """
    kinds = sorted({str(kind) for kind in table.dtypes})
    if len(kinds) > 1:
        raise ValueError(
            f"expected a table of symbols, one sequence a row, found columns of the kinds {kinds}; pass the column of "
            f"the sequences, such as data[{table.columns[0]!r}]; {_LOG}"
        )
    if is_padded:
        return
    names = list(table.columns)
    if len(names) == 1:
        raise _single_column(names[0], np.asarray(table).dtype)
    if not all(re.search(r"\d", str(name)) for name in names):
        raise ValueError(
            f"expected a table with one sequence a row and numbered columns of symbols, found the columns {names}; "
            f"{_LOG}; if each row is a sequence, pass data.to_numpy()"
        )


def _single_column(name: Hashable, dtype: np.dtype) -> ValueError:
    column = f"data[{name!r}]"
    if dtype.kind == "O":
        fix = f"pass {column} if each entry is a sequence"
        single = f"[[symbol] for symbol in {column}]"
    else:
        fix = f"pass [{column}.tolist()] if the column is one long sequence"
        single = "data.to_numpy()"
    return ValueError(
        f"expected a table of symbols, one sequence a row, found the single column {name!r}; {fix}; {_LOG}; "
        f"if each row is a sequence of one symbol, pass {single}"
    )


def column_names(frame: Any, argument: str, names: Any) -> list[Hashable]:
    """The columns of a frame that an argument names, one or several."""
    several = list(names) if isinstance(names, list | tuple) else [names]
    if not several:
        raise ValueError(f"{argument}: expected a column or several, found {names!r}")
    for name in several:
        _check_column(frame, argument, name)
    return several


def _check_column(frame: Any, argument: str, name: Any) -> None:
    columns = list(frame.columns)
    if columns.count(name) == 1:
        return
    if name in columns:
        raise ValueError(f"{argument}: expected one column {name!r}, found {columns.count(name)}; rename the others")
    indexed = [level for level in frame.index.names if level is not None]
    fix = "; it is in the index, pass data.reset_index()" if name in indexed else ""
    raise ValueError(f"{argument}: expected one of the columns {columns}, found {name!r}{fix}")


def _check_nothing_missing(used: Any) -> None:
    for name in used.columns:
        missing = used[name].isna().to_numpy()
        if missing.any():
            raise ValueError(
                f"row {int(missing.argmax())}, column {name!r}: found a missing value, one of {int(missing.sum())} in "
                f"this column, expected none; remove these rows, data.dropna(subset=[{name!r}]), or fill them"
            )


def _tuples(used: Any, names: list[Hashable]) -> list[tuple[Any, ...]]:
    """The entries of some columns, row by row."""
    return list(zip(*(used[name].tolist() for name in names), strict=True))


def _sorted_rows(used: Any, order: list[Hashable]) -> list[int]:
    for name in order:
        _check_order(name, used[name])
    try:
        in_order = used.sort_values(order, kind="stable") if order else used
    except TypeError as error:
        raise ValueError(
            f"order_by: expected columns of numbers or times, found entries in {order} that cannot be sorted ({error})"
            "; convert them to one kind"
        ) from error
    return list(in_order.index)


def _check_order(name: Hashable, column: Any) -> None:
    """Refuses text that does not sort as what it means."""
    if getattr(column.dtype, "ordered", False):  # a categorical column whose order the user stated
        return
    for row, entry in enumerate(column.tolist()):
        if isinstance(entry, str) and not _SORTED_LIKE_TEXT.fullmatch(entry):
            raise ValueError(
                f"row {row}, column {name!r}: found the text {entry!r}, expected a number, a time, or text such as "
                "'2024-01-31 09:30'; other text is sorted letter by letter, '10' before '9'; convert the column, by "
                "pandas.to_datetime or astype(int), or sort the table yourself and leave out order_by="
            )


def _warn_of_unsorted_times(frame: Any, groups: list[Hashable]) -> None:
    """Warns of a log without a column that orders it, if it has times that are not in order within a sequence."""
    keys = _tuples(frame, groups)
    for place, name in enumerate(frame.columns):
        column = frame.iloc[:, place]
        entries = column.tolist()
        is_dated = all(isinstance(entry, str) and _DATED.fullmatch(entry) for entry in entries)
        if name in groups or not (is_dated or getattr(column.dtype, "kind", "") == "M"):
            continue
        latest: dict[tuple[Any, ...], Any] = {}
        for row, (key, entry) in enumerate(zip(keys, entries, strict=True)):
            if entry < latest.get(key, entry):
                warn_user(
                    f"row {row}, column {name!r}: found a time before that of an earlier event of its sequence, and "
                    f"kept the events in the order of the table; pass order_by={name!r} to sort them"
                )
                return
            latest[key] = entry


def warn_of_ties(
    used: Any, groups: list[Hashable], symbol: Hashable, order: list[Hashable], first: int = 0, unit: str = "row"
) -> None:
    """Warns of events of one sequence whose order is unknown; equal symbols can be swapped and do not count.

    :param first: the number of the first row in the warning.
    :param unit: what is numbered there.
    """
    if not order:
        return
    symbols = used[symbol].tolist()
    rows_at: dict[tuple[Any, ...], list[int]] = {}
    for row, moment in enumerate(_tuples(used, [*groups, *order])):
        rows_at.setdefault(moment, []).append(row)
    tied = [rows for rows in rows_at.values() if len({symbols[row] for row in rows}) > 1]
    if tied:
        warn_user(
            f"found {sum(map(len, tied))} events that share their place in the order by {order} with another symbol of "
            f"their sequence, such as {unit}s {[row + first for row in tied[0]]}, and kept these in the order of the "
            "table; add a column to order_by= that orders them, or, if the table is in order, leave out order_by="
        )

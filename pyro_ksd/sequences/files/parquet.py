# SPDX-License-Identifier: Apache-2.0
"""Reading Parquet: a column that has the sequences, or a log with one event a row."""

from __future__ import annotations

import io
from importlib.util import find_spec
from typing import Any

import numpy as np

from pyro_ksd.sequences.files.file_contents import FileContent
from pyro_ksd.sequences.files.tables import Table, check_columns

_MAGIC = b"PAR1"


def parquet_frame(content: FileContent) -> Any:
    """The table as a pandas data frame.

    :raises ValueError: if the file is of another format or damaged, or if no package is there that can read it.
    """
    if not content.data.startswith(_MAGIC):
        raise ValueError(
            f"{content.name}: expected a file of Parquet, found one that begins with {content.data[:4]!r}; pass the "
            "format that it has, format="
        )
    if find_spec("pyarrow") is None and find_spec("fastparquet") is None:
        raise ValueError(
            f"{content.name}: expected the package pyarrow, to read Parquet, found none; pip install pyarrow"
        )
    import pandas as pd

    try:
        frame = pd.read_parquet(io.BytesIO(content.data))
    except Exception as error:  # the packages that read Parquet have errors of their own
        raise ValueError(
            f"{content.name}: expected a whole file of Parquet, found one that cannot be read "
            f"({type(error).__name__}: {error}); copy or write it again"
        ) from error
    indexed = [name for name in frame.index.names if name is not None]
    return frame.reset_index() if indexed else frame


def parquet_table(file: str, frame: Any, needed: list[str]) -> Table:
    """The columns that are needed; rows are numbered from 0."""
    check_columns(file, list(frame.columns), needed)
    if not len(frame):
        raise ValueError(f"{file}: expected at least one row, found an empty table")
    table = Table(file, {}, first=0, unit="row")
    for name in needed:
        missing = frame[name].isna().to_numpy()
        if missing.any():
            raise ValueError(
                f"{table.place(int(missing.argmax()), name)}: found a missing value, one of {int(missing.sum())} in "
                "this column, expected none; remove these rows or fill them"
            )
        table.columns[name] = [
            value.tolist() if isinstance(value, np.ndarray) else value for value in frame[name].tolist()
        ]
    return table


def only_column(file: str, frame: Any) -> str:
    """The name of the column of a table that has no other."""
    names = list(frame.columns)
    if len(names) != 1:
        raise ValueError(
            f"{file}: expected to be told which of the columns {names} to read; pass column= the name of the one that "
            "has the sequences, or by= and symbol= for a log with one event a row"
        )
    return str(names[0])

# SPDX-License-Identifier: Apache-2.0
"""Parquet through pandas."""

from __future__ import annotations

import io
from typing import Any

import pandas as pd
import pytest

from pyro_ksd.sequences.files import parquet
from pyro_ksd.sequences.files.file_contents import FileContent
from pyro_ksd.sequences.files.parquet import only_column, parquet_frame, parquet_table

pytest.importorskip("pyarrow")


def content(frame: pd.DataFrame) -> FileContent:
    buffer = io.BytesIO()
    frame.to_parquet(buffer)
    return FileContent("f.parquet", buffer.getvalue())


@pytest.mark.parametrize("values", [[["a", "b"], []], [[1, 2], [3]], ["ab", "b"], [1, 2]])
def test_columns(values: list[Any]) -> None:
    frame = parquet_frame(content(pd.DataFrame({"x": values, "y": [None, 1.5]})))
    table = parquet_table("f", frame, ["x"])
    assert table.columns == {"x": values}
    assert table.place(1, "x") == "f, row 1, column 'x'"
    first = table.columns["x"][0]
    assert type(first[0] if isinstance(first, list) else first) in (int, str)


def test_a_named_index_is_a_column() -> None:
    frame = pd.DataFrame({"x": ["a", "b"]}, index=pd.Index([3, 4], name="visit"))
    assert parquet_table("f", parquet_frame(content(frame)), ["visit", "x"]).columns == {
        "visit": [3, 4],
        "x": ["a", "b"],
    }


def test_the_only_column() -> None:
    assert only_column("f", pd.DataFrame({"x": [1]})) == "x"
    with pytest.raises(
        ValueError, match=r"^f: expected to be told which of the columns \['x', 'y'\] to read; pass column="
    ):
        only_column("f", pd.DataFrame({"x": [1], "y": [1]}))


def test_what_is_missing() -> None:
    with pytest.raises(ValueError, match=r"^f, row 1, column 'x': found a missing value, one of 2 in this column"):
        parquet_table("f", pd.DataFrame({"x": ["a", None, None]}), ["x"])
    with pytest.raises(ValueError, match=r"^f: expected at least one row, found an empty table"):
        parquet_table("f", pd.DataFrame({"x": []}), ["x"])
    with pytest.raises(ValueError, match=r"^f: expected one column 'z', found none"):
        parquet_table("f", pd.DataFrame({"x": [1]}), ["z"])


def test_other_and_damaged_files() -> None:
    with pytest.raises(ValueError, match=r"^f: expected a file of Parquet, found one that begins with b'a,b'"):
        parquet_frame(FileContent("f", b"a,b"))
    whole = content(pd.DataFrame({"x": ["a"] * 50}))
    with pytest.raises(ValueError, match=r"^f: expected a whole file of Parquet, found one that cannot be read \("):
        parquet_frame(FileContent("f", whole.data[:-40]))


def test_the_package_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"^f.parquet: expected the package pyarrow, .* pip install pyarrow"):
        parquet_frame(content(pd.DataFrame({"x": ["a"]})))

# SPDX-License-Identifier: Apache-2.0
"""Logs become one sequence for each visit, in order; tables that are no padded arrays are refused with the fix."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pyro_ksd.sequences.container import Sequences

LOG = pd.DataFrame(
    {
        "user": ["x", "y", "x", "x", "y", "x"],
        "visit": [7, 3, 7, 3, 3, 3],
        "page": ["home", "buy", "search", "cart", "home", "buy"],
        "time": [1, 9, 2, 8, 4, 10],
    },
    index=[5, 5, 0, 1, 9, 2],
)
COLUMNS = {"by": "visit", "symbol": "page"}


def test_sequences_in_order_of_appearance_and_events_in_order_of_rows() -> None:
    data = Sequences.from_frame(LOG, by="visit", symbol="page")
    assert data.to_lists() == [["home", "search"], ["buy", "cart", "home", "buy"]]
    assert data.alphabet == ("buy", "cart", "home", "search")
    assert LOG["visit"].unique().tolist() == [7, 3]  # as the docstring says


def test_several_columns_tell_sequences_apart() -> None:
    expected = [["home", "search"], ["buy", "home"], ["cart", "buy"]]
    for by in (["user", "visit"], ("user", "visit")):
        assert Sequences.from_frame(LOG, by=by, symbol="page").to_lists() == expected
    visits = LOG[["user", "visit"]].drop_duplicates().to_numpy().tolist()
    assert visits == [["x", 7], ["y", 3], ["x", 3]]  # as the docstring says


def test_events_are_sorted_within_their_sequence() -> None:
    data = Sequences.from_frame(LOG, by="visit", symbol="page", order_by="time")
    assert data.to_lists() == [["home", "search"], ["home", "cart", "buy", "buy"]]
    backwards = Sequences.from_frame(LOG[::-1], by="visit", symbol="page", order_by="time")
    assert backwards.to_lists() == data.to_lists()[::-1]


def test_several_columns_order_events() -> None:
    log = LOG.assign(day=[1, 2, 1, 2, 1, 1])
    for order in (["day", "time"], ("day", "time")):
        data = Sequences.from_frame(log, by="visit", symbol="page", order_by=order)
        assert data.to_lists() == [["home", "search"], ["home", "buy", "cart", "buy"]]


@pytest.mark.parametrize(
    "convert",
    [
        lambda time: time.astype(float),
        lambda time: time.astype("Int64"),
        lambda time: pd.to_datetime(time, unit="s"),
        lambda time: pd.to_datetime(time, unit="D", utc=True),
        lambda time: pd.to_timedelta(time, unit="s"),
        lambda time: time.map(lambda day: datetime(2024, 1, day)).astype(object),
        lambda time: time.map("2024-01-{:02}".format),
        lambda time: time.map("2024-01-31 09:{:02}".format),
        lambda time: time.map("2024-01-31T09:00:00.{:02}".format),
        lambda time: time.map("09:{:02}".format),
        lambda time: time.map("{:02}:30:00".format),
        lambda time: pd.Categorical(time.map("step {}".format), [f"step {n}" for n in range(11)], ordered=True),
    ],
)
def test_order_in_every_form(convert: Callable[[Any], Any]) -> None:
    data = Sequences.from_frame(LOG.assign(time=convert(LOG["time"])), **COLUMNS, order_by="time")
    assert data.to_lists() == [["home", "search"], ["home", "cart", "buy", "buy"]]


@pytest.mark.parametrize("kind", ["category", object, "string"])
def test_columns_of_every_kind(kind: Any) -> None:
    log = LOG.astype({"user": kind, "page": kind})
    data = Sequences.from_frame(log[log["visit"] == 3], by="user", symbol="page")
    assert data.to_lists() == [["buy", "home"], ["cart", "buy"]]
    assert data.alphabet == ("buy", "cart", "home")


def test_integers_are_codes() -> None:
    log = pd.DataFrame({"visit": ["b", "a", "b"], "code": np.array([0, 2, 1], dtype=np.int8)})
    data = Sequences.from_frame(log, by="visit", symbol="code")
    assert data.to_lists() == [[0, 1], [2]]
    assert data.alphabet == 3
    assert Sequences.from_frame(log, by="visit", symbol="code", alphabet=5).alphabet == 5


def test_whole_strings_are_symbols() -> None:
    log = pd.DataFrame({"visit": [1, 1], "page": ["home page", "shopping cart"]})
    assert Sequences.from_frame(log, by="visit", symbol="page").to_lists() == [["home page", "shopping cart"]]


def test_a_column_that_is_also_in_the_index_and_names_that_are_no_strings() -> None:
    indexed = LOG.set_index("time", drop=False)
    assert Sequences.from_frame(indexed, **COLUMNS, order_by="time").lengths.tolist() == [2, 4]
    numbered = LOG.set_axis([0, 1, 2, 3], axis=1)
    assert Sequences.from_frame(numbered, by=1, symbol=2, order_by=3).lengths.tolist() == [2, 4]


def test_one_column_may_be_used_twice() -> None:
    data = Sequences.from_frame(LOG, by=["user", "visit"], symbol="page", order_by=["visit", "time"])
    assert data.to_lists() == [["home", "search"], ["home", "buy"], ["cart", "buy"]]


def test_an_index_without_a_name_is_no_column() -> None:
    with pytest.raises(ValueError, match=r"found None$"):
        Sequences.from_frame(LOG, by=None, symbol="page")


def test_other_columns_may_have_missing_values_and_equal_names() -> None:
    log = pd.concat([LOG.assign(note=None, time=None), LOG[["user"]]], axis=1)
    assert Sequences.from_frame(log, **COLUMNS).lengths.tolist() == [2, 4]


def test_ties_stay_in_the_order_of_rows_and_are_warned_of() -> None:
    log = pd.DataFrame({"visit": [1, 2, 1, 1, 1, 2], "page": list("cabcdb"), "time": [5, 7, 5, 5, 1, 7]})
    message = (
        "found 5 events that share their place in the order by ['time'] with another symbol of their sequence, such as "
        "rows [0, 2, 3], and kept these in the order of the table; add a column to order_by= that orders them, or, if "
        "the table is in order, leave out order_by="
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$") as warned:
        data = Sequences.from_frame(log, **COLUMNS, order_by="time")
    assert len(warned) == 1
    assert warned[0].filename == __file__
    assert data.to_lists() == [list("dcbc"), list("ab")]


def test_many_ties_stay_in_the_order_of_rows() -> None:  # fast sorts are unstable only on longer data
    codes = np.random.default_rng(0).permutation(500)
    log = pd.DataFrame({"visit": 0, "page": codes, "time": codes % 2, "day": 0})
    expected = [*codes[codes % 2 == 0], *codes[codes % 2 == 1]]
    for order in ("time", ["day", "time"]):
        with pytest.warns(UserWarning, match="found 500 events"):
            assert Sequences.from_frame(log, **COLUMNS, order_by=order).to_lists() == [expected]


@pytest.mark.parametrize(
    "log",
    [
        pd.DataFrame({"visit": [1, 1, 1], "page": list("aab"), "time": [5, 5, 6]}),
        pd.DataFrame({"visit": [1, 2], "page": list("ab"), "time": [5, 5]}),
    ],
    ids=["equal symbols", "two sequences"],
)
def test_ties_without_an_effect(log: pd.DataFrame) -> None:
    assert Sequences.from_frame(log, **COLUMNS, order_by="time").lengths.sum() == len(log)


class OtherFrame:
    """The data frame of another package: it has columns, but not the methods of pandas."""

    columns = ("visit", "page")


MISTAKES: dict[str, tuple[Any, dict[str, Any], str]] = {
    "list": ([["a", "b"]], {}, "expected a pandas data frame, found list; convert it, such as pandas.DataFrame(log)"),
    "dictionary": ({"visit": [1], "page": ["a"]}, {}, "expected a pandas data frame, found dict; convert it"),
    "column": (LOG["page"], {}, "expected a pandas data frame, found Series; convert it"),
    "frame of another package": (OtherFrame(), {}, "expected a pandas data frame, found OtherFrame; convert it"),
    "empty": (LOG[:0], {}, "expected at least one sequence, found an empty data set"),
    "unknown by": (
        LOG,
        {"by": ["user", "visits"]},
        "by: expected one of the columns ['user', 'visit', 'page', 'time'], found 'visits'",
    ),
    "unknown symbol": (
        LOG,
        {"symbol": "pages"},
        "symbol: expected one of the columns ['user', 'visit', 'page', 'time'],",
    ),
    "unknown order": (
        LOG,
        {"order_by": "when"},
        "order_by: expected one of the columns ['user', 'visit', 'page', 'time']",
    ),
    "several symbols": (
        LOG,
        {"symbol": ["page", "user"]},
        "symbol: expected one of the columns ['user', 'visit', 'page',",
    ),
    "nothing to group by": (LOG, {"by": []}, "by: expected a column or several, found []"),
    "nothing to order by": (LOG, {"order_by": ()}, "order_by: expected a column or several, found ()"),
    "index": (
        LOG.set_index("visit"),
        {},
        "by: expected one of the columns ['user', 'page', 'time'], found 'visit'; it is in the index, pass "
        "data.reset_index()",
    ),
    "name twice": (
        LOG[["visit", "page", "page"]],
        {},
        "symbol: expected one column 'page', found 2; rename the others",
    ),
    "missing symbol": (
        LOG.assign(page=["a", "b", None, "a", None, "b"]),
        {},
        "row 2, column 'page': found a missing value, one of 2 in this column, expected none; remove these rows, "
        "data.dropna(subset=['page']), or fill them",
    ),
    "missing visit": (
        LOG.assign(visit=[1, 1, 1, 1, 1, np.nan]),
        {},
        "row 5, column 'visit': found a missing value, one",
    ),
    "missing time": (
        LOG.assign(time=pd.to_datetime(["2024-01-01", None, *["2024-01-01"] * 4])),
        {"order_by": "time"},
        "row 1, column 'time': found a missing value, one of 1 in this column",
    ),
    "missing, pandas": (
        LOG.assign(visit=pd.array([1, None, 1, 1, 1, 1], dtype="Int64")),
        {},
        "row 1, column 'visit': found a missing value",
    ),
    "float symbols": (
        LOG.assign(page=0.5),
        {},
        "sequence 0, position 0: found the float 0.5, expected a discrete symbol",
    ),
    "unhashable symbols": (
        LOG.assign(page=[["a"]] * 6),
        {"order_by": "time"},
        "sequence 0, position 0: found ['a'], expected a hashable symbol",
    ),
    "unknown to the alphabet": (
        LOG,
        {"alphabet": ["home", "search"]},
        "sequence 1, position 0: found the symbol 'buy', expected one of the alphabet ('home', 'search')",
    ),
    "numbers as text": (
        LOG.assign(time=LOG["time"].astype(str)),
        {"order_by": "time"},
        "row 0, column 'time': found the text '1', expected a number, a time, or text such as '2024-01-31 09:30'; "
        "other text is sorted letter by letter, '10' before '9'; convert the column, by pandas.to_datetime or "
        "astype(int), or sort the table yourself and leave out order_by=",
    ),
    "hours without zero": (
        LOG.assign(time=["10:00", *["9:00"] * 5]),
        {"order_by": "time"},
        "row 1, column 'time': found the text '9:00', expected a number, a time, or",
    ),
    "days first": (
        LOG.assign(time="31/01/2024"),
        {"order_by": "time"},
        "found the text '31/01/2024', expected a number",
    ),
    "time zones": (
        LOG.assign(time="2024-01-31 09:30+01:00"),
        {"order_by": "time"},
        "found the text '2024-01-31 09:30+01:00', expected a number",
    ),
    "categories without an order": (
        LOG.assign(time=LOG["time"].astype(str).astype("category")),
        {"order_by": "time"},
        "row 0, column 'time': found the text '1', expected a number",
    ),
    "two kinds": (
        LOG.assign(time=[1, 2, 3, 4, 5, datetime(2024, 1, 1)]),
        {"order_by": "time"},
        "order_by: expected columns of numbers or times, found entries in ['time'] that cannot be sorted ('<' not",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_explained(mistake: str) -> None:
    frame, options, message = MISTAKES[mistake]
    with pytest.raises(ValueError, match=re.escape(message)):
        Sequences.from_frame(frame, **{**COLUMNS, **options})


FROM_FRAME = "for a log with one event a row, use Sequences.from_frame(data, by=..., symbol=...)"
TABLES: dict[str, tuple[pd.DataFrame, str]] = {
    "columns of several kinds": (
        pd.DataFrame({"dna": ["AC", "G"], "count": [1, 2]}),
        "pass the column of the sequences, such as data['dna']; " + FROM_FRAME,
    ),
    "one column of strings": (
        pd.DataFrame({"dna": ["AC", "G"]}),
        "expected a table of symbols, one sequence a row, found the single column 'dna'; pass data['dna'] if each "
        f"entry is a sequence; {FROM_FRAME}; if each row is a sequence of one symbol, pass [[symbol] for symbol in "
        "data['dna']]",
    ),
    "one column of lists": (
        pd.DataFrame({"dna": [["A", "C"], ["G"]]}),
        "found the single column 'dna'; pass data['dna'] if each entry is a sequence",
    ),
    "one column without a name": (
        pd.DataFrame(["AC", "G"]),
        "found the single column 0; pass data[0] if each entry is",
    ),
    "one column of integers": (
        pd.DataFrame({"code": [0, 1]}),
        "expected a table of symbols, one sequence a row, found the single column 'code'; pass [data['code'].tolist()] "
        f"if the column is one long sequence; {FROM_FRAME}; if each row is a sequence of one symbol, pass "
        "data.to_numpy()",
    ),
    "log of integers": (
        pd.DataFrame({"visit": [1, 2], "page": [0, 1]}),
        "expected a table with one sequence a row and numbered columns of symbols, found the columns ['visit', 'page']"
        f"; {FROM_FRAME}; if each row is a sequence, pass data.to_numpy()",
    ),
    "one numbered column": (
        pd.DataFrame({"visit": [1, 2], "page 1": [0, 1]}),
        "found the columns ['visit', 'page 1'];",
    ),
}


@pytest.mark.parametrize("table", TABLES)
def test_tables_that_may_be_no_padded_arrays(table: str) -> None:
    data, message = TABLES[table]
    with pytest.raises(ValueError, match=re.escape(message)):
        Sequences.of(data)


def test_the_fixes_of_such_tables() -> None:
    dna = pd.DataFrame({"dna": ["AC", "G"]})
    assert Sequences.of(dna["dna"]).to_lists() == [["A", "C"], ["G"]]
    assert Sequences.of([[symbol] for symbol in dna["dna"]]).to_lists() == [["AC"], ["G"]]
    codes = pd.DataFrame({"code": [0, 1]})
    assert Sequences.of([codes["code"].tolist()]).to_lists() == [[0, 1]]
    assert Sequences.of(codes.to_numpy()).to_lists() == [[0], [1]]
    days = pd.DataFrame({"monday": [1, 2], "tuesday": [0, 1]})
    assert Sequences.of(days.to_numpy()).to_lists() == [[1, 0], [2, 1]]


@pytest.mark.parametrize("names", [[0, 1], ["t1", "t2"], ["day 1", 2]])
def test_tables_with_numbered_columns_are_padded_arrays(names: list[Any]) -> None:
    assert Sequences.of(pd.DataFrame([[1, 0], [2, 1]], columns=names)).to_lists() == [[1, 0], [2, 1]]


@pytest.mark.parametrize("options", [{"pad": -1}, {"lengths": [1, 0]}], ids=str)
def test_tables_with_a_padding_are_padded_arrays(options: dict[str, Any]) -> None:
    assert Sequences.of(pd.DataFrame({"code": [1, -1]}), **options).to_lists() == [[1], []]
    assert Sequences.of(pd.DataFrame({"a": [1, -1], "b": -1}), **options).to_lists() == [[1], []]


TIMES = ["2024-03-01 09:30", "2024-03-01 09:10", "2024-03-01 09:45", "2024-03-01 09:05"]


@pytest.mark.parametrize("convert", [list, pd.to_datetime, lambda times: pd.to_datetime(times, utc=True)])
def test_times_that_are_not_in_order_are_warned_of(convert: Callable[[list[str]], Any]) -> None:
    log = pd.DataFrame({"visit": [7, 3, 7, 3], "page": ["home", "home", "buy", "search"], "at": convert(TIMES)})
    with pytest.warns(
        UserWarning, match=r"row 3, column 'at': found a time before .*; pass order_by='at' to sort them"
    ):
        data = Sequences.from_frame(log, **COLUMNS)
    assert data.to_lists() == [["home", "buy"], ["home", "search"]]
    assert Sequences.from_frame(log, order_by="at", **COLUMNS).to_lists() == [["home", "buy"], ["search", "home"]]
    Sequences.from_frame(log.iloc[:3], **COLUMNS)  # in order within each visit
    Sequences.from_frame(log.assign(at=["a", "c", "b", "a"]), **COLUMNS)  # no times
    Sequences.from_frame(log.assign(at=[4, 3, 2, 1]), **COLUMNS)  # numbers may mean anything

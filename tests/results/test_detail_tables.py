# SPDX-License-Identifier: Apache-2.0
"""Tables of n-grams, sequences and edits, from the groups alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from synthetic import PHONEMES, VIEWS, changed, check_with, made_up_check, misfit

from pyro_ksd import edit_table, ngram_table, sequence_table
from pyro_ksd.results.detail_tables import most_important_first

TABLES: list[Callable[..., pd.DataFrame]] = [ngram_table, sequence_table, edit_table]
FEATURES = [
    ("content-1", "a", -2.0, 0.2),
    ("content-2", "ab", 3.0, 0.02, 0.5, 0.25, 0.75),
    ("content-2", "aa", -4.0, 0.01, 3.0, 2.0, 4.0),
    ("content-2", "ba", -9.0, 0.06),
    ("content-2", "bb", -5.0, 0.01, 0.5, 0.25, 0.75),  # its factor contradicts its score
    ("start", "^c", 3.5, 0.001),
    ("length", "length", -3.0, 0.01),
]


def table_of(p_values: dict[str, float], overall: float = 0.004) -> pd.DataFrame:
    return ngram_table(check_with(FEATURES, p_values, overall))


def test_ngrams_that_the_verdict_counts_come_first() -> None:
    table = table_of({"content-2": 0.001, "start": 0.002})
    assert table["label"].tolist()[:3] == ["aa", "ab", "^c"]
    assert table["finding"].tolist() == ["too rare", "too frequent", "too frequent", *[""] * 4]
    assert sorted(table["label"]) == sorted(row[1] for row in FEATURES)
    assert table.index.tolist() == list(range(7))


def test_ngrams_have_the_numbers_of_their_group() -> None:
    check = check_with(FEATURES, {"content-2": 0.001})
    ngrams = check["ksd_ngram"].to_dataset()
    ngrams = ngrams.assign(
        {name: ("ngram", np.arange(7.0) + place) for place, name in enumerate(("ratio", "observed"))}
    )
    table = ngram_table(check.assign({"ksd_ngram": xr.DataTree(ngrams)}))
    for _, own in table.iterrows():
        row = ngrams.isel(ngram=ngrams["label"].values == own["label"])
        for name in ("z", "p_value", "factor", "factor_low", "factor_high", "observed", "ratio", "expected_high"):
            np.testing.assert_equal(own[name], row[name].item())
        assert own["view"] == row["view_name"].item()


@pytest.mark.parametrize("overall", [0.2, 0.004])
def test_nothing_is_found_unless_the_view_and_all_of_them_reject(overall: float) -> None:
    table = table_of({"content-2": 0.001}, overall)
    assert (table["finding"] != "").any() == (overall < 0.05)
    assert set(table["view"][table["finding"] != ""]) <= {"content-2"}


def test_no_ngram_is_found_where_all_are_wrong_in_one_direction() -> None:
    features = [("content-1", symbol, -4.0, 0.01) for symbol in "ab"]
    assert not ngram_table(check_with(features, {"content-1": 0.001}, symbols=["a", "b"]))["finding"].any()
    assert ngram_table(check_with(features, {"content-1": 0.001}, symbols=["a", "b", "c"]))["finding"].all()


def test_values_of_ones_own_are_small_or_large() -> None:
    check = check_with([("rests", "rests 0", -4.0, 0.01), ("rests", "rests 1", 4.0, 0.01)], {"rests": 0.001})
    assert ngram_table(check)["finding"].tolist() == ["too small", "too large"]


def test_results_without_factors_have_none() -> None:
    check = made_up_check()
    ngrams = check["ksd_ngram"].to_dataset()
    without = ngrams.drop_vars([name for name in ngrams.variables if str(name).startswith(("factor", "ratio"))])
    table = ngram_table(check.assign({"ksd_ngram": xr.DataTree(without)}))
    assert table[["factor", "factor_low", "ratio_high"]].isna().to_numpy().all()


@pytest.mark.parametrize("impossible", [0, 3])
@pytest.mark.parametrize("symbols", [list("abcd"), PHONEMES])
def test_sequences_are_those_of_the_data(symbols: list[str], impossible: int) -> None:
    check = misfit(made_up_check(symbols, impossible=impossible))
    ksd, data = check["ksd"], check["ksd_data"]
    table = sequence_table(check)
    assert table["view"].unique().tolist() == most_important_first(check, VIEWS)
    separator = "" if symbols == list("abcd") else " "
    for view, own in table.groupby("view"):
        assert own["contribution"].is_monotonic_decreasing
        one = ksd.to_dataset().sel(view=view)
        for place, (_, row) in enumerate(own.iterrows()):
            codes = data["token"].sel(sequence=row["sequence"]).values[: row["length"]]
            assert row["text"] == separator.join(symbols[code] for code in codes)
            assert row["length"] == data["length"].sel(sequence=row["sequence"]).item()
            assert row["contribution"] == one["contribution"].sel(sequence=row["sequence"]).item()
            parts = one["attribution"].isel(shown=place).values
            assert parts[row["position"]] == np.nanmax(parts)
            assert row["symbol"] == ([*(symbols[code] for code in codes), "$"][row["position"]])
        shares = own["contribution"] / float(one["statistic"])
        rejects = float(one["p_value"]) <= 0.05
        np.testing.assert_allclose(own["share"], shares if rejects else np.full(len(own), np.nan))


def test_edits_are_those_of_the_group() -> None:
    check = misfit(made_up_check(impossible=2))
    edits = check["ksd_edit"].to_dataset()
    table = edit_table(check)
    for view, own in table.groupby("view"):
        group = edits.isel(edit=edits["view_name"].values == view)
        group = group.isel(edit=np.argsort(-group["share"].values, kind="stable"))
        names = {
            "sequence": "sequence_index",
            "position": "position_index",
            "edit": "operation",
            "contribution": "share",
        }
        for column, name in names.items():
            assert own[column].tolist() == group[name].values.tolist()
        texts = sequence_table(check, view=str(view)).set_index("sequence")["text"]
        assert own["text"].tolist() == texts[own["sequence"]].tolist()
        assert own["share"].isna().all() == (float(check["ksd"]["p_value"].sel(view=view)) > 0.05)


@pytest.mark.parametrize("table", TABLES)
def test_views_are_chosen_by_name(table: Callable[..., pd.DataFrame]) -> None:
    check = made_up_check()
    assert table(check, view="start")["view"].unique().tolist() == ["start"]
    assert set(table(check, view=["start", "content-1"])["view"]) == {"start", "content-1"}
    with pytest.raises(ValueError, match=r"expected view to be one of \['content-1', .*found 'end'"):
        table(check, view="end")
    with pytest.raises(ValueError, match="expected view to name some of"):
        table(check, view=[])


@pytest.mark.parametrize("table", TABLES)
def test_other_results_have_no_such_tables(table: Callable[..., Any]) -> None:
    check = made_up_check()
    ksd = check["ksd"].to_dataset()[["statistic", "p_value", "p_value_overall", "meaning"]]
    other = xr.DataTree.from_dict({"ksd": ksd, "ksd_data": check["ksd_data"].to_dataset()})
    with pytest.raises(ValueError, match="pass what ksd_check returned"):
        table(other)
    other["ksd"].attrs["localized"] = 0
    with pytest.raises(ValueError, match="only p-values: call ksd_check without localize=False"):
        table(other)


def test_views_that_the_verdict_names_come_first() -> None:
    check = made_up_check()  # content-2 and length reject
    assert most_important_first(check, VIEWS)[:2] == ["content-2", "length"]
    assert most_important_first(check, ["start", "length"]) == ["length", "start"]
    assert most_important_first(check, ["start"]) == ["start"]
    fits = made_up_check(p_value_overall=0.5)
    p_values = fits["ksd"]["p_value"].sel(view=most_important_first(fits, VIEWS)).values
    assert (np.diff(p_values) >= 0).all()


def test_a_mark_on_the_end_of_a_sequence() -> None:
    check = misfit(made_up_check())
    attribution = check["ksd"]["attribution"].values.copy()
    rows = check["ksd"]["shown_sequence"].values[0]
    length = int(check["ksd_data"]["length"].sel(sequence=rows[0]))
    attribution[0, 0, length] = 1e3
    table = sequence_table(changed(check, "ksd", attribution=attribution), view=VIEWS[0])
    assert (table["position"][0], table["symbol"][0]) == (length, "$")

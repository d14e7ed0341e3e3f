# SPDX-License-Identifier: Apache-2.0
"""The table of a check, from the groups alone."""

from __future__ import annotations

import numpy as np
import pytest
from synthetic import VIEWS, check_with, made_up_check

from pyro_ksd.results.check_table import summary


def test_summary_has_a_row_for_each_view_and_one_for_all() -> None:
    check = made_up_check()
    table = summary(check)
    assert table.index.tolist() == [*VIEWS, "overall"]
    assert table.columns.tolist() == ["statistic", "p_value", "looks at", "finding"]
    np.testing.assert_array_equal(table["statistic"][:-1], check["ksd"]["statistic"])
    assert table.loc["overall", "p_value"] == 0.004
    assert table.loc["start", "looks at"] == "the first symbol"
    assert table.loc["start", "finding"] == ""  # it does not reject
    assert table.loc["length", "finding"] == "the model gets the length distribution wrong"
    assert table.loc["content-2", "finding"].startswith("'")
    assert table["finding"].tolist()[-1] == "the model does not fit"
    accepted = summary(made_up_check(p_value_overall=0.2))
    assert accepted["finding"].tolist() == [*[""] * 5, "nothing wrong was found"]


def test_summary_prints_every_word_and_the_verdict() -> None:
    table = summary(check_with([("content-2", "aa", -4.0, 0.002)], {"content-2": 0.002}))
    for shown in (repr(table), str(table)):
        lines = shown.splitlines()
        assert lines[0].split() == ["statistic", "p_value", "looks", "at", "finding"]
        assert lines[2].endswith("'aa' is too rare under the model")
        assert lines[-1] == (
            "The model does not fit (p = 0.004): 'aa' is too rare under the model. (p-values from 200 draws of the "
            "parametric bootstrap)"
        )
        assert "NaN" not in shown
        assert not any(line.endswith(" ") for line in lines)
    html = table._repr_html_()
    assert "&#x27;aa&#x27; is too rare under the model. (p-values" in html
    assert "<table" in html


@pytest.mark.parametrize(
    ("sequences", "kind", "cautious"), [(29, "wild", True), (30, "wild", False), (5, "parametric", False)]
)
def test_summary_is_cautious_with_the_wild_bootstrap_of_few(sequences: int, kind: str, cautious: bool) -> None:
    check = made_up_check(num_sequences=sequences)
    check["ksd"].attrs["kind"] = kind
    assert (f"approximate for as few as {sequences} sequences)" in repr(summary(check))) == cautious


@pytest.mark.parametrize(("draws", "words"), [(1, "1 draw"), (2, "2 draws")])
@pytest.mark.parametrize(
    ("kind", "more"), [("wild", " of the wild bootstrap"), ("posterior predictive", ", not calibrated"), ("other", ")")]
)
def test_summary_says_how_many_draws_there_were(kind: str, more: str, draws: int, words: str) -> None:
    check = made_up_check()
    check["ksd"].attrs |= {"kind": kind, "num_bootstrap": draws}
    if kind == "other":
        words = words.replace("draw", "null draw")
    assert f"p-values from {words}{more}" in repr(summary(check))


def test_summary_says_what_the_codes_of_words_stand_for() -> None:
    told = "The codes 0 to 2 stand for cart, home and shop."
    assert repr(summary(made_up_check(["cart", "home", "shop"]))).endswith(told)
    assert "codes" not in repr(summary(made_up_check(["cart", "home", "shop"], p_value_overall=0.2)))
    for alphabet in ("abc", [str(code) for code in range(11)], [f"word {code}" for code in range(13)]):
        assert "codes" not in repr(summary(made_up_check(list(alphabet))))


def test_summary_is_a_data_frame_like_any_other() -> None:
    table = summary(made_up_check())
    assert (table[table["p_value"] <= 0.05].index == ["content-2", "length", "overall"]).all()
    assert "content-2" in repr(table.sort_values("p_value"))
    assert table[["p_value"]].shape == (6, 1)
    assert "0.43" in repr(table[["p_value"]])


def test_impossible_sequences_have_rows_of_their_own() -> None:
    table = summary(made_up_check(impossible=5, p_value_overall=0.3))
    assert table.index.tolist()[-3:] == ["possible", "impossible", "overall"]
    assert table["p_value"].tolist()[-3:] == [0.3, 0.0, 0.0]
    assert table["finding"].tolist()[-3:] == ["", "5 of 35 sequences", "the model does not fit"]
    assert not any(table["finding"].tolist()[:-3])  # no view speaks: all of them together find nothing

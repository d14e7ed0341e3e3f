# SPDX-License-Identifier: Apache-2.0
"""What a page says of a check."""

from __future__ import annotations

import pytest
import xarray as xr
from synthetic import check_with, length_group, made_up_check

from pyro_ksd import summary, verdict
from pyro_ksd.results.pages.check_page import page_of_check
from pyro_ksd.results.verdicts import reason_views


@pytest.mark.parametrize("overall", [0.004, 0.4])
@pytest.mark.parametrize("impossible", [0, 3])
def test_the_page_says_what_verdict_and_summary_say(overall: float, impossible: int) -> None:
    check = made_up_check(p_value_overall=overall, impossible=impossible, tolerance=0.05)
    page = page_of_check(check, 5)
    assert page.fits == (overall > 0.05 and not impossible)
    assert page.headline == ("No misfit was found" if page.fits else "The model does not fit")
    sentence = verdict(check)
    for words in (page.start, *(reason.finding for reason in page.reasons), *page.further):
        assert words[1:].removesuffix(".") in sentence
    assert [reason.view for reason in page.reasons] == reason_views(check)
    table = summary(check)
    for view in page.views:
        row = table.loc[view.name]
        assert (view.statistic, view.p_value, view.finding) == (row["statistic"], row["p_value"], row["finding"])
    others = [view.name for view in page.views if view.finding and view.name not in reason_views(check)]
    assert [view.name for view in page.other_findings] == others
    assert page.num_sequences == 30 + impossible
    assert page.is_impossible == bool(impossible)


@pytest.mark.parametrize(
    ("p", "kind", "words"),
    [
        (0.004, "wild", "only 1 of 250 data sets of this size would look as unusual"),
        (1 / 201, "wild", "only 1 of 200 data sets of this size would look as unusual as this one. No smaller p-value"),
        (0.03, "wild", "only 1 of 33 data sets"),
        (0.0502, "wild", "If the model is right, 1 of 20 data sets"),
        (0.433, "wild", "If the model is right, 43 of 100 data sets"),
        (0.03, "posterior predictive", "not calibrated"),
    ],
)
def test_how_sure_it_is(p: float, kind: str, words: str) -> None:
    check = made_up_check(p_value_overall=p)
    check["ksd"].attrs["kind"] = kind
    assert words in page_of_check(check, 5).how_sure


def test_impossible_sequences_are_certain() -> None:
    page = page_of_check(made_up_check(impossible=3, p_value_overall=0.5), 5)
    assert (page.p_text, page.fits) == ("p = 0", False)
    assert "certain" in page.how_sure


def test_how_large_it_is() -> None:
    features = [("content-2", "aa", -4.0, 0.01, 3.0, 2.0, 4.0)]
    check = check_with(features, {"content-2": 0.001})
    assert page_of_check(check, 5).how_large == (
        "'aa'",
        "every occurrence should weigh 3 (2 to 4) times as much in the model",
    )
    check["ksd"]["foreign_share_overall"] = 0.179
    assert page_of_check(check, 5).how_large[0] == "at least 17.9 %"
    assert page_of_check(check_with(features, {"content-2": 0.001}, 0.5), 5).how_large[0] == "none found"
    nothing = check_with([("content-2", "aa", -4.0, 0.01)], {"content-2": 0.001})
    assert page_of_check(nothing, 5).how_large[0] == "not estimated"


def test_what_to_look_at_first() -> None:
    check = check_with([("content-2", "aa", -4.0, 0.01)], {"content-2": 0.001}, symbols=["a", "b"])
    [first] = page_of_check(check, 5).first
    texts = ["".join("ab"[code] for code in row if code >= 0) for row in check["ksd_data"]["token"].values]
    having = [text for text in texts if "aa" in text]
    assert first.startswith(f"'aa' is too rare under the model. It is in {len(having)} of the 30 sequences, such as ")
    assert all(text in having for text in first.removesuffix(".").split("such as ")[1].split(", "))
    assert page_of_check(made_up_check(p_value_overall=0.5), 5).first == []
    check = check_with([("start", "^a", 4.0, 0.01)], {"start": 0.001}, symbols=["a", "b"])
    [first] = page_of_check(check, 5).first
    assert first.startswith("'a' is too frequent at the start under the model. It is in ")


def test_lengths_that_differ_most_are_among_the_first() -> None:
    check = check_with([("length", "spread of the length", 4.0, 0.01)], {"length": 0.001})
    check = check.assign({"ksd_length": xr.DataTree(length_group({4: 1.0}, {2: 0.5, 4: 0.5}))})
    assert page_of_check(check, 5).first == [
        "50 % of the model's sequences have at most 2 symbols, and none of the data."
    ]


@pytest.mark.parametrize(
    ("features", "p_values", "detail"),
    [
        (
            [("content-2", "aa", -4.0, 0.01), ("content-2", "ab", 4.0, 0.01)],
            {"length": 0.001, "content-2": 0.002},
            "content-2",
        ),
        ([("length", "length", -4.0, 0.01)], {"length": 0.001}, "length"),
    ],
)
def test_the_view_in_detail(
    features: list[tuple[str, str, float, float]], p_values: dict[str, float], detail: str
) -> None:
    assert page_of_check(check_with(features, p_values), 5).detail == detail

# SPDX-License-Identifier: Apache-2.0
"""The table and the sentence, from the groups alone."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from synthetic import made_up_check

from pyro_ksd.results.check_table import summary, verdict

VIEWS = ["content-1", "content-2", "content-3", "start", "length"]


def check_with(
    features: list[tuple[str, str, float, float]], p_values: dict[str, float], overall: float = 0.004
) -> xr.DataTree:
    """A check with given features (view, label, z, p) and p-values; all other views have the p-value 0.5."""
    check = made_up_check(p_value_overall=overall)
    names, labels, scores, ps = (np.array(column, dtype=object) for column in zip(*features, strict=True))
    z = scores.astype(float)
    ngram = xr.Dataset(
        {
            "view_name": ("ngram", names),
            "label": ("ngram", labels),
            "mean": ("ngram", z / 10),
            "share": ("ngram", z**2),
            "z": ("ngram", z),
            "p_value": ("ngram", ps.astype(float)),
        },
        coords={"ngram": np.arange(len(names))},
    )
    ksd = check["ksd"].to_dataset()
    ksd["p_value"] = ("view", [p_values.get(name, 0.5) for name in VIEWS])
    groups = {name: group.to_dataset() for name, group in check.children.items()}
    return xr.DataTree.from_dict(groups | {"ksd": ksd, "ksd_ngram": ngram})


@pytest.mark.parametrize(
    ("features", "p_values", "overall", "sentence"),
    [
        ([("content-1", "a", 1.0, 0.9)], {}, 0.43, "the model may fit: the check found nothing wrong (p = 0.430)"),
        (
            [("content-2", "aa", -4.0, 0.002), ("content-2", "ab", 3.0, 0.01), ("length", "length", -3.0, 0.01)],
            {"content-2": 0.002, "length": 0.01},
            0.002,
            "the model does not fit (p = 0.002): it makes 'aa' too rarely and 'ab' too often; it makes sequences too "
            "short",
        ),
        (
            [("length", "length", 3.0, 0.01), ("start", "^a", -4.0, 0.002), ("start", "^b", -3.0, 0.02)],
            {"start": 0.002, "length": 0.01},
            0.0001,
            "the model does not fit (p = 0.0001): it starts with 'a' and 'b' too rarely; it makes sequences too long",
        ),
        (  # the strongest first, three at most
            [("content-1", label, -z, 0.05 / z) for label, z in zip("abcde", (2.0, 5.0, 3.0, 4.0, 1.5), strict=True)],
            {"content-1": 0.01},
            0.01,
            "the model does not fit (p = 0.010): it makes 'b', 'd', 'c', ... too rarely",
        ),
        (  # no feature stands out
            [("content-2", "aa", -4.0, 0.4)],
            {"content-2": 0.01},
            0.03,
            "the model does not fit (p = 0.030): it gets pairs of neighbors wrong (no single one stands out)",
        ),
        (  # of n-gram views the worst one speaks, unless it can name nothing
            [("content-1", "a", 3.0, 0.04), ("content-2", "aa", -4.0, 0.01), ("content-3", "aaa", -4.0, 0.3)],
            {"content-1": 0.03, "content-2": 0.002, "content-3": 0.001},
            0.005,
            "the model does not fit (p = 0.005): it makes 'aa' too rarely",
        ),
    ],
)
def test_verdict(
    features: list[tuple[str, str, float, float]], p_values: dict[str, float], overall: float, sentence: str
) -> None:
    check = check_with(features, p_values, overall)
    assert verdict(check) == sentence
    assert summary(check).attrs["verdict"] == sentence


def test_impossible_sequences_come_first() -> None:
    sentence = verdict(made_up_check(impossible=5, p_value_overall=0.3))
    assert sentence == (
        "the model cannot have made 5 of the 35 sequences (number 0 at site x_0, 1 at site x_1, 2 at site x_2, ...), "
        "to which it gives probability zero; of the others: the model may fit: the check found nothing wrong "
        "(p = 0.300)"
    )


def test_summary_has_a_row_for_each_view_and_one_for_all() -> None:
    check = made_up_check()
    table = summary(check)
    assert table.index.tolist() == [*VIEWS, "overall"]
    assert table.columns.tolist() == ["statistic", "p_value", "looks at", "finding"]
    np.testing.assert_array_equal(table["statistic"][:-1], check["ksd"]["statistic"])
    assert table.loc["overall", "p_value"] == 0.004
    assert table.loc["start", "looks at"] == "the first symbol"
    assert table.loc["start", "finding"] == ""  # it does not reject
    assert table.loc["length", "finding"].startswith("it makes sequences too ")


def test_summary_prints_every_word_and_the_verdict() -> None:
    table = summary(check_with([("content-2", "aa", -4.0, 0.002)], {"content-2": 0.002}))
    for shown in (repr(table), str(table)):
        lines = shown.splitlines()
        assert lines[0].split() == ["statistic", "p_value", "looks", "at", "finding"]
        assert lines[2].endswith("it makes 'aa' too rarely")
        assert lines[-1] == (
            "The model does not fit (p = 0.004): it makes 'aa' too rarely. (p-values from 200 draws of the parametric "
            "bootstrap)"
        )
        assert "NaN" not in shown
        assert not any(line.endswith(" ") for line in lines)
    html = table._repr_html_()
    assert "it makes &#x27;aa&#x27; too rarely. (p-values" in html
    assert "<table" in html


@pytest.mark.parametrize(
    ("sequences", "kind", "cautious"), [(29, "wild", True), (30, "wild", False), (5, "parametric", False)]
)
def test_summary_is_cautious_with_the_wild_bootstrap_of_few(sequences: int, kind: str, cautious: bool) -> None:
    check = made_up_check(num_sequences=sequences)
    check["ksd"].attrs["kind"] = kind
    assert (f"approximate for as few as {sequences} sequences)" in repr(summary(check))) == cautious


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


@pytest.mark.parametrize(
    ("draws", "kind", "too_few"),
    [(98, "wild", True), (99, "wild", False), (20, "parametric", True), (20, "posterior predictive", False)],
)
def test_verdict_says_if_there_were_too_few_draws_to_tell(draws: int, kind: str, too_few: bool) -> None:
    check = made_up_check(p_value_overall=0.2)
    check["ksd"].attrs |= {"num_bootstrap": draws, "kind": kind, "level": 0.05}
    told = f"; but {draws} draws are too few to tell, take num_bootstrap=99 or more"
    assert len(VIEWS) == 5
    assert verdict(check) == f"the model may fit: the check found nothing wrong (p = 0.200){told if too_few else ''}"

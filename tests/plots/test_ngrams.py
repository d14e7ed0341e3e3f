# SPDX-License-Identifier: Apache-2.0
"""The pictures of n-grams."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_hex
from pictures import GRAY, PURPLE, as_axes, assert_nothing_overlaps, labels, words
from synthetic import KINDS, LENGTH_FEATURES, MEANINGS, PHONEMES, changed, made_up_check, only

from pyro_ksd import plots
from pyro_ksd.results import summary

plot_ngrams = as_axes(plots.plot_ngrams)


def test_ngrams_are_those_with_the_smallest_p_values() -> None:
    check = made_up_check()
    z = np.random.default_rng(0).normal(size=check["ksd_ngram"].sizes["ngram"])
    check = changed(check, "ksd_ngram", z=z)
    features = check["ksd_ngram"].to_dataset().drop_dims("place").to_dataframe().query("view_name == 'content-2'")
    features = features.sort_values("p_value").head(6).sort_values("z", key=abs, ascending=False)
    assert not features["p_value"].is_monotonic_increasing
    ax = plot_ngrams(check, num=6)
    assert labels(ax) == features["label"].tolist()
    assert [bar.get_width() for bar in ax.patches] == features["z"].tolist()
    assert words(ax) == [f"p = {p:.3f}" for p in features["p_value"]]
    assert {p <= 0.05 for p in features["p_value"]} == {True, False}
    for bar, p in zip(ax.patches, features["p_value"], strict=True):
        color = PURPLE if p <= 0.05 else GRAY
        assert to_hex(bar.get_edgecolor()) == color
        assert to_hex(bar.get_facecolor()) == (color if p <= 0.05 else "#ffffff")
        assert bool(bar.get_hatch()) == (p > 0.05)
    left, right = ax.get_xlim()
    assert left == -right
    assert ax.get_xlabel().startswith("← too rare    under the model    too frequent →\n")
    assert ax.get_title(loc="left") == "content-2, p = 0.002\npairs of neighbors"


def test_ngrams_with_equal_p_values_are_sorted_by_their_scores() -> None:
    check = made_up_check()
    ax = plot_ngrams(changed(check, "ksd_ngram", p_value=np.full(check["ksd_ngram"].sizes["ngram"], 0.5)))
    widths = [abs(bar.get_width()) for bar in ax.patches]
    assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize(
    ("overall", "p_value", "shown", "looks"),
    [
        (0.05, 0.002, "filled", "filled: p ≤ 0.05, hatched: p > 0.05"),
        (0.051, 0.002, "hatched", "hatched: all views together found nothing"),
        (0.05, 0.04, "hatched", "hatched: this view found nothing"),  # too large for the weight of this view
    ],
)
def test_bars_are_filled_only_where_the_summary_has_a_finding(
    overall: float, p_value: float, shown: str, looks: str
) -> None:
    check = changed(made_up_check(p_value_overall=overall), "ksd", p_value=[0.5, p_value, 0.5, 0.5, 0.008])
    assert bool(summary(check).loc["content-2", "finding"]) == (shown == "filled")
    ax = plot_ngrams(check, view="content-2", num=1)
    assert words(ax) == ["p = 0.008"]
    assert bool(ax.patches[0].get_hatch()) == (shown == "hatched")
    assert ax.get_xlabel().endswith(f"\nz-score ({looks})")


@pytest.mark.parametrize(
    ("p_value", "statistic", "worst"),
    [
        ([0.5, 0.4, 0.3, 0.2, 0.1], [1, 1, 1, 1, 1], "start"),
        ([0.1, 0.1, 0.1, 0.2, 0.1], [1, 3, 2, 9, 9], "content-2"),
        ([0.1, 0.1, 0.1, 0.1, 0.1], [9, 1, 1, 1, 9], "content-1"),
    ],
)
def test_ngrams_of_the_worst_view_other_than_length(p_value: list[float], statistic: list[float], worst: str) -> None:
    check = changed(made_up_check(p_value_overall=0.3), "ksd", p_value=p_value, statistic=statistic)
    assert plot_ngrams(check).get_title(loc="left").startswith(worst)


@pytest.mark.parametrize("view", [name for name in MEANINGS if KINDS[name]])
def test_ngrams_says_small_and_large_of_what_is_no_count(view: str) -> None:
    counted = KINDS[view] in ("ngram", "start", "end", "ends", "skip", "position")
    few, many = ("rare", "frequent") if counted else ("small", "large")
    ax = plot_ngrams(made_up_check(views=list(MEANINGS)), view=view)
    assert ax.get_xlabel().startswith(f"← too {few}    under the model    too {many} →\n")


def test_ngrams_of_the_length_are_its_features() -> None:
    for ax in (plot_ngrams(made_up_check(), view="length"), plot_ngrams(only(made_up_check(), "length"))):
        assert set(labels(ax)) == set(LENGTH_FEATURES)


def test_ngrams_are_those_that_the_verdict_names() -> None:
    # The start has the smallest p-value of those with n-grams, but not for its weight.
    check = changed(made_up_check(), "ksd", p_value=[0.02, 0.5, 0.5, 0.01, 0.3], weight=[1.0, 0.1, 0.1, 0.1, 0.1])
    assert plot_ngrams(check).get_title(loc="left").startswith("content-1")
    check = changed(check, "ksd", p_value_overall=0.06)  # then none speaks
    assert plot_ngrams(check).get_title(loc="left").startswith("start")


@pytest.mark.parametrize(
    ("view", "symbols", "label", "code", "shown"),
    [
        ("skip", "a b", " _b", (1, 2), "␣_b"),
        ("skip", ["AH", "B", "K"], "AH __ B", (0, 1), "AH __ B"),
        ("ends", "a b", "^a... $", (0, 1), "^a...␣$"),
        ("end", "a b", " $", (1,), "␣$"),
        ("position", "a b", "  at position 2 of 6", (1,), "␣ at position 2 of 6"),
        ("position", ["A B", "C"], "A B at position 2 of 6", (0,), "A␣B at position 2 of 6"),
        ("mirror", "a b", "mirrored symbols", (), "mirrored symbols"),
        ("rests", "a b", "rests\n1", (), "rests\\n1"),
    ],
)
def test_labels_of_all_kinds_can_be_read(
    view: str, symbols: str | list[str], label: str, code: tuple[int, ...], shown: str
) -> None:
    check = made_up_check(list(symbols), views=list(MEANINGS))
    ngrams = check["ksd_ngram"].to_dataset()
    spelled, codes = ngrams["label"].values.copy(), ngrams["symbol"].values.copy()
    own = ngrams["view_name"].values == view
    spelled[own] = label
    codes[own] = [*code, *[-1] * (3 - len(code))]
    assert labels(plot_ngrams(changed(check, "ksd_ngram", label=spelled, symbol=codes), view=view)) == [shown]


def test_ngrams_shows_symbols_that_are_invisible_or_look_like_mathematics() -> None:
    check = made_up_check(["$", " ", "\n"])
    ax = plot_ngrams(changed(check, "ksd_ngram", z=np.arange(check["ksd_ngram"].sizes["ngram"])), num=9)
    found = check["ksd_ngram"].to_dataset().drop_dims("place").to_dataframe().query("view_name == 'content-2'")["label"]
    assert set(labels(ax)) == {label.replace(" ", "␣").replace("\n", "\\n") for label in found}
    assert "$$" in labels(ax)
    assert not any(label.get_parse_math() for label in ax.get_yticklabels())


def test_ngrams_of_the_start_are_symbols() -> None:
    assert set(labels(plot_ngrams(made_up_check(["$", "^", "c"]), view="start"))) == {"$", "^", "c"}
    check = made_up_check(list("abc"))
    ngrams = check["ksd_ngram"].to_dataset()
    over = (ngrams["view_name"].values == "start") & (ngrams["label"].values == "^c")
    spelled, codes = ngrams["label"].values.copy(), ngrams["symbol"].values.copy()
    spelled[over], codes[over, 0] = "^$", 3
    check = changed(check, "ksd_ngram", label=spelled, symbol=codes)
    assert set(labels(plot_ngrams(check, view="start"))) == {"a", "b", "nothing"}


def test_ngrams_of_long_symbols_leave_room_for_the_bars() -> None:
    ax = plot_ngrams(made_up_check(PHONEMES), view="content-3", figsize=(6, 4))
    assert all(label.count("…") == 3 for label in labels(ax))
    assert len(set(labels(ax))) == 10
    assert_nothing_overlaps(ax.figure)
    assert ax.get_position().width > 0.3


@pytest.mark.parametrize("symbols", [["a b", "^", "$"], ["^x", "$", "x"], ["-1", "^", "$$"]], ids=repr)
def test_ngrams_are_spelled_by_their_codes_and_nothing_is_read_from_labels(symbols: list[str]) -> None:
    check = made_up_check(symbols)
    ngrams = check["ksd_ngram"].to_dataset()
    seen = [symbol.replace(" ", "␣") for symbol in symbols]
    other = changed(check, "ksd_ngram", label=np.array(["^$ other"] * ngrams.sizes["ngram"], dtype=object))
    for view, width in (("content-2", 2), ("start", 1)):
        own = ngrams.isel(ngram=ngrams["view_name"].values == view)
        expected = {" ".join(seen[code] for code in codes[:width]) for codes in own["symbol"].values.tolist()}
        for one in (check, other):
            assert set(labels(plot_ngrams(one, view=view, num=99))) == expected


def test_an_alphabet_with_the_word_nothing_is_no_end() -> None:
    assert set(labels(plot_ngrams(made_up_check(["nothing", "b"]), view="start"))) == {"nothing", "b"}

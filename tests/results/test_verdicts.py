# SPDX-License-Identifier: Apache-2.0
"""The verdict of a check, from the groups alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from synthetic import TEN_VIEWS, VIEWS, changed, check_with, factor_group, made_up_check

from pyro_ksd.results.check_table import summary
from pyro_ksd.results.verdicts import reason_views, verdict, worst_view

NOT_SHOWN = "the data do not show that more than 5 % of the sequences do not come from the model"
LIMIT = "off by more than a factor of 1.25"
UNDECIDED = "; whether n-grams are off by more than a factor of 1.25 is undecided"
NO_FIT = "the model does not fit (p = 0.004): "
FEATURES = {
    "content-1": ("a", "'a' is too rare under the model"),
    "content-2": ("aa", "'aa' is too rare under the model"),
    "content-3": ("aaa", "'aaa' is too rare under the model"),
    "start": ("^a", "'a' is too rare as the first symbol under the model"),
    "surprise": ("log-probability", "the data are more probable than the model's own sequences"),
    "skip": ("a_b", "'a_b' is too rare under the model"),
    "position": ("a at position 1 of 6", "'a at position 1 of 6' is too rare under the model"),
    "mirror": (
        "mirrored symbols",
        "symbols that equal their mirror image (first with last, second with last but one) are too rare under the "
        "model",
    ),
    "repeats": ("runs of 4 equal symbols", "long runs of one symbol are too rare under the model"),
    "composition": ("unevenness", "sequences of few different symbols are too rare under the model"),
    "end": ("a$", "'a$' is too rare as the last symbol under the model"),
    "ends": ("^a...b$", "'^a...b$' is too rare as the first and the last symbol under the model"),
    "rests": ("rests", "'rests' is too small under the model"),
}
UNNAMED = {
    "content-1": "the model gets single symbols wrong (no single one stands out)",
    "content-2": "the model gets pairs of neighbors wrong (no single one stands out)",
    "content-3": "the model gets runs of 3 symbols wrong (no single one stands out)",
    "skip": "the model gets pairs of symbols at distance 2 or 3 wrong (no single one stands out)",
    "start": "the model gets the first symbol wrong",
    "Hamming": "the model gets whole sequences wrong",
    "length": "the model gets the length wrong",
}


def rejecting(p_values: dict[str, float], unnamed: tuple[str, ...] = ()) -> xr.DataTree:
    """A check of views that reject, each with one feature that stands out, unless it is to be unnamed."""
    rows = [(view, label, -4.0, 0.9 if view in unnamed else 0.001) for view, (label, _) in FEATURES.items()]
    return check_with([row for row in rows if row[0] in (*VIEWS, *p_values)], p_values)


def told(*views: str) -> str:
    return NO_FIT + "; ".join(FEATURES[view][1] for view in views)


@pytest.mark.parametrize(
    ("features", "p_values", "overall", "sentence"),
    [
        ([("content-1", "a", 1.0, 0.9)], {}, 0.43, "the model may fit: the check found nothing wrong (p = 0.430)"),
        (
            [("content-2", "aa", -4.0, 0.002), ("content-2", "ab", 3.0, 0.01), ("start", "^c", -3.0, 0.01)],
            {"content-2": 0.002, "start": 0.01},
            0.002,
            "the model does not fit (p = 0.002): 'aa' is too rare under the model and 'ab' is too frequent under the "
            "model; 'c' is too rare as the first symbol under the model",
        ),
        (
            [("start", "^a", -4.0, 0.002), ("start", "^b", -3.0, 0.02)],
            {"start": 0.002},
            0.0001,
            "the model does not fit (p = 0.0001): 'a' and 'b' are too rare as first symbols under the model",
        ),
        (  # the strongest first, three at most
            [("content-1", label, -z, 0.05 / z) for label, z in zip("abcd", (2.0, 5.0, 3.0, 4.0), strict=True)],
            {"content-1": 0.01},
            0.01,
            "the model does not fit (p = 0.010): 'b', 'd', 'c', ... are too rare under the model",
        ),
        (  # a p-value that equals the level rejects, whatever stands out at that level is named
            [("content-2", "aa", -4.0, 0.05), ("content-2", "ab", -3.0, 0.051)],
            {"content-2": 0.001},
            0.05,
            "the model does not fit (p = 0.050): 'aa' is too rare under the model",
        ),
        (  # no feature stands out
            [("content-2", "aa", -4.0, 0.4)],
            {"content-2": 0.01},
            0.03,
            "the model does not fit (p = 0.030): the model gets pairs of neighbors wrong (no single one stands out)",
        ),
        (  # of n-gram views the worst one speaks, unless it can name nothing
            [("content-1", "a", 3.0, 0.04), ("content-2", "aa", -4.0, 0.01), ("content-3", "aaa", -4.0, 0.3)],
            {"content-1": 0.003, "content-2": 0.002, "content-3": 0.001},
            0.005,
            "the model does not fit (p = 0.005): 'aa' is too rare under the model",
        ),
    ],
)
def test_verdict(features: list[tuple[Any, ...]], p_values: dict[str, float], overall: float, sentence: str) -> None:
    check = check_with(features, p_values, overall)
    assert verdict(check) == sentence
    assert summary(check).attrs["verdict"] == sentence


@pytest.mark.parametrize(
    ("p_values", "unnamed", "sentence"),
    [
        # Of n-grams only the worst that can name some.
        ({"content-1": 0.002, "content-2": 0.001, "content-3": 0.003}, (), told("content-2")),
        ({"content-1": 0.002, "content-2": 0.001, "content-3": 0.003}, ("content-2",), told("content-1")),
        (
            {"content-1": 0.002, "content-2": 0.001},
            ("content-1", "content-2"),
            NO_FIT + UNNAMED["content-2"],
        ),
        # Of arrangements, too, and none where n-grams are named.
        ({"skip": 0.0002, "mirror": 0.0001, "repeats": 0.0003}, (), told("mirror")),
        ({"skip": 0.0001, "mirror": 0.0002}, ("skip",), told("mirror")),
        ({"content-2": 0.001, "skip": 0.0001, "mirror": 0.0001}, (), told("content-2")),
        ({"content-2": 0.001, "skip": 0.0001}, ("content-2",), told("skip")),
        ({"content-2": 0.001, "position": 0.0001}, ("content-2",), told("position")),
        ({"content-2": 0.001, "composition": 0.0001}, (), told("content-2")),
        ({"content-2": 0.001, "ends": 0.0001}, (), told("content-2")),
        ({"composition": 0.0002, "ends": 0.0001}, (), told("ends")),
        # The start, the end, own features: whatever else is said.
        ({"content-2": 0.001, "start": 0.001, "end": 0.001}, (), told("content-2", "start", "end")),
        ({"mirror": 0.0001, "start": 0.001, "rests": 0.0001}, (), told("start", "mirror", "rests")),
        # The probability of the sequences only alone.
        ({"surprise": 0.001}, (), told("surprise")),
        ({"surprise": 0.001, "start": 0.001}, (), told("start")),
        ({"surprise": 0.0001, "content-2": 0.001}, (), told("content-2")),
        ({"surprise": 0.0001, "mirror": 0.001}, (), told("mirror")),
        # ... or where nothing else can say what is wrong.
        (
            {"surprise": 0.0001, "content-2": 0.001},
            ("content-2",),
            NO_FIT + f"{UNNAMED['content-2']}; {FEATURES['surprise'][1]}",
        ),
        (
            {"surprise": 0.001, "skip": 0.0001, "content-2": 0.001},
            ("content-2", "skip"),
            NO_FIT + f"{UNNAMED['content-2']}; {FEATURES['surprise'][1]}; {UNNAMED['skip']}",
        ),
        ({"surprise": 0.001, "skip": 0.0001, "content-2": 0.001}, ("content-2",), told("skip")),
        # What cannot say what is wrong is silent where something else can.
        ({"content-2": 0.001, "start": 0.001}, ("content-2",), told("start")),
        ({"content-2": 0.001, "start": 0.001}, ("start",), told("content-2")),
        ({"Hamming": 0.001, "start": 0.001}, (), told("start")),
        ({"length": 0.001, "start": 0.001}, (), told("start")),
        ({"Hamming": 0.001, "start": 0.001}, ("start",), NO_FIT + f"{UNNAMED['start']}; {UNNAMED['Hamming']}"),
        (
            {"content-2": 0.001, "skip": 0.0001},
            ("content-2", "skip"),
            NO_FIT + f"{UNNAMED['content-2']}; {UNNAMED['skip']}",
        ),
        # A view that does not reject by itself says nothing, except the worst.
        ({"start": 0.0165, "content-2": 0.0056}, (), told("start")),
        ({"start": 0.03, "content-2": 0.02}, (), told("start")),
        ({"start": 0.06, "content-2": 0.01}, (), told("content-2")),
    ],
)
def test_which_views_speak(p_values: dict[str, float], unnamed: tuple[str, ...], sentence: str) -> None:
    check = rejecting(p_values, unnamed)
    assert verdict(check) == sentence
    assert all(view in p_values for view in reason_views(check))


def test_the_worst_view_is_one_of_the_reasons() -> None:
    check = rejecting({"surprise": 0.0001, "content-2": 0.001, "start": 0.002})
    assert reason_views(check) == ["content-2", "start"]
    names = [str(name) for name in check["ksd"]["view"].values]
    assert worst_view(check, names) == "content-2"
    assert worst_view(check, ["start", "surprise"]) == "start"
    assert worst_view(check, ["length", "surprise"]) == "surprise"  # neither is a reason
    accepted = changed(check, "ksd", p_value_overall=0.2)
    assert reason_views(accepted) == []
    assert worst_view(accepted, names) == "surprise"


def test_reasons_come_in_the_order_of_the_views() -> None:
    assert reason_views(rejecting({"start": 0.001, "content-3": 0.002})) == ["content-3", "start"]


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.0, ""),
        (0.1234, "; at least 12.3 % of the sequences do not come from the model (a lower bound)"),
        (0.01, "; at least 1 % of the sequences do not come from the model (a lower bound)"),
        (0.0099, ""),
        (np.nan, ""),
    ],
)
def test_the_share_of_foreign_sequences(share: float, words: str) -> None:
    check = changed(rejecting({"content-2": 0.001}), "ksd", foreign_share_overall=share)
    assert verdict(check) == told("content-2") + words
    accepted = changed(check, "ksd", p_value_overall=0.2)
    assert verdict(accepted) == "the model may fit: the check found nothing wrong (p = 0.200)"


@pytest.mark.parametrize(
    ("p", "upper", "words"),
    [
        (0.05, 0.9, "; this share is larger than 5 % (p = 0.050)"),
        (0.0004, 0.01, "; this share is larger than 5 % (p = 0.0004)"),
        (0.3, 0.05, "; the misfit that the views see is demonstrably small (relative discrepancy at most 5 %)"),
        (0.3, 0.0123, "; the misfit that the views see is demonstrably small (relative discrepancy at most 1.23 %)"),
        (
            0.051,
            0.0501,
            f"; {NOT_SHOWN} (p = 0.051; relative discrepancy at most 5.01 %)",
        ),
    ],
)
@pytest.mark.parametrize("overall", [0.004, 0.2])
def test_the_tolerance(p: float, upper: float, words: str, overall: float) -> None:
    check = made_up_check(tolerance=0.05, p_value_overall=overall)
    uppers = np.full(5, upper / 2)
    uppers[3] = upper  # the largest counts
    check = changed(check, "ksd", tolerance_p_value_overall=p, discrepancy_upper=uppers, foreign_share_overall=0.07)
    if overall > 0.05:
        start = "the model may fit: the check found nothing wrong (p = 0.200)"
        words = words.replace(
            "this share is larger than 5 %", "more than 5 % of the sequences do not come from the model"
        )
    else:
        start = verdict(made_up_check()) + "; at least 7 % of the sequences do not come from the model (a lower bound)"
    assert verdict(check) == start + words + UNDECIDED


@pytest.mark.parametrize(
    ("p", "upper", "words"),
    [
        (
            0.3,
            [np.nan, 0.02, np.nan, 0.04, 0.01],
            "the misfit that the views see is demonstrably small (relative discrepancy at most 4 %)",
        ),
        (
            0.3,
            [np.nan] * 5,
            f"{NOT_SHOWN} (p = 0.300)",
        ),
        (np.nan, [np.nan] * 5, f"{NOT_SHOWN}"),
        (
            np.nan,
            [0.3] * 5,
            f"{NOT_SHOWN} (relative discrepancy at most 30 %)",
        ),
        (0.01, [0.3] * 5, "more than 5 % of the sequences do not come from the model (p = 0.010)"),
    ],
)
def test_the_tolerance_where_some_numbers_are_unknown(p: float, upper: list[float], words: str) -> None:
    check = made_up_check(tolerance=0.05)  # no share of foreign sequences was found
    check = changed(check, "ksd", tolerance_p_value_overall=p, discrepancy_upper=upper)
    assert verdict(check) == f"{verdict(made_up_check())}; {words}{UNDECIDED}"


IN, OUT, OPEN, UNKNOWN = "within", "outside", "undecided", "unknown"


def with_factors(factors: dict[str, tuple[float, str]], overall: float = 0.3) -> xr.DataTree:
    """A check over the alphabet ``ab`` with factors of some n-grams, each with its state."""
    rows = []
    for label, (factor, state) in factors.items():
        interval = [np.nan] * 3 if state == UNKNOWN else [factor, factor * 0.9, factor * 1.1]
        rows.append((f"content-{len(label)}", label, *interval, state == IN, state == OUT))
    check = made_up_check(list("ab"), tolerance=0.05, p_value_overall=overall)
    groups = {name: check[name].to_dataset() for name in check.children}
    groups["ksd_factor"] = factor_group(rows, [tuple("ab".index(symbol) for symbol in label) for label in factors])
    return xr.DataTree.from_dict(groups)


def inside(*labels: str) -> dict[str, tuple[float, str]]:
    return dict.fromkeys(labels, (1.0, IN))


SINGLES = inside("a", "b")
PAIRS = inside("aa", "ab", "ba", "bb")


@pytest.mark.parametrize(
    ("factors", "words"),
    [
        (SINGLES, "; in the whole sequences, no symbol is off by more than a factor of 1.25"),
        (SINGLES | PAIRS, "; in the whole sequences, no symbol or pair is off by more than a factor of 1.25"),
        (
            SINGLES | PAIRS | inside(*(f"{one}{two}" for one in PAIRS for two in "ab")),
            "; in the whole sequences, no symbol, pair or run of 3 is off by more than a factor of 1.25",
        ),
        # Symbols first, and pairs only if these are within.
        (
            SINGLES | PAIRS | {"ab": (1.2, OPEN)},
            "; in the whole sequences, no symbol is off by more than a factor of 1.25",
        ),
        ({"a": (1.2, OPEN), "b": (1.0, IN)} | PAIRS, UNDECIDED),
        ({"a": (1.2, UNKNOWN), "b": (1.0, UNKNOWN)} | PAIRS, UNDECIDED),
        # Some cannot be estimated, or do not occur.
        (
            SINGLES | PAIRS | {"bb": (1.0, UNKNOWN)},
            f"; in the whole sequences, none of the n-grams that were estimated (2 symbols, 3 pairs) is {LIMIT}",
        ),
        (
            SINGLES | inside("ab"),
            f"; in the whole sequences, none of the n-grams that were estimated (2 symbols, 1 pair) is {LIMIT}",
        ),
        # Some are outside: the farthest one is named, of the view with the smallest p-value.
        (SINGLES | PAIRS | {"ab": (1.6, OUT)}, "; 'ab' is off by more than a factor of 1.25"),
        (
            SINGLES | PAIRS | {"ab": (1.6, OUT), "ba": (0.3, OUT)},
            "; 'ba' and 'ab' are off by more than a factor of 1.25",
        ),
        (
            SINGLES | PAIRS | {"ab": (1.6, OUT), "ba": (0.3, OUT), "bb": (5.0, OUT)},
            "; 'bb' and 2 others are off by more than a factor of 1.25",
        ),
        ({"a": (9.0, OUT), "b": (1.0, IN)} | PAIRS | {"ab": (1.6, OUT)}, "; 'ab' is off by more than a factor of 1.25"),
        ({"a": (9.0, OUT), "b": (1.0, IN)} | PAIRS, "; 'a' is off by more than a factor of 1.25"),
    ],
)
@pytest.mark.parametrize("overall", [0.004, 0.3])
def test_the_factor_that_is_tolerated(factors: dict[str, tuple[float, str]], words: str, overall: float) -> None:
    sentence = verdict(with_factors(factors, overall))
    assert sentence == verdict(with_factors({"a": (1.0, UNKNOWN)}, overall)).removesuffix(UNDECIDED) + words


def test_impossible_sequences_come_first() -> None:
    sentence = verdict(made_up_check(impossible=5, p_value_overall=0.3))
    assert sentence == (
        "the model does not fit (p = 0): 5 of the 35 sequences are impossible under the model (index 0 at site x_0, "
        "1 at site x_1, 2 at site x_2, ...); the others may fit: the check found nothing wrong (p = 0.300)"
    )
    same = changed(made_up_check(impossible=5), "ksd_impossible", site=np.array(["x and 19 others"] * 5, dtype=object))
    assert "(index 0, 1, 2, ... at site x and 19 others)" in verdict(same)
    one = changed(made_up_check(impossible=1), "ksd_impossible", site=np.array(["x"], dtype=object))
    assert "(index 0 at site x)" in verdict(one)
    none = changed(made_up_check(impossible=2), "ksd_impossible", site=np.array(["", ""], dtype=object))
    assert "(index 0, 1);" in verdict(none)
    check = changed(made_up_check(impossible=2), "ksd_impossible", site=np.array(["", "x"], dtype=object))
    assert verdict(check).startswith(
        "the model does not fit (p = 0): 2 of the 32 sequences are impossible under the model (index 0, 1 at site x); "
        "the others do not fit either (p = 0.004): "
    )
    assert "1 of the 31 sequences is impossible" in verdict(made_up_check(impossible=1))


@pytest.mark.parametrize(
    ("views", "draws", "kind", "p_value", "needed"),
    [
        # content-2 has a ninth of the weight: 9 / 0.05 - 1
        (VIEWS, 178, "wild", 9 / 179, 179),
        (VIEWS, 179, "wild", 10 / 180, None),
        (VIEWS, 20, "parametric", 9 / 21, 179),
        (VIEWS, 20, "posterior predictive", 9 / 21, None),
        # skip has a twentieth of it
        (TEN_VIEWS, 398, "wild", 20 / 399, 399),
        (TEN_VIEWS, 399, "wild", 21 / 400, None),
        (["start", "length"], 38, "wild", 2 / 39, 39),
        (["start", "length"], 39, "wild", 3 / 40, None),
        # More draws would change nothing: the data are not the most extreme ones in any view.
        (TEN_VIEWS, 100, "wild", 20 / 101, 399),
        (TEN_VIEWS, 100, "wild", 21 / 101, None),
        (TEN_VIEWS, 100, "wild", 0.98, None),
        (["mirror"], 19, "wild", 2 / 20, None),
        # A posterior predictive check of several views needs no more draws than that of one.
        (TEN_VIEWS, 19, "posterior predictive", 2 / 20, None),
    ],
)
def test_verdict_says_if_there_were_too_few_draws_to_tell(
    views: list[str], draws: int, kind: str, p_value: float, needed: int | None
) -> None:
    check = made_up_check(p_value_overall=p_value, views=views)
    check["ksd"].attrs |= {"num_bootstrap": draws, "kind": kind, "level": 0.05}
    words = f"; but {draws} draws are too few to tell, take num_bootstrap={needed} or more" if needed else ""
    named = f"{kind} " if kind == "posterior predictive" else ""
    assert verdict(check) == f"the model may fit: the check found nothing wrong ({named}p = {p_value:.3f}){words}"


@pytest.mark.parametrize("p_value", [None, 0.5])  # the smallest one that there is, or a larger one
@pytest.mark.parametrize(
    ("views", "draws", "level", "kind", "more"),
    [
        (["mirror"], 18, 0.05, "wild", "num_bootstrap=19 or more"),
        (["mirror"], 1, 0.05, "parametric", "num_bootstrap=19 or more"),
        (["mirror"], 98, 0.01, "refit", "num_bootstrap=99 or more"),
        (TEN_VIEWS, 18, 0.05, "wild", "num_bootstrap=399 or more"),
        (TEN_VIEWS, 8, 0.05, "posterior predictive", "num_bootstrap=19 or more, from 19 or more posterior draws"),
        (TEN_VIEWS, 8, 0.05, "split predictive", "num_bootstrap=399 or more, from 403 or more posterior draws"),
        (["mirror"], 8, 0.05, "divided predictive", "num_bootstrap=19 or more, from 21 or more posterior draws"),
    ],
)
def test_verdict_says_if_no_p_value_could_be_as_small_as_the_level(
    views: list[str], draws: int, level: float, kind: str, more: str, p_value: float | None
) -> None:
    check = made_up_check(p_value_overall=1 / (draws + 1) if p_value is None else p_value, views=views)
    check["ksd"].attrs |= {"num_bootstrap": draws, "kind": kind, "level": level}
    count = "1 draw" if draws == 1 else f"{draws} draws"
    assert verdict(check).endswith(f"); but {count} cannot reach the level {level:g}, take {more}")
    check["ksd"].attrs["num_bootstrap"] = round(1 / level) - 1
    assert "cannot reach" not in verdict(check)


@pytest.mark.parametrize("kind", ["posterior predictive", "split predictive", "divided predictive"])
@pytest.mark.parametrize("p_value", [0.01, 0.4])
def test_verdict_says_which_kind_of_p_value_it_is_after_an_inference(kind: str, p_value: float) -> None:
    check = made_up_check(p_value_overall=p_value)
    check["ksd"].attrs["kind"] = kind
    assert f"({kind} p = {p_value:.3f})" in verdict(check)
    assert kind in repr(summary(check)).splitlines()[-1]


def test_the_number_of_draws_needed_is_not_raised_by_rounding() -> None:
    check = made_up_check(p_value_overall=3 / 59, views=["start", "length"])
    check = changed(check, "ksd", weight=[0.1, 0.2])  # 0.1 + 0.2 is a little larger than 0.3
    check["ksd"].attrs |= {"num_bootstrap": 59, "level": 0.05}
    assert "too few" not in verdict(check)
    check["ksd"].attrs["num_bootstrap"] = 58
    assert verdict(check).endswith("; but 58 draws are too few to tell, take num_bootstrap=59 or more")


def test_tests_without_weights_count_their_views_alike() -> None:
    check = made_up_check(p_value_overall=5 / 99)
    check["ksd"] = xr.DataTree(check["ksd"].to_dataset().drop_vars("weight"))
    check["ksd"].attrs["num_bootstrap"] = 98
    assert verdict(check).endswith("; but 98 draws are too few to tell, take num_bootstrap=99 or more")


@pytest.mark.parametrize(
    ("symbols", "named"),
    [("abc", "'a' and 'b'"), ("^$c", "'^' and '$'"), ("$^c", "'$' and '^'"), (" ^c", "' ' and '^'")],
)
def test_the_symbols_of_a_start_are_not_read_from_its_label(symbols: str, named: str) -> None:
    features = [("start", f"^{symbols[0]}", -4.0, 0.002), ("start", f"^{symbols[1]}", -3.0, 0.02)]
    check = check_with(features, {"start": 0.002}, symbols=list(symbols))
    assert verdict(check) == f"{NO_FIT}{named} are too rare as first symbols under the model"
    # Only the codes count: a label of another form changes nothing.
    check["ksd_ngram"]["label"].values[:] = ["one", "two"]
    assert verdict(check) == f"{NO_FIT}{named} are too rare as first symbols under the model"

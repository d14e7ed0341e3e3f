# SPDX-License-Identifier: Apache-2.0
"""What a view found, word for word, from the groups alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import xarray as xr
from synthetic import KINDS, MEANINGS, SIZES, VIEWS, changed, check_with

from pyro_ksd.results.findings import listed, unnamed, view_finding

NAN = float("nan")


def finding(check: xr.DataTree, view: str) -> str:
    return view_finding(check, check["ksd"].to_dataset().sel(view=view))


def found(view: str, features: list[tuple[Any, ...]], **options: Any) -> str:
    """What a view found that has some features (label, z, p, and the factor with its interval)."""
    return finding(check_with([(view, *feature) for feature in features], {view: 0.001}, **options), view)


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ([("aa", -4.0, 0.01)], "'aa' is too rare under the model"),
        ([("aa", 4.0, 0.01)], "'aa' is too frequent under the model"),
        ([("aa", -4.0, 0.01), ("ab", -3.0, 0.02)], "'aa' and 'ab' are too rare under the model"),
        ([("aa", 4.0, 0.01), ("ab", 3.0, 0.02)], "'aa' and 'ab' are too frequent under the model"),
        (
            [("aa", -4.0, 0.01), ("ab", 3.0, 0.02), ("ba", 2.5, 0.03)],
            "'aa' is too rare under the model and 'ab' and 'ba' are too frequent under the model",
        ),
        (
            [("ab", 3.0, 0.02), ("aa", -4.0, 0.01), ("bb", -3.5, 0.051)],
            "'aa' is too rare under the model and 'ab' is too frequent under the model",
        ),
        ([("aa", -4.0, 0.05)], "'aa' is too rare under the model"),  # at the level
        (  # the smallest p-values first, then the largest scores; three at most
            [("aa", -2.0, 0.04), ("ab", -3.0, 0.02), ("ac", -4.0, 0.02), ("ad", -9.0, 0.03), ("ae", -1.0, 0.01)],
            "'ae', 'ac', 'ab', ... are too rare under the model",
        ),
        (
            [("aa", -2.0, 0.03), ("ab", -3.0, 0.02), ("ac", -4.0, 0.01)],
            "'ac', 'ab' and 'aa' are too rare under the model",
        ),
    ],
)
def test_what_is_too_rare_and_what_is_too_frequent(features: list[tuple[Any, ...]], words: str) -> None:
    assert found("content-2", features) == words


@pytest.mark.parametrize(
    ("view", "labels", "noun"),
    [
        ("content-1", ["a", "b", "c"], "symbols"),
        ("content-2", [one + other for one in "abc" for other in "abc"], "pairs"),
        ("content-3", [one + other for one in ("aa", "ab", "ba", "bb") for other in "ab"], "runs of 3"),
    ],
)
@pytest.mark.parametrize(("sign", "word"), [(-1, "frequent"), (1, "rare")])
def test_all_ngrams_too_rare_are_sequences_of_few_different_ones(
    view: str, labels: list[str], noun: str, sign: int, word: str
) -> None:
    symbols = sorted(set("".join(labels)))
    features = [(label, sign * 4.0, 0.01, *(3.0**-sign, 2.0**-sign, 4.0**-sign)) for label in labels]
    told = f"sequences with few different {noun} for their length are too {word} under the model"
    assert found(view, features, symbols=symbols) == told
    hidden = [(label, sign * 1.0, 0.9) for label in labels]
    assert found(view, [features[0], *hidden[1:]], symbols=symbols) == told
    for others in (
        features[:-1],  # one of them does not occur
        [*features[:-1], (labels[-1], -sign * 0.1, 0.9)],  # one of them goes the other way
    ):
        assert found(view, others, symbols=symbols).startswith(f"'{labels[0]}'")


@pytest.mark.parametrize(("model", "source", "word"), [(0.8, 0.2, "frequent"), (0.2, 0.8, "rare")])
@pytest.mark.parametrize(("stop_model", "stop_source"), [(0.2, 0.2), (0.08, 0.25), (0.2, 0.1)])
def test_sequences_of_few_different_symbols_are_what_the_words_say(
    model: float, source: float, word: str, stop_model: float, stop_source: float
) -> None:
    """Walks that stay where they are with some probability: their symbols are all equally frequent."""
    torch = pytest.importorskip("torch")
    from pyro_ksd import MarkovSequence, ksd_check

    def walk(hold: float, stop: float) -> MarkovSequence:
        move = (1 - hold) / 2
        steps = torch.full((3, 3), move) + (hold - move) * torch.eye(3)
        return MarkovSequence.from_transitions(torch.full((3,), 1 / 3), steps, stop=stop)

    def mean_number_of_different(walk: MarkovSequence) -> float:
        drawn = [one for one in walk.draw(3000, torch.Generator().manual_seed(1)).to_lists() if len(one) == 4]
        return sum(len(set(one)) for one in drawn) / len(drawn)

    checked, true = walk(model, stop_model), walk(source, stop_source)
    data = true.draw(200, torch.Generator().manual_seed(0))
    check = ksd_check(checked, data.over("abc"), views="content-1", num_bootstrap=99, progress=False)
    words = f"sequences with few different symbols for their length are too {word} under the model"
    assert finding(check, "content-1") == words
    assert (mean_number_of_different(checked) < mean_number_of_different(true)) == (word == "frequent")


def test_the_only_symbol_is_named() -> None:
    group = check_with([("content-1", "a", -4.0, 0.01)], {"content-1": 0.001})
    group["ksd_data"]["token"].attrs["alphabet"] = '["a"]'
    assert finding(group, "content-1") == "'a' is too rare under the model"


@pytest.mark.parametrize(
    ("view", "labels", "one", "several"),
    [
        ("start", ["^a", "^b"], "'a' is too {} as the first symbol", "'a' and 'b' are too {} as first symbols"),
        ("end", ["a$", "b$"], "'a$' is too {} as the last symbol", "'a$' and 'b$' are too {} as last symbols"),
        (
            "ends",
            ["^a...b$", "^b...b$"],
            "'^a...b$' is too {} as the first and the last symbol",
            "'^a...b$' and '^b...b$' are too {} as first and last symbols",
        ),
        ("skip", ["a_b", "a__b"], "'a_b' is too {}", "'a_b' and 'a__b' are too {}"),
        (
            "position",
            ["a at position 1 of 6", "b at position 2 of 6"],
            "'a at position 1 of 6' is too {}",
            "'a at position 1 of 6' and 'b at position 2 of 6' are too {}",
        ),
    ],
)
@pytest.mark.parametrize(("sign", "word"), [(-1, "rare"), (1, "frequent")])
def test_where_it_is_too_rare(view: str, labels: list[str], one: str, several: str, sign: int, word: str) -> None:
    features = [(label, sign * z, 0.01) for label, z in zip(labels, (4.0, 3.0), strict=True)]
    assert found(view, features[:1]) == f"{one.format(word)} under the model"
    assert found(view, features) == f"{several.format(word)} under the model"


def test_several_symbols_stand_at_the_start_or_at_the_end() -> None:
    assert found("start", [("^$", 4.0, 0.01)]) == "'$' is too frequent as the first symbol under the model"
    assert found("start", [("^a$", 4.0, 0.01)]) == "'a$' is too frequent at the start under the model"
    words = "'ab' and 'b$' are too rare at the start under the model"
    assert found("start", [("^ab", -4.0, 0.01), ("^b$", -3.0, 0.01)]) == words
    check = check_with([("end", "ab$", -4.0, 0.01)], {"end": 0.001})
    check = changed(check, "ksd_ngram", symbol=[[0, 1, -1]])
    assert finding(check, "end") == "'ab$' is too rare at the end under the model"
    check = check_with([("ends", "^a...b$", -4.0, 0.01)], {"ends": 0.001})
    check = changed(check, "ksd_ngram", symbol=[[0, 1, -1]])
    assert finding(check, "ends") == "'^a...b$' is too rare as the first and the last symbol under the model"


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ([("aa", -4.0, 0.01, 3.14159, 2.25, 4.449)], "'aa' (weight × 3.1, 2.2 to 4.4) is too rare"),
        ([("aa", 4.0, 0.01, 0.31415, 0.0996, 0.9)], "'aa' (weight × 0.31, 0.1 to 0.9) is too frequent"),
        ([("aa", -4.0, 0.01, 234.5, 99.4, 1234.0)], "'aa' (weight × 234, 99 to 1234) is too rare"),
        ([("aa", -4.0, 0.01, 1.184, 1.172, 1.196)], "'aa' (weight × 1.18, 1.17 to 1.2) is too rare"),
        ([("aa", 4.0, 0.01, 0.99712, 0.99508, 0.99921)], "'aa' (weight × 0.997, 0.995 to 0.999) is too frequent"),
        ([("aa", -4.0, 0.01, NAN, NAN, NAN)], "'aa' is too rare"),
        ([("aa", -4.0, 0.01, 5.0, 0.0, 9.0)], "'aa' is too rare"),  # it may be any, but for what was selected
        ([("aa", 4.0, 0.01, 0.2, 0.1, 3.0)], "'aa' is too frequent"),
        (
            [("aa", -4.0, 0.01, 2.0, 1.5, 3.0), ("ab", -3.0, 0.02), ("ac", -2.0, 0.03, 3.0, 1.1, 12.0)],
            "'aa' (weight × 2, 1.5 to 3), 'ab' and 'ac' (weight × 3, 1.1 to 12) are too rare",
        ),
    ],
)
def test_factors_are_given_where_they_are_known(features: list[tuple[Any, ...]], words: str) -> None:
    assert found("content-2", features) == f"{words} under the model"


def test_the_factor_of_a_start_is_given_too() -> None:
    words = "'a' (weight × 2, 1.5 to 3) is too rare as the first symbol under the model"
    assert found("start", [("^a", -4.0, 0.01, 2.0, 1.5, 3.0)]) == words


@pytest.mark.parametrize(
    ("z", "low", "high", "agrees"),
    [
        (-4.0, 1.01, 3.0, True),
        (-4.0, 1.0, 3.0, False),  # 1 is in the interval
        (-4.0, 0.5, 3.0, False),
        (-4.0, 0.5, 0.9, False),  # the opposite
        (4.0, 0.5, 0.99, True),
        (4.0, 0.5, 1.0, False),
        (4.0, 0.5, 3.0, False),
        (4.0, 1.1, 3.0, False),
    ],
)
def test_what_its_factor_contradicts_is_not_named(z: float, low: float, high: float, agrees: bool) -> None:
    doubtful = ("aa", z, 0.001, (low * high) ** 0.5, low, high)
    assert ("'aa'" in found("content-2", [doubtful, ("ab", -3.0, 0.04)])) == agrees
    assert "'ab' is too rare" in found("content-2", [doubtful, ("ab", 0.1 - 3.0, 0.04)]) or agrees
    alone = found("content-2", [doubtful])
    assert agrees or alone == "the model gets pairs of neighbors wrong (no single one stands out)"


@pytest.mark.parametrize(
    ("z", "factor", "low", "high", "agrees"),
    [
        (-4.0, 5.0, 0.0, 24.0, True),  # the upper end is less than 5 times away
        (-4.0, 5.0, 0.0, 26.0, False),
        (4.0, 5.0, 0.0, 24.0, False),
        (4.0, 0.2, 0.05, 9.0, True),
        (4.0, 0.2, 0.03, 9.0, False),
    ],
)
def test_the_shorter_side_of_an_interval_tells_the_direction(
    z: float, factor: float, low: float, high: float, agrees: bool
) -> None:
    assert ("'aa'" in found("content-2", [("aa", z, 0.001, factor, low, high), ("ab", -3.0, 0.04)])) == agrees


def test_results_of_other_tests_have_no_factors() -> None:
    check = check_with([("content-2", "aa", -4.0, 0.01, 2.0, 1.5, 3.0)], {"content-2": 0.001})
    ngrams = check["ksd_ngram"].to_dataset().drop_vars(SIZES)
    check = xr.DataTree.from_dict({name: check[name].to_dataset() for name in check.children} | {"ksd_ngram": ngrams})
    assert finding(check, "content-2") == "'aa' is too rare under the model"


MIRRORED = "symbols that equal their mirror image (first with last, second with last but one)"
SCALARS = {
    "surprise": (
        "the data are more probable than the model's own sequences",
        "the data are less probable than the model's own sequences",
    ),
    "mirror": (
        f"{MIRRORED} are too rare under the model",
        f"{MIRRORED} are too frequent under the model",
    ),
    "repeats": (
        "long runs of one symbol are too rare under the model",
        "long runs of one symbol are too frequent under the model",
    ),
    "composition": (
        "sequences of few different symbols are too rare under the model",
        "sequences of few different symbols are too frequent under the model",
    ),
    "rests": ("'rests' is too small under the model", "'rests' is too large under the model"),
}


@pytest.mark.parametrize("view", SCALARS)
def test_views_with_one_feature_say_whether_it_is_too_small_or_too_large(view: str) -> None:
    small, large = SCALARS[view]
    assert found(view, [(view, -3.0, 0.01)]) == small
    assert found(view, [(view, 3.0, 0.01)]) == large
    assert found(view, [(view, -3.0, 0.9)]) == small  # the view rejects, and it has no other feature


def test_several_features_of_ones_own_are_named_by_their_own_p_values() -> None:
    features = [("rests 0", -3.0, 0.01), ("rests 1", 3.0, 0.02), ("rests 2", 2.0, 0.3)]
    words = "'rests 0' is too small under the model and 'rests 1' is too large under the model"
    assert found("rests", features) == words
    assert found("rests", [("rests 0", -3.0, 0.1), ("rests 1", 3.0, 0.2)]) == "the model gets values of rests wrong"


@pytest.mark.parametrize("view", list(MEANINGS))
def test_a_view_that_can_name_nothing_says_what_it_looks_at(view: str) -> None:
    check = check_with([("content-1", "a", 1.0, 0.9)], {view: 0.001})
    if view == "content-1":
        check = check_with([("content-2", "aa", 1.0, 0.9)], {view: 0.001})
    one = check["ksd"].to_dataset().sel(view=view)
    stands_out = " (no single one stands out)" if KINDS[view] in ("ngram", "skip", "position") else ""
    assert finding(check, view) == unnamed(one) == f"the model gets {MEANINGS[view]} wrong{stands_out}"


def lengths_found(
    observed: dict[int, float], expected: dict[int, float], *features: tuple[str, float, float], sampled: bool = True
) -> str:
    """What the length found in 30 sequences, with the shares observed and the probabilities expected."""
    rows = [("length", *feature) for feature in features]
    check = check_with(rows, {"length": 0.001}, lengths=(observed, expected))
    if not sampled:
        check["ksd_length"].attrs["num_drawn"] = 0
    return finding(check, "length")


def unsampled_found(
    observed: dict[int, float],
    expected: list[dict[int, float]],
    feature: tuple[str, float, float],
    complete: bool = True,
) -> str:
    """What the length found for a model without draws.

    :param expected: the estimated probabilities, and those with smaller and with larger ratios.
    """
    check = check_with([("length", *feature)], {"length": 0.001}, lengths=(observed, expected[0]))
    group = check["ksd_length"].to_dataset()
    for name, shares in zip(("expected_low", "expected_high"), expected[1:], strict=True):
        group[name] = ("length", [shares.get(length, 0.0) for length in group["length"].values.tolist()])
    check["ksd_length"] = xr.DataTree(group.assign_attrs(num_drawn=0, complete=int(complete)))
    return finding(check, "length")


SHORT, LONG = {4: 0.5, 6: 0.5}, {9: 0.5, 11: 0.5}
NARROW, WIDE = {7: 0.25, 8: 0.5, 9: 0.25}, {3: 0.25, 8: 0.5, 13: 0.25}
EVEN, ODD = {4: 0.5, 8: 0.5}, {3: 0.5, 4: 0.01, 9: 0.49}
UNCLEAR = "the model gets the length distribution wrong"


DIRECTIONS = [
    (SHORT, LONG, "length", "lengths are too long under the model (mean {}10, in the data 5)"),
    (LONG, SHORT, "length", "lengths are too short under the model (mean {}5, in the data 10)"),
    (
        NARROW,
        WIDE,
        "spread of the length",
        "lengths are too variable under the model (standard deviation {}3.54, in the data 0.707)",
    ),
    (
        WIDE,
        NARROW,
        "spread of the length",
        "lengths are too regular under the model (standard deviation {}0.707, in the data 3.54)",
    ),
    (ODD, EVEN, "even length", "even lengths are too frequent under the model ({}100 %, in the data 1 %)"),
]
"""Lengths of the data and of the model, the feature that tells, and the words, with room for "about"."""


@pytest.mark.parametrize(
    ("observed", "expected", "feature", "words"),
    [
        *DIRECTIONS,
        (EVEN, ODD, "even length", "even lengths are too rare under the model ({}1 %, in the data 100 %)"),
    ],
)
def test_the_direction_of_the_length(
    observed: dict[int, float], expected: dict[int, float], feature: str, words: str
) -> None:
    words = words.format("")
    sign = -1 if any(word in words for word in ("short", "regular", "rare")) else 1
    assert lengths_found(observed, expected, (feature, 3.0 * sign, 0.01)) == words
    assert lengths_found(observed, expected, (feature, 3.0 * sign, 0.05)) == words  # the level itself
    assert lengths_found(observed, expected, (feature, 3.0 * sign, 0.06)) == UNCLEAR  # it does not stand out
    assert lengths_found(observed, expected, (feature, -3.0 * sign, 0.01)) == UNCLEAR  # lengths say the opposite
    assert lengths_found(observed, expected, ("skewness of the length", 3.0 * sign, 0.01)) == UNCLEAR
    assert lengths_found(observed, observed, (feature, 3.0 * sign, 0.01)) == UNCLEAR  # nothing differs


def test_several_directions_of_the_length() -> None:
    observed, expected = {4: 0.5, 6: 0.5}, {7: 0.5, 21: 0.5}
    features = [("length", 3.0, 0.01), ("spread of the length", 3.0, 0.01), ("even length", -3.0, 0.01)]
    assert lengths_found(observed, expected, *features) == (
        "lengths are too long under the model (mean 14, in the data 5) and too variable under the model (standard "
        "deviation 7, in the data 1) and even lengths are too rare under the model (0 %, in the data 100 %)"
    )


@pytest.mark.parametrize(("observed", "expected", "feature", "words"), DIRECTIONS)
def test_the_direction_of_the_length_without_draws(
    observed: dict[int, float], expected: dict[int, float], feature: str, words: str
) -> None:
    words = words.format("about ")
    sign = -1 if any(word in words for word in ("short", "regular")) else 1
    told = (feature, 3.0 * sign, 0.01)
    assert unsampled_found(observed, [expected] * 3, told) == words
    assert unsampled_found(observed, [expected] * 3, (feature, -3.0 * sign, 0.01)) == UNCLEAR
    assert unsampled_found(observed, [expected, observed, expected], told) == UNCLEAR  # ratios may be smaller
    assert unsampled_found(observed, [expected, expected, observed], told) == UNCLEAR  # ratios may be larger
    cut = unsampled_found(observed, [expected] * 3, told, complete=False)
    without_size = words.partition(" (")[0]
    assert cut == (without_size if feature != "even length" and sign > 0 else UNCLEAR)


def test_the_longest_lengths_of_larger_ratios_may_be_missing() -> None:
    told = ("length", -3.0, 0.01)
    observed = {14: 0.5, 16: 0.5}
    tail = {4: 0.5, 6: 0.5 - 1e-6, 7: 1e-6}
    assert "too short" in unsampled_found(observed, [tail, tail, {4: 0.4, 6: 0.6}], told)
    assert unsampled_found(observed, [tail, tail, {4: 0.4, 7: 0.6}], told) == UNCLEAR  # as probable as ever at the end
    assert "too short" in unsampled_found(observed, [SHORT, SHORT, {4: 0.4, 6: 0.6}], told)  # which is a last length


@pytest.mark.parametrize(
    ("mean", "words"),
    [(9.6, "too short"), (9.5, "too short"), (9.4, ""), (8.6, ""), (8.5, "too long"), (8.4, "too long")],
)
def test_means_must_differ_by_three_standard_errors(mean: float, words: str) -> None:
    # Of 30 sequences with the variance 1 - (mean - 9)², and 1000 of the model: 0.1616 at 9.5, 0.1703 at 9.4.
    data = {8: (10 - mean) / 2, 10: (mean - 8) / 2}
    told = lengths_found(data, {8: 0.5, 10: 0.5}, ("length", 3.0 * np.sign(9 - mean), 0.01))
    assert words in told if words else told == UNCLEAR


@pytest.mark.parametrize(
    ("even", "words"), [(0.12, "are too frequent"), (0.14, ""), (0.86, ""), (0.88, "are too rare")]
)
def test_shares_of_even_lengths_must_differ_by_four_standard_errors(even: float, words: str) -> None:
    # Of 30 sequences, if the model were right, and 1000 of the model: 0.0927.
    told = lengths_found({7: 1 - even, 8: even}, {7: 0.5, 8: 0.5}, ("even length", 3.0 * np.sign(0.5 - even), 0.01))
    assert words in told if words else told == UNCLEAR


def test_lengths_of_a_model_that_was_not_sampled_are_known_as_far_as_the_data_reach() -> None:
    # Those beyond might turn the means around, and would make the model more variable still.
    for data, model, feature, sign in (
        (SHORT, LONG, "length", 1),
        (LONG, SHORT, "length", -1),
        (WIDE, NARROW, "spread of the length", -1),
    ):
        told = [lengths_found(data, model, (feature, 3.0 * sign, 0.01), sampled=sampled) for sampled in (True, False)]
        assert told[0] != UNCLEAR
        assert told[1] == UNCLEAR
    variable = lengths_found(NARROW, WIDE, ("spread of the length", 3.0, 0.01), sampled=False)
    assert variable == "lengths are too variable under the model"
    seldom = lengths_found(EVEN, ODD, ("even length", -3.0, 0.01), sampled=False)
    assert seldom == "even lengths are too rare under the model"


@pytest.mark.parametrize(
    ("variance", "sampled", "is_sure"),
    # The difference to 12.5 is so many standard errors.
    [(5, False, True), (6, False, False), (10, True, True), (11, True, False)],  # 3.2, 2.8, 4.2, 2.1
)
def test_the_lengths_of_a_model_are_uncertain_too(variance: int, sampled: bool, is_sure: bool) -> None:
    low = math.isqrt(variance)
    share = ((low + 1) ** 2 - variance) / (2 * low + 1)  # of those that are ``low`` from the mean
    data = {8 - low: share / 2, 8 + low: share / 2, 7 - low: (1 - share) / 2, 9 + low: (1 - share) / 2}
    told = lengths_found(data, WIDE, ("spread of the length", 3.0, 0.01), sampled=sampled)
    assert ("too variable" in told) == is_sure


def test_a_check_that_knows_no_lengths_says_that_the_length_is_wrong() -> None:
    check = check_with([("length", "length", -3.0, 0.01)], {"length": 0.001})
    del check["ksd_length"]
    assert finding(check, "length") == "the model gets the length wrong"


def test_nothing_is_said_unless_the_whole_check_rejects() -> None:
    features = [("content-2", "aa", -4.0, 0.001)]
    for overall, says in ((0.05, True), (0.051, False), (1.0, False)):
        check = check_with(features, {"content-2": 0.001}, overall)
        assert bool(finding(check, "content-2")) == says
        assert not any(finding(check, view) for view in VIEWS if view != "content-2")


def test_nothing_is_said_by_views_that_do_not_reject() -> None:
    features = [("content-2", "aa", -4.0, 0.001), ("start", "^a", -4.0, 0.001)]
    for p, says in ((0.0166, True), (0.0168, False)):  # the start has a third of the weight
        check = check_with(features, {"content-2": 0.001, "start": p})
        assert bool(finding(check, "start")) == says
        assert finding(check, "content-2")


def test_the_level_of_the_check_counts_for_views_and_features() -> None:
    check = check_with([("content-2", "aa", -4.0, 0.1), ("content-2", "ab", -4.0, 0.3)], {"content-2": 0.02}, 0.15)
    assert finding(check, "content-2") == ""
    check["ksd"].attrs["level"] = 0.2
    assert finding(check, "content-2") == "'aa' is too rare under the model"


def test_scores_and_means_have_the_same_sign() -> None:
    # The words of scalars come from means, those of n-grams from scores.
    check = check_with([("mirror", "mirrored symbols", 3.0, 0.01)], {"mirror": 0.001})
    assert finding(changed(check, "ksd_ngram", mean=[-1.0]), "mirror") == SCALARS["mirror"][0]


def test_lists_in_words() -> None:
    assert listed(["a"]) == "a"
    assert listed(["a", "b"]) == "a and b"
    assert listed(["a", "b", "c"]) == "a, b and c"

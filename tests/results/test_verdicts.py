# SPDX-License-Identifier: Apache-2.0
"""The verdict of a check, from the groups alone."""

from __future__ import annotations

import pytest
from synthetic import VIEWS, check_with, made_up_check

from pyro_ksd.results.check_table import summary
from pyro_ksd.results.verdicts import listed, verdict, view_finding


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


@pytest.mark.parametrize(
    ("symbols", "named"),
    [("abc", "'a' and 'b'"), ("^$c", "'^' and '$'"), ("$^c", "'$' and '^'"), (" ^c", "' ' and '^'")],
)
def test_the_symbols_of_a_start_are_not_read_from_its_label(symbols: str, named: str) -> None:
    features = [("start", f"^{symbols[0]}", -4.0, 0.002), ("start", f"^{symbols[1]}", -3.0, 0.02)]
    check = check_with(features, {"start": 0.002}, symbols=list(symbols))
    assert verdict(check) == f"the model does not fit (p = 0.004): it starts with {named} too rarely"
    # Only the codes count: a label of another form changes nothing.
    check["ksd_ngram"]["label"].values[:] = ["one", "two"]
    assert verdict(check) == f"the model does not fit (p = 0.004): it starts with {named} too rarely"


def test_what_a_view_found_is_nothing_if_it_does_not_reject() -> None:
    check = check_with([("content-2", "aa", -4.0, 0.002)], {"content-2": 0.002, "start": 0.06})
    ksd = check["ksd"].to_dataset()
    assert view_finding(check, ksd.sel(view="content-2")) == "it makes 'aa' too rarely"
    assert view_finding(check, ksd.sel(view="start")) == ""


def test_lists_in_words() -> None:
    assert listed(["a"]) == "a"
    assert listed(["a", "b"]) == "a and b"
    assert listed(["a", "b", "c"]) == "a, b and c"

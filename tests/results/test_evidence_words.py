# SPDX-License-Identifier: Apache-2.0
"""What a monitor says."""

from __future__ import annotations

import math

import pytest
import xarray as xr
from synthetic import made_up_check, made_up_monitor

from pyro_ksd.results.evidence_words import monitor_verdict
from pyro_ksd.results.result_tree import ResultTree
from pyro_ksd.results.validation import check_result, results_in
from pyro_ksd.results.verdicts import verdict

PAIRS = "'aa' is too rare under the model and 'ab' is too frequent under the model"


def with_values(**changed: object) -> xr.DataTree:
    tree = made_up_monitor()
    tree["ksd_monitor"].attrs |= changed
    return tree


def test_a_wrong_model() -> None:
    expected = (
        "the model does not fit (p = 0.00037, first clear after 180 of 250 sequences); the most evidence is in "
        f"content-2: {PAIRS}"
    )
    assert monitor_verdict(made_up_monitor()) == expected
    assert verdict(made_up_monitor()) == expected
    assert repr(ResultTree.of(made_up_monitor())) == expected


def test_changes() -> None:
    assert monitor_verdict(made_up_monitor(changes=True)) == (
        "the sequences do not fit the model any more (first clear after 180 of 250 sequences); the most evidence is in "
        f"content-2: {PAIRS}"
    )
    quiet = made_up_monitor(clear=False, changes=True)
    assert monitor_verdict(quiet) == "no change until now (after 250 sequences)"


def test_nothing_found() -> None:
    quiet = made_up_monitor(clear=False)
    assert monitor_verdict(quiet) == "no evidence against the model until now (p = 0.14 after 250 sequences)"


def test_impossible_sequences() -> None:
    tree = with_values(num_impossible=2, most_evidence=math.inf)
    assert monitor_verdict(tree) == (
        "the model does not fit (p < 1e-16, first clear after 180 of 250 sequences): it gives probability 0 to 2 of "
        "250 sequences"
    )


@pytest.mark.parametrize(("z", "word"), [(2.0, "less"), (-2.0, "more")])
def test_surprise_has_a_direction(z: float, word: str) -> None:
    tree = made_up_monitor()
    tree["ksd_monitor"]["log_evidence"][1] = [0.0, 9.0, 0.0]
    tree["ksd_monitor_feature"]["z"][3] = z
    assert monitor_verdict(tree).endswith(f"surprise: the data are {word} probable than the model's own sequences")


def test_only_clear_features_are_named() -> None:
    tree = made_up_monitor()
    tree["ksd_monitor_feature"]["z"][:3] = [-2.0, 1.0, 0.3]
    assert monitor_verdict(tree).endswith("the most evidence is in content-2")


def test_monitors_follow_the_schema() -> None:
    check_result(made_up_monitor(), "monitor")
    assert results_in(made_up_monitor(), "monitor") == ["monitor"]
    both = made_up_check()
    for name, child in made_up_monitor().children.items():
        both[name] = child.copy()
    assert "monitor" in results_in(both, "both")
    assert verdict(both) == verdict(made_up_check())  # of the check
    broken = made_up_monitor()
    broken["ksd_monitor"]["p_value"][0] = 2.0
    with pytest.raises(ValueError, match="p_value"):
        check_result(broken, "monitor")

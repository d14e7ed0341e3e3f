# SPDX-License-Identifier: Apache-2.0
"""Checks up to their null draws."""

from __future__ import annotations

import pytest
from checks.test_check_request import DEFAULTS

from pyro_ksd import Sequences
from pyro_ksd.checks.check_request import CheckRequest
from pyro_ksd.checks.preparation import prepared_check, report_impossible, stand_in_used
from pyro_ksd.examples import random_walk
from pyro_ksd.models.wrappers.recovered_automaton import HankelWords

REQUEST = CheckRequest(**DEFAULTS | {"views": ["content-1", "length"], "seed": 7, "level": 0.1})
WALK = random_walk(3)  # never empty


def test_impossible_sequences_are_put_aside_with_a_warning() -> None:
    data = Sequences.of(["ab", "", "bcb", "ca", ""], "abc")
    with pytest.warns(UserWarning, match=r"probability zero to 2 of 5 sequences.+; the check goes on with the others"):
        prepared = prepared_check(WALK, data, (), REQUEST)
    assert prepared.possible.to_lists() == [list("ab"), list("bcb"), list("ca")]
    assert prepared.possible_rows.tolist() == [0, 2, 3]
    assert list(prepared.impossible_sites) == [1, 4]


def test_all_data_are_possible_by_default() -> None:
    data = Sequences.of(["ab", "bcb", "ca"], "abc")
    prepared = prepared_check(WALK, data, (), REQUEST)
    assert prepared.possible is data
    assert prepared.impossible_sites == {}
    assert {name: prepared.settings[name] for name in ("seed", "level")} == {"seed": 7, "level": 0.1}
    assert [view.name for view in prepared.setup.views] == ["content-1", "length"]


@pytest.mark.parametrize("num_possible", [0, 1])
def test_one_possible_sequence_is_too_few(num_possible: int) -> None:
    with pytest.raises(ValueError, match="all wrong, and too few others are left to check: widen the model"):
        report_impossible("all wrong", num_possible)


def test_tables_are_named_only_if_they_were_used() -> None:
    assert stand_in_used(None) == {}
    assert stand_in_used(2) == {"verified_order": 2, "verified_share": 0.01}
    words = HankelWords(((0,), (1,)), ((), (1,)))
    assert stand_in_used(words) == {"verified_states": 2, "verified_share": 0.01}

# SPDX-License-Identifier: Apache-2.0
"""The schema of statistics: what each kind of test must have."""

from __future__ import annotations

from pyro_ksd.results.schema_entries import TESTS, is_required
from pyro_ksd.results.schema_of_statistics import STATISTICS


def test_every_test_has_statistics_and_null_draws() -> None:
    assert {name for name, group in STATISTICS.items() if set(group.required_in) == set(TESTS)} == {"ksd", "ksd_null"}
    for kind in TESTS:
        variables = {name for name, own in STATISTICS["ksd"].variables.items() if is_required(own, [kind])}
        assert {"statistic", "p_value", "p_value_overall", "meaning"} <= variables
        assert ("contribution" in variables) == (kind not in ("p-values", "mmd", "likelihood ratio"))


def test_groups_of_posteriors_are_required_of_their_own_kind_alone() -> None:
    assert STATISTICS["ksd_ppc"].required_in == ("posterior predictive",)
    assert STATISTICS["ksd_fold"].required_in == ("split predictive", "divided predictive")


def test_p_values_lie_between_0_and_1() -> None:
    named = {name: own for group in STATISTICS.values() for name, own in group.variables.items() if "p_value" in name}
    assert len(named) == 5
    assert {(own.least, own.most) for own in named.values()} == {(0, 1)}

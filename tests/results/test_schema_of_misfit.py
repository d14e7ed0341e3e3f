# SPDX-License-Identifier: Apache-2.0
"""The schema of what stands out: which checks have it, and what may be unknown."""

from __future__ import annotations

import pytest

from pyro_ksd.results.schema_entries import CHECKS, is_required
from pyro_ksd.results.schema_of_misfit import MISFIT
from pyro_ksd.results.schema_of_statistics import STATISTICS


def test_every_check_has_features_and_edits() -> None:
    assert {name for name, group in MISFIT.items() if set(group.required_in) == set(CHECKS)} == {
        "ksd_ngram",
        "ksd_edit",
    }
    assert not set(MISFIT) & set(STATISTICS)


@pytest.mark.parametrize("name", ["factor", "observed", "expected", "ratio"])
def test_sizes_of_features_may_be_unknown_and_have_intervals(name: str) -> None:
    variables = MISFIT["ksd_ngram"].variables
    for own in (variables[name], variables[f"{name}_low"], variables[f"{name}_high"]):
        assert own.unknown
        assert own.least == 0
        assert not is_required(own, ["posterior predictive"])
    assert not variables["z"].unknown

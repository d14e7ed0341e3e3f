# SPDX-License-Identifier: Apache-2.0
"""What the schema says of a variable, and which results must have it."""

from __future__ import annotations

import math

from pyro_ksd.results.schema_entries import (
    POSTERIOR_KINDS,
    SOURCES,
    TESTS,
    Variable,
    interval_ends,
    is_required,
    labels_along,
)


def test_required_by_any_of_the_results_of_a_container() -> None:
    own = Variable((), "float", "a number", required_in=("check", "mmd"))
    assert is_required(own, ["comparison", "mmd"])
    assert not is_required(own, ["comparison"])
    assert not is_required(Variable((), "float", "a number", required_in=()), list(SOURCES))
    assert is_required(Variable((), "float", "a number"), ["comparison"])


def test_labels_along_a_dimension_have_its_name() -> None:
    [(name, own)] = labels_along("draw", "integer", "draws").items()
    assert (name, own.dims, own.least, own.required_in) == ("draw", ("draw",), 0, None)
    [own] = labels_along("view", "string", "names", required_in=("check",)).values()
    assert (own.least, own.required_in) == (None, ("check",))


def test_an_interval_has_two_ends_that_may_be_unknown_or_infinite() -> None:
    ends = interval_ends("factor", ("check",))
    assert list(ends) == ["factor_low", "factor_high"]
    for own in ends.values():
        assert (own.least, own.most, own.unknown, own.required_in) == (0, math.inf, True, ("check",))
    assert ends["factor_low"].meaning != ends["factor_high"].meaning


def test_every_test_of_fit_has_a_call_that_makes_it() -> None:
    assert set(POSTERIOR_KINDS) < set(TESTS) < set(SOURCES)
    assert set(SOURCES) - set(TESTS) == {"comparison", "monitor"}

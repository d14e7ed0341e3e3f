# SPDX-License-Identifier: Apache-2.0
"""How to do a check."""

from __future__ import annotations

from typing import Any

import pytest

from pyro_ksd.checks.check_request import CheckRequest

DEFAULTS: dict[str, Any] = {
    "views": None,
    "by": None,
    "neighborhood": None,
    "balancing": None,
    "bootstrap": "auto",
    "num_bootstrap": 10,
    "level": 0.05,
    "tolerance": None,
    "localize": True,
    "attribution": False,
    "gram": False,
    "replicates": False,
    "allows_stand_in": True,
    "checkpoint": None,
    "seed": 0,
    "progress": False,
}


@pytest.mark.parametrize("name", ["localize", "attribution", "gram", "replicates"])
def test_flags_are_booleans(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: expected True or False, found 1"):
        CheckRequest(**DEFAULTS | {name: 1})


@pytest.mark.parametrize("tolerance", [-0.1, 1.0, "small"])
def test_a_tolerance_is_a_share(tolerance: Any) -> None:
    with pytest.raises(ValueError, match="tolerance: expected"):
        CheckRequest(**DEFAULTS | {"tolerance": tolerance})


def test_what_needs_more_than_p_values() -> None:
    alone = CheckRequest(**DEFAULTS | {"localize": False})
    alone.check_localized(posterior=None, fit=None)
    with pytest.raises(ValueError, match="localize: expected True beside posterior=, fit=, found False; leave out"):
        alone.check_localized(posterior={}, fit=len)
    with pytest.raises(ValueError, match="localize: expected True beside tolerance=, gram=, found False"):
        CheckRequest(**DEFAULTS | {"localize": False, "tolerance": 0.1, "gram": True})
    CheckRequest(**DEFAULTS | {"tolerance": 0.1, "gram": True}).check_localized(posterior={})

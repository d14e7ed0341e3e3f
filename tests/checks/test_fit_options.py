# SPDX-License-Identifier: Apache-2.0
"""The options that every test of fit takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from pyro_ksd.checks.fit_options import check_options
from pyro_ksd.examples import random_walk

RIGHT: dict[str, Any] = {"num_bootstrap": 500, "level": 0.05, "seed": 0, "progress": True}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_bootstrap": np.int64(500)},
        {"seed": np.int8(0)},
        {"bootstrap": "wild"},
        {"sampler": random_walk().draw},
    ],
)
def test_options_that_pass(options: dict[str, Any]) -> None:
    draws, seed = check_options(**(RIGHT | options))
    assert (draws, seed) == (500, 0)
    assert type(draws) is type(seed) is int


@pytest.mark.parametrize(
    ("option", "wrong"),
    [
        ("num_bootstrap", 0),
        ("num_bootstrap", 2.5),
        ("level", "high"),
        ("seed", None),
        ("progress", 1),
        ("bootstrap", "tame"),
        ("sampler", torch.Generator()),
        ("sampler", lambda size: None),
    ],
)
def test_options_that_do_not(option: str, wrong: object) -> None:
    with pytest.raises(ValueError, match=rf"^{option}: expected .*, found "):
        check_options(**(RIGHT | {option: wrong}))

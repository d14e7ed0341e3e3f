# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import warnings
from typing import Any

import torch

from pyro_ksd import ksd_check, ksd_compare
from pyro_ksd.common.user_warnings import warn_user
from pyro_ksd.examples import random_walk
from pyro_ksd.models import MarkovSequence

ALWAYS_A = MarkovSequence.from_transitions(torch.tensor([1.0, 0.0]), torch.tensor([[0.5, 0.5], [0.5, 0.5]]), stop=0.5)
DATA = ["ab", "b", "aab", "aa", "a", "abb"]


def place(call: Any) -> tuple[str, int]:
    """Where the only warning of a call points to, as the file and the lines after that of the call itself."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert len(caught) == 1
    return caught[0].filename, caught[0].lineno - call.__code__.co_firstlineno


def test_warnings_point_at_the_line_that_calls_the_package() -> None:
    def check() -> None:
        ksd_check(ALWAYS_A, DATA, views="content-1", num_bootstrap=2, progress=False)

    def compare() -> None:
        ksd_compare({"a": ALWAYS_A, "any": random_walk(2)}, DATA, views="content-1", progress=False)

    for call in (check, compare, lambda: warn_user("directly")):
        file, line = place(call)
        assert file == __file__
        assert line == (0 if call.__name__ == "<lambda>" else 1)

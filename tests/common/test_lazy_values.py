# SPDX-License-Identifier: Apache-2.0
"""Attributes that are computed once, and by threads that do not wait for each other."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from pyro_ksd.common.lazy_values import computed_once


class Counted:
    def __init__(self) -> None:
        self.runs = 0

    @computed_once
    def value(self) -> int:
        """How often it was computed."""
        self.runs += 1
        return self.runs


def test_it_is_computed_once_for_each_object() -> None:
    one, other = Counted(), Counted()
    assert [one.value, one.value, other.value] == [1, 1, 1]
    del one.__dict__["value"]
    assert one.value == 2


def test_the_docstring_stays() -> None:
    assert vars(Counted)["value"].__doc__ == "How often it was computed."


def test_threads_do_not_wait_for_each_other() -> None:
    both = threading.Barrier(2, timeout=10)

    class Meeting:
        @computed_once
        def met(self) -> bool:
            both.wait()  # nobody passes before the other thread is here, too
            return True

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda meeting: meeting.met, [Meeting(), Meeting()])) == [True, True]

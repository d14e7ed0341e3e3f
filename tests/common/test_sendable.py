# SPDX-License-Identifier: Apache-2.0
"""What cannot be sent to other processes is named."""

from __future__ import annotations

import threading
from typing import Any

import pytest

cloudpickle = pytest.importorskip("cloudpickle")

from pyro_ksd.common.sendable import sent  # noqa: E402


class Holder:
    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    def method(self) -> None:
        pass


def test_what_can_be_sent_arrives() -> None:
    factor = 3
    assert cloudpickle.loads(sent("model", lambda x: factor * x))(2) == 6


LOCK = threading.Lock()


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (Holder(inner=Holder(fine=1, lock=threading.Lock())), "model.inner.lock;"),
        (Holder(table={"a": [1, threading.Lock()]}), r"model.table\['a'\]\[1\];"),
        ((lambda lock: lambda: lock)(threading.Lock()), "model, variable lock;"),
        (Holder(inner=Holder(lock=threading.Lock()).method), "model.inner.__self__.lock;"),
        (threading.Lock(), "model;"),
    ],
)
def test_what_cannot_be_sent_is_named(value: Any, where: str) -> None:
    with pytest.raises(ValueError, match=f"^model: expected something that can be sent .* lock.* at {where}"):
        sent("model", value)


def test_objects_in_a_circle_are_looked_at_once() -> None:
    one, other = Holder(), Holder(lock=threading.Lock())
    one.other, other.one = other, one  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=r"at model.other.lock;"):
        sent("model", one)

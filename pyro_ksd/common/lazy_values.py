# SPDX-License-Identifier: Apache-2.0
"""Attributes that are computed when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class computed_once(Generic[Value]):  # noqa: N801  # a decorator
    """As :class:`functools.cached_property`, but without its lock, which Python 3.11 has.

    Two threads may compute the value twice. A lock here and the one around programs of users, each waiting for the
    other, would stop both threads for good.

    >>> class Circle:
    ...     @computed_once
    ...     def area(self):
    ...         print("computed")
    ...         return 3.14
    >>> circle = Circle()
    >>> circle.area, circle.area
    computed
    (3.14, 3.14)
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> Value:
        value = instance.__dict__[self._name] = self._compute(instance)
        return value

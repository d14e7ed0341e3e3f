# SPDX-License-Identifier: Apache-2.0
"""Sending objects to other processes, with an error that names what cannot be sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pyro_ksd.common.option_checks import found

_DEEPEST = 6  # attributes of attributes that are looked at


def sent(name: str, value: Any) -> bytes:
    """An object as bytes from which other processes make it again; functions and classes of a script are included.

    :param name: what the object is, for the error.
    :raises ValueError: naming the innermost attribute or variable that cannot be sent.

    >>> import cloudpickle
    >>> cloudpickle.loads(sent("rate", lambda x: 2 * x))(4)
    8
    >>> from threading import Lock
    >>> sent("model", {"lock": Lock()})
    Traceback (most recent call last):
    ValueError: model: expected something that can be sent to other processes, found ... at model['lock']; ...
    """
    import cloudpickle

    error = _failure(value)
    if error is None:
        blob: bytes = cloudpickle.dumps(value)
        return blob
    where, culprit = _culprit(name, value, _DEEPEST, {id(value)})
    raise ValueError(
        f"{name}: expected something that can be sent to other processes, found {found(culprit)} at {where}; make it "
        f"where it is used, or leave it out of __getstate__ ({error})"
    ) from error


def _failure(value: Any) -> Exception | None:
    """Why an object cannot be sent, ``None`` if it can."""
    import cloudpickle

    try:
        cloudpickle.dumps(value)
    except Exception as error:  # objects refuse in many ways
        return error
    return None


def _culprit(where: str, value: Any, deepest: int, seen: set[int]) -> tuple[str, Any]:
    """The innermost part of an object that cannot be sent, and how to get there."""
    if deepest:
        for place, part in _parts(where, value):
            if id(part) not in seen and _failure(part) is not None:
                return _culprit(place, part, deepest - 1, seen | {id(part)})
    return where, value


def _parts(where: str, value: Any) -> Iterator[tuple[str, Any]]:
    """What an object consists of, each with an expression for it."""
    if isinstance(value, Mapping):
        yield from ((f"{where}[{key!r}]", part) for key, part in value.items())
    elif isinstance(value, list | tuple):
        yield from ((f"{where}[{index}]", part) for index, part in enumerate(value))
    code = getattr(value, "__code__", None)
    if code is not None:
        cells = zip(code.co_freevars, value.__closure__ or (), strict=True)
        yield from ((f"{where}, variable {name}", cell.cell_contents) for name, cell in cells)
        known = value.__globals__
        yield from ((f"{where}, variable {name}", known[name]) for name in code.co_names if name in known)
    if hasattr(value, "__self__"):
        yield f"{where}.__self__", value.__self__
    yield from ((f"{where}.{name}", part) for name, part in getattr(value, "__dict__", {}).items())

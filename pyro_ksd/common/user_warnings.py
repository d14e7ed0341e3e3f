# SPDX-License-Identifier: Apache-2.0
"""Warnings that point at the user's own line."""

from __future__ import annotations

import sys
import warnings

_PACKAGE = __name__.split(".")[0]


def warn_user(message: str) -> None:
    """Warns the user, with the line outside of the package from which all of it was called.

    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_user("the model is not sampled")
    >>> str(caught[0].message)
    'the model is not sampled'
    """
    level = outermost = 1
    frame = sys._getframe(0)
    while frame.f_back is not None:
        if frame.f_globals.get("__name__", "").split(".")[0] == _PACKAGE:
            outermost = level
        frame = frame.f_back
        level += 1
    warnings.warn(message, UserWarning, stacklevel=outermost + 1)

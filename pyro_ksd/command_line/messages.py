# SPDX-License-Identifier: Apache-2.0
"""Messages of Python functions, in the words of the command line."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

_OPTIONS = (
    "format", "sep", "alphabet", "column", "by", "symbol", "order_by", "skip_unknown",
    "end", "views", "tolerance", "num_bootstrap", "level", "seed",
)  # fmt: skip
_NAMES = "|".join(_OPTIONS)
_AT_BEGIN = re.compile(rf"^({_NAMES})(?=: )")
_ARGUMENT = re.compile(rf"[\w.]+\([^()]*\)|\b({_NAMES})=('[^']*'|\"[^\"]*\"|True\b|(?=[\s,;.)]|$))")


def in_options(message: str) -> str:
    """A message with options of the command line in place of arguments of functions; calls of functions stay.

    >>> in_options("column: found 'a'; pass sep=' ', or alphabet='ACGT' with skip_unknown=True")
    "--column: found 'a'; pass --sep ' ', or --alphabet 'ACGT' with --skip-unknown"
    """
    return _ARGUMENT.sub(_option, _AT_BEGIN.sub(lambda found: _spelled(found[1]), message))


def _option(found: re.Match[str]) -> str:
    if found[1] is None:
        return found[0]
    return _spelled(found[1]) + (f" {found[2]}" if found[2] not in ("", "True") else "")


def _spelled(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def print_error(message: str) -> None:
    """Prints the message of an error, on the error stream."""
    print(f"pyro-ksd: {in_options(message)}", file=sys.stderr)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Warnings of this package appear as messages, without the line of code that they come from."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if category is UserWarning:
                print_error(f"warning: {message}")
            else:
                usual(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield

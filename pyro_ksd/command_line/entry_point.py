# SPDX-License-Identifier: Apache-2.0
"""Where the command line begins."""

from __future__ import annotations

import sys
import traceback
from argparse import Namespace
from collections.abc import Callable, Sequence

from pyro_ksd.command_line.arguments import parser
from pyro_ksd.command_line.messages import plain_warnings, print_error

ERROR = 2
"""The exit code of an error: 1, that of Python, says that a model does not fit."""


def main(words: Sequence[str] | None = None) -> int:
    """Runs a command.

    :param words: those of the command line; those of this process if left out.
    :returns: the exit code.

    >>> main(["show", "nothing.nc"])
    2
    """
    words = sys.argv[1:] if words is None else words
    arguments = parser().parse_args(words)
    arguments.words = list(words)
    try:
        with plain_warnings():
            return _command(arguments.command)(arguments)
    except ValueError as error:
        print_error(str(error))
    except Exception:  # an error in the module of a model, for instance
        traceback.print_exc()
    return ERROR


def _command(name: str) -> Callable[[Namespace], int]:
    """The function of a command; only ``check`` and ``compare`` need torch."""
    if name in ("show", "report"):
        from pyro_ksd.command_line.saved_results import show, write_report

        return show if name == "show" else write_report
    from pyro_ksd.command_line.new_results import check, compare

    return check if name == "check" else compare

# SPDX-License-Identifier: Apache-2.0
"""Progress bars and messages, where somebody can see them: on a terminal or in a notebook, not in log files."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from tqdm.auto import tqdm as ProgressBar  # noqa: N812, it is a class


def progress_bar(
    items: Iterable[Any] | None = None, *, show: bool, desc: str, unit: str, total: int | None = None
) -> ProgressBar:
    """A bar on standard error, which stays silent if that is neither a terminal nor the output of a notebook.

    :param items: to go through while the bar moves; left out if ``update`` moves it.
    :param show: what the user passed as ``progress=``.
    :param desc: the name of what is done.
    :param unit: of what the bar counts.
    :param total: how far the bar goes, if there are no items.

    >>> [item for item in progress_bar("abc", show=True, desc="letters", unit="letter")]
    ['a', 'b', 'c']
    """
    return ProgressBar(items, total=total, desc=desc, unit=unit, disable=not (show and _is_seen()))


def announce(message: str) -> None:
    """Prints a line on standard error, where somebody can see it.

    >>> announce("in a test nobody sees it")
    """
    if _is_seen():
        print(message, file=sys.stderr)


def _is_seen() -> bool:
    """Whether standard error is a terminal, or this process is the kernel of a notebook."""
    # Started without a console, Python has no standard error.
    if sys.stderr is not None and sys.stderr.isatty():
        return True
    interactive = sys.modules.get("IPython")
    shell = None if interactive is None else interactive.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config

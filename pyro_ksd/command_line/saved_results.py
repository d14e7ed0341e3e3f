# SPDX-License-Identifier: Apache-2.0
"""The commands for saved results, which need neither torch nor Pyro; and where results are written to."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from shlex import join

from pyro_ksd.results.files import load
from pyro_ksd.results.pages.report_file import report
from pyro_ksd.results.result_tree import ResultTree


def show(arguments: Namespace) -> int:
    """Prints a saved result."""
    print(load(arguments.result))
    return 0


def write_report(arguments: Namespace) -> int:
    """Writes the report of a saved result."""
    print(f"Report: {report(load(arguments.result), arguments.html, title=arguments.title)}")
    return 0


def check_outputs(arguments: Namespace) -> None:
    """Checks that the files of a result can be written, before it is computed.

    >>> check_outputs(Namespace(html="nowhere/report.html", output=None))
    Traceback (most recent call last):
    ValueError: --html: expected a file in a folder that exists, found 'nowhere/report.html'
    """
    for option in ("html", "output"):
        path = getattr(arguments, option)
        if path is not None and (not Path(path).parent.is_dir() or Path(path).is_dir()):
            raise ValueError(f"--{option}: expected a file in a folder that exists, found {path!r}")


def write(result: ResultTree, arguments: Namespace, title: str, model: str = "") -> None:
    """Prints a result, and writes the files that were asked for.

    :param title: of the report.
    :param model: what it is, for models that have no name.
    """
    print(result)
    result.attrs |= {"title": title, "command": join(["pyro-ksd", *arguments.words])}
    if model:
        result.attrs["model"] = model
    if arguments.output is not None:
        result.to_netcdf(arguments.output)
        print(f"Result: {arguments.output}")
    if arguments.html is not None:
        print(f"Report: {report(result, arguments.html)}")

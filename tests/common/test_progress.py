# SPDX-License-Identifier: Apache-2.0
"""Progress bars show nothing unless the output is a terminal or a notebook."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
from types import SimpleNamespace

import pytest

from pyro_ksd.common.progress import progress_bar

PROGRAM = """
from pyro_ksd.common.progress import progress_bar
for _ in progress_bar(range(3), show={show}, desc="counting", unit="step"):
    pass
with progress_bar(show={show}, desc="by hand", unit="step", total=5) as bar:
    bar.update(5)
"""


def shown(*, show: bool, on_terminal: bool) -> str:
    """What another Python writes to standard error."""
    reading, writing = pty.openpty() if on_terminal else os.pipe()
    if on_terminal:
        termios.tcsetwinsize(writing, (24, 80))
    command = [sys.executable, "-c", PROGRAM.format(show=show)]
    with os.fdopen(reading, "rb", 0) as stream:
        subprocess.run(command, stderr=writing, check=True)
        os.write(writing, b"|end|")
        os.close(writing)
        text = b""
        while not text.endswith(b"|end|"):
            text += stream.read(1000)
    return text.decode().removesuffix("|end|")


def test_a_terminal_shows_it() -> None:
    text = shown(show=True, on_terminal=True)
    assert "counting: 100%" in text
    assert "3/3" in text
    assert "by hand: 100%" in text
    assert "5/5" in text


@pytest.mark.parametrize(("show", "on_terminal"), [(True, False), (False, True)], ids=["a pipe", "switched off"])
def test_elsewhere_it_is_silent(show: bool, on_terminal: bool) -> None:
    assert shown(show=show, on_terminal=on_terminal) == ""


def notebook(*applications: str) -> SimpleNamespace:
    """What IPython looks like from inside a session that some applications have configured."""
    return SimpleNamespace(get_ipython=lambda: SimpleNamespace(config=dict.fromkeys(applications)))


@pytest.mark.parametrize(
    ("module", "visible"),
    [
        (notebook("IPKernelApp"), True),
        (notebook("TerminalIPythonApp"), False),
        (SimpleNamespace(get_ipython=lambda: None), False),
    ],
    ids=["the kernel of a notebook", "IPython with its errors in a file", "IPython only imported"],
)
def test_notebooks_show_it(
    module: SimpleNamespace, visible: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "IPython", module)
    assert list(progress_bar("ab", show=True, desc="letters", unit="letter")) == ["a", "b"]
    assert ("letters: 100%" in capsys.readouterr().err) == visible


def test_without_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert list(progress_bar("ab", show=True, desc="letters", unit="letter")) == ["a", "b"]

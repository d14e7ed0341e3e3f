# SPDX-License-Identifier: Apache-2.0
"""Progress bars show nothing unless the output is a terminal or a notebook, and it takes long."""

from __future__ import annotations

import os
import pickle
import pty
import re
import subprocess
import sys
import termios
from types import SimpleNamespace

import pytest

from pyro_ksd.common.progress import PartOfBar, one_bar, progress_bar

PROGRAM = """
import time
from pyro_ksd.common import progress
progress.DELAY = {delay}
def work():
    for _ in progress.progress_bar(range(3), show={show}, desc="counting", unit="step"):
        time.sleep(0.15)
    with progress.progress_bar(show={show}, desc="by hand", unit="thing", total=4000) as bar:
        for _ in range(4):
            bar.update(1000)
            time.sleep(0.15)
{calls}
"""
EACH = "work()"
TOGETHER = """
with progress.one_bar(show=True):
    work()
"""


def shown(*, show: bool = True, on_terminal: bool = True, delay: float = 0.0, calls: str = EACH) -> str:
    """What another Python writes to standard error."""
    reading, writing = pty.openpty() if on_terminal else os.pipe()
    if on_terminal:
        termios.tcsetwinsize(writing, (24, 80))
    command = [sys.executable, "-c", PROGRAM.format(show=show, delay=delay, calls=calls)]
    with os.fdopen(reading, "rb", 0) as stream:
        subprocess.run(command, stderr=writing, check=True)
        os.write(writing, b"|end|")
        os.close(writing)
        text = b""
        while not text.endswith(b"|end|"):
            text += stream.read(1000)
    return text.decode().removesuffix("|end|")


@pytest.mark.parametrize("calls", [EACH, TOGETHER], ids=["two bars", "one bar"])
def test_a_terminal_shows_each_stage(calls: str) -> None:
    text = shown(calls=calls)
    for line in ("counting: +67%", "2/3 step", "by hand: +50%", "2,000/4,000 thing"):
        assert re.search(line, text)
    assert text.index("counting") < text.index("by hand")
    assert "\n" not in text  # there is never more than one line, and it goes at the end
    assert text.split("\r")[-2].strip() == ""


def test_a_bar_appears_after_a_while() -> None:
    assert shown(delay=60) == ""
    assert shown(delay=60, calls=TOGETHER) == ""


def test_the_delay_is_that_of_the_whole_call() -> None:
    text = shown(delay=0.7, calls=TOGETHER)
    assert "counting" not in text
    assert "by hand" in text
    assert shown(delay=0.7) == ""


@pytest.mark.parametrize("calls", ["{wait}", "with progress.one_bar(show=True): {wait}"], ids=["a bar", "one bar"])
def test_the_clock_goes_on_while_a_step_takes_long(calls: str) -> None:
    wait = "[time.sleep(1.7) for _ in progress.progress_bar([1], show=True, desc='slowly', unit='step')]"
    text = shown(calls="progress.BEAT = 0.2\n" + calls.format(wait=wait))
    assert text.count("slowly:   0%") >= 4
    assert "00:00" in text
    assert "00:01" in text
    assert text.split("\r")[-2].strip() == ""  # the line is clean at the end
    assert shown(delay=60, calls="progress.BEAT = 0.1\n" + calls.format(wait=wait)) == ""


@pytest.mark.parametrize("options", [{"on_terminal": False}, {"show": False}], ids=["a pipe", "switched off"])
@pytest.mark.parametrize("calls", [EACH, TOGETHER.replace("True", "{show}")], ids=["two bars", "one bar"])
def test_elsewhere_it_is_silent(options: dict[str, bool], calls: str) -> None:
    assert shown(**options, calls=calls.format(show=options.get("show", True))) == ""


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
    monkeypatch.setattr("pyro_ksd.common.progress.DELAY", 0.0)
    monkeypatch.setitem(sys.modules, "IPython", module)
    assert list(progress_bar("ab", show=True, desc="letters", unit="letter")) == ["a", "b"]
    assert ("letters: " in capsys.readouterr().err) == visible


def test_without_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert list(progress_bar("ab", show=True, desc="letters", unit="letter")) == ["a", "b"]


def test_an_error_ends_the_bar(terminal: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), one_bar(show=True):
        1 / 0  # noqa: B018
    terminal.readouterr()
    assert list(progress_bar("ab", show=True, desc="letters", unit="letter")) == ["a", "b"]
    assert "letters: " in terminal.readouterr().err


def test_a_bar_shows_nothing_in_another_process(terminal: pytest.CaptureFixture[str]) -> None:
    with progress_bar(show=True, desc="letters", unit="letter", total=3) as bar:
        bar.update()
        terminal.readouterr()
        sent = pickle.loads(pickle.dumps(bar))
        with sent:
            sent.update(2)
        assert sent.done == 2
        assert terminal.readouterr().err == ""
        bar.update()
    assert "2/3 letter" in terminal.readouterr().err


def test_nothing_to_do(terminal: pytest.CaptureFixture[str]) -> None:
    assert list(progress_bar([], show=True, desc="nothing", unit="thing")) == []
    with progress_bar(show=True, desc="nothing", unit="thing", total=0) as bar:
        bar.update(0)
    assert "nothing" in terminal.readouterr().err


def test_a_part_of_a_bar_moves_by_whole_steps_and_never_back() -> None:
    moved: list[int] = []

    class Bar:
        done = 0

        def update(self, steps: int) -> None:
            self.done += steps
            moved.append(self.done)

    part = PartOfBar(Bar(), first=3, size=5)
    first, last = part.part(0.0, 0.5), part.part(0.5, 1.0)
    first.reach(0.1)
    first.reach(0.9)
    first.reach(0.2)
    last.reach(0.5)
    last.reach(1.0)
    part.reach(1.0)
    assert moved == [3, 5, 5, 6, 8, 8]

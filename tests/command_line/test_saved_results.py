# SPDX-License-Identifier: Apache-2.0
"""The commands for saved results, with results of all kinds and versions, without torch and Pyro."""

from __future__ import annotations

import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest
from saved_results import saved_files, unpacked
from synthetic import made_up_check

from pyro_ksd import load
from pyro_ksd.command_line.entry_point import main
from pyro_ksd.command_line.saved_results import check_outputs, write
from pyro_ksd.results import ResultTree

WITHOUT_TORCH = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"torch", "pyro"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from pyro_ksd.command_line.entry_point import main
sys.exit(main())
"""


@pytest.mark.parametrize("file", saved_files(), ids=lambda file: file.name.split(".")[0])
def test_results_of_all_kinds_are_shown_and_reported(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(unpacked(file, tmp_path))
    assert main(["show", path]) == 0
    assert capsys.readouterr().out == f"{load(path)}\n"
    html = tmp_path / "report.html"
    assert main(["report", path, "--html", str(html), "--title", "All of it"]) == 0
    assert capsys.readouterr().out == f"Report: {html}\n"
    assert "<h1>All of it</h1>" in html.read_text()
    assert "monitor" in file.name or "ksd-card" in load(path)._repr_html_()


@pytest.mark.parametrize("command", ["show", "report"])
def test_neither_torch_nor_pyro_is_needed(command: str, tmp_path: Path) -> None:
    path = str(unpacked(saved_files()[0], tmp_path))
    more = ["--html", str(tmp_path / "report.html")] if command == "report" else []
    words = [sys.executable, "-c", WITHOUT_TORCH, command, path, *more]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.parametrize("words", [["show"], ["report", "--html", "report.html"]])
def test_a_wrong_file_is_an_error(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "nothing.nc"]) == 2
    assert "pyro-ksd: path: expected a file or folder, found nothing at 'nothing.nc'" in capsys.readouterr().err


def test_files_are_written_if_they_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = ResultTree.of(made_up_check())
    write(result, Namespace(output=None, html=None, words=[]), "Nothing")
    assert capsys.readouterr().out == f"{result}\n"
    assert list(tmp_path.iterdir()) == []
    output, html = str(tmp_path / "check.nc"), str(tmp_path / "report.html")
    words = ["check", "my names.txt", "--fit", "markov"]
    write(result, Namespace(output=output, html=html, words=words), "All of it", "a chain of order 1")
    assert capsys.readouterr().out == f"{result}\nResult: {output}\nReport: {html}\n"
    assert load(output).identical(result)
    again = str(tmp_path / "again.html")
    assert main(["report", output, "--html", again]) == 0
    page = Path(again).read_text()
    assert page == Path(html).read_text()
    assert "<h1>All of it</h1>" in page
    assert "<p>Model: a chain of order 1. Data: " in page
    assert "<code>pyro-ksd check &#39;my names.txt&#39; --fit markov</code>" in page


@pytest.mark.parametrize("option", ["html", "output"])
def test_files_that_cannot_be_written_are_noticed_before_the_check(option: str, tmp_path: Path) -> None:
    for wrong in (tmp_path, tmp_path / "nowhere" / "file"):
        with pytest.raises(ValueError, match=f"^--{option}: expected a file in a folder that exists"):
            check_outputs(Namespace(**({"html": None, "output": None} | {option: str(wrong)})))
    check_outputs(Namespace(html=str(tmp_path / "report.html"), output=None))

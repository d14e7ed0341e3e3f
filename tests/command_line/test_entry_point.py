# SPDX-License-Identifier: Apache-2.0
"""Where the command line begins."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import pyro_ksd
from pyro_ksd.command_line.entry_point import main


def test_the_module_and_the_script_are_the_same() -> None:
    project = tomllib.loads((Path(pyro_ksd.__file__).parents[1] / "pyproject.toml").read_text())["project"]
    module, name = project["scripts"]["pyro-ksd"].split(":")
    assert getattr(import_module(module), name) is main
    found = subprocess.run(
        [sys.executable, "-m", "pyro_ksd", "show", "no.nc"], capture_output=True, text=True, check=False
    )
    assert found.returncode == 2
    assert found.stdout == ""
    assert found.stderr.startswith("pyro-ksd: path: expected a file or folder")


def test_an_error_in_a_module_is_not_called_a_misfit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "its_failure.py").write_text("model = 1 / 0\n")
    (tmp_path / "names.txt").write_text("ab\nba\naab\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert main(["check", "names.txt", "--model", "its_failure:model"]) == 2
    assert "ZeroDivisionError" in capsys.readouterr().err

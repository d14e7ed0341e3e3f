# SPDX-License-Identifier: Apache-2.0
"""The README's example runs and prints what the README shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import xarray as xr

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_example_prints_what_is_shown() -> None:
    code = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL)
    assert code is not None
    output = subprocess.run([sys.executable, "-c", code.group(1)], capture_output=True, text=True, check=True).stdout
    assert [line.split() for line in output.splitlines()] == [line.split() for line in code.group(2).splitlines()]


def test_program_runs() -> None:
    program = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[1]
    names: dict[str, xr.DataTree] = {}
    exec(compile(program, "README.md", "exec"), names)
    assert float(names["check"]["ksd"]["p_value_overall"]) < 0.05

# SPDX-License-Identifier: Apache-2.0
"""The values of the paper's authors' implementation, to a relative 1e-9."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.golden import errors

FILE = Path(__file__).parent / "golden" / "stein_golden.json"
CASES = json.loads(FILE.read_text())


def test_all_cases_are_there() -> None:
    assert len(CASES) == 49
    assert sum("operator_on_first_sequence" in case for case in CASES) == 8


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_golden(case: dict[str, Any]) -> None:
    found = errors(case)
    assert {"base kernel", "Stein matrix", "U"} <= found.keys()
    assert all(error <= 1e-9 for error in found.values()), found


def run(file: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.golden", str(file)]
    return subprocess.run(command, capture_output=True, text=True, cwd=FILE.parents[2], check=False)


def test_command_accepts_right_values_and_refuses_wrong_ones(tmp_path: Path) -> None:
    right, wrong = tmp_path / "right.json", tmp_path / "wrong.json"
    right.write_text(json.dumps(CASES[:1]))
    wrong.write_text(json.dumps([CASES[0] | {"u_statistic": CASES[0]["u_statistic"] * (1 + 2e-9)}]))
    good, bad = run(right), run(wrong)
    assert good.returncode == 0
    assert "1 cases, largest relative error" in good.stdout
    assert bad.returncode == 1
    assert "above 1e-09" in bad.stdout

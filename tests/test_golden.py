# SPDX-License-Identifier: Apache-2.0
"""The values of the paper's authors' implementation, to a relative 1e-9."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import golden
from benchmarks.golden import errors

pytestmark = pytest.mark.usefixtures("engine")

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


def test_command_accepts_right_values_and_refuses_wrong_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "values.json"
    monkeypatch.setattr(sys, "argv", ["benchmarks.golden", str(file)])
    wrong = CASES[0] | {"u_statistic": CASES[0]["u_statistic"] * (1 + 2e-9)}
    for cases, code, printed in (
        (CASES[:1], 0, "1 cases, largest relative error"),
        ([wrong], 1, "above 1e-09"),
    ):
        file.write_text(json.dumps(cases))
        with pytest.raises(SystemExit) as end:
            runpy.run_path(str(golden.__file__), run_name="__main__")
        assert end.value.code == code
        assert printed in capsys.readouterr().out

# SPDX-License-Identifier: Apache-2.0
"""The demo, as a program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import xarray as xr


def test_demo_prints_a_table_and_leaves_a_picture_a_report_and_a_file(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pyro_ksd.demo", "--output", str(tmp_path / "new")]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "content-2" in output
    assert "The model does not fit (p = 0.0" in output
    assert "too rare under the model" in output
    assert (tmp_path / "new" / "check.png").read_bytes().startswith(b"\x89PNG")
    assert "The model does not fit" in (tmp_path / "new" / "report.html").read_text(encoding="utf-8")
    with xr.open_datatree(tmp_path / "new" / "check.nc") as saved:
        assert float(saved["ksd"]["p_value_overall"]) < 0.05

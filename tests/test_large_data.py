# SPDX-License-Identifier: Apache-2.0
"""Large data need little memory."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_partitioned_data_stay_within_one_and_a_half_gib() -> None:
    command = [sys.executable, "-m", "benchmarks.large_data", "--sequences", "200000"]
    root = Path(__file__).parents[1]
    output = subprocess.run(command, capture_output=True, text=True, cwd=root, check=True).stdout
    print(output)
    found = re.search(r"peak memory ([0-9.]+) GiB", output)
    assert found is not None
    assert float(found.group(1)) < 1.5
    assert "200,000 sequences, 4 parts, 500 draws of the wild bootstrap" in output

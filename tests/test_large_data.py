# SPDX-License-Identifier: Apache-2.0
"""Large data need little memory."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_a_hundred_thousand_sequences_stay_within_4_gib() -> None:
    command = [sys.executable, "-m", "benchmarks.large_data"]
    root = Path(__file__).parents[1]
    output = subprocess.run(command, capture_output=True, text=True, cwd=root, check=True).stdout
    print(output)
    found = re.search(r"peak memory ([0-9.]+) GiB", output)
    assert found is not None
    assert float(found.group(1)) < 4
    assert "100000 sequences of mean length 10.0, 1000 wild draws" in output

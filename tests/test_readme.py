# SPDX-License-Identifier: Apache-2.0
"""The README's example runs and prints what the README shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL)


def test_there_are_three_examples_and_no_others() -> None:
    assert len(EXAMPLES) == 3
    assert README.count("```python") == 3


@pytest.mark.parametrize(("code", "shown"), EXAMPLES, ids=["chain", "posterior", "field"])
def test_example_prints_what_is_shown(code: str, shown: str) -> None:
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert [line.split() for line in output.splitlines()] == [line.split() for line in shown.splitlines()]


def test_links_lead_to_files() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", README)
    assert len(links) > 5
    assert all((ROOT / link).exists() for link in links)

# SPDX-License-Identifier: Apache-2.0
"""The README's example runs and prints what the README shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL)


def test_there_are_three_examples_and_no_others() -> None:
    assert len(EXAMPLES) == 3
    assert README.count("```python") == 3


# It takes long to import other packages: that is done once, and each program gets a copy of the interpreter.
ONE_BY_ONE = """
import os, sys
import pyro, scipy.sparse.csgraph, xarray
for program in sys.argv[1:]:
    if os.fork() == 0:
        exec(program, {"__name__": "__main__"})
        sys.exit()
    _, status = os.wait()
    if status:
        sys.exit("failed: " + program)
    print("=" * 80, flush=True)
"""


def test_examples_print_what_is_shown() -> None:
    programs = [program for program, _ in EXAMPLES]
    command = [sys.executable, "-c", ONE_BY_ONE, *programs]
    output = subprocess.run(command, capture_output=True, text=True, check=False)
    assert output.returncode == 0, output.stderr
    printed = output.stdout.split("=" * 80 + "\n")[:-1]
    for found, (_, shown) in zip(printed, EXAMPLES, strict=True):
        assert [line.split() for line in found.splitlines()] == [line.split() for line in shown.splitlines()]


def test_links_are_absolute_and_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)#]+)|<img src=\"([^\"]+)", README)
    own = [link for link in (text or picture for text, picture in links) if "img.shields.io" not in link]
    paths = [
        re.sub(
            r"^https://(github.com/pyro-ksd/pyro_ksd/blob|raw.githubusercontent.com/pyro-ksd/pyro_ksd)/main/", "", link
        )
        for link in own
    ]
    assert len(paths) > 5
    assert all((ROOT / path).exists() for path in paths)
    assert not set(own) & set(paths)

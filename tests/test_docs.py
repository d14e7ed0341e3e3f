# SPDX-License-Identifier: Apache-2.0
"""The programs of the documentation run as they stand, and print what the pages show."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyro
import pytest

from benchmarks.scenario_models import scenarios
from docs import diagram, schema_page
from pyro_ksd.stein.views import default_views

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
SCRIPT = '__name__ == "__main__"'


def blocks_of(page: str) -> list[tuple[str, str]]:
    """Pairs of a program and what it prints, as far as the page says so."""
    return BLOCK.findall((DOCS / page).read_text())


@pytest.mark.filterwarnings("ignore:the latents 'z' are integrated out")
@pytest.mark.filterwarnings("ignore:the view.s. .* cannot be used with")  # of data as few as a page can show
@pytest.mark.parametrize(
    "name",
    [
        "index",
        "quickstart",
        "models",
        "which_check",
        "power",
        "gallery",
        "report",
        "monitoring",
        "large_data",
        "more_machines",
        "reproducible",
    ],
)
def test_the_blocks_of_a_page_run_one_after_the_other(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = f"{name}.md"
    blocks = [block for block in blocks_of(page) if SCRIPT not in block[0]]
    assert blocks
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    pyro.clear_param_store()
    for program, printed in blocks:
        checks = re.search(r"^check = .*_check\(", program, re.MULTILINE)
        if checks:
            names.pop("check", None)
        exec(compile(program, page, "exec"), names)
        if checks:
            assert 0 < float(names["check"]["ksd"]["p_value_overall"]) <= 1
        shown = capsys.readouterr().out
        if printed:
            assert [line.split() for line in shown.splitlines()] == [line.split() for line in printed.splitlines()]


def rows_of(page: str, heading: str = "#") -> dict[str, dict[str, str]]:
    """The rows of the first table after a heading, by their first cell."""
    _, _, text = (DOCS / page).read_text().partition(heading)
    [table, *_] = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    names, _, *rows = [[cell.strip(" `*") for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return {row[0]: dict(zip(names, row, strict=True)) for row in rows}


def views_in(row: dict[str, str]) -> dict[str, str]:
    return {name: row[name] for name in (view.name for view in default_views())}


def test_the_powers_of_faults_are_those_that_were_measured() -> None:
    shown = rows_of("can_see.md", "## Eight faults")
    measured = {size: rows_of("faults.md", f"## {size} sequences") for size in (50, 200)}
    assert len(shown) == 8
    for fault, row in shown.items():
        assert row["best view, n = 200"] == max(views_in(measured[200][fault]).values())
        for size, rates in measured.items():
            assert row[f"best view, n = {size}"] == rates[fault][row["best view"]]
            assert row[f"whole check, n = {size}"] == rates[fault]["whole check"]


def test_the_powers_of_scenarios_are_those_that_were_measured() -> None:
    shown = rows_of("can_see.md", "## The twelve scenarios")
    measured = rows_of("scenarios.md")
    assert len(shown) == 12
    for scenario in scenarios():
        row, rates = shown[scenario.name], measured[scenario.name]
        assert row["n"] == str(scenario.num_sequences)
        assert row["best view, power"] == rates[row["best view"]] == max(views_in(rates).values())
        assert row["default check"] == rates["default check"]
        assert rates["best in the paper"].startswith(row["best test of the paper"])


def test_the_figures_of_the_summary_are_those_of_the_long_pages() -> None:
    pages = ("paper/results.md", "paper/discrepancies.md", "scenarios.md")
    measured = {number for page in pages for number in re.findall(r"\d\.\d{3}", (DOCS / page).read_text())}
    shown = set(re.findall(r"\d\.\d{3}", (DOCS / "paper" / "summary.md").read_text()))
    assert len(shown) > 10
    assert shown <= measured


def test_a_script_runs(tmp_path: Path) -> None:
    [(program, printed)] = [block for block in blocks_of("reproducible.md") if SCRIPT in block[0]]
    script = tmp_path / "script.py"
    script.write_text(program)
    found = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert found.stdout == printed


def test_the_diagram_shows_the_modules_of_the_package() -> None:
    described = re.search(r"<dc:description>(.+?)</dc:description>", diagram.PICTURE.read_text())
    assert described is not None
    assert described.group(1) == diagram.described(), "draw it again: python docs/diagram.py"


def test_the_page_on_the_schema_is_that_of_the_code() -> None:
    assert schema_page.PAGE.read_text() == schema_page.page(), "write it again: python docs/schema_page.py"


def test_the_diagram_has_the_order_of_the_tree() -> None:
    tree = re.findall(r"^  (\w+)/ ", (DOCS.parent / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert [folder.path.name for folder in diagram.folders()] == tree

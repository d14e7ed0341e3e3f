# SPDX-License-Identifier: Apache-2.0
"""The tutorials are well-formed notebooks that use what is public; the documentation site executes them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

TUTORIALS = sorted((Path(__file__).parents[1] / "tutorials").glob("*.md"))
EACH = pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
_CELL = re.compile(r"^```\{code-cell\} ipython3\n(?::tags: \[[\w, -]+\]\n\n)?(.*?)^```$", re.DOTALL | re.MULTILINE)


def parts(path: Path) -> tuple[str, str]:
    """The header of a tutorial and all that follows it."""
    before, header, body = path.read_text(encoding="utf-8").split("---\n", 2)
    assert before == ""
    return header, body


def code(path: Path) -> ast.Module:
    """The code of all cells, which must parse."""
    cells = _CELL.findall(parts(path)[1])
    return ast.Module([node for cell in cells for node in ast.parse(cell, str(path)).body], [])


def names_of_the_package(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """What a tutorial takes from which module of the package, by imports or as attributes of ``pyro_ksd``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "pyro_ksd":
            yield from ((str(node.module), alias.name) for alias in node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "pyro_ksd":
            yield "pyro_ksd", node.attr


def test_there_are_tutorials_in_order() -> None:
    assert [path.stem.split("_")[0] for path in TUTORIALS[:4]] == ["1", "2", "3", "4"]


@EACH
def test_header_and_title(path: Path) -> None:
    header, body = parts(path)
    assert "\n    format_name: myst\n" in header
    assert "\nkernelspec:\n" in header
    assert "\n  name: python3\n" in header
    prose = _CELL.sub("", body)
    assert re.match(r"\n# \w", prose)
    assert len(re.findall(r"^# ", prose, re.MULTILINE)) == 1


@EACH
def test_every_code_block_is_a_cell_that_parses(path: Path) -> None:
    body = parts(path)[1]
    assert len(_CELL.findall(body)) == body.count("```{code-cell}") >= 5
    assert len(code(path).body) >= 10


@EACH
def test_only_public_names_of_the_package_are_used(path: Path) -> None:
    used = set(names_of_the_package(code(path)))
    assert any(module == "pyro_ksd" for module, _ in used)
    for module, name in used:
        assert not any(part.startswith("_") for part in [*module.split("."), name]), f"{module}.{name}"
        home = import_module(module)
        public = getattr(home, "__all__", None)
        assert name in public if public is not None else hasattr(home, name), f"{module}.{name}"


@EACH
def test_it_has_a_quick_form(path: Path) -> None:
    switches = [node for node in ast.walk(code(path)) if isinstance(node, ast.Name) and node.id == "quick"]
    assert '"PYRO_KSD_QUICK" in os.environ' in path.read_text(encoding="utf-8")
    assert len(switches) >= 2  # where it is set, and where it makes something smaller


@EACH
def test_outputs_are_not_stored(path: Path) -> None:
    body = parts(path)[1]
    assert not re.search(r"```\{(code-)?output|data:image/|<img|application/vnd", body)


@EACH
def test_progress_bars_are_switched_off(path: Path) -> None:
    """A bar would be printed into the site."""
    for node in ast.walk(code(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            if name in ("ksd_check", "ksd_compare", "mmd_check", "likelihood_ratio_check", "zanella_sample"):
                keywords = {keyword.arg: keyword.value for keyword in node.keywords}
                off = isinstance(keywords.get("progress"), ast.Constant) and keywords["progress"].value is False
                assert off or None in keywords, f"line {node.lineno} of a cell: {ast.unparse(node)}"  # or **options


@EACH
def test_links_lead_to_pages(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+\.md)[^)]*\)", parts(path)[1]):
        assert (path.parent / target).exists(), target

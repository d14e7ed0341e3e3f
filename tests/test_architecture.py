# SPDX-License-Identifier: Apache-2.0
"""The one-way order of the modules, as CONTRIBUTING.md has it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pyro_ksd

ROOT = Path(pyro_ksd.__file__).parent
ORDER = [
    *["sequences", "edits", "neighborhoods", "prefix_neighborhoods", "models", "balancing", "samplers", "operators"],
    *["jumps", "kernels", "views", "stein", "statistics", "features", "bootstrap", "aggregation", "testing"],
    *["localization", "predictive", "relative", "containers", "posterior", "report", "selection", "tables", "ranking"],
    *["plots", "inputs", "check", "comparison", "baselines", "examples", "demo"],
]


def imports() -> Iterator[tuple[str, str]]:
    """Pairs of a module (or a folder of modules) and what it imports, at the top or within functions."""
    for file in ROOT.rglob("*.py"):
        name = file.relative_to(ROOT).parts[0].removesuffix(".py")
        if name == "__init__":
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                yield from ((name, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield name, node.module or ""


def test_modules_import_only_what_stands_above_them() -> None:
    pairs = [(name, target.split(".")[1]) for name, target in imports() if target.startswith("pyro_ksd.")]
    assert len(pairs) > 50
    assert [(name, target) for name, target in pairs if ORDER.index(target) > ORDER.index(name)] == []


def test_pyro_and_xarray_stay_where_they_belong() -> None:
    users = {
        package: {name for name, target in imports() if target.split(".")[0] == package}
        for package in ("pyro", "xarray", "matplotlib", "pandas", "arviz")
    }
    assert users["pyro"] == {"models"}
    assert users["xarray"] == {
        *["containers", "posterior", "report", "tables", "ranking", "plots"],
        *["check", "comparison", "baselines", "demo"],
    }
    assert users["matplotlib"] == {"plots", "demo"}
    assert users["pandas"] == {"tables"}
    assert users["arviz"] == {"containers"}

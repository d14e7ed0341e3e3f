# SPDX-License-Identifier: Apache-2.0
"""The tree of CONTRIBUTING.md: every module has a place in it, and imports only from above."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import pyro_ksd

ROOT = Path(pyro_ksd.__file__).parent
TESTS = Path(__file__).parent
BESIDE = ["examples", "demo", "__main__"]
TABLES = ("check_table", "power_table", "detail_tables", "pages.feature_rows", "pages.report_file")
STAGES = ["common", "sequences", "edits", "kernels", "models", "stein", "fit_tests", "results", "plots", "checks"]
STAGES += ["command_line"]


def tree() -> list[str]:
    """The modules of the tree, such as ``models.base``, from top to bottom and from left to right."""
    text = (ROOT.parent / "CONTRIBUTING.md").read_text()
    [block] = re.findall(r"```text\npyro_ksd/\n(.*?)```", text, re.DOTALL)
    folders: list[tuple[int, str]] = []  # the folders around a line, with their indentation
    modules = []
    for line in block.splitlines():
        depth, names = len(line) - len(line.lstrip()), line.split()
        is_folder = names[0].endswith("/")  # its modules stand four columns to the right
        folders = [(indent, folder) for indent, folder in folders if indent <= depth - (1 if is_folder else 4)]
        if is_folder:
            folders.append((depth, names[0].removesuffix("/")))
        else:
            path = ".".join(folder for _, folder in folders)
            modules += [f"{path}.{name}" for name in names]
    return [*modules, *BESIDE]


@cache
def sources() -> dict[str, Path]:
    """The files of all modules, by name without ``pyro_ksd.``; those of packages are left out."""
    files = [file for file in ROOT.rglob("*.py") if file.name != "__init__.py"]
    return {".".join(file.relative_to(ROOT).with_suffix("").parts): file for file in files}


def imports(file: Path) -> Iterator[str]:
    """What a module imports, at the top or within functions, but not for type checkers alone."""
    text = file.read_text()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


ORDER = tree()


def test_the_tree_has_every_module_once() -> None:
    assert len(ORDER) == len(set(ORDER))
    assert sorted(ORDER) == sorted(sources())
    assert list(dict.fromkeys(name.split(".")[0] for name in ORDER)) == [*STAGES, *BESIDE]


@pytest.mark.parametrize("name", ORDER)
def test_a_module_imports_only_from_above(name: str) -> None:
    own = [target.removeprefix("pyro_ksd.") for target in imports(sources()[name]) if target.startswith("pyro_ksd.")]
    if name in BESIDE:  # written as users write
        own = [target for target in own if target in ORDER]
    assert [target for target in own if target not in ORDER[: ORDER.index(name)]] == []


def test_the_test_of_imports_sees_them() -> None:
    assert "pyro_ksd.sequences.container" in imports(sources()["edits.splices"])
    assert "pyro.ops.stats" in imports(sources()["stein.mixing"])  # within a function


@pytest.mark.parametrize("name", ORDER)
def test_no_module_has_the_name_of_a_function_that_it_defines(name: str) -> None:
    module = import_module(f"pyro_ksd.{name}")
    assert not inspect.isroutine(getattr(module, name.split(".")[-1], None))


def test_packages_stay_where_they_belong() -> None:
    users: dict[str, set[str]] = {}
    for name, file in sources().items():
        for target in imports(file):
            users.setdefault(target.split(".")[0], set()).add(name)
    assert {name.split(".")[0] for name in users["pyro"]} == {"models", "stein"}
    assert [name for name in users["pyro"] if name.startswith("stein")] == ["stein.mixing"]
    assert {name.split(".")[0] for name in users["xarray"]} == {"results", "plots", "checks"}
    assert {name.split(".")[0] for name in users["matplotlib"]} == {"plots", "demo"}
    readers = {"sequences.files.parquet", "sequences.files.tables"}
    assert users["pandas"] == {f"results.{name}" for name in TABLES} | readers
    assert users["jinja2"] == {"results.pages.rendering"}
    assert users["arviz"] == {"results.containers"}
    assert users["tqdm"] == {"common.progress"}
    assert users["numba"] == {"common.compilation"}


def test_the_engine_does_not_load_pyro() -> None:
    packages = ["common", "sequences", "edits", "kernels", "stein", "fit_tests"]
    code = "import sys\n" + "".join(
        f"import pyro_ksd.{package}\nprint('{package}', 'pyro' in sys.modules, 'xarray' in sys.modules)\n"
        for package in packages
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.splitlines() == [f"{package} False False" for package in packages]


@pytest.mark.parametrize("name", [name for name in ORDER if name not in BESIDE])
def test_every_module_has_its_test_file(name: str) -> None:
    *folders, module = name.split(".")
    assert TESTS.joinpath(*folders, f"test_{module}.py").is_file()


def test_only_duck_typing_looks_for_methods_of_models() -> None:
    methods = [name for name in vars(pyro_ksd.models.SequenceModel) if not name.startswith("_")]
    assert "check_data" in methods
    for name, file in sources().items():
        for node in ast.walk(ast.parse(file.read_text())):
            called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            if called in ("getattr", "hasattr") and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
                assert node.args[1].value not in methods or name == "models.duck_typing"

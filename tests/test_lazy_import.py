# SPDX-License-Identifier: Apache-2.0
"""``import pyro_ksd`` is light, and what reads saved checks needs neither torch nor Pyro."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import pyro_ksd

WITHOUT_TORCH = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"torch", "pyro"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_import_loads_nothing_heavy() -> None:
    heavy = ["torch", "pyro", "xarray", "pandas", "matplotlib", "arviz", "scipy", "transformers", "numba", "jinja2"]
    assert run(f"import sys, pyro_ksd; print([name for name in {heavy} if name in sys.modules])") == "[]"


def test_reading_and_drawing_work_without_torch() -> None:
    names = ["load", "summary", "verdict", "extend", "to_inference_data", "report"]
    names += [name for name in pyro_ksd.__all__ if name.startswith("plot_") or name.endswith("_table")]
    assert len(names) == 20
    modules = "pyro_ksd.plots, pyro_ksd.results.containers, pyro_ksd.results.check_table"
    code = f"import {modules}\nfrom pyro_ksd import {', '.join(names)}\n"
    assert run(f"{WITHOUT_TORCH}\n{code}\nprint('done')") == "done"


@pytest.mark.parametrize("name", ["ksd_check", "Sequences", "from_pyro"])
def test_what_needs_torch_says_so(name: str) -> None:
    code = f"try:\n    from pyro_ksd import {name}\nexcept ImportError as error:\n    print(error.name, error)"
    assert run(f"{WITHOUT_TORCH}\n{code}") == "torch No module named 'torch'"


@pytest.mark.parametrize("package", ["pyro_ksd", "pyro_ksd.models", "pyro_ksd.results"])
def test_every_name_is_there_for_programs_and_for_type_checkers(package: str) -> None:
    module = import_module(package)
    assert sorted(module.__all__) == module.__all__
    assert set(module.__all__) <= set(dir(module))
    stub = ast.parse(Path(str(module.__file__)).with_suffix(".pyi").read_text())
    imports = [node for node in ast.walk(stub) if isinstance(node, ast.ImportFrom)]
    seen = {alias.asname: node.module for node in imports for alias in node.names}
    assert sorted(map(str, seen)) == module.__all__
    for name, home in seen.items():
        target = import_module(f"{package}.{home or name}")
        assert getattr(module, str(name)) is (getattr(target, str(name)) if home else target)


def test_stubs_are_installed_with_the_package() -> None:
    settings = tomllib.loads((Path(pyro_ksd.__file__).parents[1] / "pyproject.toml").read_text())
    assert "*.pyi" in settings["tool"]["setuptools"]["package-data"]["*"]


def test_modules_are_attributes() -> None:
    assert run("import pyro_ksd; print(pyro_ksd.plots.plot_check.__name__)") == "plot_check"


@pytest.mark.parametrize("name", ["nothing", "__nothing__"])
def test_an_unknown_name(name: str) -> None:
    with pytest.raises(AttributeError, match=f"pyro_ksd.* {name}"):
        getattr(pyro_ksd, name)


def test_numba_is_loaded_when_something_is_to_be_computed() -> None:
    code = """
import sys
import pyro_ksd.checks, pyro_ksd.stein, pyro_ksd.kernels, pyro_ksd.models
print("numba" in sys.modules)
"""
    assert run(code) == "False"

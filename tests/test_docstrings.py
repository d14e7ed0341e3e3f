# SPDX-License-Identifier: Apache-2.0
"""Every public name is in the API reference, once, and its docstring has an example (which the doctests run)."""

from __future__ import annotations

import inspect
import pkgutil
import re
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

import pyro_ksd

API = Path(__file__).parents[1] / "docs" / "api"
LISTED = re.findall(r"^   ([\w.]*[A-Za-z]\w*)$", (API / "index.rst").read_text().split(".. toctree::")[0], re.MULTILINE)
"""The names in the tables of the reference, without ``pyro_ksd.``"""


def public_packages() -> list[str]:
    found = pkgutil.iter_modules(pyro_ksd.__path__, "pyro_ksd.")
    return ["pyro_ksd", *(module.name for module in found if module.ispkg)]


def thing(name: str) -> Any:
    value: Any = pyro_ksd
    for part in name.split("."):
        value = getattr(value, part)
    return value


def has_example(value: Any) -> bool:
    """Whether the docstring of a function, or of a class or one of its own methods, shows a call."""
    members = vars(value).values() if inspect.isclass(value) else ()
    return any(">>>" in (inspect.getdoc(one) or "") for one in (value, *members))


@pytest.mark.parametrize("name", LISTED)
def test_a_public_name_has_an_example(name: str) -> None:
    assert has_example(thing(name))


@pytest.mark.parametrize("package", public_packages())
def test_the_reference_lists_all_of_a_package(package: str) -> None:
    listed = {thing(name) for name in LISTED}
    module = import_module(package)
    names = [name for name in getattr(module, "__all__", []) if not inspect.ismodule(getattr(module, name))]
    assert [name for name in names if getattr(module, name) not in listed] == []


def described(directives: str) -> list[str]:
    """The full names that the pages of the reference describe by some directives."""
    found = []
    for page in sorted(API.glob("*.rst")):
        module = ""
        for directive, name in re.findall(rf"\.\. (currentmodule|{directives}):: ([\w.]+)", page.read_text()):
            if directive == "currentmodule":
                module = name
            else:
                found.append(name if name.startswith("pyro_ksd.") else f"{module}.{name}")
    return found


def test_the_reference_describes_each_name_that_it_lists_once() -> None:
    names = described("autofunction|autoclass")
    assert len(names) == len(set(names))
    assert {f"pyro_ksd.{name}" for name in LISTED} <= set(names)


def test_every_function_of_the_reference_has_an_example() -> None:
    functions = described("autofunction")
    assert len(functions) > 40
    assert [name for name in functions if not has_example(resolve_name(name))] == []


def test_a_function_without_an_example_is_found() -> None:
    assert not has_example(public_packages)

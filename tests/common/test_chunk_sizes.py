# SPDX-License-Identifier: Apache-2.0
"""The sizes of chunks stand in one place, and all that works in chunks takes them from there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import pyro_ksd
from pyro_ksd.common import chunk_sizes

ROOT = Path(pyro_ksd.__file__).parent
NAMES = [name for name in vars(chunk_sizes) if name.isupper()]
TREES = {
    str(file.relative_to(ROOT)): ast.parse(file.read_text())
    for file in sorted(ROOT.rglob("*.py"))
    if file != Path(chunk_sizes.__file__)
}


def imported(tree: ast.AST) -> set[str]:
    """The sizes that a module imports."""
    return {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "pyro_ksd.common.chunk_sizes"
        for alias in node.names
    }


def used(tree: ast.AST) -> set[str]:
    """The names that a module reads."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def value(node: ast.AST) -> int | None:
    """The value of an integer or of a power of integers, as ``2**16`` is one."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        base, exponent = value(node.left), value(node.right)
        return None if base is None or exponent is None or exponent > 100 else base**exponent
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else None


def test_there_are_sizes() -> None:
    assert {"EDITS", "EDITED_SEQUENCES", "EVALUATED_SEQUENCES", "ENTRIES", "REPLICATES", "PAIR_BYTES"} <= set(NAMES)
    assert all(type(getattr(chunk_sizes, name)) is int and getattr(chunk_sizes, name) > 0 for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_some_module_works_with_the_size(name: str) -> None:
    assert [file for file, tree in TREES.items() if name in imported(tree) & used(tree)] != []


def test_a_module_uses_the_sizes_that_it_imports() -> None:
    assert {file: imported(tree) - used(tree) for file, tree in TREES.items() if imported(tree) - used(tree)} == {}


def test_no_module_has_a_size_of_its_own() -> None:
    own = {file: {value(node) for node in ast.walk(tree)} & {2**16, 2**17, 2**24} for file, tree in TREES.items()}
    assert {file: sizes for file, sizes in own.items() if sizes} == {}


@pytest.mark.parametrize(
    ("text", "expected"), [("2**16", 2**16), ("65536", 2**16), ("-2**3", 2**3), ("x**2", 2), ("'2**16'", None)]
)
def test_the_test_of_sizes_sees_them(text: str, expected: int | None) -> None:
    found = [value(node) for node in ast.walk(ast.parse(text))]
    assert max((number for number in found if number is not None), default=None) == expected

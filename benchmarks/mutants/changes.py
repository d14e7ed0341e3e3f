# SPDX-License-Identifier: Apache-2.0
"""Small bugs: ``<`` instead of ``<=``, a constant that is one larger, an argument that is not passed."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass

_OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_PAIRS = (
    ("max", "min"),
    ("amax", "amin"),
    ("maximum", "minimum"),
    ("argmax", "argmin"),
    ("any", "all"),
    ("floor", "ceil"),
    ("expm1", "exp"),
    ("log1p", "log"),
    ("sum", "mean"),
    ("cumsum", "cumprod"),
)
_NO_MATTER = ("stacklevel", "strict")  # arguments
_NAMES = {old: new for pair in _PAIRS for old, new in (pair, pair[::-1])}


@dataclass(frozen=True)
class Mutant:
    """One small change.

    :param file: relative to the project, such as ``pyro_ksd/stein/operators.py``.
    :param lines: the first and the last line of what is changed.
    :param place: the function or class around it.
    :param place_lines: its first and last line.
    :param change: the old and the new code.
    :param number: 1 for the first such change of the place, 2 for the second.
    :param source: the changed module.
    """

    file: str
    lines: tuple[int, int]
    place: str
    place_lines: tuple[int, int]
    change: str
    number: int
    source: bytes

    @property
    def folder(self) -> str:
        """The stage, such as ``stein``."""
        return self.file.split("/")[1]

    @property
    def key(self) -> str:
        """What names it in the list of equivalent mutants, whatever its line."""
        return f"{self.file}: {self.place}: {self.change} ({self.number})"


def mutants_of(file: str, text: bytes) -> list[Mutant]:
    """All mutants of a module.

    >>> [mutant.change for mutant in mutants_of("a.py", b"def f(x: int) -> bool:\\n    return x < 3")]
    ['x < 3 -> x <= 3', '3 -> 4']
    """
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    same: Counter[tuple[str, str]] = Counter()
    for node, place, place_lines in _mutable(ast.parse(text), "module", (1, len(starts) - 1)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        for changed in _changes(node):
            new = ast.unparse(changed)
            written = new if isinstance(changed, ast.stmt | ast.Constant) else f"({new})"
            change = f"{ast.unparse(node)} -> {new}".replace("\n", " ")
            same[place, change] += 1
            source = text[:start] + written.encode() + text[end:]
            found.append(Mutant(file, _lines(node), place, place_lines, change, same[place, change], source))
    return found


def _lines(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.lineno, node.end_lineno or node.lineno


def _mutable(
    node: ast.AST, place: str, place_lines: tuple[int, int]
) -> Iterator[tuple[ast.expr | ast.stmt, str, tuple[int, int]]]:
    """The statements and expressions that may be changed, with the function or class around them and its lines.

    Annotations, decorators, messages of errors, imports for type checkers, seeds and progress bars stay as they are.
    """
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        place = node.name if place == "module" else f"{place}.{node.name}"
        place_lines = _lines(node)
    for name, field in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases"):
            continue
        for child in field if isinstance(field, list) else [field]:
            if isinstance(child, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom) or not isinstance(
                child, ast.AST
            ):
                continue
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            if isinstance(child, ast.Call) and _name(child.func) in ("manual_seed", "tqdm", "set_postfix_str"):
                continue
            if isinstance(child, ast.Expr) and ast.unparse(child).startswith("bar."):
                continue
            if isinstance(child, ast.keyword) and child.arg in _NO_MATTER:
                continue
            if isinstance(child, ast.expr | ast.stmt):
                yield child, place, place_lines
            yield from _mutable(child, place, place_lines)


def _changes(node: ast.expr | ast.stmt) -> Iterator[ast.expr | ast.stmt]:
    """Small changes of one statement or expression, but not of what is inside it."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in _OPERATORS:
            yield _with(node, ops=[_OPERATORS[type(operator)]()])
        case ast.BinOp(op=operator) | ast.BoolOp(op=operator) | ast.AugAssign(op=operator) if (
            type(operator) in _OPERATORS
        ):
            yield _with(node, op=_OPERATORS[type(operator)]())
        case ast.UnaryOp(op=ast.USub() | ast.Not() | ast.Invert(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.Constant(value=float(value)):
            yield ast.Constant(2 * value if value else 1.0)
        case ast.If() if all(isinstance(line, ast.Raise) for line in node.body) and not node.orelse:
            yield ast.Pass()
        case ast.IfExp(body=body, orelse=orelse):
            yield body
            yield orelse
        case ast.Expr(value=ast.Call(func=called)) if "warn" not in ast.unparse(called):
            yield ast.Pass()
        case ast.Call(func=called, keywords=keywords):
            if isinstance(called, ast.Name) and called.id in _NAMES:
                yield _with(node, func=ast.Name(_NAMES[called.id]))
            if isinstance(called, ast.Attribute) and called.attr in _NAMES:
                yield _with(node, func=_with(called, attr=_NAMES[called.attr]))
            is_class = _name(called).lstrip("_")[:1].isupper()  # most fields have no defaults
            for dropped in [] if is_class else keywords:
                if dropped.arg is not None and dropped.arg not in _NO_MATTER:
                    yield _with(node, keywords=[keyword for keyword in keywords if keyword is not dropped])


def _name(called: ast.expr) -> str:
    """The name of a function, without that of its module or object."""
    return ast.unparse(called).rpartition(".")[2]


def _with(node: ast.expr | ast.stmt, **fields: object) -> ast.expr | ast.stmt:
    changed = copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed

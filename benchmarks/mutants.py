# SPDX-License-Identifier: Apache-2.0
"""How many small bugs the fast tests notice: ``python -m benchmarks.mutants --sample 200``, or with files.

A mutant is the package with one small change: ``<`` instead of ``<=``, a constant that is one larger, an argument that
is not passed. It is killed if a test fails. The tests of a module are its mirrored test file, the tests of the same
folder that mirror no module, such as contracts, its doctests, and the tests of wrong arguments. With ``--stage``,
mutants that pass them meet all tests of their stage.

Each mutant runs in a copy of the project, in a process that is forked after torch and Pyro were imported.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import math
import os
import random
import resource
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

from scipy.stats import binomtest

FOLDERS = ("stein", "kernels", "fit_tests", "models")
_ROOT = Path(__file__).parents[1]
_EQUIVALENT = Path(__file__).with_name("equivalent_mutants.txt")
_WRONG_ARGUMENTS = "tests/test_wrong_arguments.py"
_HEAVY = ("torch", "pyro", "scipy.stats", "xarray", "pandas", "pytest")
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
_PASSED = (0, 5)  # exit codes of pytest: all tests passed, or all of them are slow ones that are left out
_SECONDS = 90  # tests with a bug may take this long or, if they need more without it, so many times as long:
_TIMES = 5
_KEPT = (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom)
_NO_MATTER = ("stacklevel", "strict")  # arguments
_NAMES = {old: new for pair in _PAIRS for old, new in (pair, pair[::-1])}


@dataclass(frozen=True)
class Mutant:
    """One small change.

    :param file: relative to the project, such as ``pyro_ksd/stein/operators.py``.
    :param line: where it is.
    :param place: the function or class around it.
    :param change: the old and the new code.
    :param number: 1 for the first such change of the place, 2 for the second.
    :param source: the changed module.
    """

    file: str
    line: int
    place: str
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
    for node, place in _mutable(ast.parse(text), "module"):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        for changed in _changes(node):
            new = ast.unparse(changed)
            written = new if isinstance(changed, ast.stmt | ast.Constant) else f"({new})"
            change = f"{ast.unparse(node)} -> {new}".replace("\n", " ")
            same[place, change] += 1
            source = text[:start] + written.encode() + text[end:]
            found.append(Mutant(file, node.lineno, place, change, same[place, change], source))
    return found


def _mutable(node: ast.AST, place: str) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """The statements and expressions that may be changed, with the name of the function or class around them.

    Annotations, decorators, messages of errors, imports for type checkers, seeds and progress bars stay as they are.
    """
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        place = node.name if place == "module" else f"{place}.{node.name}"
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
                yield child, place
            yield from _mutable(child, place)


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


def near_tests(file: str) -> list[list[str]]:
    """The tests of a module, in the order in which they are run.

    Its mirrored file with its doctests; those of the same folder that mirror no module; those of wrong arguments.

    >>> near_tests("pyro_ksd/kernels/mirror.py")[:2]
    [['tests/kernels/test_mirror.py', 'pyro_ksd/kernels/mirror.py'], ['tests/kernels/test_kernel_contract.py']]
    """
    path = Path(file)
    folder = Path("tests", *path.parts[1:-1])
    mirrored = folder / f"test_{path.name}"
    others = [
        str(folder / test.name)
        for test in sorted((_ROOT / folder).glob("test_*.py"))
        if not (_ROOT / path.with_name(test.name.removeprefix("test_"))).exists()
    ]
    # Tests import the module as a part of its package; pytest, before them, would make a second one.
    return [[str(mirrored), file], *([others] if others else []), [_WRONG_ARGUMENTS]]


def stage_tests(file: str) -> list[str]:
    """The tests of the whole stage of a module."""
    return [str(Path("tests", Path(file).parts[1]))]


class Workshop:
    """A copy of the project in which mutants are tested, one after the other."""

    def __init__(self, folder: Path) -> None:
        ignored = shutil.ignore_patterns(".git", ".venv*", "build", "__pycache__", ".*_cache")
        self._root = folder / "copy"
        shutil.copytree(_ROOT, self._root, ignore=ignored)
        self._output = folder / "output.txt"

    def prepare(self, tests: Sequence[str]) -> None:
        """Writes the bytecode of some tests and of all that they import."""
        self._run(["--collect-only", *tests], math.inf, write_bytecode=True)

    def fails(self, mutant: Mutant, tests: Sequence[str]) -> bool:
        """Whether one of the tests fails with a mutant, or computes for too long.

        Without a bug they must pass, as ``make test`` shows.
        """
        failed, seconds = self._run_with(mutant, tests, _SECONDS)
        if seconds < _SECONDS - 1:
            return failed
        _, usual = self._run(tests, math.inf, write_bytecode=True)
        if usual < _SECONDS / _TIMES:
            return True
        failed, _ = self._run_with(mutant, tests, _TIMES * usual)
        return failed

    def _run_with(self, mutant: Mutant, tests: Sequence[str], limit: float) -> tuple[bool, float]:
        """What :meth:`_run` says while the mutant is in place of its module."""
        changed = self._root / mutant.file
        original = changed.read_bytes()
        Path(cache_from_source(str(changed))).unlink(missing_ok=True)
        changed.write_bytes(mutant.source)
        try:
            return self._run(tests, limit, write_bytecode=False)
        finally:
            changed.write_bytes(original)

    def _run(self, tests: Sequence[str], limit: float, write_bytecode: bool) -> tuple[bool, float]:
        """Whether the tests fail in a forked process or compute for more than ``limit`` seconds, and these seconds."""
        child = os.fork()
        if child == 0:
            if limit < math.inf:
                resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit), math.ceil(limit)))
            self._become_tests(tests, write_bytecode)
        _, status, usage = os.wait4(child, 0)
        return os.waitstatus_to_exitcode(status) not in _PASSED, usage.ru_utime + usage.ru_stime

    def _become_tests(self, tests: Sequence[str], write_bytecode: bool) -> None:
        """Runs the tests and ends the process."""
        code = 1
        try:
            os.chdir(self._root)
            with self._output.open("w") as output:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
            # A changed module of the same length and second as another would be taken for it.
            sys.dont_write_bytecode = not write_bytecode
            os.environ["PYTHONPATH"] = str(self._root)
            sys.path[0] = str(self._root)
            import pytest

            code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


def equivalent() -> set[str]:
    """The keys of the mutants that no test can notice, which are listed with reasons."""
    lines = _EQUIVALENT.read_text(encoding="utf-8").splitlines() if _EQUIVALENT.exists() else []
    return {line for line in lines if line and not line.startswith(("#", " "))}


def report(counts: Counter[tuple[str, str]]) -> str:
    """A table of the killed mutants of each folder and of all, with the 95 % interval of Clopper and Pearson."""
    lines = [f"{'folder':<10} {'killed near':>12} {'in the stage':>13} {'survived':>9} {'score':>7}  95 % interval"]
    folders = sorted({folder for folder, _ in counts})
    for folder in [*folders, "all"]:
        near, stage, survived = (
            sum(count for (name, fate), count in counts.items() if fate == wanted and folder in (name, "all"))
            for wanted in ("near", "stage", "survived")
        )
        result = binomtest(near + stage, near + stage + survived)
        low, high = result.proportion_ci()
        numbers = f"{near:>12} {stage:>13} {survived:>9} {result.statistic:>7.1%}"
        lines.append(f"{folder:<10} {numbers}  {low:.1%} to {high:.1%}")
    return "\n".join(lines)


def _files(paths: Sequence[str]) -> list[str]:
    """The modules in files and folders, relative to the project."""
    found = set()
    for path in paths or [f"pyro_ksd/{folder}" for folder in FOLDERS]:
        whole = _ROOT / path
        found |= {whole} if whole.is_file() else set(whole.rglob("*.py"))
    return sorted(str(file.relative_to(_ROOT)) for file in found if file.name != "__init__.py")


def main() -> None:
    """Tests mutants and prints those that no test notices."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", help=f"files or folders; the default is {', '.join(FOLDERS)}")
    parser.add_argument("--sample", type=int, help="test a random sample of this size instead of all mutants")
    parser.add_argument("--seed", type=int, default=0, help="of the random sample")
    parser.add_argument("--stage", action="store_true", help="run all tests of the stage for mutants that survive")
    arguments = parser.parse_args()
    chosen = [mutant for file in _files(arguments.paths) for mutant in mutants_of(file, (_ROOT / file).read_bytes())]
    every = len(chosen)
    known = equivalent()
    if not arguments.paths:
        for key in sorted(known - {mutant.key for mutant in chosen}):
            print(f"{_EQUIVALENT.name} names a mutant that does not exist: {key}", flush=True)
    if arguments.sample is not None and arguments.sample < every:
        chosen = random.Random(arguments.seed).sample(chosen, arguments.sample)
    wanted = [mutant for mutant in chosen if mutant.key not in known]
    print(f"{len(chosen)} of {every} mutants; {len(chosen) - len(wanted)} of them are equivalent", flush=True)
    for name in _HEAVY:
        importlib.import_module(name)
    counts: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        workshop = Workshop(Path(folder))
        workshop.prepare(sorted({test for mutant in wanted for tests in near_tests(mutant.file) for test in tests}))
        for mutant in sorted(wanted, key=lambda mutant: (mutant.file, mutant.line)):
            if any(workshop.fails(mutant, tests) for tests in near_tests(mutant.file)):
                fate = "near"
            elif arguments.stage and workshop.fails(mutant, stage_tests(mutant.file)):
                fate = "stage"
            else:
                fate = "survived"
            counts[mutant.folder, fate] += 1
            print(f"{fate:<8} line {mutant.line:<4} {mutant.key}", flush=True)
    print(report(counts))


if __name__ == "__main__":
    main()

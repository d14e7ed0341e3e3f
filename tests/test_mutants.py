# SPDX-License-Identifier: Apache-2.0
"""The small bugs that ``benchmarks/mutants.py`` makes, and the tests that must notice them."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks import mutants
from benchmarks.mutants import mutants_of, near_tests, report

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ("y = x < 3", ["x < 3 -> x <= 3", "3 -> 4"]),
        ("y = x + 1.5", ["x + 1.5 -> x - 1.5", "1.5 -> 3.0"]),
        ("y = a and not b", ["a and (not b) -> a or not b", "not b -> b"]),
        ("y = a if b else c", ["a if b else c -> a", "a if b else c -> c"]),
        ("y = x.sum(keepdim=True)", ["x.sum(keepdim=True) -> x.mean(keepdim=True)", "x.sum(keepdim=True) -> x.sum()"]),
        ("y = ç(x, ß=ø)", ["ç(x, ß=ø) -> ç(x)"]),
        ("check(x)", ["check(x) -> pass"]),
        ("x += y", ["x += y -> x -= y"]),
        ("if x:\n    raise ValueError(f'{x + 1}')", ["if x:     raise ValueError(f'{x + 1}') -> pass"]),
    ],
)
def test_every_kind_of_change(line: str, changes: list[str]) -> None:
    text = f"# äöü\n{line}\n"
    found = [one for one in mutants_of("pyro_ksd/a/b.py", text.encode()) if "True -> False" not in one.change]
    assert [one.change for one in found] == changes
    for one in found:
        assert ast.dump(ast.parse(one.source)) != ast.dump(ast.parse(text))
        assert one.source.startswith("# äöü\n".encode())
        assert (one.folder, one.line) == ("a", 2)


def test_changes_that_look_alike_have_numbers() -> None:
    text = b"def f(x):\n    return x[1] + x[1]\n\nclass A:\n    def f(self):\n        return 1\n"
    keys = [one.key for one in mutants_of("a.py", text) if "1 -> 2" in one.change]
    assert keys == ["a.py: f: 1 -> 2 (1)", "a.py: f: 1 -> 2 (2)", "a.py: A.f: 1 -> 2 (1)"]


@pytest.mark.parametrize(
    "line",
    [
        "def f(x: Literal[1]) -> Literal[2]: return x",
        "y = Part(size=x)",
        "y = Generator().manual_seed(0)",
        "y = zip(a, b, strict=True)",
        "with tqdm(total=1 + x) as bar:\n    bar.update(1 + x)",
        "warnings.warn(x, stacklevel=3)",
        "if TYPE_CHECKING:\n    y = 1",
    ],
)
def test_what_stays_as_it_is(line: str) -> None:
    assert not mutants_of("a.py", line.encode())


PROJECT = {
    "pyproject.toml": "[tool.pytest.ini_options]\npythonpath = ['.']\n",
    "pkg/__init__.py": "",
    "pkg/half.py": "def half(x):\n    return x / 2\n",
    "tests/test_half.py": "from pkg.half import half\n\ndef test_half():\n    assert half(6) == 3\n",
    "tests/test_nothing.py": "",
}
PROGRAM = """
from pathlib import Path
from benchmarks import mutants

mutants._ROOT, mutants._SECONDS = Path("project").absolute(), 2
workshop = mutants.Workshop(Path.cwd())
file, tests = "pkg/half.py", ["tests/test_half.py"]
wrong, _ = mutants.mutants_of(file, Path("project", file).read_bytes())
others = [b"half = lambda x: 0.5 * x", b"while True: pass"]
same, endless = (mutants.Mutant(file, 1, "module", "", 1, source) for source in others)
print([workshop.fails(one, tests) for one in (wrong, same, endless)], workshop.fails(wrong, ["tests/test_nothing.py"]))
"""


@pytest.mark.slow
def test_a_bug_is_noticed_and_removed_again(tmp_path: Path) -> None:
    for name, text in PROJECT.items():
        (tmp_path / "project" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "project" / name).write_text(text)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    run = [sys.executable, "-c", PROGRAM]  # forks, which this process with its threads should not
    found = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert found.stdout == "[True, False, True] False\n", found.stderr
    assert (tmp_path / "copy/pkg/half.py").read_text() == PROJECT["pkg/half.py"]


def test_every_module_has_tests() -> None:
    for folder in mutants.FOLDERS:
        for file in (ROOT / "pyro_ksd" / folder).rglob("*.py"):
            if file.name != "__init__.py":
                assert all(
                    (ROOT / test).exists() for tests in near_tests(str(file.relative_to(ROOT))) for test in tests
                )


def test_the_score_counts_each_folder_and_all() -> None:
    counts = Counter({("stein", "near"): 8, ("stein", "survived"): 2, ("models", "near"): 9, ("models", "stage"): 1})
    rows = [line.split() for line in report(counts).splitlines()[1:]]
    assert [row[:5] for row in rows] == [
        ["models", "9", "1", "0", "100.0%"],
        ["stein", "8", "0", "2", "80.0%"],
        ["all", "17", "1", "2", "90.0%"],
    ]
    assert rows[2][5:] == ["68.3%", "to", "98.8%"]

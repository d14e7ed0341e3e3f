# SPDX-License-Identifier: Apache-2.0
"""The small bugs that ``benchmarks/mutants.py`` makes, and the tests that must notice them."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.mutants.__main__ import FOLDERS, equivalent
from benchmarks.mutants.changes import mutants_of
from benchmarks.mutants.fates import quickest, report
from benchmarks.mutants.reach import Reach, near_files

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
        assert one.folder == "a"
        assert one.lines[0] == 2


def test_changes_that_look_alike_have_numbers() -> None:
    text = b"def f(x):\n    return x[1] + x[1]\n\nclass A:\n    def f(self):\n        return 1\n"
    keys = [one.key for one in mutants_of("a.py", text) if "1 -> 2" in one.change]
    assert keys == ["a.py: f: 1 -> 2 (1)", "a.py: f: 1 -> 2 (2)", "a.py: A.f: 1 -> 2 (1)"]


def test_where_changes_are() -> None:
    text = b"y = 1\n\ndef f(x):\n    return (\n        x\n        + 1\n    )\n"
    found = {one.change: (one.lines, one.place, one.place_lines) for one in mutants_of("a.py", text)}
    assert found["x + 1 -> x - 1"] == ((5, 6), "f", (3, 7))
    assert found["1 -> 2"] == ((6, 6), "f", (3, 7))
    assert [one.place_lines for one in mutants_of("a.py", text) if one.place == "module"] == [(1, 7)]


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
    "pyproject.toml": "[tool.pytest.ini_options]\npythonpath = ['.']\n[tool.coverage.run]\nrelative_files = true\n",
    "pyro_ksd/__init__.py": "",
    "pyro_ksd/stein/__init__.py": "",
    "pyro_ksd/stein/half.py": """
FACTOR = 2

def half(x):
    if x < 0:
        raise ValueError
    return x / FACTOR

def twice(x):
    return x + x

def never(x):
    return x + 1

def power(
    x,
    exponent=7,
):
    return x**exponent
""",
    "tests/stein/test_half.py": """
from inspect import signature
import pytest
from pyro_ksd.stein.half import half, power

@pytest.fixture(scope="module")
def negative():
    with pytest.raises(ValueError):
        half(-1)

def test_half():
    assert half(6) == 3

def test_zero():
    half(0)

def test_power():
    assert power(2, 3) == 8

def test_default():
    assert signature(power).parameters["exponent"].default == 7

def test_first(negative):
    pass

def test_second(negative):
    pass
""",
    "tests/checks/test_whole.py": """
from pyro_ksd.stein.half import twice

def test_whole():
    assert twice(3) == 6
""",
}
PROGRAM = """
import os, tempfile
from pathlib import Path
from benchmarks.mutants.changes import Mutant, mutants_of
from benchmarks.mutants.fates import fate
from benchmarks.mutants.reach import Reach, record
from benchmarks.mutants import workshop as workshop_module
from benchmarks.mutants.workshop import Workshop

root, folder = Path("project").absolute(), Path("record").absolute()
record(root, folder)
reach = Reach(root, folder)
workshop = Workshop(root, Path.cwd(), reach.seconds)
file = "pyro_ksd/stein/half.py"
text = Path(root, file).read_bytes()
found = {one.change: one for one in mutants_of(file, text)}
for change in ("x < 0 -> x <= 0", "x / FACTOR -> x * FACTOR", "2 -> 3", "x + x -> x - x", "x + 1 -> x - 1", "7 -> 8"):
    reaching = sorted(test.partition("::")[2] for test in reach.reaching(found[change]))
    print(change, reaching, fate(found[change], reach, workshop))
endless = Mutant(file, (7, 7), "half", (4, 7), "", 1, text.replace(b"return x / FACTOR", b"while True: pass"))
workshop_module._SECONDS = 2
print("endless", fate(endless, reach, workshop))
new = "from pyro_ksd.stein.half import *\\n\\ndef test_new(): assert never(1) == 2"
Path(root, "tests/stein/test_half.py").write_text(new)
print("new test", fate(found["x + 1 -> x - 1"], reach, Workshop(root, Path(tempfile.mkdtemp()), {})))
"""
FATES = """\
x < 0 -> x <= 0 ['test_default', 'test_first', 'test_half', 'test_power', 'test_second', 'test_zero'] near
x / FACTOR -> x * FACTOR ['test_half', 'test_zero'] near
2 -> 3 ['test_default', 'test_first', 'test_half', 'test_power', 'test_second', 'test_whole', 'test_zero'] near
x + x -> x - x ['test_whole'] far
x + 1 -> x - 1 [] survived
7 -> 8 ['test_power'] near
endless near
new test near
"""


@pytest.mark.slow
def test_the_fate_of_bugs(tmp_path: Path) -> None:
    for name, text in PROJECT.items():
        (tmp_path / "project" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "project" / name).write_text(text)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    run = [sys.executable, "-c", PROGRAM]  # forks, which this process with its threads should not
    found = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert found.stdout.endswith(FATES), found.stdout + found.stderr
    assert (tmp_path / "copy/pyro_ksd/stein/half.py").read_text() == PROJECT["pyro_ksd/stein/half.py"]


@pytest.fixture
def reach(tmp_path: Path) -> Reach:
    """A run of five tests."""
    seconds = {"tests/a.py::slow": 5.0, "tests/a.py::quick": 0.25, "tests/b.py::quick": 1.0, "tests/b.py::other": 1.5}
    (tmp_path / "tests.json").write_text(json.dumps({"seconds": seconds, "digests": {}}))
    return Reach(tmp_path, tmp_path)


def test_the_quickest_tests_run_file_by_file(reach: Reach) -> None:
    every = set(reach.seconds)
    assert quickest(reach, every, 100.0) == [
        "tests/b.py::quick",
        "tests/b.py::other",
        "tests/a.py::quick",
        "tests/a.py::slow",
    ]
    assert quickest(reach, every, 2.0) == ["tests/a.py::quick", "tests/b.py::quick"]
    assert quickest(reach, every, 0.1) == []


def test_every_module_has_tests() -> None:
    for folder in FOLDERS:
        for file in (ROOT / "pyro_ksd" / folder).rglob("*.py"):
            if file.name != "__init__.py":
                assert all((ROOT / test).exists() for test in near_files(ROOT, str(file.relative_to(ROOT))))


def test_equivalent_mutants_exist() -> None:
    files = {key.partition(":")[0] for key in equivalent()}
    assert equivalent() <= {one.key for file in files for one in mutants_of(file, (ROOT / file).read_bytes())}


def test_the_score_counts_each_folder_and_all() -> None:
    counts = Counter({("stein", "near"): 8, ("stein", "survived"): 2, ("models", "near"): 9, ("models", "far"): 1})
    rows = [line.split() for line in report(counts).splitlines()[1:]]
    assert [row[:5] for row in rows] == [
        ["models", "9", "1", "0", "100.0%"],
        ["stein", "8", "0", "2", "80.0%"],
        ["all", "17", "1", "2", "90.0%"],
    ]
    assert rows[2][5:] == ["68.3%", "to", "98.8%"]

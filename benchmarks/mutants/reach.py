# SPDX-License-Identifier: Apache-2.0
"""Which tests reach which line, from one run of all fast tests under coverage."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from coverage import CoverageData

from benchmarks.mutants.changes import Mutant

_WRONG_ARGUMENTS = "tests/test_wrong_arguments.py"
_LINES = "lines.sqlite"
_TESTS = "tests.json"
_SETUP = "setup"  # of fixtures, which other tests of the file may share


class Durations:
    """A plugin of pytest that writes how long each test took.

    :param file: to write to.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self, session: Any) -> None:
        if not hasattr(session.config, "workerinput"):
            self._file.write_text(json.dumps(self._seconds), encoding="utf-8")


class Reach:
    """What a run of the fast tests has told: the tests that reach each line, and the seconds of each test.

    Lines of compiled functions, and of other processes, are reached by no test as far as it knows.

    :param root: the project.
    :param folder: where the run was written.
    :ivar root: the project.
    :ivar seconds: how long each test took.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root
        self._folder = folder
        told = json.loads((folder / _TESTS).read_text())
        self.seconds: dict[str, float] = told["seconds"]
        self._digests: dict[str, str] = told["digests"]

    @staticmethod
    def is_recorded(folder: Path) -> bool:
        """Whether there was a run."""
        return (folder / _TESTS).exists()

    @cached_property
    def _data(self) -> CoverageData:
        data = CoverageData(str(self._folder / _LINES))
        data.read()
        return data

    @cached_property
    def _by_file(self) -> dict[str, list[str]]:
        found = defaultdict(list)
        for test in self.seconds:
            found[_file_of(test)].append(test)
        return found

    @lru_cache(maxsize=1)  # noqa: B019
    def _tests_by_line(self, file: str) -> dict[int, list[str]]:
        return self._data.contexts_by_lineno(file)

    def is_current(self, file: str) -> bool:
        """Whether a file is as it was."""
        return self._digests.get(file) == _digest(self.root / file)

    def reaching(self, mutant: Mutant) -> set[str]:
        """The tests that reach what a mutant changes, else those of the function or class around it."""
        for first, last in (mutant.lines, mutant.place_lines):
            found = self._tests_of(mutant.file, range(first, last + 1))
            if found:
                return found
        return set()

    def runs_at_import(self, mutant: Mutant) -> bool:
        """Whether no test reaches what a mutant changes, as with a constant or a default, only what is around it."""
        first, last = mutant.lines
        return not self._tests_of(mutant.file, range(first, last + 1))

    def _tests_of(self, file: str, lines: Iterable[int]) -> set[str]:
        by_line = self._tests_by_line(file)
        found = set()
        for context in {context for line in lines for context in by_line.get(line, ())}:
            test, _, phase = context.rpartition("|")  # none at the import of the module
            found |= set(self._by_file[_file_of(test)]) if phase == _SETUP else {test}
        return found & self.seconds.keys()

    def seconds_of(self, tests: Iterable[str]) -> float:
        """How long some tests took."""
        return sum(self.seconds[test] for test in tests)

    def sorted(self, tests: Iterable[str]) -> list[str]:
        """Tests file by file, those of the quickest file and the quickest tests of a file first."""
        by_file: dict[str, list[str]] = defaultdict(list)
        for test in tests:
            by_file[_file_of(test)].append(test)
        groups = sorted(by_file.values(), key=self.seconds_of)
        return [test for group in groups for test in sorted(group, key=lambda test: self.seconds[test])]


def record(root: Path, folder: Path) -> None:
    """Runs all fast tests and writes which of them reach which line. Takes some ten minutes.

    :param root: the project.
    :param folder: to write to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    seconds = folder / "seconds.json"
    options = ["-n", "2", "--dist", "worksteal", "--cov", "--cov-context=test", "--cov-report=", "-q"]
    program = f"import pytest, sys; from pathlib import Path; from {__name__} import Durations;" + (
        f"sys.exit(pytest.main({options!r}, plugins=[Durations(Path({str(seconds)!r}))]))"
    )
    environment = os.environ | {"COVERAGE_FILE": str(folder / _LINES)}
    if subprocess.run([sys.executable, "-c", program], cwd=root, env=environment, check=False).returncode:
        raise SystemExit("A test failed without a bug: mutants can be counted only where all tests pass")
    files = [*root.glob("pyro_ksd/**/*.py"), *root.glob("tests/**/*.py")]
    digests = {str(file.relative_to(root)): _digest(file) for file in files}
    (folder / _TESTS).write_text(json.dumps({"seconds": json.loads(seconds.read_text()), "digests": digests}))


def near_files(root: Path, file: str) -> list[str]:
    """The files with the tests that belong to a module.

    Its mirrored file, its doctests, those of the same folder that mirror no module, and those of wrong arguments.

    >>> near_files(Path.cwd(), "pyro_ksd/kernels/mirror.py")[:2]
    ['tests/kernels/test_mirror.py', 'pyro_ksd/kernels/mirror.py']
    """
    path = Path(file)
    folder = Path("tests", *path.parts[1:-1])
    others = [
        str(folder / test.name)
        for test in sorted((root / folder).glob("test_*.py"))
        if not (root / path.with_name(test.name.removeprefix("test_"))).exists()
    ]
    return [str(folder / f"test_{path.name}"), file, *others, _WRONG_ARGUMENTS]


def files_of(tests: Sequence[str]) -> list[str]:
    """The files of some tests, each once, in the order of the tests."""
    return list(dict.fromkeys(_file_of(test) for test in tests))


def _file_of(test: str) -> str:
    return test.partition("::")[0]


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else ""

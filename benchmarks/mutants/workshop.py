# SPDX-License-Identifier: Apache-2.0
"""A copy of the project in which tests meet one small bug after the other."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from benchmarks.mutants.changes import Mutant

_PASSED = (0, 5)  # exit codes of pytest: all tests passed, or all of them are slow ones that are left out
_SECONDS = 15  # of the processor that a test with a bug may take, and
_TIMES = 4  # how often as long as without it
_WAITING = 10  # seconds of the clock for a second of the processor


class Chosen:
    """A plugin of pytest that runs some of the collected tests in a given order, and kills those that take too long.

    :param tests: their names. Tests of files that none of them is in are all run, first.
    :param seconds: how long tests take without a bug.
    """

    def __init__(self, tests: Sequence[str], seconds: Mapping[str, float]) -> None:
        self._seconds = seconds
        self._places = {test: place for place, test in enumerate(tests)}
        self._files = {test.partition("::")[0] for test in tests}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        wanted = [
            item for item in items if item.nodeid in self._places or item.nodeid.partition("::")[0] not in self._files
        ]
        items[:] = sorted(wanted, key=lambda item: self._places.get(item.nodeid, -1))

    def pytest_runtest_setup(self, item: Any) -> None:
        limit = _SECONDS + _TIMES * self._seconds.get(item.nodeid, 0.0)
        signal.setitimer(signal.ITIMER_PROF, limit)
        signal.setitimer(signal.ITIMER_REAL, _WAITING * limit)


class Workshop:
    """A copy of the project in which mutants are tested, one after the other.

    Tests run in processes that are forked from this one, after it has imported torch and Pyro.

    :param root: the project.
    :param folder: an empty folder.
    :param seconds: how long each test takes without a bug.
    """

    def __init__(self, root: Path, folder: Path, seconds: Mapping[str, float]) -> None:
        self._seconds = seconds
        ignored = shutil.ignore_patterns(".git", ".venv*", "build", "__pycache__", ".*_cache")
        self._root = folder / "copy"
        shutil.copytree(root, self._root, ignore=ignored)
        self._output = folder / "output.txt"

    def prepare(self, files: Sequence[str]) -> None:
        """Writes the bytecode of files with tests and of all that they import."""
        self._run(["--collect-only", *files], [], write_bytecode=True)

    def fails(self, mutant: Mutant, files: Sequence[str], tests: Sequence[str]) -> bool:
        """Whether a test fails with a mutant, or computes for too long.

        :param files: files with tests.
        :param tests: the tests of these files that are run; all those of a file without any of them.
        """
        changed = self._root / mutant.file
        original = changed.read_bytes()
        Path(cache_from_source(str(changed))).unlink(missing_ok=True)
        changed.write_bytes(mutant.source)
        try:
            # Tests import a module as a part of its package; pytest, for doctests before them, would make a second one.
            tests_first = sorted(files, key=lambda file: not file.startswith("tests/"))
            return self._run(tests_first, tests, write_bytecode=False)
        finally:
            changed.write_bytes(original)

    def _run(self, arguments: Sequence[str], tests: Sequence[str], write_bytecode: bool) -> bool:
        """Whether the tests fail in a forked process."""
        child = os.fork()
        if child == 0:
            self._become_tests(arguments, tests, write_bytecode)
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status) not in _PASSED

    def _become_tests(self, arguments: Sequence[str], tests: Sequence[str], write_bytecode: bool) -> None:
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

            options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov"]
            code = int(pytest.main([*options, *arguments], plugins=[Chosen(tests, self._seconds)]))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

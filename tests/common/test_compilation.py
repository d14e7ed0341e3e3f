# SPDX-License-Identifier: Apache-2.0
"""Who computes the inner loops, and in how many threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from pyro_ksd.common import compilation
from pyro_ksd.common.compilation import compiled, is_compiled, num_threads, share_rows

WITHOUT_NUMBA = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "numba":
            raise {error}

sys.meta_path.insert(0, Missing())
from pyro_ksd.common.compilation import is_compiled
from pyro_ksd.edits.compiled_counts import _slot
from pyro_ksd.edits.window_arrays import hash_table
import numpy as np
table = hash_table(np.array([2]))
print(is_compiled(), type(_slot).__name__, _slot(7, table.keys, table.claimed) == _slot(7, table.keys, table.claimed))
"""


def source(name: str) -> dict[str, object]:
    """A function whose code lies in no file, so that there is no folder to keep its compiled form in."""
    names: dict[str, object] = {"__name__": f"{name}.made_up"}
    exec("def twice(x):\n    return 2 * x", names)
    return names


def test_the_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "_has_numba", lambda: True)
    monkeypatch.delenv("PYRO_KSD_COMPILED", raising=False)
    assert is_compiled()
    monkeypatch.setenv("PYRO_KSD_COMPILED", "1")
    assert is_compiled()
    monkeypatch.setenv("PYRO_KSD_COMPILED", "0")
    assert not is_compiled()
    monkeypatch.setenv("PYRO_KSD_COMPILED", "1")
    monkeypatch.setattr(compilation, "_has_numba", lambda: False)
    assert not is_compiled()
    monkeypatch.setenv("PYRO_KSD_COMPILED", "no")
    with pytest.raises(ValueError, match=r"^PYRO_KSD_COMPILED: expected 0 \(torch alone\) or 1 .*, found 'no'$"):
        is_compiled()


@pytest.mark.parametrize(
    "error", ["ModuleNotFoundError(name, name=name)", "ImportError('Numba needs NumPy 1 or less')"]
)
def test_without_numba_functions_stay_as_they_are(error: str) -> None:
    environment = os.environ | {"PYRO_KSD_COMPILED": "1"}
    command = [sys.executable, "-c", WITHOUT_NUMBA.format(error=error)]
    found = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert found.stdout.split() == ["False", "function", "True"]
    assert found.stderr == ""


def test_a_numba_that_cannot_be_loaded_is_named(
    monkeypatch: pytest.MonkeyPatch, terminal: pytest.CaptureFixture[str]
) -> None:
    class Refusing:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "numba":
                raise ImportError("Numba needs NumPy 1 or less")

    monkeypatch.setattr(sys, "meta_path", [Refusing(), *sys.meta_path])
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    assert not compilation._has_numba.__wrapped__()
    assert "because numba cannot be loaded: Numba needs NumPy 1 or less" in terminal.readouterr().err


def test_the_first_compilation_says_so_once(terminal: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("numba")
    compilation._announce_once.cache_clear()
    for package, message in (
        ("another", ""),
        ("pyro_ksd", "pyro_ksd: compiling inner loops; later runs load them from disk\n"),
        ("pyro_ksd", ""),
    ):
        function = source(package)["twice"]
        assert compiled(function)(21) == 42  # type: ignore[type-var]
        assert terminal.readouterr().err == message


def test_nobody_is_told_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("numba")
    compilation._announce_once.cache_clear()
    assert compiled(source("pyro_ksd")["twice"])(21) == 42  # type: ignore[type-var]
    assert capsys.readouterr().err == ""


def test_threads_are_bounded_by_processors_and_by_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    for processors, of_torch, expected in ((4, 2, 2), (2, 8, 2), (1, 1, 1)):
        monkeypatch.setattr(compilation.os, "sched_getaffinity", lambda _, n=processors: set(range(n)), raising=False)
        monkeypatch.setattr(torch, "get_num_threads", lambda n=of_torch: n)
        assert num_threads() == expected
    monkeypatch.setattr(compilation, "os", SimpleNamespace(cpu_count=lambda: 3))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    assert num_threads() == 3


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_every_row_is_visited_once(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "_WORK_OF_A_THREAD", 1)
    monkeypatch.setattr(compilation, "num_threads", lambda: threads)
    for counts in ([], [0], [0, 0, 0], [5], [1, 2, 3, 4, 100], [100, 1, 1, 1], [1] * 20):
        visits = np.zeros(len(counts), dtype=int)
        names = set()

        def loop(first: int, last: int, visits: np.ndarray = visits, names: set[str] = names) -> None:
            visits[first:last] += 1
            names.add(threading.current_thread().name)

        share_rows(loop, np.cumsum([0, *counts]))
        assert visits.tolist() == [1] * len(counts)
    own = threading.current_thread().name
    assert own in names
    assert (names == {own}) == (threads == 1)


def test_little_work_is_done_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "num_threads", lambda: 8)
    parts: list[tuple[int, int]] = []
    share_rows(lambda first, last: parts.append((first, last)), np.arange(101))
    assert parts == [(0, 100)]
    parts.clear()
    share_rows(lambda first, last: parts.append((first, last)), 2**10 * np.arange(101))
    assert sorted(parts) == [(0, 34), (34, 67), (67, 100)]


def test_an_error_in_a_thread_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "_WORK_OF_A_THREAD", 1)
    monkeypatch.setattr(compilation, "num_threads", lambda: 2)

    for failing in (0, 5):

        def loop(first: int, last: int, failing: int = failing) -> None:
            if first == failing:
                raise MemoryError("no room")

        with pytest.raises(MemoryError, match="no room"):
            share_rows(loop, np.arange(11))

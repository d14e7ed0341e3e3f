# SPDX-License-Identifier: Apache-2.0
"""How many small bugs the fast tests notice: ``python -m benchmarks.mutants --sample 200``, or with files.

A mutant is the package with one small bug. It is killed if a test fails. The first run finds out which tests reach
which line of the package. Each mutant meets the tests that reach its line, those that belong to its module first, in a
process that is forked after torch and Pyro were imported.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.mutants.changes import Mutant, mutants_of
from benchmarks.mutants.fates import fate, report
from benchmarks.mutants.reach import Reach, record
from benchmarks.mutants.workshop import Workshop

FOLDERS = ("stein", "kernels", "fit_tests", "models")
_ROOT = Path(__file__).parents[2]
_EQUIVALENT = Path(__file__).with_name("equivalent.txt")
_REACH = _ROOT / "build" / "mutants"
_HEAVY = ("torch", "pyro", "scipy.stats", "xarray", "pandas", "pytest")


def modules(paths: Sequence[str]) -> list[str]:
    """The modules in files and folders, relative to the project."""
    found = set()
    for path in paths or [f"pyro_ksd/{folder}" for folder in FOLDERS]:
        whole = _ROOT / path
        found |= {whole} if whole.is_file() else set(whole.rglob("*.py"))
    return sorted(str(file.relative_to(_ROOT)) for file in found if file.name != "__init__.py")


def equivalent() -> set[str]:
    """The keys of the mutants that no test can notice, which are listed with reasons."""
    lines = _EQUIVALENT.read_text(encoding="utf-8").splitlines()
    return {line for line in lines if line and not line.startswith(("#", " "))}


class _Testers:
    """What each of some processes keeps: a workshop of its own, and the tests that reach each line."""

    reach: Reach
    workshop: Workshop

    @classmethod
    def begin(cls, folder: str) -> None:
        cls.reach = Reach(_ROOT, _REACH)
        cls.workshop = Workshop(_ROOT, Path(tempfile.mkdtemp(dir=folder)), cls.reach.seconds)
        cls.workshop.prepare(["tests", "pyro_ksd"])

    @classmethod
    def tested(cls, mutant: Mutant) -> tuple[Mutant, str]:
        return mutant, fate(mutant, cls.reach, cls.workshop)


def main() -> None:
    """Tests mutants and prints what becomes of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", help=f"files or folders; the default is {', '.join(FOLDERS)}")
    parser.add_argument("--sample", type=int, help="test a random sample of this size instead of all mutants")
    parser.add_argument("--seed", type=int, default=0, help="of the random sample")
    parser.add_argument("--record", action="store_true", help="find out again which tests reach which line")
    parser.add_argument("--processes", type=int, default=2, help="how many mutants are tested at the same time")
    parser.add_argument("--control", action="store_true", help="leave the bugs out: all must survive")
    arguments = parser.parse_args()
    if arguments.record or not Reach.is_recorded(_REACH):
        record(_ROOT, _REACH)
    chosen = [mutant for file in modules(arguments.paths) for mutant in mutants_of(file, (_ROOT / file).read_bytes())]
    every = len(chosen)
    known = equivalent()
    if not arguments.paths:
        for key in sorted(known - {mutant.key for mutant in chosen}):
            print(f"{_EQUIVALENT.name} names a mutant that does not exist: {key}", flush=True)
    if arguments.sample is not None and arguments.sample < every:
        chosen = random.Random(arguments.seed).sample(chosen, arguments.sample)
    wanted = [mutant for mutant in chosen if mutant.key not in known]  # of a sample, the first ones are a sample, too
    if arguments.control:
        wanted = [replace(mutant, source=(_ROOT / mutant.file).read_bytes()) for mutant in wanted]
    print(f"{len(chosen)} of {every} mutants; {len(chosen) - len(wanted)} of them are equivalent", flush=True)
    for name in _HEAVY:
        importlib.import_module(name)
    counts: Counter[tuple[str, str]] = Counter()
    with (
        tempfile.TemporaryDirectory() as folder,
        multiprocessing.get_context("fork").Pool(arguments.processes, _Testers.begin, (folder,)) as pool,
    ):
        for mutant, found in pool.imap_unordered(_Testers.tested, wanted):
            counts[mutant.folder, found] += 1
            print(f"{found:<8} line {mutant.lines[0]:<4} {mutant.key}", flush=True)
    print(report(counts))


if __name__ == "__main__":
    main()

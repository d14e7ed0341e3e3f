# SPDX-License-Identifier: Apache-2.0
"""What becomes of a mutant: killed by a test near its module, by another one, or by none."""

from __future__ import annotations

from collections import Counter

from scipy.stats import binomtest

from benchmarks.mutants.changes import Mutant
from benchmarks.mutants.reach import Reach, files_of, near_files
from benchmarks.mutants.workshop import Workshop

FATES = ("near", "far", "survived")
_FAR_SECONDS = 45.0


def fate(mutant: Mutant, reach: Reach, workshop: Workshop) -> str:
    """``"near"`` if a test that belongs to the module fails, ``"far"`` if only another one does, else ``"survived"``.

    Of the tests that belong to the module, those that reach the change run. Where the module or a file of tests is not
    as it was when this was found out, or where no test is known to reach the change, all tests of these files run. Of
    the other tests that reach the change, the quickest run, as many as take 45 seconds together.
    """
    near = [file for file in near_files(reach.root, mutant.file) if (reach.root / file).exists()]
    reaching = reach.reaching(mutant) if reach.is_current(mutant.file) else set()
    if not reaching:
        return "near" if workshop.fails(mutant, near, []) else "survived"
    # Any of them may look at what runs at import, such as the default of an option.
    known = set() if reach.runs_at_import(mutant) else {file for file in near if reach.is_current(file)}
    tests = reach.sorted(test for test in reaching if files_of([test])[0] in known)
    files = [file for file in near if file not in known] + files_of(tests)
    if files and workshop.fails(mutant, files, tests):
        return "near"
    others = quickest(reach, {test for test in reaching if files_of([test])[0] not in near}, _FAR_SECONDS)
    return "far" if others and workshop.fails(mutant, files_of(others), others) else "survived"


def quickest(reach: Reach, tests: set[str], seconds: float) -> list[str]:
    """The quickest of some tests, as many as take so many seconds, in the order in which to run them."""
    chosen = []
    for test in sorted(tests, key=lambda test: (reach.seconds[test], test)):
        seconds -= reach.seconds[test]
        if seconds < 0:
            break
        chosen.append(test)
    return reach.sorted(chosen)


def report(counts: Counter[tuple[str, str]]) -> str:
    """A table of the killed mutants of each folder and of all, with the 95 % interval of Clopper and Pearson.

    :param counts: how many mutants of a folder had which fate, by folder and fate.
    """
    lines = [f"{'folder':<10} {'killed near':>12} {'by others':>13} {'survived':>9} {'score':>7}  95 % interval"]
    folders = sorted({folder for folder, _ in counts})
    for folder in [*folders, "all"]:
        near, far, survived = (
            sum(count for (name, fate), count in counts.items() if fate == wanted and folder in (name, "all"))
            for wanted in FATES
        )
        result = binomtest(near + far, near + far + survived)
        low, high = result.proportion_ci()
        numbers = f"{near:>12} {far:>13} {survived:>9} {result.statistic:>7.1%}"
        lines.append(f"{folder:<10} {numbers}  {low:.1%} to {high:.1%}")
    return "\n".join(lines)

# SPDX-License-Identifier: Apache-2.0
"""Executes the tutorials and keeps their outputs where the site finds them: ``python docs/execute.py build/docs``."""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.executors.utils import ExecutionResult, single_nb_execution
from myst_nb.core.read import myst_nb_reader_plugin

TUTORIALS = Path(__file__).parents[1] / "tutorials"


def execute(path: Path) -> ExecutionResult:
    """The notebook with the outputs of its cells, run by a process of its own."""
    notebook = myst_nb_reader_plugin(str(path))
    # Pictures with twice the pixels are sharp on the screens of phones and laptops.
    options = {"extra_arguments": ["--log-level=ERROR", "--InlineBackend.figure_formats=retina"]}
    return single_nb_execution(notebook, cwd=str(path.parent), timeout=None, allow_errors=False, **options)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python docs/execute.py", description=__doc__)
    parser.add_argument("site", type=Path, help="the folder of the site that will show the outputs")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1), help="tutorials executed at a time")
    arguments = parser.parse_args()
    cache = get_cache(arguments.site.parent / ".jupyter_cache")
    # The cache knows the code of a tutorial, but not that of the package: what it holds may be out of date.
    cache.clear_cache()
    paths = sorted(TUTORIALS.glob("*.md"))
    failures = 0
    with ThreadPoolExecutor(arguments.jobs) as pool:
        running = {pool.submit(execute, path): path for path in paths}
        for count, done in enumerate(as_completed(running), 1):
            path, result = running[done], done.result()
            print(
                f"[{count}/{len(paths)}] {path.name}: {'failed after ' if result.err else ''}{result.time:.1f} s",
                flush=True,
            )
            if result.err:
                failures += 1
                print(result.err, file=sys.stderr)
            else:
                bundle = CacheBundleIn(result.nb, str(path), data={"execution_seconds": result.time})
                cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Small results of all kinds, and files of them that every later version has to read.

``python tests/saved_results.py`` writes the files of the present schema into ``tests/data``, one of each kind, and one
more for a released version: a check as users make it. Do that once for a new schema and for a release; files that exist
are left as they are.
"""

from __future__ import annotations

import lzma
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import xarray as xr

if TYPE_CHECKING:
    from pyro_ksd.results.schema_entries import Result

FOLDER = Path(__file__).parent / "data"


def results() -> dict[Result, xr.DataTree]:
    """A result of each kind, with all groups and variables that it can have."""
    import pyro
    import torch

    from pyro_ksd import (
        MarkovSequence,
        Sequences,
        ksd_check,
        ksd_compare,
        ksd_monitor,
        likelihood_ratio_check,
        mmd_check,
    )
    from pyro_ksd.examples import random_walk
    from pyro_ksd.stein import default_views

    def program(x: Sequences | None = None, num_sequences: int | None = None) -> Sequences:
        stop = pyro.sample("stop", pyro.distributions.Beta(2.0, 2.0))
        chain = MarkovSequence.from_transitions(torch.ones(3) / 3, torch.ones(3, 3) / 3, stop)
        with pyro.plate("sequences", num_sequences if x is None else len(x)):
            found: Sequences = pyro.sample("x", chain, obs=x)
            return found

    def fit(model: Any, data: Sequences) -> dict[str, torch.Tensor]:
        return {"stop": torch.linspace(0.2, 0.6, 21)}

    walk = random_walk(3, mean_length=4.0)
    resting = random_walk(3, hold=0.5, mean_length=4.0)
    drawn = resting.draw(12, torch.Generator().manual_seed(0)).over("abß")
    with_empty = Sequences.of([*drawn.to_lists(), []], "abß")  # the empty sequence is impossible under the walks
    views = [view for view in default_views() if view.name in ("content-2", "start")]
    few = {"num_bootstrap": 19, "progress": False}
    viewed: dict[str, Any] = {"views": views, "progress": False}
    draws = {"stop": torch.tensor([[0.3, 0.4], [0.5, 0.6]])}
    monitor = ksd_monitor(walk, "abß", run_length=1000)
    monitor.update(drawn)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*probability zero", UserWarning)
        return {
            "check": ksd_check(walk, with_empty, tolerance=0.05, gram=True, views=["content-2", "length"], **few),
            "p-values": ksd_check(walk, with_empty, views=["content-2", "length"], localize=False, **few),
            "posterior predictive": ksd_check(
                program, drawn, posterior=draws, views=views, replicates=True, progress=False
            ),
            "split predictive": ksd_check(program, drawn, posterior=fit(program, drawn), held_out=True, **viewed),
            "divided predictive": ksd_check(program, drawn, fit=fit, folds=3, **viewed),
            "mmd": mmd_check(walk, drawn, **few),
            "likelihood ratio": likelihood_ratio_check(walk, drawn, **few),
            "comparison": ksd_compare({"moves": walk, "rests": resting}, with_empty, views=views, progress=False),
            "monitor": monitor.result(),
        }


def plain_check() -> xr.DataTree:
    """A check of a model that does not fit, as users make it, with some of the default views."""
    import torch

    from pyro_ksd import ksd_check
    from pyro_ksd.examples import random_walk

    data = random_walk(3, hold=0.7, mean_length=4.0).draw(30, torch.Generator().manual_seed(0)).over("abc")
    views = ["content-2", "start", "length", "surprise", "skip"]
    return ksd_check(random_walk(3, hold=0.1, mean_length=4.0), data, views=views, num_bootstrap=149, progress=False)


def saved_files() -> list[Path]:
    """The files of all versions and kinds."""
    return sorted([*FOLDER.glob("schema_*.nc.xz"), *release_files()])


def release_files() -> list[Path]:
    """The same check, as every release has saved it."""
    return sorted(FOLDER.glob("release_*.nc.xz"))


def unpacked(file: Path, folder: Path) -> Path:
    """A netCDF file in a folder; HDF5 has much empty space, so that it is kept packed."""
    target = folder / file.stem
    target.write_bytes(lzma.decompress(file.read_bytes()))
    return target


def main() -> None:
    import pyro_ksd
    from pyro_ksd.results.schema import SCHEMA_VERSION

    FOLDER.mkdir(exist_ok=True)
    named = {f"schema_{SCHEMA_VERSION}_{kind.replace(' ', '_')}": result for kind, result in results().items()}
    if ".dev" not in pyro_ksd.__version__:
        named[f"release_{pyro_ksd.__version__}_check"] = plain_check()
    for name, result in named.items():
        file = FOLDER / f"{name}.nc.xz"
        if file.exists():
            print(f"{file.name} is there already")
            continue
        with TemporaryDirectory() as folder:
            path = Path(folder, "result.nc")
            result.to_netcdf(path, engine="h5netcdf")
            file.write_bytes(lzma.compress(path.read_bytes(), preset=9))
        print(f"{file.name}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

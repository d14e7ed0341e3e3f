# SPDX-License-Identifier: Apache-2.0
"""Results from files: netCDF, or a folder of zarr."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import xarray as xr

from pyro_ksd.common.option_checks import found
from pyro_ksd.results.checksums import with_checksums
from pyro_ksd.results.result_tree import ResultTree
from pyro_ksd.results.schema import SCHEMA_VERSION
from pyro_ksd.results.validation import check_result

_SIGNATURE = b"\x89HDF\r\n\x1a\n"  # netCDF files with groups are HDF5 files


def load(path: str | os.PathLike[str]) -> ResultTree:
    """Reads a result from a file, and checks that it is one, whole and unchanged.

    Neither torch nor Pyro is needed. The file is closed afterwards: all of it is in memory, and may be saved to the
    same path again. Arrays in netCDF files have checksums, so that damaged values are refused. Of arrays in older
    files, and of single numbers, only values that contradict the schema are.

    :param path: a netCDF file that ``result.to_netcdf(path)`` has written, or a folder by ``result.to_zarr(path)``; the
        result of :func:`~pyro_ksd.ksd_check`, :func:`~pyro_ksd.ksd_compare`, :func:`~pyro_ksd.mmd_check` or
        :func:`~pyro_ksd.likelihood_ratio_check`, also if :func:`~pyro_ksd.extend` has added it to other groups.
    :returns: what was saved.
    :raises ValueError: if the file is truncated, not of pyro_ksd, or of a later schema than this version knows; if
        groups, variables or attributes are missing or have other types, dimensions or values than the schema states.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from pyro_ksd import ksd_check, load, verdict
    >>> from pyro_ksd.examples import random_walk
    >>> check = ksd_check(random_walk(3), ["aabb", "bbccc", "caa", "abbc"] * 4, progress=False)
    >>> with TemporaryDirectory() as folder:
    ...     check.to_netcdf(Path(folder, "check.nc"))
    ...     again = load(Path(folder, "check.nc"))
    >>> verdict(again) == verdict(check)
    True
    """
    if not isinstance(path, str | os.PathLike):
        raise ValueError(f"path: expected a path to a saved result, found {found(path)}; pass load('check.nc')")
    file = Path(path)
    if not file.exists():
        raise ValueError(f"path: expected a file or folder, found nothing at {str(file)!r}; is the path complete?")
    file = file.resolve()  # "." has no name
    engine = _engine(file)
    try:
        with xr.open_datatree(file, engine=engine) as opened:
            groups = {node.path: node.to_dataset(inherit=False).load() for node in opened.subtree}
    except Exception as error:  # what damaged files raise depends on where they are damaged
        raise ValueError(
            f"{file.name}: expected a whole file, found one that cannot be read ({type(error).__name__}: {error}); it "
            "may be truncated: copy or save it again"
        ) from error
    tree = _of_this_schema(xr.DataTree.from_dict(groups))
    check_result(tree, file.name)
    return ResultTree.of(with_checksums(tree))


def _of_this_schema(tree: xr.DataTree) -> xr.DataTree:
    """A result of an earlier schema as one of this schema.

    Schema 1 had the sequences in the group ``observed_data``, and ranks from 1 on.
    """
    if tree.attrs.get("schema_version", 1) != 1 or "ksd_data" in tree.children:
        return tree
    if "observed_data" in tree.children and "token" in tree["observed_data"]:
        observed = tree["observed_data"].to_dataset()
        tree["ksd_data"] = xr.DataTree(observed[[name for name in ("token", "length") if name in observed]])
        tree["observed_data"] = xr.DataTree(observed.drop_vars(["token", "position"], errors="ignore"))
    if "ksd_compare" in tree.children and "rank" in tree["ksd_compare"]:
        tree["ksd_compare"]["rank"] = tree["ksd_compare"]["rank"] - 1
    tree.attrs["schema_version"] = SCHEMA_VERSION
    return tree


def _engine(file: Path) -> str:
    """What xarray reads a file with.

    :raises ValueError: if it is of another format, or the package for it is missing.
    """
    if file.is_dir():
        if not any((file / name).is_file() for name in ("zarr.json", ".zgroup")):
            raise ValueError(
                f"{file.name}: expected a netCDF file or a folder of zarr, found another folder; pass the path of one"
            )
        if find_spec("zarr") is None:
            raise ValueError(
                f"{file.name}: expected the package zarr, to read this folder, found none; pip install zarr"
            )
        return "zarr"
    with file.open("rb") as stream:
        start = stream.read(len(_SIGNATURE))
    if start != _SIGNATURE:
        raise ValueError(
            f"{file.name}: expected a netCDF file with groups, as result.to_netcdf(path) writes it, found a file that "
            f"begins with {start!r}; choose the file of a result"
        )
    return "h5netcdf"

# SPDX-License-Identifier: Apache-2.0
"""Checks come back from files as they were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import xarray as xr
from synthetic import made_up_check

from pyro_ksd.results.containers import dataset, extend, provenance


def test_netcdf(check: xr.DataTree, tmp_path: Path) -> None:
    check.to_netcdf(tmp_path / "check.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "check.nc", engine="h5netcdf") as again:
        xr.testing.assert_identical(again.load(), check)


@pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part in the Zarr format 3")
@pytest.mark.filterwarnings("ignore:The data type .* does not have a Zarr V3 specification")
@pytest.mark.parametrize("options", [{"zarr_format": 2}, {}], ids=["format 2", "default format"])
def test_zarr(check: xr.DataTree, options: dict[str, Any], tmp_path: Path) -> None:
    check.to_zarr(tmp_path / "check.zarr", **options)
    with xr.open_datatree(tmp_path / "check.zarr", engine="zarr") as again:
        xr.testing.assert_identical(again.load(), check)
        for group in check.children:
            xr.testing.assert_identical(dataset(again, group), dataset(check, group))
        names = dataset(again, "ksd")["view"].values.astype(str).tolist()
        assert names == dataset(check, "ksd")["view"].values.tolist()
        assert dataset(again, "ksd").sel(view="start")["statistic"] == check["ksd"]["statistic"].sel(view="start")


def test_an_extended_container(check: xr.DataTree, tmp_path: Path) -> None:
    posterior = xr.Dataset({"rate": (("chain", "draw"), [[0.1, 0.2]])}, {"chain": [0], "draw": [0, 1]}, provenance())
    extended = extend(xr.DataTree.from_dict({"posterior": posterior}), check)
    extended.to_netcdf(tmp_path / "all.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "all.nc", engine="h5netcdf") as again:
        xr.testing.assert_identical(again.load(), extended)


def test_a_changed_file_is_not_identical(tmp_path: Path) -> None:
    check = made_up_check()
    check.to_netcdf(tmp_path / "check.nc", engine="h5netcdf")
    check["ksd_ngram"]["label"].values[0] = "other"
    with (
        xr.open_datatree(tmp_path / "check.nc", engine="h5netcdf") as again,
        pytest.raises(AssertionError, match="other"),
    ):
        xr.testing.assert_identical(again.load(), check)

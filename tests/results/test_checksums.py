# SPDX-License-Identifier: Apache-2.0
"""Arrays are saved with checksums, whatever they hold."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import xarray as xr
from synthetic import made_up_check

from pyro_ksd import extend, load
from pyro_ksd.results.checksums import with_checksums


def with_fletcher(file: Path) -> dict[str, bool]:
    """Whether the arrays of a file have checksums, by path."""
    found = {}
    with h5py.File(file) as opened:
        opened.visititems(lambda name, own: found.update({name: own}) if isinstance(own, h5py.Dataset) else None)
        return {name: bool(own.fletcher32) for name, own in found.items() if own.shape and own.size}


def test_all_arrays_have_checksums_and_come_back(tmp_path: Path) -> None:
    tree = with_checksums(
        xr.DataTree.from_dict(
            {
                "a": xr.Dataset(
                    {
                        "number": ("x", [1.5, np.nan]),
                        "flag": ("x", [True, False]),
                        "text": ("x", ["é", "two words"]),
                        "empty text": ("x", ["", ""]),
                        "object": ("x", np.array(["a", "bcd"], dtype=object)),
                        "one": ((), 0.25),
                        "nothing": ("y", np.zeros(0)),
                    },
                    {"x": ["p", "q"]},
                )
            }
        )
    )
    tree.to_netcdf(tmp_path / "tree.nc")
    checked = with_fletcher(tmp_path / "tree.nc")
    assert {"a/number", "a/flag", "a/text", "a/empty text", "a/object", "a/x"} <= set(checked)
    assert [name for name, has in checked.items() if not has and "string" not in name] == []
    with xr.open_datatree(tmp_path / "tree.nc") as again:
        xr.testing.assert_identical(again["a"].to_dataset().load(), tree["a"].to_dataset())


def test_results_have_checksums_after_they_were_extended_loaded_and_cut(tmp_path: Path) -> None:
    made_up_check().to_netcdf(tmp_path / "plain.nc")
    assert not any(with_fletcher(tmp_path / "plain.nc").values())  # as in old files
    loaded = load(tmp_path / "plain.nc")
    posterior = xr.DataTree.from_dict({"posterior": xr.Dataset({"rate": (("chain", "draw"), [[0.1, 0.2]])})})
    extended = extend(posterior, loaded)
    extended["ksd_edit"] = extended["ksd_edit"].to_dataset().isel(edit=slice(1))
    extended.to_netcdf(tmp_path / "extended.nc")
    own = {name: has for name, has in with_fletcher(tmp_path / "extended.nc").items() if name.startswith("ksd/")}
    assert own["ksd/statistic"]
    assert own["ksd/meaning"]
    assert load(tmp_path / "extended.nc").identical(extended)

# SPDX-License-Identifier: Apache-2.0
"""Results come back from files as they were, or are refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import h5py
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from pictures import axes_of
from saved_results import release_files, saved_files, unpacked
from synthetic import made_up_check
from synthetic_comparison import THREE, made_up_comparison

import pyro_ksd
from pyro_ksd import load
from pyro_ksd.results import files
from pyro_ksd.results.containers import dataset, extend, provenance, to_inference_data
from pyro_ksd.results.schema import SCHEMA_VERSION
from pyro_ksd.results.schema_entries import SOURCES
from pyro_ksd.results.validation import results_in

RELEASED: dict[str, dict[str, Any]] = {
    "0.1.0": {
        "statistic": {
            "content-2": 7.2951,
            "start": 0.024874,
            "length": -0.086711,
            "surprise": 50.293,
            "skip": 0.15611,
            "overall": np.nan,
        },
        "too rare": ["bb", "aa"],
        "factor": [16.8602, 10.4026, 26.5532],
        "sequences": [15, 7, 25],
        "edit": "replace 'b' by 'a'",
    }
}
"""What the saved check of each release says."""


def test_netcdf(check: xr.DataTree, tmp_path: Path) -> None:
    check.to_netcdf(tmp_path / "check.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "check.nc", engine="h5netcdf") as again:
        assert again.load().identical(check)
    assert load(tmp_path / "check.nc").identical(check)


def test_the_default_engine_of_xarray_saves(check: xr.DataTree, tmp_path: Path) -> None:
    check.to_netcdf(tmp_path / "check.nc")
    assert load(str(tmp_path / "check.nc")).identical(check)


@pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part in the Zarr format 3")
@pytest.mark.filterwarnings("ignore:The data type .* does not have a Zarr V3 specification")
@pytest.mark.filterwarnings("ignore:The (codec|dtype) .* is currently not part in the Zarr format 3")
@pytest.mark.parametrize("options", [{"zarr_format": 2}, {}], ids=["format 2", "default format"])
def test_zarr(check: xr.DataTree, options: dict[str, Any], tmp_path: Path) -> None:
    check.to_zarr(tmp_path / "check.zarr", **options)
    with xr.open_datatree(tmp_path / "check.zarr", engine="zarr") as again:
        assert again.load().identical(check)
        for group in check.children:
            xr.testing.assert_identical(dataset(again, group), dataset(check, group))
        names = dataset(again, "ksd")["view"].values.astype(str).tolist()
        assert names == dataset(check, "ksd")["view"].values.tolist()
        assert dataset(again, "ksd").sel(view="start")["statistic"] == check["ksd"]["statistic"].sel(view="start")
    assert load(tmp_path / "check.zarr").identical(check)


def test_an_extended_container(check: xr.DataTree, tmp_path: Path) -> None:
    posterior = xr.Dataset({"rate": (("chain", "draw"), [[0.1, 0.2]])}, {"chain": [0], "draw": [0, 1]}, provenance())
    extended = extend(xr.DataTree.from_dict({"posterior": posterior}), check)
    extended.to_netcdf(tmp_path / "all.nc", engine="h5netcdf")
    assert load(tmp_path / "all.nc").identical(extended)
    assert load(tmp_path / "all.nc").attrs == {"schema_version": 2}


def test_a_container_of_arviz(check: xr.DataTree, tmp_path: Path) -> None:
    container = to_inference_data(check)
    container.to_netcdf(str(tmp_path / "arviz.nc"))
    loaded = load(tmp_path / "arviz.nc")
    assert loaded.attrs.get("schema_version") == check.attrs.get("schema_version")
    for group in check.children:
        xr.testing.assert_equal(loaded[group].to_dataset(), check[group].to_dataset())


def test_a_changed_file_is_not_identical(tmp_path: Path) -> None:
    check = made_up_check()
    check.to_netcdf(tmp_path / "check.nc", engine="h5netcdf")
    check["ksd_ngram"]["label"].values[0] = "other"
    with (
        xr.open_datatree(tmp_path / "check.nc", engine="h5netcdf") as again,
        pytest.raises(AssertionError, match="other"),
    ):
        xr.testing.assert_identical(again.load(), check)


def test_all_kinds_of_results_were_saved() -> None:
    names = [kind.replace(" ", "_") for kind in SOURCES]
    assert {f"schema_{SCHEMA_VERSION}_{name}.nc.xz" for name in names} <= {file.name for file in saved_files()}


@pytest.mark.parametrize("file", saved_files(), ids=lambda file: file.name.removesuffix(".nc.xz"))
def test_files_of_every_version_are_read_and_drawn(file: Path, tmp_path: Path) -> None:
    result = load(unpacked(file, tmp_path))
    [kind] = results_in(result, "result")
    assert kind.replace(" ", "_") in file.name
    assert result.attrs["schema_version"] == SCHEMA_VERSION
    if kind == "comparison":
        assert pyro_ksd.compare_table(result)["rank"].tolist() == [0, 1]
        assert pyro_ksd.compare_table(result).attrs["verdict"].startswith("'rests' comes closest to the 12 of 13 seq")
        plots = [pyro_ksd.plot_compare]
    elif kind == "monitor":
        assert "12 sequences" in pyro_ksd.verdict(result)
        plots = [pyro_ksd.plot_evidence]
    else:
        assert "p = " in pyro_ksd.verdict(result)
        table = pyro_ksd.summary(result)
        assert table["p_value"].between(0, 1).all()
        assert "The model" in repr(table)
        plots = [pyro_ksd.plot_views, pyro_ksd.plot_null]
        if kind == "check" or "predictive" in kind:
            plots += [pyro_ksd.plot_check, pyro_ksd.plot_ngrams, pyro_ksd.plot_sequences]
        if kind == "check":
            plots += [pyro_ksd.plot_lengths] + ([pyro_ksd.plot_gram] if "ksd_gram" in result.children else [])
        if kind == "posterior predictive":
            plots += [pyro_ksd.plot_discrepancy]
    for plot in plots:
        axes = np.ravel(axes_of(plot(result)))
        axes[0].figure.canvas.draw()
        assert any(own.has_data() for own in axes)
        plt.close("all")


def test_the_present_release_has_saved_a_check() -> None:
    if ".dev" not in pyro_ksd.__version__:
        assert f"release_{pyro_ksd.__version__}_check.nc.xz" in {file.name for file in release_files()}


@pytest.mark.parametrize("file", release_files(), ids=lambda file: file.name.removesuffix(".nc.xz"))
def test_the_check_of_every_release_says_what_it_said_then(file: Path, tmp_path: Path) -> None:
    result = load(unpacked(file, tmp_path))
    assert result["ksd"].attrs["creation_library_version"] == file.name.split("_")[1]
    expected = RELEASED[file.name.split("_")[1]]
    table = pyro_ksd.summary(result)
    assert table["statistic"].to_dict() == pytest.approx(expected["statistic"], nan_ok=True, rel=1e-3)
    assert table.loc["overall", "p_value"] == pytest.approx(1 / 150)
    assert pyro_ksd.verdict(result).startswith("the model does not fit (p = 0.007)")
    ngrams = pyro_ksd.ngram_table(result)
    assert ngrams.loc[ngrams["finding"] == "too rare", "label"].tolist() == expected["too rare"]
    assert ngrams.loc[0, ["factor", "factor_low", "factor_high"]].tolist() == pytest.approx(
        expected["factor"], rel=1e-3
    )
    assert pyro_ksd.sequence_table(result, view="content-2")["sequence"].tolist()[:3] == expected["sequences"]
    assert pyro_ksd.edit_table(result, view="content-2").loc[0, "edit"] == expected["edit"]


def test_the_file_is_closed_and_its_values_are_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "check.nc"
    made_up_check().to_netcdf(path)
    check = load(path)
    os.remove(path)
    made_up_comparison(THREE).to_netcdf(path)  # HDF5 refuses to write into a file that is open
    assert isinstance(check["ksd"]["statistic"].variable._data, np.ndarray)


def test_a_result_is_saved_over_the_file_that_it_was_loaded_from(tmp_path: Path) -> None:
    path = tmp_path / "check.nc"
    made_up_check().to_netcdf(path)
    check = load(path)
    check["ksd"].attrs["note"] = "mine"
    check.to_netcdf(path)
    xr.testing.assert_identical(load(path), check)
    assert load(path)["ksd"].attrs["note"] == "mine"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # h5netcdf closes what it never opened
@pytest.mark.parametrize(
    ("width", "times"), [(64, 12), *(pytest.param(n, 150, marks=pytest.mark.slow) for n in (1, 64))]
)
def test_random_damage_is_refused_or_harmless(
    width: int, times: int, computed_check: xr.DataTree, tmp_path: Path
) -> None:
    computed_check.to_netcdf(tmp_path / "check.nc")
    whole = (tmp_path / "check.nc").read_bytes()
    rng = np.random.default_rng(width)
    refused = 0
    for _ in range(times):
        start = rng.integers(len(whole) - width)
        damaged = whole[:start] + rng.bytes(width) + whole[start + width :]
        (tmp_path / "damaged.nc").write_bytes(damaged)
        try:
            loaded = load(tmp_path / "damaged.nc")
        except ValueError:
            refused += 1
        else:
            xr.testing.assert_identical(loaded, computed_check)
    assert refused > times / 3


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_truncated_files(share: float, tmp_path: Path) -> None:
    path = tmp_path / "check.nc"
    made_up_check().to_netcdf(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(
        ValueError, match=r"check\.nc: expected a whole file, found one that cannot be read \(.*truncated"
    ):
        load(path)


def test_files_of_others(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"data\.csv: expected a netCDF file .*, found a file that begins with b'a,b"):
        load(tmp_path / "data.csv")
    (tmp_path / "empty.nc").touch()
    with pytest.raises(
        ValueError, match=r"empty\.nc: .* found a file that begins with b''; choose the file of a result"
    ):
        load(tmp_path / "empty.nc")
    xr.Dataset({"x": ("time", [1.0])}).to_netcdf(tmp_path / "weather.nc", engine="h5netcdf")
    with pytest.raises(
        ValueError, match=r"weather\.nc: expected a result of pyro_ksd, .*, found no groups; choose a file"
    ):
        load(tmp_path / "weather.nc")
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other.create_group("ksd").create_dataset("x", data=[1.0])
    with pytest.raises(ValueError, match=r"other\.h5: expected "):
        load(tmp_path / "other.h5")
    with pytest.raises(
        ValueError, match=rf"^{tmp_path.name}: expected a netCDF file or a folder of zarr, found another folder"
    ):
        load(tmp_path)


@pytest.mark.parametrize("path", [".", "..", ""])
def test_folders_without_a_name(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    with pytest.raises(ValueError, match=r"^(inner|test_folders_\w+): expected a netCDF file or a folder of zarr"):
        load(path)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"path: expected a file or folder, found nothing at '.*none\.nc'"):
        load(tmp_path / "none.nc")
    for path in (None, 3, made_up_check()):
        with pytest.raises(ValueError, match="path: expected a path to a saved result, found "):
            load(path)  # type: ignore[arg-type]


def test_damaged_values_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "check.nc"
    made_up_check().to_netcdf(path)
    with h5py.File(path, "r+") as opened:
        opened["ksd/p_value"][0] = 17.0
    with pytest.raises(
        ValueError, match=r"check\.nc, group 'ksd', variable 'p_value': expected .* to 1, found 17\.0 at view"
    ):
        load(path)


def test_zarr_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "check.zarr").mkdir()
    (tmp_path / "check.zarr" / ".zgroup").touch()
    monkeypatch.setattr(files, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"check\.zarr: expected the package zarr, .*, found none; pip install zarr"):
        load(tmp_path / "check.zarr")

# SPDX-License-Identifier: Apache-2.0
"""The table of a comparison, from the groups alone."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from synthetic_comparison import LONG, THREE, made_up_comparison

from pyro_ksd.results.comparison_table import Ranking, compare_table


def two_sided(z: float) -> float:
    return math.erfc(z / 2**0.5)


def test_the_best_model_comes_first_and_the_others_are_compared_with_it() -> None:
    table = compare_table(made_up_comparison(THREE))
    assert table.index.tolist() == ["order 2", "order 1", "order 0"]
    assert table.index.name == "model"
    assert table.columns.tolist() == ["rank", "ksd", "se", "d_ksd", "d_se", "z", "p_value", "diagnostic", "finding"]
    assert table["rank"].tolist() == [0, 1, 2]
    assert table["diagnostic"].tolist() == ["", "N < 100", "N < 100"]
    assert table["ksd"].tolist() == [0.25, 1.0, 3.0]
    assert table["se"].tolist() == [0.5, 0.5, 0.5]
    assert table["d_ksd"].tolist() == [0, 0.75, 2.75]
    assert table["d_se"].tolist() == [0, 0.5, 0.5]
    np.testing.assert_array_equal(table["z"], [np.nan, 1.5, 5.5])
    np.testing.assert_allclose(table["p_value"], [np.nan, 3 * two_sided(1.5), 3 * two_sided(5.5)])
    assert table["finding"].tolist() == ["best", "may be as good (p = 0.401)", "worse (p = 1e-07)"]
    assert table.attrs["verdict"] == "'order 2' comes closest to all 30 sequences, but 'order 1' may be as good"


def test_two_models_are_one_pair() -> None:
    table = compare_table(made_up_comparison({"a": 1.5, "b": 0.0}))
    assert table.loc["a", "p_value"] == pytest.approx(two_sided(3.0))
    assert table.loc["a", "finding"] == "worse (p = 0.003)"
    assert table.attrs["verdict"] == "'b' comes closest to all 30 sequences"


@pytest.mark.parametrize(("level", "word"), [(0.05, "may be as good"), (0.2, "worse")])
def test_the_level_decides_what_is_called_worse(level: float, word: str) -> None:
    table = compare_table(made_up_comparison({"a": 0.75, "b": 0.0}, level=level))
    assert table.loc["a", "finding"] == f"{word} (p = 0.134)"


def test_p_values_are_no_larger_than_1() -> None:
    assert compare_table(made_up_comparison({"a": 0.1, "b": 0.0, "c": 0.2}))["p_value"].tolist()[1:] == [1, 1]


def test_a_difference_that_does_not_vary() -> None:
    table = compare_table(made_up_comparison({"a": 0.5, "b": 0.5}))
    assert table["rank"].tolist() == [0, 0]
    assert table["diagnostic"].tolist() == ["", "N < 100, no spread"]
    words = ["best", "cannot be told apart from the best: their difference does not vary"]
    assert table["finding"].tolist() == words
    assert table.attrs["verdict"].endswith("but 'b' may be as good")


def test_impossible_sequences_rule_a_model_out() -> None:
    table = compare_table(made_up_comparison(THREE, impossible=4))
    assert table.attrs["verdict"] == (
        "of the models that can have made all 34 sequences, 'order 2' comes closest to the 30 of 34 sequences that all "
        "models can make, but 'order 1' may be as good. "
        "'order 0' is ruled out: it gives probability zero to 4 of the 34"
    )
    close = compare_table(made_up_comparison({"closest": 0.1, "b": 0.5, "c": 9.0}, impossible=4))
    assert close.index.tolist() == ["b", "c", "closest"]
    assert close["finding"].tolist() == ["best", "worse (p = 2e-64)", "ruled out: probability zero for 4 sequence(s)"]
    assert close["p_value"].tolist()[2] == 0.0
    assert close["rank"].tolist() == [0, 1, 2]
    assert close["diagnostic"].tolist() == ["", "N < 100", "N < 100, impossible: 4"]


def test_many_sequences_need_no_caution() -> None:
    comparison = made_up_comparison(THREE)
    comparison["ksd_compare"].attrs["num_sequences"] = 100
    assert compare_table(comparison)["diagnostic"].tolist() == ["", "", ""]


@pytest.mark.parametrize(
    ("models", "words"),
    [
        ('["order 0"]', "there is no view 'length': 'order 0' gives no probability to them"),
        ('["order 0", "order 1"]', "there is no view 'length': 'order 0' and 'order 1' give no probability to them"),
    ],
)
def test_models_without_a_distribution_of_the_length_are_named(models: str, words: str) -> None:
    comparison = made_up_comparison(THREE)
    assert "Lengths" not in compare_table(comparison).attrs["verdict"]
    comparison["ksd_compare"].attrs["without_lengths"] = models
    assert compare_table(comparison).attrs["verdict"].endswith(f". Lengths were not compared, and {words}")
    assert words in repr(compare_table(comparison))


def test_models_that_are_all_ruled_out_are_still_compared() -> None:
    comparison = made_up_comparison({"a": 0.1, "b": 9.0}, impossible=4)
    group = comparison["ksd_compare_impossible"].to_dataset()
    group["impossible"][:] = True
    made = made_up_comparison({"a": 0.1, "b": 9.0})
    made["ksd_compare_impossible"] = xr.DataTree(group)
    table = compare_table(made)
    assert table["finding"].tolist() == ["best", "worse (p = 7e-71)"]
    assert table.attrs["verdict"].count("is ruled out: it gives probability zero to 4") == 2


def test_the_table_prints_every_word() -> None:
    table = compare_table(made_up_comparison(LONG))
    for shown in (repr(table), str(table)):
        lines = shown.splitlines()
        assert lines[0].split() == table.columns.tolist()
        assert [line.startswith(name) for line, name in zip(lines[1:6], table.index, strict=True)] == [True] * 5
        assert lines[1].endswith(" best")
        assert lines[5].endswith("worse (p = 1e-14)")
        assert "times the 10 pairs of models" in lines[-1]
        assert "NaN" not in shown
        assert not any(line.endswith(" ") for line in lines)
    assert "times the" not in repr(compare_table(made_up_comparison({"a": 1.0, "b": 0.0})))
    html = table._repr_html_()
    assert "worse (p = 1e-14)" in html
    assert "times the 10 pairs" in html


def test_the_table_is_a_data_frame_like_any_other() -> None:
    table = compare_table(made_up_comparison(THREE))
    assert isinstance(table.sort_values("ksd", ascending=False), Ranking)
    assert table[table["p_value"] <= 0.05].index.tolist() == ["order 0"]


def test_netcdf(tmp_path: Path) -> None:
    comparison = made_up_comparison(THREE, impossible=2)
    comparison.to_netcdf(tmp_path / "comparison.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "comparison.nc", engine="h5netcdf") as again:
        assert again.load().identical(comparison)
        assert repr(compare_table(again)) == repr(compare_table(comparison))


def test_zarr(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    comparison = made_up_comparison(THREE, impossible=2)
    comparison.to_zarr(tmp_path / "comparison.zarr", zarr_format=2)
    with xr.open_datatree(tmp_path / "comparison.zarr", engine="zarr") as again:
        assert repr(compare_table(again)) == repr(compare_table(comparison))

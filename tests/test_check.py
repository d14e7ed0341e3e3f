# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr
from example_models import walk

from pyro_ksd import Sequences, View, ksd_check, summary
from pyro_ksd.kernels import ContiguousKernel
from pyro_ksd.operators import ZanellaOperator
from pyro_ksd.plots import plot_null
from pyro_ksd.testing import goodness_of_fit
from pyro_ksd.views import default_views

DATA = walk(hold=0.5).draw(12, torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def check() -> xr.DataTree:
    return ksd_check(walk(), DATA, num_bootstrap=40, seed=7, progress=False)


def test_groups_hold_the_result(check: xr.DataTree) -> None:
    result = goodness_of_fit(walk(), DATA, default_views(), num_bootstrap=40, seed=7)
    ksd, null = check["ksd"].to_dataset(), check["ksd_null"].to_dataset()
    assert ksd["view"].values.tolist() == list(result.views)
    np.testing.assert_allclose(ksd["statistic"], result.statistic, rtol=1e-12)
    np.testing.assert_allclose(ksd["p_value"], result.p_value)
    assert float(ksd["p_value_overall"]) == result.p_value_overall
    np.testing.assert_allclose(null["ksd"].values[0], result.null, rtol=1e-10)
    assert null["ksd"].dims == ("chain", "draw", "view")
    assert {"kind": "parametric", "num_bootstrap": 40, "seed": 7}.items() <= ksd.attrs.items()
    assert list(check.children) == ["ksd", "ksd_null", "observed_data"]


def test_observed_data_is_whole(check: xr.DataTree) -> None:
    observed = check["observed_data"].to_dataset()
    symbols = json.loads(observed.attrs["alphabet"])
    again = Sequences.of(observed["token"].values, len(symbols), pad=-1)
    assert again.to_lists() == DATA.to_lists()
    assert observed["length"].values.tolist() == DATA.lengths.tolist()


def test_file_round_trip(check: xr.DataTree, tmp_path: Path) -> None:
    check.to_netcdf(tmp_path / "check.nc")
    with xr.open_datatree(tmp_path / "check.nc") as again:
        xr.testing.assert_identical(again.load(), check)
        assert summary(again).equals(summary(check))


def test_summary_has_a_row_for_each_view_and_one_for_all(check: xr.DataTree) -> None:
    table = summary(check)
    assert table.index.tolist() == ["content-1", "content-2", "content-3", "start", "length", "overall"]
    assert table.loc["overall", "p_value"] == float(check["ksd"]["p_value_overall"])
    assert table.loc["length", "statistic"] == float(check["ksd"]["statistic"][-1])


def test_plot_null_draws_the_draws_and_the_observed_value(check: xr.DataTree) -> None:
    import matplotlib.pyplot

    matplotlib.use("agg")
    axes = plot_null(check)
    assert len(axes) == 5
    for ax, name in zip(axes, check["ksd"]["view"].values, strict=True):
        assert sum(bar.get_height() for bar in ax.patches) == 40
        assert ax.lines[0].get_xdata()[0] == float(check["ksd"]["statistic"].sel(view=name))
        assert ax.get_ylabel() == f"{name}\np = {float(check['ksd']['p_value'].sel(view=name)):.3f}"
    matplotlib.pyplot.close("all")


def test_data_may_be_lists_whose_alphabet_is_the_models() -> None:
    lists = [[0, 1, 2], [1, 0], [2, 1, 2, 1]]
    views = [View("bigrams", ZanellaOperator(), ContiguousKernel(2))]
    a = ksd_check(walk(), lists, views=views, num_bootstrap=5, progress=False)
    b = ksd_check(walk(), Sequences.of(lists, 5), views=views, num_bootstrap=5, progress=False)
    assert float(a["ksd"]["statistic"][0]) == float(b["ksd"]["statistic"][0])
    with pytest.raises(ValueError, match=r"sequence 1, position 0: found the symbol 7, expected one of the"):
        ksd_check(walk(), [[0, 1], [7]], progress=False)


def test_progress_is_shown_unless_switched_off(capsys: pytest.CaptureFixture[str]) -> None:
    ksd_check(walk(), DATA, num_bootstrap=2)
    assert "parametric bootstrap: 100%" in capsys.readouterr().err
    ksd_check(walk(), DATA, num_bootstrap=2, progress=False)
    assert capsys.readouterr().err == ""


def test_import_leaves_heavy_optional_packages_alone() -> None:
    code = "import sys, pyro_ksd; print([name for name in ('arviz', 'matplotlib', 'pandas.io') if name in sys.modules])"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() in {"[]", "['pandas.io']"}  # xarray itself needs pandas


def test_demo_prints_a_table_and_leaves_a_picture_and_a_file(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pyro_ksd.demo", "--output", str(tmp_path / "new")]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "content-2" in output
    assert "The model does not fit (p = 0.0" in output
    assert (tmp_path / "new" / "null.png").read_bytes().startswith(b"\x89PNG")
    with xr.open_datatree(tmp_path / "new" / "check.nc") as saved:
        assert float(saved["ksd"]["p_value_overall"]) < 0.05

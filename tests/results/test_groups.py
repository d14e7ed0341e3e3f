# SPDX-License-Identifier: Apache-2.0
"""The groups of a check."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

torch = pytest.importorskip("torch")

from example_models import walk  # noqa: E402
from synthetic import made_up_check  # noqa: E402

from pyro_ksd import MarkovSequence, Sequences, View, ksd_check  # noqa: E402
from pyro_ksd.checks.check_setup import model_and_views  # noqa: E402
from pyro_ksd.fit_tests.absolute import goodness_of_fit  # noqa: E402
from pyro_ksd.stein.assembly import stein_matrices  # noqa: E402
from pyro_ksd.stein.views import default_views  # noqa: E402

DATA = walk(hold=0.5).draw(12, torch.Generator().manual_seed(0))


def views_of(data: Sequences, model: MarkovSequence | None = None) -> list[View]:
    """The views that a check takes."""
    return model_and_views(walk() if model is None else model, data, None, None, None).views


@pytest.fixture(scope="module")
def check() -> xr.DataTree:
    return ksd_check(walk(), DATA, num_bootstrap=40, seed=7, progress=False)


def test_groups_hold_the_result(check: xr.DataTree) -> None:
    result = goodness_of_fit(walk(), DATA, views_of(DATA), num_bootstrap=40, seed=7)
    ksd, null = check["ksd"].to_dataset(), check["ksd_null"].to_dataset()
    assert ksd["view"].values.tolist() == [view.name for view in result.views]
    np.testing.assert_allclose(ksd["statistic"], result.statistic, rtol=1e-12)
    np.testing.assert_allclose(ksd["p_value"], result.p_value)
    assert float(ksd["p_value_overall"]) == result.p_value_overall
    np.testing.assert_allclose(null["ksd"].values[0], result.null.statistic, rtol=1e-10)
    np.testing.assert_allclose(null["extreme"].values[0], result.null.extreme, rtol=1e-10)
    assert null["ksd"].dims == null["extreme"].dims == ("chain", "draw", "view")
    assert {"kind": "parametric", "num_bootstrap": 40, "seed": 7, "level": 0.05}.items() <= ksd.attrs.items()
    assert all(0 <= ksd.attrs[f"seconds_{stage}"] < 60 for stage in ("model", "kernels", "bootstrap", "localization"))
    groups_of_all = {"ksd", "ksd_null", "ksd_ngram", "ksd_edit", "ksd_data", "ksd_length", "ksd_draws"}
    assert set(check.children) == groups_of_all | {"posterior_predictive", "observed_data"}
    assert ksd["weight"].values.tolist() == [view.weight for view in result.views]
    assert ksd["feature_kind"].values.tolist() == [view.kernel.feature_kind for view in result.views]
    assert ksd["meaning"].values.tolist() == [view.kernel.meaning for view in result.views]
    assert "tolerance" not in ksd.attrs
    assert "tolerance_p_value" not in ksd


def test_layout_is_that_of_the_made_up_checks(check: xr.DataTree) -> None:
    with_all = ksd_check(walk(), DATA, num_bootstrap=3, gram=True, tolerance=0.1, progress=False)
    made_up = made_up_check(tolerance=0.1)
    assert set(with_all.children) == set(made_up.children)
    for name, group in made_up.children.items():
        found = with_all[name].to_dataset()
        assert {key: value.dims for key, value in found.variables.items()} == {
            key: value.dims for key, value in group.to_dataset().variables.items()
        }
        assert {key: value.dtype for key, value in found.variables.items()} == {
            key: value.dtype for key, value in group.to_dataset().variables.items()
        }
        assert set(group.attrs) <= set(found.attrs)
    gram = with_all["ksd"]["gram"].sel(view="content-2").values
    [matrix] = stein_matrices(walk(), DATA, default_views()[1:2])
    np.testing.assert_allclose(gram, matrix.dense(), rtol=1e-12)


def test_the_data_are_whole(check: xr.DataTree) -> None:
    observed = check["ksd_data"].to_dataset()
    symbols = json.loads(observed["token"].attrs["alphabet"])
    again = Sequences.of(observed["token"].values, len(symbols), pad=-1)
    assert again.to_lists() == DATA.to_lists()
    assert observed["length"].values.tolist() == DATA.lengths.tolist()

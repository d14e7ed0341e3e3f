# SPDX-License-Identifier: Apache-2.0
"""A whole check gives the same numbers with compiled inner loops and without."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr
from example_models import walk

from pyro_ksd import ksd_check

pytest.importorskip("numba")


@pytest.mark.parametrize("bootstrap", ["wild", "parametric"])
def test_a_check_is_the_same_with_compiled_loops(bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = walk(hold=0.5).draw(30, torch.Generator().manual_seed(0))
    found = []
    for switch in "01":
        monkeypatch.setenv("PYRO_KSD_COMPILED", switch)
        found.append(ksd_check(walk(), data, bootstrap=bootstrap, num_bootstrap=100, seed=3, progress=False))
    torch_only, compiled = found
    for name in ("p_value", "p_value_overall"):
        assert torch_only["ksd"][name].equals(compiled["ksd"][name])
    assert float(compiled["ksd"]["p_value"].min()) < 0.05
    for group in ("ksd", "ksd_null", "ksd_ngram", "ksd_edit"):
        assert torch_only[group].data_vars.keys() == compiled[group].data_vars.keys()
        for name, values in torch_only[group].data_vars.items():
            if values.dtype.kind == "f":
                again, before = compiled[group][name].values, values.values
                if name == "attribution":  # rounding decides the order of sequences with equal shares
                    again, before = by_sequence(compiled), by_sequence(torch_only)
                np.testing.assert_allclose(again, before, rtol=1e-10, atol=1e-12, err_msg=f"{group}/{name}")


def by_sequence(check: xr.DataTree) -> np.ndarray:
    """The shares of positions, in the order of the sequences."""
    order = check["ksd"]["shown_sequence"].values.argsort(1)
    return np.take_along_axis(check["ksd"]["attribution"].values, order[..., None], 1)

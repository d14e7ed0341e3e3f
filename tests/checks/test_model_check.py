# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
import xarray as xr
from example_models import walk
from pyro import poutine
from synthetic import made_up_check

from pyro_ksd import Sequences, View, ksd_check, verdict
from pyro_ksd.examples import random_walk
from pyro_ksd.fit_tests.absolute import goodness_of_fit
from pyro_ksd.kernels import ContiguousKernel, EmbeddingKernel, HammingKernel
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.views import default_views

LOGITS = torch.tensor([0.0, 0.0, -torch.inf])
DATA = walk(hold=0.5).draw(12, torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def check() -> xr.DataTree:
    return ksd_check(walk(), DATA, num_bootstrap=40, seed=7, progress=False)


def test_groups_hold_the_result(check: xr.DataTree) -> None:
    result = goodness_of_fit(walk(), DATA, default_views(), num_bootstrap=40, seed=7)
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
    assert set(check.children) == {"ksd", "ksd_null", "ksd_ngram", "ksd_edit", "observed_data"}


def test_shares_add_up(check: xr.DataTree) -> None:
    ksd, ngrams = check["ksd"].to_dataset(), check["ksd_ngram"].to_dataset()
    np.testing.assert_allclose(ksd["contribution"].sum("sequence"), ksd["statistic"], rtol=1e-12)
    np.testing.assert_allclose(ksd["attribution"].sum("position"), ksd["contribution"], rtol=1e-9, atol=1e-14)
    behind = ksd["position"] > xr.DataArray(DATA.lengths.numpy(), dims="sequence")
    assert (ksd["attribution"].isnull() == behind).all()
    for name, share in ngrams.groupby("view_name").sum()["share"].to_series().items():
        np.testing.assert_allclose(share, ksd["statistic"].sel(view=name), rtol=1e-10)


def test_layout_is_that_of_the_made_up_checks(check: xr.DataTree) -> None:
    with_all = ksd_check(walk(), DATA, num_bootstrap=3, gram=True, progress=False)
    made_up = made_up_check()
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


def test_sequences_that_the_model_cannot_have_made_are_reported_and_the_others_checked() -> None:
    whole = Sequences.of([[0, 1], [], *DATA.to_lists(), []], 5)
    message = (
        r"probability zero to 2 of 15 sequences: sequence 1, \[\]; sequence 14, \[\]. It cannot have made them; the"
    )
    with pytest.warns(UserWarning, match=message):
        check = ksd_check(walk(), whole, num_bootstrap=20, progress=False)
    others = ksd_check(walk(), Sequences.of([[0, 1], *DATA.to_lists()], 5), num_bootstrap=20, progress=False)
    np.testing.assert_allclose(check["ksd"]["statistic"], others["ksd"]["statistic"], rtol=1e-12)
    assert check["ksd"]["sequence"].values.tolist() == [0, *range(2, 14)]
    assert check["ksd_impossible"]["sequence"].values.tolist() == [1, 14]
    assert check["ksd_edit"]["sequence_index"].isin([0, *range(2, 14)]).all()
    assert check["observed_data"].sizes["sequence"] == 15
    assert verdict(check).startswith("the model cannot have made 2 of the 15 sequences (number 1, 14), to which")
    with pytest.raises(ValueError, match="and too few others are left to check: widen the model"):
        ksd_check(walk(), Sequences.of([[], [0], []], 5), progress=False)


def test_a_program_names_the_site_of_an_impossible_sequence() -> None:
    def never_two(sequences: torch.Tensor, lengths: torch.Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(logits=LOGITS), obs=sequences[:, t])
            pyro.sample("length", dist.Poisson(3.0), obs=lengths.float())

    data = Sequences.of([[0, 1], [1, 2, 0], [1], [0, 0, 1]], 3)
    with pytest.warns(UserWarning, match=r"sequence 1, \[1, 2, 0\], at site x_1. It cannot have made them"):
        check = ksd_check(never_two, data, num_bootstrap=20, progress=False)
    assert check["ksd_impossible"]["site"].values.tolist() == ["x_1"]
    assert "(number 1 at site x_1)" in verdict(check)


def test_views_may_be_named() -> None:
    one = ksd_check(walk(), DATA, views=["length", "content-2"], num_bootstrap=5, progress=False)
    assert one["ksd"]["view"].values.tolist() == ["length", "content-2"]
    own = View("mine", ZanellaOperator(), ContiguousKernel(1, 2))
    two = ksd_check(walk(), DATA, views=[own, "start"], balancing="mpf", num_bootstrap=5, progress=False)
    assert two["ksd"]["view"].values.tolist() == ["mine", "start"]
    assert {"00", "0"} <= set(two["ksd_ngram"]["label"].values.tolist())


def test_own_features_have_a_direction() -> None:
    def rests(x: Sequences) -> torch.Tensor:
        inside = torch.arange(1, x.tokens.shape[1]) < x.lengths[:, None]
        return ((x.tokens[:, 1:] == x.tokens[:, :-1]) & inside).sum(1, keepdim=True).double()

    own = View("mine", ZanellaOperator(), EmbeddingKernel(rests))
    holding = random_walk(5, hold=0.5).draw(40, torch.Generator().manual_seed(0))
    check = ksd_check(random_walk(5), holding, views=own, num_bootstrap=99, progress=False)
    assert verdict(check) == "the model does not fit (p = 0.010): it makes 'rests' too small"
    moving = random_walk(5).draw(40, torch.Generator().manual_seed(0))
    check = ksd_check(random_walk(5, hold=0.5), moving, views=own, num_bootstrap=99, progress=False)
    assert verdict(check) == "the model does not fit (p = 0.010): it makes 'rests' too large"


def test_longer_runs_have_names_too() -> None:
    check = ksd_check(walk(), DATA, views=["content-1", "content-4"], num_bootstrap=5, progress=False)
    assert check["ksd"]["meaning"].values.tolist() == ["single symbols", "runs of 4 symbols"]
    for name in ("content-0", "content-100", "content", "content-2a"):
        with pytest.raises(ValueError, match=r"content-4 and so on, or View objects, found \["):
            ksd_check(walk(), DATA, views=name, num_bootstrap=5, progress=False)


def test_kernels_without_features_are_localized_too() -> None:
    views = [View("Hamming", ZanellaOperator(), HammingKernel())]
    check = ksd_check(walk(), DATA, views=views, num_bootstrap=20, progress=False)
    ksd = check["ksd"].to_dataset()
    np.testing.assert_allclose(ksd["attribution"].sum(["sequence", "position"]), ksd["statistic"], rtol=1e-10)
    assert check["ksd_ngram"].sizes["ngram"] == 0
    assert np.isnan(check["ksd_null"]["extreme"]).all()
    assert "it gets whole sequences wrong" in verdict(check)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"level": 1.5}, "level: expected a number between 0 and 1, such as 0.05, found 1.5"),
        (
            {"views": ["content"]},
            "views: expected names out of ['content-1', 'content-2', 'content-3', 'start', 'len",
        ),
        ({"views": default_views(), "balancing": "mpf"}, "neighborhood= and balancing= belong to the default views"),
    ],
)
def test_refuses(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011
        ksd_check(walk(), DATA, progress=False, **arguments)
    assert message in str(error.value)


def test_observed_data_is_whole(check: xr.DataTree) -> None:
    observed = check["observed_data"].to_dataset()
    symbols = json.loads(observed["token"].attrs["alphabet"])
    again = Sequences.of(observed["token"].values, len(symbols), pad=-1)
    assert again.to_lists() == DATA.to_lists()
    assert observed["length"].values.tolist() == DATA.lengths.tolist()


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


def test_demo_prints_a_table_and_leaves_a_picture_and_a_file(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pyro_ksd.demo", "--output", str(tmp_path / "new")]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "content-2" in output
    assert "The model does not fit (p = 0.0" in output
    assert "too rarely" in output
    assert (tmp_path / "new" / "check.png").read_bytes().startswith(b"\x89PNG")
    with xr.open_datatree(tmp_path / "new" / "check.nc") as saved:
        assert float(saved["ksd"]["p_value_overall"]) < 0.05

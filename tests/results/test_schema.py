# SPDX-License-Identifier: Apache-2.0
"""The schema states what the calls return, no less and no more."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from saved_results import results
from synthetic import made_up_check
from synthetic_comparison import THREE, made_up_comparison

from pyro_ksd import load
from pyro_ksd.results.schema import GROUPS, POWER, POWER_ATTRIBUTES
from pyro_ksd.results.schema_entries import SOURCES, Attribute, Variable, is_required
from pyro_ksd.results.validation import check_result, results_in

MADE = {"created_at", "creation_library", "creation_library_version", "inference_library", "inference_library_version"}


@pytest.fixture(scope="module")
def computed() -> Mapping[Any, xr.DataTree]:
    pytest.importorskip("torch")
    return results()


def unstated(result: xr.DataTree) -> list[str]:
    """What a result has and the schema does not state."""
    names = [group for group in result.children if group not in GROUPS]
    for group in set(result.children) & set(GROUPS):
        own, stated = result[group].to_dataset(), GROUPS[group]
        if stated.variables:  # those of a posterior are the sites of a program
            names += [f"{group}.{name}" for name in own.data_vars if name not in stated.variables]
            names += [f"{group}.{name}" for name in own.coords if name not in stated.coordinates]
        names += [f"{group}@{name}" for name in own.attrs if name not in {*stated.attributes, *MADE, "sample_dims"}]
        if "sample_dims" in own.attrs:
            assert {"chain", "draw"} <= set(own.sizes)
    return names


def test_results_follow_the_schema_and_have_nothing_else(computed: Mapping[Any, xr.DataTree]) -> None:
    assert list(computed) == list(SOURCES)
    for kind, result in computed.items():
        assert results_in(result, "result") == [kind]
        check_result(result, kind)
        assert unstated(result) == []
        assert result.attrs == {"schema_version": 2}


def test_everything_stated_is_in_some_result(computed: Mapping[Any, xr.DataTree]) -> None:
    for group, stated in GROUPS.items():
        having = [result[group].to_dataset() for result in computed.values() if group in result.children]
        variables = {name for own in having for name in own.variables}
        unsampled = {"expected_low", "expected_high"} if group == "ksd_length" else set()  # of models without draws
        assert {*stated.variables, *stated.coordinates} - unsampled <= variables, group
        attributes = {name for own in having for name in own.attrs}
        others = {"ratio_error", "num_sequences", "verified_states"}  # of programs with latents; of parts; of states
        assert set(stated.attributes) - attributes <= others, group


def test_no_result_has_less_than_the_schema_says(computed: Mapping[Any, xr.DataTree]) -> None:
    """Something that all files have is not called optional."""
    for group, stated in GROUPS.items():
        having = {kind: result[group].to_dataset() for kind, result in computed.items() if group in result.children}
        assert set(stated.required_in) <= set(having)
        for name, own in {**stated.variables, **stated.coordinates}.items():
            required = {kind for kind in having if is_required(own, [kind])}
            assert required <= {kind for kind, one in having.items() if name in one.variables}


@pytest.mark.parametrize("names", [["Hamming"], ["Hamming", "content-2"], ["content-2", "length"]], ids=", ".join)
def test_checks_of_views_with_and_without_features_follow_the_schema(names: list[str], tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from example_models import walk

    from pyro_ksd import View, ksd_check
    from pyro_ksd.kernels import HammingKernel
    from pyro_ksd.stein import default_views

    own = {view.name: view for view in default_views()}
    own["Hamming"] = View("Hamming", own["content-2"].operator, HammingKernel())
    data = walk(hold=0.5).draw(12, torch.Generator().manual_seed(0))
    options: dict[str, Any] = {"tolerance": 0.1, "num_bootstrap": 19, "progress": False}
    check = ksd_check(walk(), data, views=[own[name] for name in names], **options)
    assert np.isnan(check["ksd"]["foreign_share"].values).tolist() == [name == "Hamming" for name in names]
    check.to_netcdf(tmp_path / "check.nc")
    assert load(tmp_path / "check.nc").identical(check)


def test_checks_of_partitioned_data_follow_the_schema(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from pyro_ksd import PartitionedSequences, ksd_check
    from pyro_ksd.examples import random_walk

    data = [*random_walk(3, hold=0.5).draw(30, torch.Generator().manual_seed(0)).over("abc").to_lists(), []]
    parts = PartitionedSequences.of([data[:20], data[20:]], "abc")
    options: dict[str, Any] = {"tolerance": 0.1, "num_bootstrap": 19, "progress": False}
    with pytest.warns(UserWarning, match="probability zero to 1 of 31 sequences: sequence 30"):
        check = ksd_check(random_walk(3), parts, **options)
    check_result(check, "partitioned")
    assert unstated(check) == []
    groups = ("ksd", "ksd_data", "ksd_impossible")
    assert [check[group].attrs["num_sequences"] for group in groups] == [30, 31, 1]
    check.to_netcdf(tmp_path / "check.nc")
    xr.testing.assert_identical(load(tmp_path / "check.nc"), check)


def test_made_up_results_follow_the_schema() -> None:
    for made_up in (
        made_up_check(impossible=2, tolerance=0.1),
        made_up_check(["a", "b", "ß"], gram=False),
        made_up_comparison(THREE, impossible=3),
    ):
        check_result(made_up, "made up")
        assert unstated(made_up) == []


def test_what_is_unstated_is_found() -> None:
    check = made_up_check()
    check["ksd_ngram"] = xr.DataTree(
        check["ksd_ngram"].to_dataset().assign(new=("ngram", check["ksd_ngram"]["z"].data))
    )
    assert unstated(check.assign(ksd_other=xr.DataTree())) == ["ksd_other", "ksd_ngram.new"]


def test_power_follows_the_schema() -> None:
    pytest.importorskip("torch")
    from pyro_ksd import power
    from pyro_ksd.examples import random_walk

    table = power(
        random_walk(3), random_walk(3, hold=0.3), [4, 8], views="content-2", runs=2, num_bootstrap=19, progress=False
    )
    assert list(table.columns.levels[0].intersection(POWER)) == sorted(POWER)
    assert set(table.columns.get_level_values(0)) == set(POWER)
    assert set(table.attrs) == set(POWER_ATTRIBUTES)
    for name, stated in POWER.items():
        own = table[name]
        assert (own.index.name, own.columns.name) == stated.dims
        assert own.dtypes.map(lambda dtype: dtype.kind).unique().tolist() == ["f"]
        assert np.all((own >= stated.least) & (own <= stated.most))


@pytest.mark.parametrize("group", GROUPS)
def test_entries_make_sense(group: str) -> None:
    stated = GROUPS[group]
    dims = {dim for own in stated.variables.values() for dim in own.dims}
    assert dims == set(stated.coordinates)
    entries: list[Variable | Attribute] = [
        *stated.variables.values(),
        *stated.coordinates.values(),
        *stated.attributes.values(),
    ]
    for own in entries:
        assert own.meaning
        assert own.type in ("float", "integer") or own.least is own.most is None
        assert (-math.inf if own.least is None else own.least) < (math.inf if own.most is None else own.most)
        assert own.most is None or own.least is not None  # the page writes such ranges
        assert set(own.required_in or ()) <= set(SOURCES)
        if isinstance(own, Variable):
            assert own.type == "float" or not own.unknown

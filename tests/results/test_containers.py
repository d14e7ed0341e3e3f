# SPDX-License-Identifier: Apache-2.0
"""Checks in the containers of ArviZ, and together with what is in them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import arviz as az
import numpy as np
import pytest
import xarray as xr
from synthetic import made_up_check

from pyro_ksd.results.containers import dataset, extend, has_group, provenance, to_inference_data

OLD = az.__version__.startswith("0.")

POSTERIOR = xr.Dataset(
    {"rate": (("chain", "draw"), np.arange(8.0).reshape(2, 4))},
    coords={"chain": [0, 1], "draw": np.arange(4)},
    attrs={"mine": "yes"},
)


def container(**groups: xr.Dataset) -> xr.DataTree:
    return xr.DataTree.from_dict({"posterior": POSTERIOR, **groups})


def converted(tree: xr.DataTree) -> Any:
    return az.from_datatree(tree) if OLD else tree


KINDS = pytest.mark.parametrize("kind", [lambda tree: tree, converted], ids=["DataTree", "of the installed ArviZ"])


@KINDS
def test_groups_as_datasets(kind: Callable[[xr.DataTree], Any]) -> None:
    check = made_up_check()
    for group in check.children:
        assert has_group(kind(check), group)
        xr.testing.assert_identical(dataset(kind(check), group), check[group].to_dataset())
    assert not has_group(kind(check), "posterior")
    message = "expected a check with the group 'ksd_ppc', found ['ksd', "
    with pytest.raises(ValueError, match=re.escape(message) if kind is not converted else "'ksd_ppc'.*'ksd_null'"):
        dataset(kind(check), "ksd_ppc")


def test_only_containers_have_groups() -> None:
    with pytest.raises(ValueError, match=r"expected an xarray.DataTree or an arviz.InferenceData, found Dataset"):
        dataset(made_up_check()["ksd"].to_dataset(), "ksd")


def test_the_container_of_the_installed_arviz(check: xr.DataTree) -> None:
    found = to_inference_data(check)
    if OLD:
        assert isinstance(found, az.InferenceData)
        assert to_inference_data(found) is found
    else:
        assert found is check
    for group in check.children:
        xr.testing.assert_identical(dataset(found, group), check[group].to_dataset())


@KINDS
def test_extending_adds_groups_and_leaves_the_original_alone(
    check: xr.DataTree, kind: Callable[[xr.DataTree], Any]
) -> None:
    original = kind(container())
    extended = extend(original, check)
    assert type(extended) is type(original)
    xr.testing.assert_identical(dataset(extended, "posterior"), POSTERIOR)
    for group in check.children:
        xr.testing.assert_identical(dataset(extended, group), check[group].to_dataset())
    assert not has_group(original, "ksd")
    assert not has_group(original, "observed_data")
    assert not has_group(check, "posterior")


def test_warmup_nested_groups_and_attributes_stay() -> None:
    tree = container(warmup_posterior=POSTERIOR)
    tree.attrs["title"] = "mine"
    if OLD:
        extended = extend(az.from_datatree(tree), made_up_check())
        assert extended.attrs == {"title": "mine", "schema_version": 2}
        xr.testing.assert_identical(extended.warmup_posterior, POSTERIOR)
    tree["posterior/inner"] = POSTERIOR
    extended = extend(tree, made_up_check())
    assert extended.attrs == {"title": "mine", "schema_version": 2}
    assert tree.attrs == {"title": "mine"}
    xr.testing.assert_identical(extended["posterior/inner"].to_dataset(), POSTERIOR)


@KINDS
def test_a_check_may_be_in_either_container(kind: Callable[[xr.DataTree], Any]) -> None:
    check = made_up_check()
    xr.testing.assert_identical(extend(container(), kind(check))["ksd"], check["ksd"])


@KINDS
def test_a_later_check_replaces_the_earlier_one(kind: Callable[[xr.DataTree], Any]) -> None:
    mine = xr.Dataset({"weight": ("person", [1.0, 2.0])}, coords={"person": ["x", "y"]})
    earlier, later = made_up_check(impossible=3), made_up_check(list("xy"), num_sequences=9, longest=5, seed=1)
    extended = extend(extend(kind(container(observed_data=mine)), earlier), later)
    assert not has_group(extended, "ksd_impossible")
    for group in later.children:
        found = dataset(extended, group)
        if group == "observed_data":
            xr.testing.assert_identical(found[["weight"]].drop_attrs(), mine)
            found = found[["length", "distinct_symbols", "symbol_count"]]
        xr.testing.assert_equal(found, dataset(later, group))
    assert dataset(extended, "ksd_data")["token"].attrs == {"alphabet": '["x", "y"]'}


def test_optional_groups_of_an_earlier_check_go_and_similar_names_stay() -> None:
    earlier = made_up_check().assign({"ksd_ppc": xr.DataTree(POSTERIOR)})
    extended = extend(container(ksds=POSTERIOR), earlier)
    assert has_group(extended, "ksd_ppc")
    extended = extend(extended, made_up_check(seed=1))
    assert not has_group(extended, "ksd_ppc")
    assert has_group(extended, "ksds")


@KINDS
def test_observed_data_are_joined(kind: Callable[[xr.DataTree], Any]) -> None:
    check = made_up_check()
    observed = check["observed_data"].to_dataset()
    mine = xr.Dataset(
        {"weight": ("sequence", np.ones(30)), "length": observed["length"], "other": ("time", [1, 2])},
        attrs={"source": "mine"},
    )
    found = dataset(extend(kind(container(observed_data=mine)), check), "observed_data")
    assert set(found.data_vars) == {"weight", "other", *observed.data_vars}
    xr.testing.assert_identical(found[list(observed.data_vars)].drop_attrs(), observed)
    assert found["weight"].dims == ("sequence",)
    assert found["weight"]["sequence"].values.tolist() == list(range(30))
    assert found.attrs["source"] == "mine"


@pytest.mark.parametrize(
    ("variables", "coords", "clashes"),
    [
        ({"length": ("word", [1, 2])}, {}, ["length"]),
        ({"weight": ("sequence", [1, 2])}, {}, ["sequence"]),
        ({"weight": ("sequence", np.ones(30))}, {"sequence": np.arange(1, 31)}, ["sequence"]),
        ({"weight": ("length", [1, 2]), "sequence": ("length", [3, 4])}, {}, ["length", "sequence"]),
    ],
)
def test_observed_data_that_do_not_fit(variables: Any, coords: Any, clashes: list[str]) -> None:
    tree = container(observed_data=xr.Dataset(variables, coords))
    message = f"observed_data: expected no {clashes} in the container, or the same as in the check, found the sizes"
    with pytest.raises(ValueError, match=re.escape(message)) as raised:
        extend(tree, made_up_check())
    assert f"Dataset.rename({{'{clashes[0]}': 'my_{clashes[0]}'}})" in str(raised.value)
    renamed = tree["observed_data"].to_dataset().rename({name: f"my_{name}" for name in clashes})
    assert has_group(extend(container(observed_data=renamed), made_up_check()), "ksd")


def test_container_and_check_in_the_wrong_order() -> None:
    with pytest.raises(ValueError, match=r"found \['posterior'\]; give the container first, then the check"):
        extend(made_up_check(), container())


def test_provenance() -> None:
    found = provenance()
    assert found["creation_library"] == "pyro_ksd"
    assert found["inference_library"] == "pyro"
    assert all(isinstance(value, str) and value for value in found.values())


def test_what_a_group_lacks_is_named() -> None:
    check = made_up_check()
    hollow = container(ksd=check["ksd"].to_dataset().drop_vars("p_value").drop_attrs())
    message = "expected a check with ['p_value', 'gram_', 'kind', 'num_bootstrap', 'level'] in the group 'ksd', found ["
    with pytest.raises(ValueError, match=re.escape(message)):
        dataset(hollow, "ksd", "gram_")
    with pytest.raises(
        ValueError, match=r"expected a comparison with the group 'ksd_compare', .* ksd_compare returned"
    ):
        dataset(check, "ksd_compare", name="comparison")

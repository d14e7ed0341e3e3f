# SPDX-License-Identifier: Apache-2.0
"""A result shows its verdict, and is a DataTree in all other respects."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arviz as az
import pytest
import xarray as xr
from synthetic import made_up_check
from synthetic_comparison import THREE, made_up_comparison

from pyro_ksd import compare_table, extend, load, summary, to_inference_data
from pyro_ksd.results import ResultTree


@pytest.fixture
def tree() -> ResultTree:
    return ResultTree.of(made_up_check())


def test_it_has_the_groups_and_attributes_of_the_tree() -> None:
    plain = made_up_check()
    plain.attrs["schema_version"] = 1
    found = ResultTree.of(plain)
    assert found.identical(plain)
    assert all(type(child) is xr.DataTree for child in found.children.values())
    found["ksd"].attrs["level"] = 0.1
    assert plain["ksd"].attrs["level"] == 0.05


def test_print_gives_the_table_and_the_verdict(tree: ResultTree) -> None:
    assert str(tree) == repr(tree) == repr(summary(tree))
    assert "The model does not fit (p = 0.004)" in str(tree)


def test_a_notebook_shows_the_card_and_the_groups_within(tree: ResultTree) -> None:
    html = tree._repr_html_()
    assert html.index("The model does not fit") < html.index("xr-")
    assert "ksd_null" in html[html.index("xr-") :]


def test_comparisons_show_their_ranking() -> None:
    comparison = ResultTree.of(made_up_comparison(THREE))
    assert str(comparison) == repr(compare_table(comparison))
    html = comparison._repr_html_()
    assert all(str(name) in html for name in comparison["ksd_compare"]["model"].values)
    both = extend(comparison, made_up_check())
    assert str(both) == f"{summary(both)!r}\n\n{compare_table(both)!r}"
    assert "The model does not fit" in both._repr_html_()


@pytest.mark.parametrize(
    "same",
    [
        lambda tree: tree.copy(),
        lambda tree: tree.copy(deep=True),
        copy.copy,
        copy.deepcopy,
        lambda tree: pickle.loads(pickle.dumps(tree)),
        lambda tree: tree.assign({}),
    ],
    ids=["copy", "deep copy", "copy module", "deepcopy", "pickle", "assign"],
)
def test_a_copy_shows_itself_too(tree: ResultTree, same: Callable[[Any], Any]) -> None:
    xr.testing.assert_identical(same(tree), tree)
    assert type(same(tree)) is ResultTree


@pytest.mark.parametrize(
    "part",
    [
        lambda tree: tree["ksd"],
        lambda tree: tree.isel(view=0),
        lambda tree: tree.filter(lambda node: "ksd" in node.path),
        lambda tree: tree.map_over_datasets(lambda own: own),
        lambda tree: ResultTree.from_dict({"/": xr.Dataset()}),
    ],
    ids=["a group", "isel", "filter", "map_over_datasets", "from_dict"],
)
def test_what_may_be_no_result_is_a_plain_tree(tree: ResultTree, part: Callable[[Any], Any]) -> None:
    assert type(part(tree)) is xr.DataTree


@pytest.mark.parametrize("group", ["ksd", "ksd_ngram", "ksd_data"])
def test_a_result_without_a_group_shows_its_groups(tree: ResultTree, group: str) -> None:
    del tree[group]
    for shown in (repr(tree), tree._repr_html_()):
        assert "ksd_null" in shown
        assert "does not fit" not in shown


def test_a_result_without_a_variable_shows_its_groups(tree: ResultTree) -> None:
    tree["ksd"] = xr.DataTree(tree["ksd"].to_dataset().drop_vars("p_value"))
    assert "ksd_null" in repr(tree)
    assert "ksd_null" in tree._repr_html_()


def test_files_give_results_or_plain_trees(tree: ResultTree, tmp_path: Path) -> None:
    tree.to_netcdf(tmp_path / "check.nc", engine="h5netcdf")
    found = load(tmp_path / "check.nc")
    assert type(found) is ResultTree
    assert str(found) == str(tree)
    with xr.open_datatree(tmp_path / "check.nc", engine="h5netcdf") as opened:
        assert type(opened) is xr.DataTree
        assert opened.identical(found)
        assert repr(summary(opened)) == str(found)


def test_arviz_takes_it_as_a_data_tree(tree: ResultTree) -> None:
    container = to_inference_data(tree)
    assert type(container) is (az.InferenceData if az.__version__.startswith("0.") else ResultTree)
    assert repr(summary(container)) == str(tree)


def test_a_container_that_was_extended_is_what_it_was(tree: ResultTree) -> None:
    posterior = xr.DataTree.from_dict({"posterior": xr.Dataset({"rate": (("chain", "draw"), [[1.0, 2.0]])})})
    assert type(extend(posterior, tree)) is xr.DataTree
    assert type(extend(tree, made_up_check(seed=1))) is ResultTree

# SPDX-License-Identifier: Apache-2.0
"""Results that do not follow the schema are refused, with words on what is wrong where."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import xarray as xr
from synthetic import changed, made_up_check
from synthetic_comparison import THREE, made_up_comparison

from pyro_ksd.results.containers import extend, to_inference_data
from pyro_ksd.results.validation import check_result, results_in

Damage = Callable[[dict[str, xr.Dataset]], Any]


def damaged(damage: Damage, tree: xr.DataTree | None = None) -> xr.DataTree:
    """A check of which some groups were changed."""
    check = made_up_check(impossible=2, tolerance=0.1) if tree is None else tree
    groups = {name: group.to_dataset() for name, group in check.children.items()}
    damage(groups)
    return xr.DataTree.from_dict(groups)


def with_values(group: str, name: str, change: Callable[[np.ndarray], Any]) -> Damage:
    """Other values of one variable, of the same dimensions."""

    def damage(groups: dict[str, xr.Dataset]) -> None:
        own = groups[group]
        values = own[name].values.copy()
        given = change(values)
        attributes = own[name].attrs
        groups[group] = own.assign({name: (own[name].dims, values if given is None else given, attributes)})

    return damage


def with_attribute(group: str, name: str, value: Any) -> Damage:
    return lambda groups: groups[group].attrs.update({name: value})


def put(place: Any, value: Any) -> Callable[[np.ndarray], None]:
    def change(values: np.ndarray) -> None:
        values[place] = value

    return change


def transpose(group: str, name: str) -> Damage:
    def damage(groups: dict[str, xr.Dataset]) -> None:
        groups[group] = groups[group].assign({name: groups[group][name].transpose()})

    return damage


CASES: dict[str, tuple[Damage, str]] = {
    "no null draws": (
        lambda groups: groups.pop("ksd_null"),
        "check.nc: expected the group 'ksd_null' of ksd_check(model, data), found only ['ksd', 'ksd_ngram', ",
    ),
    "no data": (lambda groups: groups.pop("ksd_data"), "expected the group 'ksd_data' of ksd_check"),
    "no features": (lambda groups: groups.pop("ksd_ngram"), "expected the group 'ksd_ngram' of ksd_check"),
    "no p-values": (
        lambda groups: groups.update(ksd=groups["ksd"].drop_vars("p_value")),
        "group 'ksd': expected the variable 'p_value', found only ['attribution', 'contribution', ",
    ),
    "no factors": (
        lambda groups: groups.update(ksd_ngram=groups["ksd_ngram"].drop_vars("factor")),
        "group 'ksd_ngram': expected the variable 'factor', found only",
    ),
    "no names of views": (
        lambda groups: groups.update(ksd_null=groups["ksd_null"].drop_vars("view")),
        "group 'ksd_null': expected the variable 'view'",
    ),
    "no level": (
        lambda groups: groups["ksd"].attrs.pop("level"),
        "group 'ksd': expected the attribute 'level', found only ['kind', 'kind_overall', 'num_bootstrap', 'seed', "
        "'tolerance']; save",
    ),
    "a p-value above 1": (
        with_values("ksd", "p_value", put(1, 1.2)),
        "check.nc, group 'ksd', variable 'p_value': expected numbers from 0 to 1, found 1.2 at view 'content-2'; the "
        "values were changed or damaged",
    ),
    "a p-value below 0": (with_values("ksd", "p_value", put(0, -0.1)), "found -0.1 at view 'content-1'"),
    "a p-value that is missing": (with_values("ksd", "p_value", put(4, np.nan)), "found nan at view 'length'"),
    "an overall p-value above 1": (
        with_values("ksd", "p_value_overall", put((), 3.0)),
        "variable 'p_value_overall': expected numbers from 0 to 1, found 3.0; the",
    ),
    "a p-value of a feature": (
        with_values("ksd_ngram", "p_value", put(7, 2.0)),
        "group 'ksd_ngram', variable 'p_value': expected numbers from 0 to 1, found 2.0 at ngram 7",
    ),
    "a tolerance p-value": (with_values("ksd", "tolerance_p_value", put(2, -1.0)), "variable 'tolerance_p_value'"),
    "a share above 1": (with_values("ksd", "foreign_share", put(0, 1.5)), "variable 'foreign_share': expected"),
    "a negative factor": (with_values("ksd_ngram", "factor", put(0, -2.0)), "expected numbers from 0 to inf, found -2"),
    "a statistic that is infinite": (
        with_values("ksd", "statistic", put(3, np.inf)),
        "variable 'statistic': expected finite numbers, found inf at view 'start'",
    ),
    "a weight that is infinite": (
        with_values("ksd", "weight", put(0, np.inf)),
        "expected finite numbers from 0 on, found inf",
    ),
    "a null draw that is missing": (
        with_values("ksd_null", "ksd", put((0, 5, 2), np.nan)),
        "group 'ksd_null', variable 'ksd': expected finite numbers, found nan at chain 0 at draw 5 at view 'content-3'",
    ),
    "numbers in place of words": (
        with_values("ksd", "meaning", lambda values: np.arange(len(values))),
        "variable 'meaning': expected strings, found int64",
    ),
    "a number among words": (
        with_values("ksd_ngram", "label", put(3, 7)),
        "variable 'label': expected strings, found object",
    ),
    "words in place of numbers": (
        with_values("ksd", "statistic", lambda values: values.astype(str)),
        "variable 'statistic': expected floating-point numbers, found <U",
    ),
    "fractions in place of codes": (
        with_values("ksd_ngram", "symbol", lambda values: values.astype(float)),
        "variable 'symbol': expected integers, found float64",
    ),
    "other dimensions": (
        transpose("ksd", "contribution"),
        "variable 'contribution': expected the dimensions ['view', 'sequence'], found ['sequence', 'view']",
    ),
    "a dimension of another name": (
        lambda groups: groups.update(ksd_ngram=groups["ksd_ngram"].rename_dims(place="letter")),
        "group 'ksd_ngram', variable 'place': expected the dimensions ['place'], found ['letter']",
    ),
    "another kind": (
        with_attribute("ksd", "kind", "bootstrap"),
        "group 'ksd': expected one of ['parametric', 'wild', 'refit', 'posterior predictive', 'split predictive', "
        "'divided predictive'] in the attribute 'kind', found 'bootstrap'",
    ),
    "another test": (
        with_attribute("ksd", "test", "energy"),
        "expected one of ['mmd', 'likelihood ratio'] in the attribute 'test', found 'energy'",
    ),
    "a level in words": (
        with_attribute("ksd", "level", "5 %"),
        "expected a number in the attribute 'level', found '5 %'",
    ),
    "a level above 1": (
        with_attribute("ksd", "level", 5.0),
        "expected numbers from 0 to 1 in the attribute 'level', fo",
    ),
    "half a draw": (
        with_attribute("ksd", "num_bootstrap", 0.5),
        "expected an integer in the attribute 'num_bootstrap', found 0.5",
    ),
    "edits as a number": (with_attribute("ksd", "edits", 3), "expected a string in the attribute 'edits', found 3"),
    "a posterior predictive check without its draws": (
        with_attribute("ksd", "kind", "posterior predictive"),
        "expected the group 'ksd_ppc' of ksd_check(model, data, posterior=...), found only",
    ),
    "a divided check without its folds": (
        with_attribute("ksd", "kind", "divided predictive"),
        "expected the group 'ksd_fold' of ksd_check(model, data, fit=...), found only",
    ),
    "symbols that the alphabet lacks": (
        with_values("ksd_data", "token", put((0, 0), 9)),
        "group 'ksd_data', variable 'token': expected codes of the 4 symbols, found 9",
    ),
    "a code after the end": (
        with_values("ksd_data", "length", lambda values: np.maximum(values - 1, 0)),
        "group 'ksd_data', sequence 0: expected 11 codes and -1 after them, found 12 codes",
    ),
    "lengths beyond the table": (
        with_values("ksd_data", "length", put(0, 40)),
        "group 'ksd_data', sequence 0: expected 40 codes and -1 after them, found 12 codes",
    ),
    "no alphabet": (
        lambda groups: groups["ksd_data"]["token"].attrs.clear(),
        "variable 'token': expected a JSON list of symbols in the attribute 'alphabet', found ''",
    ),
    "an alphabet that is no list": (
        lambda groups: groups["ksd_data"]["token"].attrs.update(alphabet='{"a": 1}'),
        "variable 'token': expected a JSON list of symbols in the attribute 'alphabet', found",
    ),
    "other views": (
        lambda groups: groups.update(ksd_null=groups["ksd_null"].isel(view=slice(None, None, -1))),
        "group 'ksd_null': expected the views of the group 'ksd', ['content-1', 'content-2', 'content-3', 'start', ",
    ),
    "sequences that are not in the data": (
        lambda groups: groups.update(ksd=groups["ksd"].assign_coords(sequence=groups["ksd"]["sequence"] + 1)),
        "group 'ksd': expected rows of the 32 sequences, found row 32",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_is_refused(case: str) -> None:
    damage, message = CASES[case]
    with pytest.raises(ValueError) as error:  # noqa: PT011
        check_result(damaged(damage), "check.nc")
    assert message in str(error.value)
    assert re.fullmatch(r"check\.nc.*: expected .*, found .*; .*", str(error.value), re.DOTALL)


def test_a_sound_result_is_not_refused() -> None:
    check_result(damaged(lambda groups: None), "check.nc")


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (3, "expected a result of schema 2 or earlier, found schema 3, written by a later version of pyro_ksd; update"),
        (0, "expected an integer from 1 on in the attribute 'schema_version', found 0"),
        ("1", "expected an integer from 1 on in the attribute 'schema_version', found '1'"),
        (1.5, "expected an integer from 1 on in the attribute 'schema_version', found 1.5"),
    ],
)
def test_versions(version: Any, message: str) -> None:
    check = made_up_check()
    check.attrs["schema_version"] = version
    with pytest.raises(ValueError, match=re.escape(message)):
        check_result(check, "check.nc")
    check.attrs["schema_version"] = np.int64(1)  # as netCDF gives it
    check_result(check, "check.nc")


def test_a_later_schema_is_named_before_anything_else() -> None:
    tree = xr.DataTree.from_dict({"/": xr.Dataset(attrs={"schema_version": 7}), "everything": xr.Dataset()})
    with pytest.raises(ValueError, match="found schema 7"):
        check_result(tree, "check.nc")


def test_unknown_variables_and_groups_are_left_alone() -> None:
    def add(groups: dict[str, xr.Dataset]) -> None:
        groups["ksd_new"] = xr.Dataset({"p_value": 7.0})
        groups["ksd"]["new"] = ("view", np.full(5, np.nan))

    check_result(damaged(add), "check.nc")


@pytest.mark.parametrize("group", ["ksd_impossible", "ksd_compare_impossible"])
def test_impossible_sequences_that_are_not_in_the_data(group: str) -> None:
    tree = made_up_comparison(THREE, impossible=2) if "compare" in group else made_up_check(impossible=2)

    def move(groups: dict[str, xr.Dataset]) -> None:
        groups[group] = groups[group].assign_coords(sequence=groups[group]["sequence"] + 31)

    with pytest.raises(ValueError, match=f"group '{group}': expected rows of the 32 sequences, found row 32"):
        check_result(damaged(move, tree), "check.nc")


def test_a_comparison() -> None:
    comparison = made_up_comparison(THREE, impossible=2)
    assert results_in(comparison, "comparison.nc") == ["comparison"]
    with pytest.raises(
        ValueError, match=r"group 'ksd_compare', variable 'p_value': expected .* to 1, found 3.0 at model"
    ):
        check_result(damaged(with_values("ksd_compare", "p_value", put((0, 1, 2), 3.0)), comparison), "comparison.nc")
    wrong = with_values("ksd_compare_impossible", "impossible", lambda values: values.astype(int))
    with pytest.raises(ValueError, match="variable 'impossible': expected booleans, found int64"):
        check_result(damaged(wrong, comparison), "comparison.nc")
    with pytest.raises(
        ValueError, match="'rank': expected finite numbers from 0 on, found -1 at model 'order 0' at view"
    ):
        check_result(changed(comparison, "ksd_compare", rank=comparison["ksd_compare"]["rank"] - 3), "comparison.nc")


def test_containers_with_several_results() -> None:
    posterior = xr.DataTree.from_dict({"posterior": xr.Dataset({"rate": (("chain", "draw"), [[0.1, 0.2]])})})
    both = extend(extend(posterior, made_up_check()), made_up_comparison(THREE))
    assert results_in(both, "all.nc") == ["check", "comparison"]
    check_result(both, "all.nc")
    check_result(to_inference_data(both), "all.nc")
    with pytest.raises(ValueError, match="variable 'standard_error': expected finite numbers from 0 on, found -"):
        check_result(damaged(with_values("ksd_compare", "standard_error", put((0, 0), -1.0)), both), "all.nc")


def test_nothing_of_pyro_ksd() -> None:
    with pytest.raises(
        ValueError, match=r"found \['posterior'\]; choose a file in which the result of ksd_check, mmd_c"
    ):
        check_result(xr.DataTree.from_dict({"posterior": xr.Dataset()}), "draws.nc")
    with pytest.raises(ValueError, match="found no groups; choose"):
        check_result(xr.DataTree(), "empty.nc")


def test_empty_groups_need_no_type() -> None:
    """netCDF keeps an empty array of strings as one of numbers."""

    def empty(groups: dict[str, xr.Dataset]) -> None:
        none = groups["ksd_edit"].isel(edit=slice(0))
        groups["ksd_edit"] = none.assign(view_name=none["view_name"].astype(float))

    check_result(damaged(empty), "check.nc")

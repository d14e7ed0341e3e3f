# SPDX-License-Identifier: Apache-2.0
"""Whether groups are those of a result, as the schema states them."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from numbers import Integral
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import xarray as xr

from pyro_ksd.common.option_checks import found, is_count, is_real
from pyro_ksd.results.containers import group_of, groups_of
from pyro_ksd.results.schema import GROUPS, SCHEMA_VERSION
from pyro_ksd.results.schema_entries import POSTERIOR_KINDS, SOURCES, Attribute, Result, Type, Variable, is_required

_LETTERS: Mapping[Type, str] = {"float": "f", "integer": "iu", "boolean": "b", "string": "OUT"}
"""The kinds of numpy's dtypes that hold values of a type."""
_PLURALS: Mapping[Type, str] = {
    "float": "floating-point numbers",
    "integer": "integers",
    "boolean": "booleans",
    "string": "strings",
}
_DAMAGED = "the values were changed or damaged after the result was made; make it again"
_INCOMPLETE = "save the whole result again, with result.to_netcdf(path)"


def check_result(container: Any, name: str) -> None:
    """Checks that a container has one or more results that follow the schema; groups of others may stand beside them.

    :param container: a DataTree or an InferenceData.
    :param name: of the container, for errors.
    :raises ValueError: with the group and the variable that are not as they should be.

    >>> check_result(xr.DataTree.from_dict({"posterior": xr.Dataset()}), "draws.nc")
    Traceback (most recent call last):
    ValueError: draws.nc: expected a result of pyro_ksd, with a group 'ksd', 'ksd_compare' or 'ksd_monitor', found ...
    """
    groups = groups_of(container, name)
    _check_version(container, name)
    results = results_in(container, name)
    for group, stated in GROUPS.items():
        users = [result for result in results if result in stated.required_in]
        if group not in groups and users:
            _fail(name, f"the group {group!r} of {SOURCES[users[0]]}", f"only {groups}", _INCOMPLETE)
    for group, stated in GROUPS.items():
        if group in groups:
            own = group_of(container, group)
            where = f"{name}, group {group!r}"
            _check_attributes(own.attrs, stated.attributes, results, where)
            _check_variables(own, stated.coordinates, results, where)
            _check_variables(own, stated.variables, results, where)
            if group in ("ksd_data", "ksd_draws"):
                _check_tokens(own, where)
    _check_agreement(container, name)


def results_in(container: Any, name: str) -> list[Result]:
    """Which results a container has: one test, one comparison, or both.

    :raises ValueError: if it has none.
    """
    groups = groups_of(container, name)
    results: list[Result] = []
    if "ksd" in groups:
        attributes = group_of(container, "ksd").attrs
        stated = GROUPS["ksd"].attributes
        if "test" in attributes:
            _check_attributes(attributes, {"test": stated["test"]}, [], f"{name}, group 'ksd'")
            results.append("mmd" if attributes["test"] == "mmd" else "likelihood ratio")
        else:
            of_posterior = [kind for kind in POSTERIOR_KINDS if kind == attributes.get("kind")]
            only_p_values = attributes.get("localized") == 0
            results += ["p-values"] if only_p_values else of_posterior or ["check"]
    if "ksd_compare" in groups:
        results.append("comparison")
    if "ksd_monitor" in groups:
        results.append("monitor")
    if not results:
        calls = ", ".join(dict.fromkeys(call.split("(")[0] for call in SOURCES.values()))
        _fail(
            name,
            "a result of pyro_ksd, with a group 'ksd', 'ksd_compare' or 'ksd_monitor'",
            f"{groups or 'no groups'}",
            f"choose a file in which the result of {calls} was saved",
        )
    return results


def _check_version(container: Any, name: str) -> None:
    # Files from before there was a version follow the first one, or fail the checks of the groups.
    version = container.attrs.get("schema_version", 1)
    if not is_count(version):
        _fail(name, "an integer from 1 on in the attribute 'schema_version'", found(version), _DAMAGED)
    if int(version) > SCHEMA_VERSION:
        _fail(
            name,
            f"a result of schema {SCHEMA_VERSION} or earlier",
            f"schema {version}, written by a later version of pyro_ksd",
            "update pyro_ksd: pip install --upgrade pyro_ksd",
        )


def _check_attributes(
    attributes: Mapping[str, Any], stated: Mapping[str, Attribute], results: Collection[Result], where: str
) -> None:
    for name, own in stated.items():
        if name not in attributes:
            if is_required(own, results):
                _fail(where, f"the attribute {name!r}", f"only {sorted(attributes)}", _INCOMPLETE)
            continue
        value = attributes[name]
        if own.type == "string":
            if not isinstance(value, str) or (own.choices and value not in own.choices):
                words = f"one of {list(own.choices)}" if own.choices else "a string"
                _fail(where, f"{words} in the attribute {name!r}", found(value), _DAMAGED)
        elif not is_real(value) or (own.type == "integer" and not isinstance(value, Integral)):
            words = "an integer" if own.type == "integer" else "a number"
            _fail(where, f"{words} in the attribute {name!r}", found(value), _DAMAGED)
        elif not _inside(np.array(float(value)), own.least, own.most).all():
            _fail(where, f"{_range(own.least, own.most)} in the attribute {name!r}", f"{value}", _DAMAGED)


def _check_variables(
    group: xr.Dataset, stated: Mapping[str, Variable], results: Collection[Result], where: str
) -> None:
    for name, own in stated.items():
        if name in group.variables:
            _check_variable(group, name, own, f"{where}, variable {name!r}")
        elif is_required(own, results):
            _fail(where, f"the variable {name!r}", f"only {sorted(map(str, group.variables))}", _INCOMPLETE)


def _check_variable(group: xr.Dataset, name: str, own: Variable, where: str) -> None:
    variable = group.variables[name]
    if variable.dims != own.dims:
        _fail(where, f"the dimensions {list(own.dims)}", f"{list(variable.dims)}", _DAMAGED)
    if not variable.size:  # netCDF does not keep the type of an empty array
        return
    values = variable.values
    of_type = values.dtype.kind in _LETTERS[own.type]
    if own.type == "string" and values.dtype.kind == "O":
        of_type = all(isinstance(value, str) for value in values.flat)
    if not of_type:
        _fail(where, _PLURALS[own.type], f"{values.dtype}", _DAMAGED)
    if own.type in ("float", "integer"):
        good = _inside(values, own.least, own.most)
        if own.unknown:
            good |= np.isnan(values)
        if not good.all():
            place = tuple(np.argwhere(~good)[0].tolist())
            labels = {dim: _label(group, dim, index) for dim, index in zip(own.dims, place, strict=True)}
            at = "".join(f" at {dim} {label!r}" for dim, label in labels.items())
            _fail(where, _range(own.least, own.most), f"{values[place]}{at}", _DAMAGED)


def _label(group: xr.Dataset, dim: str, index: int) -> Any:
    return group.variables[dim].values.tolist()[index] if dim in group.variables else index


def _inside(values: npt.NDArray[Any], least: float | None, most: float | None) -> npt.NDArray[np.bool_]:
    """Which values are in a range; without a bound, infinity is not, and NaN never is."""
    above = values > -math.inf if least is None else values >= least
    below = values < math.inf if most is None else values <= most
    inside: npt.NDArray[np.bool_] = np.asarray(above & below)
    return inside


def _range(least: float | None, most: float | None) -> str:
    if least is None:
        return "finite numbers" if most is None else f"numbers up to {most:g}"
    if most is None:
        return f"finite numbers from {least:g} on"
    return f"numbers from {least:g} to {most:g}"


def _check_tokens(group: xr.Dataset, where: str) -> None:
    """Checks that the codes are those of the alphabet, and -1 after the ends of the sequences and nowhere else."""
    tokens = group["token"].values
    alphabet = group["token"].attrs.get("alphabet", "")
    try:
        symbols = json.loads(alphabet)
    except (TypeError, ValueError):
        symbols = None
    if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
        _fail(
            f"{where}, variable 'token'", "a JSON list of symbols in the attribute 'alphabet'", repr(alphabet), _DAMAGED
        )
    if tokens.size and tokens.max() >= len(symbols):
        _fail(f"{where}, variable 'token'", f"codes of the {len(symbols)} symbols", f"{tokens.max()}", _DAMAGED)
    inside = np.arange(tokens.shape[1]) < group["length"].values[:, None]
    wrong = np.argwhere((inside != (tokens >= 0)).any(1)).ravel()
    too_long = np.argwhere(group["length"].values > tokens.shape[1]).ravel()
    for row in (*wrong[:1], *too_long[:1]):
        length, present = int(group["length"].values[row]), int((tokens[row] >= 0).sum())
        _fail(f"{where}, sequence {row}", f"{length} codes and -1 after them", f"{present} codes", _DAMAGED)


def _check_agreement(container: Any, name: str) -> None:
    """Checks that groups that belong together have the same views and refer only to sequences of the data."""
    groups = groups_of(container, name)
    views = [group for group in ("ksd", "ksd_null", "ksd_ppc", "ksd_fold") if group in groups]
    for group in views[1:]:
        own, first = (group_of(container, each)["view"].values.tolist() for each in (group, views[0]))
        if own != first:
            _fail(f"{name}, group {group!r}", f"the views of the group {views[0]!r}, {first}", f"{own}", _DAMAGED)
    users = [part for part in ("ksd", "ksd_fold", "ksd_impossible", "ksd_compare_impossible") if part in groups]
    rows = group_of(container, "ksd_data")["sequence"].values if users else np.empty(0)
    for part in users:
        if "sequence" not in (its := group_of(container, part)).variables:
            continue
        foreign = np.setdiff1d(its["sequence"].values, rows)
        if foreign.size:
            _fail(f"{name}, group {part!r}", f"rows of the {len(rows)} sequences", f"row {foreign[0]}", _DAMAGED)


def _fail(where: str, expected: str, what: str, fix: str) -> NoReturn:
    raise ValueError(f"{where}: expected {expected}, found {what}; {fix}")

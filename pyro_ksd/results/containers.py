# SPDX-License-Identifier: Apache-2.0
"""Checks and the containers of both ArviZ generations: ``xarray.DataTree`` and ``arviz.InferenceData``."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import xarray as xr

from pyro_ksd import __version__
from pyro_ksd.common.option_checks import found
from pyro_ksd.common.user_warnings import warn_user
from pyro_ksd.results.schema import GROUPS, SCHEMA_VERSION
from pyro_ksd.results.schema_entries import Attribute, Variable, is_required

_SOURCES = {
    "ksd_ppc": "ksd_check(..., posterior=...), without held_out=True,",
    "ksd_fold": "ksd_check(..., fit=...)",
    "ksd_compare": "ksd_compare",
    "posterior": "from_pyro, or an inference,",
}
"""What gives a group, where it is not ``ksd_check``."""


_DATA = "ksd_data"
_SHARED = ("observed_data", "posterior_predictive", "log_likelihood")
"""Groups in which variables of others may stand beside those of a check."""

POSTERIOR_OF_CHECK = "the draws of ksd_check(..., posterior=...)"
"""The attribute ``source`` of a group ``posterior`` that a check has, not its container."""


def has_group(container: Any, group: str, name: str = "check") -> bool:
    """Whether a check, a DataTree or an InferenceData has a group of this name.

    :param name: of the argument, for the error if it is none of these.
    """
    return group in groups_of(container, name)


def dataset(check: Any, group: str, *variables: str, name: str = "check") -> xr.Dataset:
    """One group of a check, a DataTree or an InferenceData, as a dataset.

    :param variables: which it must have beside those that every such group has.
    :param name: of the argument, for errors.
    :raises ValueError: if it has no such group, or the group lacks a variable.
    """
    if not has_group(check, group, name):
        raise ValueError(
            f"expected a {name} with the group {group!r}, found {groups_of(check)}; {_remedy(check, group)}"
        )
    own = group_of(check, group)
    stated = GROUPS.get(group)
    needed = [] if stated is None else _needed(stated.variables)
    missing = [each for each in (*needed, *variables) if each not in own.variables]
    if stated is not None:
        missing += [each for each in _needed(stated.attributes) if each not in own.attrs]
    if missing:
        raise ValueError(
            f"expected a {name} with {missing} in the group {group!r}, found {sorted(map(str, own.variables))}; "
            f"{_remedy(check, group)}"
        )
    return own


def _remedy(check: Any, group: str) -> str:
    """What to pass to have a group, or variables of it."""
    if has_group(check, "ksd") and not group_of(check, "ksd").attrs.get("localized", 1):
        return "this check has only p-values: call ksd_check without localize=False"
    return f"pass what {_SOURCES.get(group, 'ksd_check')} returned"


def _needed(entries: Mapping[str, Variable] | Mapping[str, Attribute]) -> list[str]:
    """What a group has in every result."""
    return [name for name, own in entries.items() if is_required(own, [])]


def group_of(container: Any, group: str) -> xr.Dataset:
    """A group that is there, whatever it has."""
    own = container[group]
    return _with_plain_strings(own.to_dataset() if isinstance(own, xr.DataTree) else own)


def data_of(check: Any) -> xr.Dataset:
    """The sequences that were checked."""
    return dataset(check, _DATA)


def alphabet_of(check: Any) -> list[str]:
    """The symbols of a check's data, in the order of their codes."""
    return [str(symbol) for symbol in json.loads(data_of(check)["token"].attrs["alphabet"])]


def num_sequences(check: Any, group: str) -> int:
    """How many sequences a group is about, such as ``ksd_data``; of partitioned data it has only some of them.

    >>> import xarray as xr
    >>> group = xr.Dataset({"length": ("sequence", [2, 1])}, attrs={"num_sequences": 1000})
    >>> num_sequences(xr.DataTree.from_dict({"mine": group}), "mine")
    1000
    """
    own = dataset(check, group)
    return int(own.attrs.get("num_sequences", own.sizes["sequence"]))


def has_all_data(check: Any) -> bool:
    """Whether a result has all sequences, not only those of partitioned data that it refers to."""
    return "num_sequences" not in data_of(check).attrs


def to_inference_data(check: Any) -> Any:
    """The check in the container of the installed ArviZ: an InferenceData for 0.23, the DataTree itself from 1.0 on.

    :param check: what :func:`pyro_ksd.ksd_check` or :func:`pyro_ksd.from_pyro` gave, or what was loaded from a file.

    >>> import xarray as xr
    >>> check = xr.DataTree.from_dict({"ksd": xr.Dataset({"p_value": ("view", [0.04])})})
    >>> float(to_inference_data(check)["ksd"]["p_value"][0])
    0.04
    """
    groups_of(check)
    arviz = _arviz()
    if not isinstance(check, xr.DataTree) or not arviz.__version__.startswith("0."):
        return check
    return arviz.from_datatree(check)


def extend(container: Any, check: Any) -> Any:
    """A new container with all groups of another one and those of a check.

    The groups of an earlier check, ``ksd`` and all ``ksd_...``, are replaced; the groups of a comparison,
    ``ksd_compare...``, only by another comparison. The numbers of the data join the other variables of
    ``observed_data``, those of replicated data the group ``posterior_predictive``. A ``posterior`` of the container
    stays. What was drawn for other posterior draws than the container has is left out, and a warning says so.

    :param container: a DataTree or an InferenceData, for example with a posterior. It stays as it is.
    :param check: what :func:`pyro_ksd.ksd_check` or :func:`pyro_ksd.ksd_compare` gave, or what was loaded from a file.
    :returns: a container of the same kind as ``container``.
    :raises ValueError: if the ``observed_data`` of both do not fit together, or a check and a comparison are of
        different data.

    >>> import xarray as xr
    >>> posterior = xr.DataTree.from_dict({"posterior": xr.Dataset({"stop": (("chain", "draw"), [[0.3, 0.4]])})})
    >>> check = xr.DataTree.from_dict({"ksd": xr.Dataset({"p_value": ("view", [0.04])})})
    >>> sorted(extend(posterior, check).children)
    ['ksd', 'posterior']
    """
    added = {group: _family(group) for group in groups_of(check) if _family(group)}
    if not added:
        raise ValueError(
            f"check: expected a group 'ksd', found {groups_of(check)}; give the container first, then the check"
        )
    families = {group: _family(group) for group in groups_of(container, "container")}
    _check_same_data(container, check, staying=set(families.values()) - {"", _DATA, *added.values()})
    is_tree = isinstance(container, xr.DataTree)
    tree = container.copy() if is_tree else container.to_datatree()
    for group, family in families.items():
        if family in added.values():
            del tree[group]
    for group in added:
        tree[group] = xr.DataTree(group_of(check, group))
    if "check" in families.values() and "check" in added.values():
        _drop_earlier(tree)
    if has_group(check, "observed_data"):
        _join(tree, "observed_data", group_of(check, "observed_data"))
    _add_sampled(tree, check)
    tree.attrs |= schema_stamp()
    return tree if is_tree else to_inference_data(tree)


def schema_stamp() -> dict[str, int]:
    """The attribute at the root of a container that says which schema its groups have."""
    return {"schema_version": SCHEMA_VERSION}


def provenance() -> dict[str, str]:
    """Attributes that say when and by what a group was made."""
    made = {
        "created_at": datetime.now(UTC).isoformat(),
        "creation_library": "pyro_ksd",
        "creation_library_version": __version__,
        "inference_library": "pyro",
    }
    try:
        return made | {"inference_library_version": version("pyro-ppl")}
    except PackageNotFoundError:  # where checks are only read
        return made


def _arviz() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # ArviZ 0.23 announces ArviZ 1.0 when imported
        import arviz
    return arviz


def groups_of(container: Any, name: str = "check") -> list[str]:
    """The names of the groups of a DataTree or an InferenceData.

    :param name: of the argument, for the error if it is none of these.
    """
    if isinstance(container, xr.DataTree):
        return list(container.children)
    if not isinstance(container, type) and callable(getattr(container, "groups", None)):
        return list(container.groups())
    raise ValueError(
        f"{name}: expected an xarray.DataTree or an arviz.InferenceData, found {found(container)}; "
        "read a file with pyro_ksd.load(path)"
    )


def _family(group: str) -> str:
    """Whether a group is of a ``"check"`` or of a ``"comparison"``, or the data of both; ``""`` for all others."""
    if group == _DATA:
        return _DATA
    if group.startswith("ksd_compare"):
        return "comparison"
    return "check" if group == "ksd" or group.startswith("ksd_") else ""


def _with_plain_strings(own: xr.Dataset) -> xr.Dataset:
    """Zarr gives strings in numpy's ``StringDType``, which cannot be cast to other strings."""
    strings = {name: v.astype(object) for name, v in own.variables.items() if v.dtype.kind == "T"}
    return own.assign(strings) if strings else own


def _drop_earlier(tree: xr.DataTree) -> None:
    """Removes what an earlier check has added to groups that are not its own."""
    if "posterior" in tree.children and tree["posterior"].attrs.get("source") == POSTERIOR_OF_CHECK:
        del tree["posterior"]
    for group in _SHARED:
        if group in tree.children:
            own = tree[group].to_dataset()
            rest = own.drop_vars(GROUPS[group].variables, errors="ignore")
            used = {dim for variable in rest.data_vars.values() for dim in variable.dims}
            unused = [name for name, values in rest.coords.items() if not used.issuperset(values.dims)]
            if rest.data_vars:
                tree[group] = xr.DataTree(rest.drop_vars(unused))
            else:
                del tree[group]


def _join(tree: xr.DataTree, group: str, added: xr.Dataset) -> None:
    """Adds the variables of a check to a group that may be there already."""
    own = tree[group].to_dataset() if group in tree.children else xr.Dataset()
    tree[group] = xr.DataTree(_joined(own, added, group))


def _add_sampled(tree: xr.DataTree, check: Any) -> None:
    """Adds what has the draws of a posterior, as far as they are those of the container."""
    if "posterior" not in tree.children and has_group(check, "posterior"):
        tree["posterior"] = xr.DataTree(group_of(check, "posterior"))
    left_out = []
    for group in ("posterior_predictive", "log_likelihood"):
        if not has_group(check, group):
            continue
        added = group_of(check, group)
        beside = ["posterior"] if group == "log_likelihood" else []
        sizes = [tree[name].to_dataset().sizes for name in (group, *beside) if name in tree.children]
        if all(own.get(dim) in (None, added.sizes[dim]) for own in sizes for dim in ("chain", "draw")):
            _join(tree, group, added)
        else:
            left_out.append(group)
    if left_out:
        of_posterior = has_group(check, "ksd_ppc")
        more = ", or let it take all draws, by num_bootstrap=<their number in all chains>" if of_posterior else ""
        warn_user(
            f"the container has other numbers of chains and draws than the check, so {' and '.join(left_out)} of the "
            f"check was left out; pass the check itself to ArviZ{more}"
        )


def _check_same_data(container: Any, check: Any, *, staying: set[str]) -> None:
    """Checks that a check and a comparison that are to stand in one container have the same data.

    :param staying: the kinds of results of the container that are not replaced.
    """
    if not staying or not has_group(container, _DATA, "container") or not has_group(check, _DATA):
        return
    own = group_of(container, _DATA)
    if not own.equals(group_of(check, _DATA)):
        raise ValueError(
            f"check: expected a result for the same {own.sizes['sequence']} sequences as the {staying.pop()} in the "
            "container, found other sequences; put it into a container of its own"
        )


def _joined(own: xr.Dataset, observed: xr.Dataset, group: str) -> xr.Dataset:
    shared = (set(own.variables) | set(own.dims)) & (set(observed.variables) | set(observed.dims))
    clashes = sorted(str(name) for name in shared if not _agree(own, observed, str(name)))
    if clashes:
        raise ValueError(
            f"{group}: expected no {clashes} in the container, or the same as in the check, found the sizes "
            f"{dict(own.sizes)} there and {dict(observed.sizes)} in the check; rename what is in the container first, "
            f"by Dataset.rename({{{clashes[0]!r}: 'my_{clashes[0]}'}})"
        )
    return own.drop_vars(shared, errors="ignore").merge(observed).assign_attrs(own.attrs | observed.attrs)


def _agree(own: xr.Dataset, observed: xr.Dataset, name: str) -> bool:
    """Whether a name is a dimension of one size, or none, in both, and of equal values where both have some."""
    if own.sizes.get(name) != observed.sizes.get(name):
        return False
    both = name in own.variables and name in observed.variables
    return not both or own.variables[name].equals(observed.variables[name])

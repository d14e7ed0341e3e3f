# SPDX-License-Identifier: Apache-2.0
"""Checksums of saved arrays, so that a damaged file is noticed when it is read."""

from __future__ import annotations

import xarray as xr

_LAYOUT = ("contiguous", "chunksizes")  # of the file that a variable was read from; checksums are kept for chunks


def with_checksums(tree: xr.DataTree) -> xr.DataTree:
    """The same tree, whose arrays ``to_netcdf`` now writes with checksums (Fletcher-32, in HDF5).

    Strings are written with a fixed width: of strings of varying width, HDF5 would check the addresses only. Single
    numbers and empty arrays have no chunks, and so no checksums; attributes have those of the headers of HDF5.

    >>> tree = xr.DataTree.from_dict({"ksd": xr.Dataset({"p_value": ("view", [0.04])})})
    >>> with_checksums(tree)["ksd"]["p_value"].encoding
    {'fletcher32': True}
    """
    for node in tree.subtree:
        for variable in node.variables.values():
            if not variable.size or not variable.ndim:
                continue
            for name in _LAYOUT:
                variable.encoding.pop(name, None)
            variable.encoding["fletcher32"] = True
            if _has_strings(variable):
                variable.encoding["dtype"] = "S1"
    return tree


def _has_strings(variable: xr.Variable) -> bool:
    if variable.dtype.kind == "O":
        return all(isinstance(value, str) for value in variable.values.flat)
    return variable.dtype.kind in "UT"

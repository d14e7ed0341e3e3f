# SPDX-License-Identifier: Apache-2.0
"""Data in memory and the same data in parts, and comparisons of what checks of both give."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr

from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.partitions import PartitionedSequences


def in_parts(data: Sequences, cuts: Sequence[int]) -> PartitionedSequences:
    """The data, cut before some rows."""
    bounds = [0, *cuts, len(data)]
    parts = [data[begin:end].narrowed() for begin, end in pairwise(bounds)]
    return PartitionedSequences.of(parts, data.alphabet)


def numbers(check: xr.DataTree) -> dict[str, np.ndarray[Any, Any]]:
    """What does not depend on how the data are cut, but for rounding.

    Sequences, edits and n-grams with the same share may come in any order.
    """
    found = {}
    for group in ("ksd", "ksd_null", "ksd_length", "ksd_factor"):
        if group not in check.children:
            continue
        own = check[group].to_dataset()
        for name in own.data_vars:
            values = own[name].values
            if values.dtype.kind == "f" and name not in ("contribution", "attribution", "gram"):
                found[f"{group}.{name}"] = values
    edits = check["ksd_edit"]
    found["edits"] = edits["share"].values
    ngrams = check["ksd_ngram"].to_dataset()
    order = np.lexsort((ngrams["label"].values.astype(str), ngrams["view_name"].values.astype(str)))
    for name in ngrams.data_vars:
        if ngrams[name].dtype.kind == "f":
            found[f"ngram.{name}"] = ngrams[name].values[order]
    ksd = check["ksd"].to_dataset()
    for view in ksd["view"].values.tolist():
        own = ksd.sel(view=view)
        shares = own["contribution"].sel(sequence=own["shown_sequence"].values).values
        found[f"{view} shown"] = shares
        by_position = np.nansum(own["attribution"].values, 1)
        np.testing.assert_allclose(by_position, shares, rtol=1e-8, atol=1e-12)
    return found


def assert_same(one: xr.DataTree, other: xr.DataTree) -> None:
    """Checks that two checks of the same data agree: p-values exactly, the rest to rounding."""
    mine, others = numbers(one), numbers(other)
    assert mine.keys() == others.keys()
    for name, values in mine.items():
        scale = np.nanmax(np.abs(values[np.isfinite(values)]), initial=1e-12)
        np.testing.assert_allclose(others[name], values, rtol=1e-7, atol=1e-9 * scale, err_msg=name)
        if "p_value" in name:
            np.testing.assert_array_equal(others[name], values, err_msg=name)
    for group in ("ksd", "ksd_null"):
        assert one[group].attrs["kind"] == other[group].attrs["kind"]


def assert_identical(one: xr.DataTree, other: xr.DataTree) -> None:
    """Checks that two checks agree in every bit, but for times."""
    assert list(one.children) == list(other.children)
    for group in one.children:
        mine, others = one[group].to_dataset(), other[group].to_dataset()
        for name in mine.variables:
            left, right = mine[name].values, others[name].values
            if left.dtype.kind == "f":
                left, right = (values.view(f"i{values.itemsize}") for values in (left, right))
            np.testing.assert_array_equal(left, right, err_msg=f"{group}.{name}")

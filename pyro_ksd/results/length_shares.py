# SPDX-License-Identifier: Apache-2.0
"""The lengths of the data and of the model in bins that a picture can show."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import xarray as xr

MOST_BARS = 60
"""How many bars can be told apart."""

_NEGLIGIBLE = 0.005  # the probability of lengths that are not shown, on each side of the data


def length_bins(lengths: xr.Dataset, most: int) -> list[npt.NDArray[np.float64]]:
    """Bins of equally many lengths: those of the data, and others up to where the model makes hardly any sequences.

    :param lengths: the group ``ksd_length``.
    :param most: how many bins there may be.
    :returns: their edges, halfway between lengths, ``[M + 1]``, and the mean shares, observed and expected, ``[M]``.

    >>> shares = {"observed": ("length", [0.0, 0.5, 0.5]), "expected": ("length", [0.0, 0.2, 0.8])}
    >>> [values.tolist() for values in length_bins(xr.Dataset(shares, {"length": [0, 1, 2]}), 60)]
    [[0.5, 1.5, 2.5], [0.5, 0.5], [0.2, 0.8]]
    """
    shown = _worth_showing(lengths)
    count = shown.sizes["length"]
    width = -(-count // most)
    bins = -(-count // width)
    first = float(shown["length"].values[0])
    edges: npt.NDArray[np.float64] = first - 0.5 + width * np.arange(bins + 1.0)
    found: list[npt.NDArray[np.float64]] = [edges]
    for name in ("observed", "expected"):
        padded = np.pad(shown[name].values, (0, bins * width - count))
        found.append(padded.reshape(bins, width).mean(1))
    return found


def _worth_showing(lengths: xr.Dataset) -> xr.Dataset:
    """The lengths of the data, and others on both sides up to where the model makes hardly any sequences."""
    seen = np.flatnonzero(lengths["observed"].values)
    expected = lengths["expected"].values
    below = np.flatnonzero(np.cumsum(expected) > _NEGLIGIBLE)
    above = np.flatnonzero(np.cumsum(expected[::-1])[::-1] > _NEGLIGIBLE)
    return lengths.isel(length=slice(min(seen[0], below[0]), max(seen[-1], above[-1]) + 1))

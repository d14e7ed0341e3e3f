# SPDX-License-Identifier: Apache-2.0
"""Comparisons made up by hand, in the layout of those of ``ksd_compare``, for tests that must run without torch."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import xarray as xr
from synthetic import MEANINGS, made_up_check

THREE = {"order 0": 3.0, "order 2": 0.25, "order 1": 1.0}
LONG = {
    f"a hidden Markov model with {states} states, trained for a thousand steps from a random start": float(states)
    for states in range(5)
}


def made_up_comparison(
    statistic: Mapping[str, float], *, error: float = 0.5, impossible: int = 0, level: float = 0.05
) -> xr.DataTree:
    """A comparison of models with given statistics, the same in all views.

    :param statistic: by the names of the models; ``error`` is the standard error of each and of each difference.
    :param impossible: how many sequences the first model cannot make.
    """
    names, views = np.array(list(statistic), dtype=object), [*MEANINGS, "overall"]
    values = np.repeat(np.array(list(statistic.values()), dtype=float)[:, None], len(views), 1)
    difference = values[:, None] - values
    varies = difference != 0
    z = difference / error
    one, pair = ("model", "view"), ("model", "model_bis", "view")
    p_value = np.vectorize(math.erfc)(np.abs(z) / 2**0.5)
    if impossible:
        z[0, 1:, -1], z[1:, 0, -1] = np.inf, -np.inf
        p_value[0, 1:, -1] = p_value[1:, 0, -1] = 0.0
    check = made_up_check(num_sequences=30, impossible=impossible)
    compared = xr.Dataset(
        {
            "statistic": (one, values),
            "standard_error": (one, np.full_like(values, error)),
            "rank": (one, (z > 0).sum(1)),
            "difference": (pair, difference),
            "difference_error": (pair, np.where(varies, error, 0.0)),
            "z": (pair, z),
            "p_value": (pair, p_value),
            "meaning": ("view", np.array([*MEANINGS.values(), "all of the above together"], dtype=object)),
        },
        coords={"model": names, "model_bis": names, "view": np.array(views, dtype=object)},
        attrs={
            "kind": "relative",
            "level": level,
            "num_sequences": 30,
            "edits": "substitution",
            "without_lengths": "[]",
        },
    )
    groups = {"ksd_compare": compared, "ksd_data": check["ksd_data"].to_dataset()}
    if impossible:
        cannot = np.zeros((len(names), impossible), dtype=bool)
        cannot[0] = True
        groups["ksd_compare_impossible"] = xr.Dataset(
            {
                "impossible": (("model", "sequence"), cannot),
                "site": (("model", "sequence"), np.where(cannot, "x_0", "").astype(object)),
            },
            coords={"model": names, "sequence": np.arange(impossible)},
        )
    return xr.DataTree.from_dict(groups)

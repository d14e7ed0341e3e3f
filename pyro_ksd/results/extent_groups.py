# SPDX-License-Identifier: Apache-2.0
"""Groups that say how large the misfit is, and how the lengths differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
import numpy.typing as npt
import xarray as xr
from torch import Tensor

from pyro_ksd.fit_tests.factor_tolerance import FACTOR
from pyro_ksd.fit_tests.fault_sizes import EffectSizes
from pyro_ksd.fit_tests.misfit_extent import Extent, Tolerated
from pyro_ksd.kernels.length import LengthKernel
from pyro_ksd.results.arrays import as_numpy, as_strings
from pyro_ksd.results.labels import spelled
from pyro_ksd.results.misfit_groups import joined, padded_codes
from pyro_ksd.results.sequence_groups import sequences_group
from pyro_ksd.stein.views import View

_SHOWN = 20  # sequences of the model, to show beside the data


def add_extent(groups: dict[str, xr.Dataset], views: Sequence[View], extent: Extent, symbols: Sequence[str]) -> None:
    """Adds how large the misfit is."""
    foreign = extent.foreign
    groups["ksd"] = groups["ksd"].assign(
        foreign_share=("view", as_numpy(foreign.share)), foreign_share_overall=((), foreign.share_overall)
    )
    tolerated = extent.tolerated
    if tolerated is not None:
        groups["ksd"] = (
            groups["ksd"]
            .assign_attrs(tolerance=tolerated.tolerance)
            .assign(
                tolerance_p_value=("view", as_numpy(tolerated.p_value)),
                tolerance_p_value_overall=((), tolerated.p_value_overall),
                discrepancy=("view", as_numpy(tolerated.closeness.estimate)),
                discrepancy_upper=("view", as_numpy(tolerated.closeness.upper)),
            )
        )
        if tolerated.factors:
            groups["ksd_factor"] = _factors(views, tolerated, symbols)
    reported = [size for view, size in zip(views, extent.sizes, strict=True) if view.kernel.feature_kind]
    names = [field.name for field in fields(EffectSizes)]
    sizes = {name: ("ngram", joined([getattr(size, name) for size in reported])) for name in names}
    groups["ksd_ngram"] = groups["ksd_ngram"].assign(sizes)
    if extent.drawn is not None:
        groups["ksd_draws"] = sequences_group(extent.drawn[:_SHOWN].narrowed())


def _factors(views: Sequence[View], tolerated: Tolerated, symbols: Sequence[str]) -> xr.Dataset:
    """Whether n-grams are off by more than a factor."""
    parts = tolerated.factors
    codes = padded_codes([part.symbols for part in parts])
    intervals = {"factor": "log_factor", "factor_low": "low", "factor_high": "high"}
    variables: dict[str, npt.NDArray[np.generic]] = {
        "view_name": as_strings([views[part.view].name for part in parts for _ in part.symbols]),
        "label": as_strings([spelled(ngram, symbols) for ngram in codes.tolist()]),
        **{name: joined([getattr(part.tilts, field).exp() for part in parts]) for name, field in intervals.items()},
        "within": joined([part.is_within for part in parts]),
        "outside": joined([part.is_outside for part in parts]),
    }
    return xr.Dataset(
        {name: ("ngram", values) for name, values in variables.items()} | {"symbol": (("ngram", "place"), codes)},
        coords={"ngram": np.arange(len(codes)), "place": np.arange(codes.shape[1])},
        attrs={"tolerance": FACTOR},
    )


def add_lengths(
    groups: dict[str, xr.Dataset],
    views: Sequence[View],
    lengths: Tensor,
    num_drawn: int,
) -> None:
    """Adds the lengths of the data and those of the model, if a view compared them.

    :param lengths: how many possible sequences have the length 0, 1, ...
    :param num_drawn: the number of draws that those of the model were estimated from; 0 if from the data.
    """
    known = [view.kernel.distribution for view in views if isinstance(view.kernel, LengthKernel)]
    if not known or known[0] is None:
        return
    own = known[0]
    counts = as_numpy(lengths)
    columns = {"expected": own}
    if own.bounds is not None:
        columns |= dict(zip(("expected_low", "expected_high"), own.bounds, strict=True))
    last = max(len(counts), *(one.shortest + len(one.probability) for one in columns.values()))
    expected = {
        name: np.pad(as_numpy(one.probability), (one.shortest, last - one.shortest - len(one.probability)))
        for name, one in columns.items()
    }
    observed = np.pad(counts / counts.sum(), (0, last - len(counts)))
    seen = np.flatnonzero(observed)
    groups["ksd_length"] = xr.Dataset(
        {name: ("length", values) for name, values in {"observed": observed, **expected}.items()},
        coords={"length": np.arange(last)},
        attrs={
            "num_drawn": num_drawn,
            "unseen": float(1 - expected["expected"][seen[0] : seen[-1] + 1].sum()),
            "complete": int(own.is_complete),
        },
    )

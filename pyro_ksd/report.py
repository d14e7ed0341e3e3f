# SPDX-License-Identifier: Apache-2.0
"""Results as xarray groups, and as a table."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from pyro_ksd.sequences import Sequences
from pyro_ksd.testing import GoodnessOfFit

if TYPE_CHECKING:
    import pandas as pd


def to_datatree(result: GoodnessOfFit, sequences: Sequences, settings: dict[str, str | int | float]) -> xr.DataTree:
    """A test's result as flat groups that ArviZ can plot and netCDF can hold.

    ======================  ==========================================================================================
    group                   variables
    ======================  ==========================================================================================
    ``ksd``                 ``statistic(view)``, ``p_value(view)``, ``p_value_overall``
    ``ksd_null``            ``ksd(chain, draw, view)``, the null draws of the statistics
    ``observed_data``       ``token(sequence, position)``, -1 behind the end, and ``length(sequence)``
    ======================  ==========================================================================================

    :param settings: what the test was run with, kept in the attributes of ``ksd``.
    """
    view = {"view": np.array(result.views, dtype=object)}
    ksd = xr.Dataset(
        {
            "statistic": ("view", result.statistic.cpu().numpy()),
            "p_value": ("view", result.p_value.cpu().numpy()),
            "p_value_overall": ((), result.p_value_overall),
        },
        coords=view,
        attrs=_provenance() | {"kind": result.kind, "num_bootstrap": len(result.null)} | settings,
    )
    null = xr.Dataset(
        {"ksd": (("chain", "draw", "view"), result.null.cpu().numpy()[None])},
        coords={"chain": [0], "draw": np.arange(len(result.null)), **view},
        attrs=_provenance() | {"kind": result.kind, "sample_dims": ["chain", "draw"]},
    )
    observed = xr.Dataset(
        {
            "token": (("sequence", "position"), sequences.padded(-1).cpu().numpy()),
            "length": ("sequence", sequences.lengths.cpu().numpy()),
        },
        coords={"sequence": np.arange(len(sequences)), "position": np.arange(sequences.width)},
        attrs=_provenance() | {"alphabet": json.dumps([str(symbol) for symbol in sequences.symbols])},
    )
    return xr.DataTree.from_dict({"ksd": ksd, "ksd_null": null, "observed_data": observed})


def summary(check: xr.DataTree) -> pd.DataFrame:
    """One row a view, and one for all views together: the statistic and the p-value.

    :param check: what :func:`pyro_ksd.ksd_check` gave, or what was loaded from its file.
    """
    import pandas as pd

    ksd = check["ksd"].to_dataset()
    table = pd.DataFrame(
        {"statistic": ksd["statistic"].values, "p_value": ksd["p_value"].values},
        index=pd.Index(ksd["view"].values.astype(str), name="view"),
    )
    table.loc["overall"] = [float("nan"), float(ksd["p_value_overall"])]
    return table


def _provenance() -> dict[str, str]:
    return {
        "created_at": datetime.now(UTC).isoformat(),
        "creation_library": "pyro_ksd",
        "creation_library_version": version("pyro_ksd"),
        "inference_library": "pyro",
        "inference_library_version": version("pyro-ppl"),
    }

# SPDX-License-Identifier: Apache-2.0
"""Reading what the baselines found."""

from __future__ import annotations

from typing import Any

import xarray as xr


def parts(found: xr.DataTree) -> tuple[Any, Any]:
    """Statistics ``[V]`` and null draws ``[B, V]``."""
    return found["ksd"]["statistic"].values, found["ksd_null"]["ksd"].values[0]

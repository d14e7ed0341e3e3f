# SPDX-License-Identifier: Apache-2.0
"""Tests of this folder that only read checks need neither torch nor Pyro; without them, the others are skipped."""

from __future__ import annotations

import warnings

import matplotlib

matplotlib.use("agg")
with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # ArviZ 0.23 announces ArviZ 1.0 when imported
    import arviz  # noqa: F401

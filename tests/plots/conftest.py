# SPDX-License-Identifier: Apache-2.0
"""Tests of this folder need neither torch nor Pyro: pictures are drawn of checks that were saved, or made up."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib
import matplotlib.pyplot as plt
import pytest

matplotlib.use("agg")


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    plt.close("all")  # tests of other folders, and examples of docstrings, may have left some open
    yield
    plt.close("all")

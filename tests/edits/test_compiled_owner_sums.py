# SPDX-License-Identifier: Apache-2.0
"""Sums over the edits of each sequence, in a compiled loop."""

from __future__ import annotations

import numpy as np

from pyro_ksd.edits.compiled_owner_sums import sum_by_owner


def test_owners_may_come_back() -> None:
    sums = np.array([0.5, 0.0, 0.0])
    sum_by_owner(np.array([0, 0, 2, 0]), np.array([1.0, 2.0, 4.0, 8.0]), sums)
    assert sums.tolist() == [11.5, 0.0, 4.0]

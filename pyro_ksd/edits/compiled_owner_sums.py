# SPDX-License-Identifier: Apache-2.0
"""Sums of values of edits over the sequences that they belong to, in a compiled loop."""

from __future__ import annotations

import numpy as np

from pyro_ksd.common.compilation import compiled


@compiled
def sum_by_owner(owner: np.ndarray, values: np.ndarray, sums: np.ndarray) -> None:
    """Adds values ``[E]`` to the sums of their owners, ``[N]``; quick where values of one owner follow each other."""
    edit = 0
    while edit < len(owner):
        row = owner[edit]
        total = 0.0
        while edit < len(owner) and owner[edit] == row:
            total += values[edit]
            edit += 1
        sums[row] += total

# SPDX-License-Identifier: Apache-2.0
"""Sums of features in one pass, in a compiled loop."""

from __future__ import annotations

import numpy as np

from pyro_ksd.common.compilation import compiled


@compiled
def sum_features(groups: np.ndarray, sums: np.ndarray, squares: np.ndarray) -> None:
    """Sums over the rows of groups ``[G, size, D]`` of features.

    :param sums: ``[2, G, D]``, gets the sums of the squares and of the positive values.
    :param squares: ``[2, G]``, gets the sums of the squares of the negative values, and of the squares of the squared
        norms of the rows.
    """
    for group in range(groups.shape[0]):
        total_squares = sums[0, group]
        gains = sums[1, group]
        for row in range(groups.shape[1]):
            own = groups[group, row]
            norm = 0.0
            losses = 0.0
            for column in range(len(own)):
                value = own[column]
                gain = max(value, 0.0)
                total_squares[column] += value * value
                gains[column] += gain
                norm += value * value
                losses += (value - gain) * (value - gain)
            squares[0, group] += losses
            squares[1, group] += norm * norm

# SPDX-License-Identifier: Apache-2.0
"""Sums of features in a compiled loop."""

from __future__ import annotations

import numpy as np

from pyro_ksd.kernels.compiled_feature_sums import sum_features


def test_sums_of_two_groups() -> None:
    groups = np.array([[[1.0, -2.0], [3.0, 1.0]], [[0.0, -1.0], [-1.0, 2.0]]])
    sums = np.zeros((2, 2, 2))
    squares = np.zeros((2, 2))
    sum_features(groups, sums, squares)
    assert sums.tolist() == [[[10.0, 5.0], [1.0, 5.0]], [[4.0, 1.0], [0.0, 2.0]]]  # of squares, of gains
    assert squares.tolist() == [[4.0, 2.0], [125.0, 26.0]]  # of losses, of squared norms

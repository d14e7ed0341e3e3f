# SPDX-License-Identifier: Apache-2.0
"""Lengths in bins, against plain sums."""

from __future__ import annotations

import numpy as np
import pytest
from synthetic import length_group

from pyro_ksd.results.length_shares import length_bins


@pytest.mark.parametrize(
    ("longest", "most", "width"), [(10, 60, 1), (60, 60, 1), (61, 60, 2), (400, 60, 7), (30, 4, 8)]
)
def test_bins_are_mean_shares(longest: int, most: int, width: int) -> None:
    random = np.random.default_rng(0)
    weights = 1 + random.random((2, longest))  # none is negligible
    shares = [dict(enumerate((row / row.sum()).tolist(), 1)) for row in weights]
    edges, *means = length_bins(length_group(*shares), most)
    assert np.diff(edges).tolist() == [width] * (len(edges) - 1)
    assert (edges[0], len(edges) - 1 <= most, edges[-1] >= longest) == (0.5, True, True)
    for own, mean in zip(shares, means, strict=True):
        for left, value in zip(edges, mean, strict=False):
            inside = [share for length, share in own.items() if left < length < left + width]
            assert value == pytest.approx(sum(inside) / width)


def test_what_hardly_ever_occurs_is_left_out_beyond_the_data() -> None:
    tail = {length: 0.5**length for length in range(1, 200)}
    edges, _, expected = length_bins(length_group({3: 1.0}, tail), 60)
    assert (edges[0], edges[-1]) == (0.5, 8.5)
    assert expected.tolist() == [0.5**length for length in range(1, 9)]
    edges = length_bins(length_group({3: 0.5, 20: 0.5}, tail), 60)[0]
    assert edges[-1] == 20.5

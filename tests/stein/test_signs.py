# SPDX-License-Identifier: Apache-2.0
"""Random signs: fair, independent, and the same however they are cut."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pyro_ksd.stein.signs import Signs

ROWS = 300


@pytest.mark.parametrize("num_draws", [1, 255, 256, 257, 600])
def test_shapes(num_draws: int) -> None:
    signs = Signs(0, num_draws).of_rows(5, 7)
    assert signs.shape == (num_draws, 7)
    assert signs.dtype == torch.int8
    assert set(signs.flatten().tolist()) <= {-1, 1}


def test_nothing() -> None:
    assert Signs(0, 0).of_rows(0, 5).shape == (0, 5)
    assert Signs(0, 5).of_rows(3, 0).shape == (5, 0)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, ROWS), st.integers(0, ROWS), st.integers(0, 599), st.integers(1, 600))
def test_parts_are_parts_of_the_whole(first: int, second: int, draw: int, count: int) -> None:
    begin, end = sorted((first, second))
    count = min(count, 600 - draw)
    whole = Signs(3, 600).of_rows(0, ROWS)
    assert Signs(3, 600).of_rows(begin, end - begin).equal(whole[:, begin:end])
    assert Signs(3, 600).part(draw, count).of_rows(begin, end - begin).equal(whole[draw : draw + count, begin:end])
    assert Signs(3, 600).part(draw, count).part(0, 1) == Signs(3, 1, draw)


def test_a_draw_does_not_depend_on_how_many_there_are() -> None:
    assert Signs(3, 10).of_rows(0, ROWS).equal(Signs(3, 600).of_rows(0, ROWS)[:10])


def test_they_are_the_bits_of_the_generator() -> None:
    words = np.random.Philox(key=np.array([7, 1], dtype=np.uint64), counter=np.array([2, 0, 0, 0], np.uint64))
    bits = [(int(word) >> place) & 1 for word in words.random_raw(4) for place in range(64)]
    assert Signs(7, 256, first_draw=256).of_rows(2, 1)[:, 0].tolist() == [2.0 * bit - 1.0 for bit in bits]


def test_seeds_differ() -> None:
    assert not Signs(0, 5).of_rows(0, 100).equal(Signs(1, 5).of_rows(0, 100))
    generators = [torch.Generator().manual_seed(4) for _ in range(2)]
    one, same = (Signs(generator, 5) for generator in generators)
    assert one == same
    assert Signs(generators[0], 5) != one  # the next seed of the same generator


def test_signs_are_fair_and_independent() -> None:
    """Means of 600,000 signs, and of products of neighbors in draws, rows and both, within 4 standard errors."""
    signs = Signs(11, 600).of_rows(10_000, 1000).double()
    pairs = [
        signs,
        signs[1:] * signs[:-1],
        signs[:, 1:] * signs[:, :-1],
        signs[64:] * signs[:-64],
        signs[256:] * signs[:-256],
        signs[1:, 1:] * signs[:-1, :-1],
        signs * Signs(12, 600).of_rows(10_000, 1000),
        signs * Signs(11, 600).of_rows(2**40, 1000),
    ]
    for products in pairs:
        assert abs(float(products.mean())) < 4 / products.numel() ** 0.5
    assert float(signs.mean(0).abs().max()) < 5 / 600**0.5
    assert float(signs.mean(1).abs().max()) < 5 / 1000**0.5


def test_many_rows_are_far_away() -> None:
    assert Signs(0, 4).of_rows(2**50, 3).shape == (4, 3)

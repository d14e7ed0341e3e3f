# SPDX-License-Identifier: Apache-2.0
"""The ends of sequences, read off from scratch."""

from __future__ import annotations

import pytest
from feature_enumeration import NEIGHBORHOODS, Features, assert_features, ngram, runs
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyro_ksd.kernels.end import EndKernel
from pyro_ksd.kernels.start import StartKernel
from pyro_ksd.sequences.container import Sequences


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("neighborhood", NEIGHBORHOODS)
@given(data=st.lists(runs(), min_size=1, max_size=4))
@example(data=[[], [0], [1, 1], [2, 2, 2], [0, 1, 2, 0, 1, 2, 0]])
@settings(max_examples=6, deadline=None)
def test_end_features_by_local_changes(data: list[list[int]], neighborhood: str, width: int) -> None:
    def phi(x: tuple[int, ...]) -> Features:
        return {(*[3] * width, *x)[-width:]: 1.0}

    assert_features(
        EndKernel(width),
        data,
        3,
        NEIGHBORHOODS[neighborhood],
        phi,
        lambda code: ngram(code, 4, range(width, width + 1)),
    )


def test_the_end_is_the_start_of_the_reversed_sequence() -> None:
    rows = ["", "a", "ab", "cab", "bcab", "cabb"]
    data, reversed_data = Sequences.of(rows, "abc"), Sequences.of([row[::-1] for row in rows], "abc")
    for width in (1, 2, 3):
        assert EndKernel(width).gram(data, data).equal(StartKernel(width).gram(reversed_data, reversed_data))


@pytest.mark.parametrize("width", [0, -2, 63])
def test_a_width_out_of_bounds_is_refused(width: int) -> None:
    with pytest.raises(ValueError, match=f"width: expected an integer from 1 to 62, found {width}"):
        EndKernel(width)


def test_words_for_widths() -> None:
    assert [EndKernel(width).meaning for width in (1, 3)] == ["the last symbol", "the last 3 symbols"]
    assert EndKernel().feature_kind == "end"

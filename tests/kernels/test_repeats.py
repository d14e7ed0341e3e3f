# SPDX-License-Identifier: Apache-2.0
"""Windows of equal symbols, counted from scratch."""

from __future__ import annotations

import pytest
from feature_enumeration import NEIGHBORHOODS, Features, assert_features, runs
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.kernels.repeats import RepeatsKernel
from pyro_ksd.sequences.container import Sequences

pytestmark = pytest.mark.usefixtures("engine")


def equal_windows(x: tuple[int, ...], width: int) -> Features:
    return {(0,): float(sum(len(set(x[i : i + width])) == 1 for i in range(len(x) - width + 1)))}


@pytest.mark.parametrize("width", [2, 3, 4, 6])
@pytest.mark.parametrize("neighborhood", NEIGHBORHOODS)
@given(data=st.lists(runs(), min_size=1, max_size=4))
@example(data=[[], [0], [0, 0], [0, 0, 0], [0, 0, 0, 0, 0, 0, 0], [1, 1, 1, 2, 1, 1, 1]])
@settings(max_examples=6, deadline=None)
def test_repeats_by_local_changes(data: list[list[int]], neighborhood: str, width: int) -> None:
    around = NEIGHBORHOODS[neighborhood]
    assert_features(RepeatsKernel(width), data, 3, around, lambda x: equal_windows(x, width), lambda code: (code,))


def test_repeats_of_a_large_alphabet() -> None:
    size = 50_257
    data = [[size - 1] * 6, [0, 0, 0, 5, 0, 0], [3, 3, 3, 3], []]
    around = zs(insertable=[size - 1, 0, 3], symbols=1)
    assert_features(RepeatsKernel(4), data, size, around, lambda x: equal_windows(x, 4), lambda code: (code,))


def test_zeros_are_not_taken_for_padding() -> None:
    data = Sequences.of([[0] * 5, [0] * 3, [0], []], 2)
    assert RepeatsKernel(3).features(data).values.tolist() == [[3.0], [1.0], [0.0], [0.0]]


@pytest.mark.parametrize("width", [1, 0, 63])
def test_a_width_out_of_bounds_is_refused(width: int) -> None:
    with pytest.raises(ValueError, match=f"width: expected an integer from 2 to 62, found {width}"):
        RepeatsKernel(width)


def test_four_equal_symbols_are_repeats_by_default() -> None:
    assert RepeatsKernel().features(Sequences.of(["aaa", "aaaa", "aaaaa"])).values.tolist() == [[0.0], [1.0], [2.0]]


def test_words() -> None:
    kernel = RepeatsKernel(5)
    assert (kernel.feature_kind, kernel.feature_label(0, 3)) == ("repeats", "runs of 5 equal symbols")
    assert kernel.meaning == "runs of 5 or more equal symbols"

# SPDX-License-Identifier: Apache-2.0
"""Symbols by position, counted from scratch."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from feature_enumeration import NEIGHBORHOODS, Features, assert_features, runs
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyro_ksd.kernels.position import PositionKernel
from pyro_ksd.sequences.container import Sequences

pytestmark = pytest.mark.usefixtures("engine")


@pytest.mark.parametrize("period", [1, 2, 3, 6])
@pytest.mark.parametrize("neighborhood", NEIGHBORHOODS)
@given(data=st.lists(runs(), min_size=1, max_size=4))
@example(data=[[], [0], [1, 1], [2, 2, 1], [0, 1, 2, 0, 1, 2, 0]])
@settings(max_examples=6, deadline=None)
def test_position_features_by_local_changes(data: list[list[int]], neighborhood: str, period: int) -> None:
    def phi(x: tuple[int, ...]) -> Features:
        counts = Counter((i % period, symbol) for i, symbol in enumerate(x))
        return {key: float(count) for key, count in counts.items()}

    assert_features(
        PositionKernel(period), data, 3, NEIGHBORHOODS[neighborhood], phi, lambda code: (code // 3, code % 3)
    )


def test_words() -> None:
    kernel = PositionKernel(4)
    assert (kernel.feature_kind, kernel.meaning) == ("position", "symbols by position modulo 4")
    assert [kernel.feature_label(code, 3) for code in (0, 2, 3, 11)] == [
        "position 1 of 4",
        "position 1 of 4",
        "position 2 of 4",
        "position 4 of 4",
    ]
    assert kernel.feature_symbols(torch.tensor([0, 2, 3, 11]), 3).tolist() == [[0], [2], [0], [2]]
    assert PositionKernel().period == 3


def test_the_label_of_a_feature_is_where_it_is_counted() -> None:
    kernel = PositionKernel(3)
    values = kernel.features(Sequences.of(["abcab"])).values.to_dense()[0]
    named = {
        ("abc"[int(kernel.feature_symbols(torch.tensor([code]), 3))], kernel.feature_label(code, 3)): value
        for code, value in enumerate(values.tolist())
        if value
    }
    assert named == {("a", "position 1 of 3"): 2.0, ("b", "position 2 of 3"): 2.0, ("c", "position 3 of 3"): 1.0}


@pytest.mark.parametrize("period", [0, -1, 2.5])
def test_a_period_below_one_is_refused(period: int) -> None:
    with pytest.raises(ValueError, match="period: expected an integer of at least 1, found"):
        PositionKernel(period)

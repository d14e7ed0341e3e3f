# SPDX-License-Identifier: Apache-2.0
"""First and last symbols, read off from scratch."""

from __future__ import annotations

import pytest
from feature_enumeration import NEIGHBORHOODS, Features, assert_features, ngram, runs
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyro_ksd.kernels.ends import EndsKernel


@pytest.mark.parametrize("neighborhood", NEIGHBORHOODS)
@given(data=st.lists(runs(), min_size=1, max_size=4))
@example(data=[[], [0], [1, 1], [2, 2, 1], [0, 1, 2, 0, 1, 2, 0]])
@settings(max_examples=8, deadline=None)
def test_features_of_both_ends_by_local_changes(data: list[list[int]], neighborhood: str) -> None:
    def phi(x: tuple[int, ...]) -> Features:
        return {(x[0], x[-1]) if x else (3, 3): 1.0}

    assert_features(EndsKernel(), data, 3, NEIGHBORHOODS[neighborhood], phi, lambda code: ngram(code, 4, range(2, 3)))


def test_words() -> None:
    assert (EndsKernel().feature_kind, EndsKernel().meaning) == ("ends", "the first with the last symbol")

# SPDX-License-Identifier: Apache-2.0
"""Symbols that equal their mirror image, counted from scratch."""

from __future__ import annotations

import pytest
from feature_enumeration import NEIGHBORHOODS, Features, assert_features, runs
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyro_ksd.kernels.mirror import MirrorKernel
from pyro_ksd.sequences.container import Sequences

pytestmark = pytest.mark.usefixtures("engine")


@pytest.mark.parametrize("neighborhood", NEIGHBORHOODS)
@given(data=st.lists(runs(), min_size=1, max_size=4))
@example(data=[[], [0], [1, 1], [2, 2, 1], [0, 1, 2, 0, 1, 2, 0], [0, 1, 1, 0], [0, 1, 2, 1, 0]])
@settings(max_examples=12, deadline=None)
def test_mirror_features_by_local_changes(data: list[list[int]], neighborhood: str) -> None:
    def phi(x: tuple[int, ...]) -> Features:
        return {(0,): float(sum(x[i] == x[len(x) - 1 - i] for i in range(len(x) // 2)))}

    assert_features(MirrorKernel(), data, 3, NEIGHBORHOODS[neighborhood], phi, lambda code: (code,))


def test_padding_has_no_mirror_image() -> None:
    data = Sequences.of(["aaaaaa", "", "a", "aa", "aaa"])
    assert MirrorKernel().features(data).values.tolist() == [[3.0], [0.0], [0.0], [1.0], [1.0]]


def test_words() -> None:
    kernel = MirrorKernel()
    assert (kernel.feature_kind, kernel.feature_label(0, 3)) == ("mirror", "mirrored symbols")
    assert kernel.meaning == "symbols that equal their mirror image"

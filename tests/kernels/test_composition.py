# SPDX-License-Identifier: Apache-2.0
"""How uneven symbols are, computed from scratch."""

from __future__ import annotations

from collections import Counter

import pytest
from feature_enumeration import NEIGHBORHOODS, Features, assert_features, runs
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyro_ksd.kernels.composition import CompositionKernel
from pyro_ksd.sequences.container import Sequences


@pytest.mark.parametrize("neighborhood", NEIGHBORHOODS)
@given(data=st.lists(runs(), min_size=1, max_size=4))
@example(data=[[], [0], [1, 1], [2, 2, 1], [0, 1, 2, 0, 1, 2, 0], [0, 0, 0, 0]])
@settings(max_examples=12, deadline=None)
def test_composition_by_local_changes(data: list[list[int]], neighborhood: str) -> None:
    def phi(x: tuple[int, ...]) -> Features:
        return {(0,): sum(count**2 for count in Counter(x).values()) / max(len(x), 1)}

    assert_features(CompositionKernel(), data, 3, NEIGHBORHOODS[neighborhood], phi, lambda code: (code,))


def test_padding_does_not_count() -> None:
    data = Sequences.of(["aaaa", "a", "ab", ""])
    assert CompositionKernel().features(data).values.tolist() == [[4.0], [1.0], [1.0], [0.0]]


def test_words() -> None:
    kernel = CompositionKernel()
    assert (kernel.feature_kind, kernel.feature_label(0, 3)) == ("composition", "unevenness")
    assert kernel.meaning == "how uneven the symbols of a sequence are"

# SPDX-License-Identifier: Apache-2.0
"""Features of the length against features from scratch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from feature_enumeration import (
    NEIGHBORHOODS,
    Features,
    as_dicts,
    assert_close,
    expected_psi,
    random_weights,
    runs,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from pyro_ksd.kernels.length import LengthDistribution, LengthKernel
from pyro_ksd.sequences.container import Sequences


def powers(lengths: Tensor) -> Tensor:
    return torch.stack([lengths.double(), lengths.double() ** 2, (lengths == 0).double()], 1)


@pytest.mark.parametrize("neighborhood", NEIGHBORHOODS)
@given(data=st.lists(runs(), min_size=1, max_size=4))
@example(data=[[], [0], [1, 1]])
@settings(max_examples=8, deadline=None)
def test_length_features(data: list[list[int]], neighborhood: str) -> None:
    sequences = Sequences.of(data, 3)
    edits = NEIGHBORHOODS[neighborhood].edits(sequences)
    weights = random_weights(edits)
    found = as_dicts(LengthKernel(powers).stein_features(sequences, edits, weights), lambda code: (code,))

    def phi(x: tuple[int, ...]) -> Features:
        return {(0,): float(len(x)), (1,): float(len(x) ** 2), (2,): float(not x)}

    assert_close(found, expected_psi(sequences, edits, weights, phi))
    squared = LengthKernel().features(sequences).values
    assert squared.tolist() == [[len(x) ** 2] for x in data]


@pytest.mark.parametrize(
    ("feature", "message"),
    [
        (lambda lengths: lengths[:-1], r"expected \[2\] or \[2, D\] values for 2 lengths, found shape \[1, 1\]"),
        (lambda lengths: lengths.double().log(), "expected finite values, found others at length 0"),
    ],
)
def test_length_feature_is_checked(feature: Callable[[Tensor], Tensor], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LengthKernel(feature).features(Sequences.of(["", "ab"]))


def test_the_feature_of_the_length_is_no_ngram() -> None:
    kernel = LengthKernel()
    assert (kernel.feature_kind, kernel.feature_label(0, 5), kernel.meaning) == ("length", "length", "the length")
    assert kernel.feature_symbols(torch.arange(3), 5).shape == (3, 0)


def test_names_are_a_tuple() -> None:
    with pytest.raises(ValueError, match="names: expected a tuple with one name for each feature"):
        LengthKernel(names="length")  # type: ignore[arg-type]


def test_a_distribution_is_complete_unless_stated() -> None:
    assert LengthDistribution(0, torch.ones(1, dtype=torch.double)).is_complete

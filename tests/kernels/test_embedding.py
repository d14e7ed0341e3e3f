# SPDX-License-Identifier: Apache-2.0
"""Features from any function."""

from __future__ import annotations

from collections.abc import Callable

import oracle
import pytest
import torch
from feature_enumeration import (
    random_weights,
)
from torch import Tensor

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.kernels.contiguous import ContiguousKernel
from pyro_ksd.kernels.embedding import EmbeddingKernel
from pyro_ksd.sequences.container import Sequences


@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_embedding_equals_the_kernel_that_it_copies(batch_size: int) -> None:
    sequences = Sequences.of([[0, 0, 1], [2], [], [1, 1, 1, 2]], 3)
    edits = zs().edits(sequences)
    weights = random_weights(edits)
    bigrams = ContiguousKernel(2)
    copy = EmbeddingKernel(_dense_bigrams, batch_size)
    expected = bigrams.stein_features(sequences, edits, weights).dense()
    torch.testing.assert_close(copy.stein_features(sequences, edits, weights).dense(), expected, rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(copy.gram(sequences, sequences), bigrams.gram(sequences, sequences))


def _dense_bigrams(x: Sequences) -> Tensor:
    rows = [oracle.csk_features(tuple(sequence), 2, 2, "sqrt") for sequence in x.to_lists()]
    return torch.tensor(
        [[row.get((a, b), 0.0) for a in range(3) for b in range(3)] for row in rows], dtype=torch.double
    )


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x.lengths, r"expected features \[2, D\], one row a sequence, found \[2\]"),
        (lambda x: None, r"expected features \[2, D\], one row a sequence, found NoneType"),
        (lambda x: x.lengths[:, None] / 0.0, r"expected finite features, found others for \['a', 'b'\]"),
    ],
)
def test_embedding_is_checked(function: Callable[[Sequences], Tensor], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EmbeddingKernel(function).features(Sequences.of(["ab", "b"]))


def test_features_are_named_after_the_function() -> None:
    assert EmbeddingKernel(_dense_bigrams).feature_label(2, 3) == "_dense_bigrams 2"
    assert EmbeddingKernel(lambda x: x.tokens).feature_label(0, 3) == "a function 0"
    assert EmbeddingKernel(torch.nn.Identity()).feature_label(1, 3) == "Identity 1"
    assert EmbeddingKernel(_dense_bigrams).feature_kind == "feature"
    assert EmbeddingKernel(_dense_bigrams).feature_symbols(torch.arange(9), 3).shape == (9, 0)


def test_sequences_are_embedded_in_batches() -> None:
    sizes = []

    def lengths(x: Sequences) -> Tensor:
        sizes.append(len(x))
        return x.lengths[:, None]

    data = Sequences.of([[0]] * 10, 2)
    EmbeddingKernel(lengths, batch_size=4).features(data)
    assert sizes == [4, 4, 2]

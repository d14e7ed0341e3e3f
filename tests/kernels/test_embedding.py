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
from pyro_ksd.kernels.direction import DirectionKernel, DirectionPart
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


def test_a_single_feature_is_named_after_its_view() -> None:
    named, unnamed = EmbeddingKernel(_dense_bigrams), EmbeddingKernel(lambda x: x.tokens)
    assert named.labels_in("pairs", [0]) == ["pairs"]
    assert named.labels_in("pairs", [3]) == ["_dense_bigrams 3"]  # the only one of several that is reported
    assert named.labels_in("pairs", [3, 0]) == ["_dense_bigrams 3", "_dense_bigrams 0"]
    assert unnamed.labels_in("pairs", [3, 0]) == ["pairs 3", "pairs 0"]


def test_sequences_are_embedded_in_batches() -> None:
    sizes = []

    def lengths(x: Sequences) -> Tensor:
        sizes.append(len(x))
        return x.lengths[:, None]

    data = Sequences.of([[0]] * 10, 2)
    EmbeddingKernel(lengths, batch_size=4).features(data)
    assert sizes == [4, 4, 2]


RANDOM = torch.Generator().manual_seed(0)
DATA = Sequences.of([[row % 3] * (1 + row % 7) for row in range(60)], 3)
ALONE = "changes with the other sequences of the batch, .* must not be centered, scaled or ranked within the batch"


def in_table(x: Sequences) -> Tensor:
    return torch.arange(1000.0)[: len(x), None]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: (x.tokens == 0).sum(1, keepdim=True).double(), "changes with the padding after its end, .* s.mask"),
        (lambda x: x.lengths[:, None] + 1e-3 * x.width, "changes with the padding after its end"),
        (lambda x: (x.lengths - x.lengths.double().mean())[:, None], ALONE),
        (lambda x: (x.lengths / x.lengths.max())[:, None], ALONE),
        (in_table, "depends on the row of the batch"),
        (lambda x: torch.stack([x.lengths, 1e-9 * torch.arange(len(x))], 1), "depends on the row of the batch"),
        (lambda x: torch.rand(len(x), 1, generator=RANDOM), "is not repeatable"),
    ],
)
def test_features_must_be_those_of_a_sequence_alone(function: Callable[[Sequences], Tensor], message: str) -> None:
    kernel = EmbeddingKernel(function)
    other = EmbeddingKernel(lambda x: x.lengths[:, None].double())
    one = torch.ones(1)
    kernels = [kernel, 2.0 * kernel, other + kernel, other * kernel]
    kernels.append(DirectionKernel((DirectionPart(kernel, torch.tensor([0]), one),), "mine"))
    for wrong in kernels:
        with pytest.raises(ValueError, match=f"function: a feature of a sequence {message}"):
            wrong.check_data(DATA)
    other.check_data(DATA)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x.tokens * x.mask).sum(1, keepdim=True).double(),
        lambda x: x.tokens.sum(1, keepdim=True).sin(),  # the padding is 0
        lambda x: 1e6 + (x.tokens == 0).mul(x.mask).sum(1, keepdim=True).float(),
        lambda x: torch.ones(len(x), 2),
        _dense_bigrams,
    ],
)
def test_right_features_pass(function: Callable[[Sequences], Tensor]) -> None:
    for data in (DATA, DATA[:1], DATA[:0], Sequences.of([[], []], 3)):
        EmbeddingKernel(function).check_data(data)
    EmbeddingKernel(function, batch_size=1).check_data(DATA[:9])


def test_features_by_covariates_pass() -> None:
    known = DATA.with_covariates(torch.arange(len(DATA)))
    EmbeddingKernel(lambda x: x.covariates.values[:, None].double()).check_data(known)  # type: ignore[union-attr]


def test_functions_of_a_certain_width_pass() -> None:
    """For sequences of one length, of which each position may be a feature."""
    data = Sequences.of([[0, 1, 2], [2, 1, 1], [0, 0, 1]], 3)
    EmbeddingKernel(lambda x: x.tokens.double()).check_data(data)

    def three(x: Sequences) -> Tensor:
        return x.tokens.double() @ torch.tensor([[1.0], [2.0], [3.0]], dtype=torch.double)

    EmbeddingKernel(three).check_data(data)


def test_the_number_of_features_must_not_change_with_edits() -> None:
    data = Sequences.of([[0, 1, 2], [2, 1, 1]], 3)
    edits = zs().edits(data)
    with pytest.raises(ValueError, match="expected 3 features for every sequence, found 4 in a batch with 4 columns"):
        EmbeddingKernel(lambda x: x.tokens.double()).stein_features(data, edits, random_weights(edits))

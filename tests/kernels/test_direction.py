# SPDX-License-Identifier: Apache-2.0
"""One combination of features, compared with the same function written as an embedding."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.edits.weighted_edits import WeightedEdits
from pyro_ksd.examples import random_walk
from pyro_ksd.kernels import (
    ContiguousKernel,
    EmbeddingKernel,
    FeatureKernel,
    LengthKernel,
    MirrorKernel,
    PositionKernel,
    RepeatsKernel,
    SkipKernel,
    StartKernel,
    SurpriseKernel,
)
from pyro_ksd.kernels.direction import DirectionKernel, DirectionPart
from pyro_ksd.kernels.witness import Witness
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.weighting import weighted_edits

ROWS = ["abca", "b", "bbcab", "cc", "", "abcabca", "ccbb"]


def part(kernel: FeatureKernel, weights: dict[int, float]) -> DirectionPart:
    return DirectionPart(kernel, torch.tensor(list(weights)), torch.tensor(list(weights.values())).double())


def squares(sequences: Sequences) -> Tensor:
    lengths = sequences.lengths.double()
    return torch.stack([lengths, lengths.square()], 1)


DIRECTIONS: dict[str, tuple[DirectionPart, ...]] = {
    "some pairs": (part(ContiguousKernel(2), {1: 2.0, 4: -1.0, 8: 0.5}),),
    "codes that do not exist": (part(ContiguousKernel(1), {1: 1.0, 1000: 3.0}),),
    "triples and the start": (part(ContiguousKernel(3), {5: 1.0, 13: -2.0}), part(StartKernel(), {1: 10.0})),
    "the arrangement": (
        part(SkipKernel((2, 3)), {0: 1.0, 11: -1.0}),
        part(PositionKernel(6), {2: 1.0, 17: 0.3}),
        part(MirrorKernel(), {0: 0.7}),
        part(RepeatsKernel(2), {0: -1.5}),
    ),
    "the length": (part(LengthKernel(), {0: 0.1}), part(EmbeddingKernel(squares), {0: 2.0, 1: -0.1})),
}


def plain_value(parts: tuple[DirectionPart, ...], row: Sequences) -> float:
    """The combination of one sequence, feature by feature."""
    total = 0.0
    for own in parts:
        matrix = own.kernel.features(row)
        values = matrix.values.to_dense()[0].tolist()
        codes = range(len(values)) if matrix.codes is None else matrix.codes.tolist()
        weights = dict(zip(own.codes.tolist(), own.weights.tolist(), strict=True))
        total += sum(weights.get(code, 0.0) * value for code, value in zip(codes, values, strict=True))
    return total


def embedded(parts: tuple[DirectionPart, ...]) -> EmbeddingKernel:
    def function(sequences: Sequences) -> Tensor:
        values = [plain_value(parts, sequences[row : row + 1]) for row in range(len(sequences))]
        return torch.tensor(values, dtype=torch.double)[:, None]

    return EmbeddingKernel(function)


def random_chunk(*shape: int) -> WeightedEdits:
    data = Sequences.of(ROWS, "abc")
    edits = zs().edits(data)
    generator = torch.Generator().manual_seed(0)
    weights = torch.rand(*shape, len(edits), generator=generator, dtype=torch.double)
    weights[..., ::7] = 0.0
    weights[..., edits.owner == 3] = 0.0
    return WeightedEdits(0, data, edits, weights)


@pytest.fixture(params=DIRECTIONS)
def parts(request: pytest.FixtureRequest) -> tuple[DirectionPart, ...]:
    return DIRECTIONS[str(request.param)]


def test_the_feature_is_a_weighted_sum(parts: tuple[DirectionPart, ...]) -> None:
    data = Sequences.of(ROWS, "abc")
    found = DirectionKernel(parts, "name").features(data)
    assert found.values.shape == (len(ROWS), 1)
    torch.testing.assert_close(found.values, embedded(parts).features(data).values)


def test_a_sum_by_hand() -> None:
    data = Sequences.of(["abca", "b", "bbcab", "cc"])
    kernel = DirectionKernel(DIRECTIONS["some pairs"] + (part(StartKernel(), {1: 10.0}),), "name")
    # ab: 1, bb: 4, cc: 8; the features of pairs are the roots of their shares
    expected = [2 * (1 / 3) ** 0.5, 10.0, 2 * (1 / 4) ** 0.5 - (1 / 4) ** 0.5 + 10, 0.5]
    assert kernel.features(data).values[:, 0].tolist() == pytest.approx(expected)


@pytest.mark.parametrize("shape", [(), (1,), (3,)])
def test_stein_features_are_those_of_the_embedding(parts: tuple[DirectionPart, ...], shape: tuple[int, ...]) -> None:
    chunk = random_chunk(*shape)
    found = DirectionKernel(parts, "name").stein_features_each(chunk)
    expected = embedded(parts).stein_features_each(chunk)
    assert len(found) == len(expected) == (shape[0] if shape else 1)
    for own, other in zip(found, expected, strict=True):
        torch.testing.assert_close(own.values, other.values)


def test_what_edits_change_is_that_of_the_embedding(parts: tuple[DirectionPart, ...]) -> None:
    chunk = random_chunk()
    kernel, plain = DirectionKernel(parts, "name"), embedded(parts)
    used = chunk.weights > 0
    expected = plain.few_changes(chunk)
    assert expected is not None
    assert kernel.few_changes(chunk).shape == (len(chunk.edits), 1)
    torch.testing.assert_close(kernel.few_changes(chunk)[used], expected[used])
    witness = Witness.of(plain.stein_features_each(chunk)[0], 0, len(ROWS))
    torch.testing.assert_close(kernel.steps_along(chunk, witness)[used], plain.steps_along(chunk, witness)[used])


def test_sparse_features_of_a_large_alphabet() -> None:
    data = Sequences.of(torch.randint(300, (30, 9), generator=torch.Generator().manual_seed(1)), 300)
    kernel = ContiguousKernel(3)
    features = kernel.features(data)
    assert features.values.is_sparse
    assert features.codes is not None
    weights = torch.linspace(-1, 1, len(features.codes), dtype=torch.double)
    direction = (DirectionPart(kernel, features.codes[::2], weights[::2]),)
    edits = zs(locations=1).edits(data)
    chunk = WeightedEdits(0, data, edits, torch.ones(len(edits), dtype=torch.double))
    [found] = DirectionKernel(direction, "name").stein_features_each(chunk)
    change = DirectionKernel(direction, "name").few_changes(chunk)[:, 0]
    torch.testing.assert_close(found.values[:, 0], edits.sum_by_owner(change))
    some = torch.arange(0, len(edits), 997)
    own = embedded(direction)
    edited = own.features(edits.select(some).apply(data)).values - own.features(data[edits.owner[some]]).values
    torch.testing.assert_close(change[some], edited[:, 0])
    assert bool(found.values.any())


def test_the_surprise_can_take_part() -> None:
    walk = random_walk(3)
    data = walk.draw(6, torch.Generator().manual_seed(0))
    chunk = weighted_edits(walk, ZanellaOperator(), data)
    parts = (part(SurpriseKernel(), {0: -2.0}), part(StartKernel(), {1: 3.0}))

    def log_probability(sequences: Sequences) -> Tensor:
        return walk.log_joint(sequences)[:, None].clamp(min=-1000)

    same = (part(EmbeddingKernel(log_probability), {0: -2.0}), parts[1])
    own, other = DirectionKernel(parts, "name"), DirectionKernel(same, "name")
    torch.testing.assert_close(own.stein_features_each(chunk)[0].values, other.stein_features_each(chunk)[0].values)
    used = chunk.weights > 0
    torch.testing.assert_close(own.few_changes(chunk)[used], other.few_changes(chunk)[used])
    with pytest.raises(ValueError, match="needs the log-probabilities of a model"):
        own.features(data)


def test_words() -> None:
    kernel = DirectionKernel(DIRECTIONS["some pairs"], "ab - bb ...")
    assert kernel.feature_label(0, 3) == "ab - bb ..."
    assert kernel.meaning == "the combination ab - bb ..."
    assert kernel.feature_kind == "feature"


@pytest.mark.parametrize(
    ("codes", "weights", "words"),
    [
        ([0, 1], [1.0], r"weights: expected one for each .* codes of shape \[2\] and weights of shape \[1\]"),
        ([], [], "weights: expected one for each of at least one code"),
        ([1, 0], [1.0, 2.0], "codes: expected them in ascending order"),
        ([1, 1], [1.0, 2.0], "codes: expected them in ascending order"),
    ],
)
def test_mistakes(codes: list[int], weights: list[float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        DirectionPart(StartKernel(), torch.tensor(codes, dtype=torch.long), torch.tensor(weights))


def test_parts_are_parts() -> None:
    wrong: Any = "pairs"
    with pytest.raises(ValueError, match="parts: expected at least one"):
        DirectionKernel((), "name")
    with pytest.raises(ValueError, match="parts: expected DirectionPart"):
        DirectionKernel((wrong,), "name")
    with pytest.raises(ValueError, match="kernel: expected a kernel with features"):
        DirectionPart(wrong, torch.tensor([0]), torch.tensor([1.0]))


class Picky(ContiguousKernel):
    """A kernel that does not like long sequences."""

    def check_data(self, sequences: Sequences) -> None:
        if int(sequences.lengths.max()) > 3:
            raise ValueError("too long")


def test_the_name_is_a_word_and_all_parts_check_the_data() -> None:
    plain, picky = (
        DirectionPart(kernel(1), torch.tensor([0]), torch.tensor([1.0])) for kernel in (ContiguousKernel, Picky)
    )
    with pytest.raises(ValueError, match="name: expected a word"):
        DirectionKernel((plain,), 3)  # type: ignore[arg-type]
    for parts in ((plain, picky), (picky, plain)):
        kernel = DirectionKernel(parts, "a")
        kernel.check_data(Sequences.of(["aba", "b"]))
        with pytest.raises(ValueError, match="too long"):
            kernel.check_data(Sequences.of(["abab", "b"]))

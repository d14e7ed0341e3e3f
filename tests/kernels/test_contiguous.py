# SPDX-License-Identifier: Apache-2.0
"""Features by local changes against features recomputed from scratch, in plain Python."""

from __future__ import annotations

from collections.abc import Callable

import oracle
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from pyro_ksd.edits.neighborhoods import CustomNeighborhood, DoubleSubstitutions, Substitutions, zs
from pyro_ksd.edits.splices import Edits
from pyro_ksd.kernels import ContiguousKernel, EmbeddingKernel, FeatureKernel, LengthKernel, StartKernel
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.sequences.container import Sequences

Features = dict[tuple[int, ...], float]

NEIGHBORHOODS = {
    "zs": zs(),
    "zs, 1 location": zs(1),
    "zs, 3 locations": zs(3),
    "substitutions": Substitutions(),
    "single and double": zs() | DoubleSubstitutions(),
    "reversed and doubled": CustomNeighborhood(lambda x: [x[::-1], x + x, x[: len(x) // 2]]),
}


def runs(max_size: int = 7) -> st.SearchStrategy[list[int]]:
    """Sequences with many runs of equal symbols, over at most 3 of them."""
    run = st.tuples(st.integers(0, 2), st.integers(1, 4)).map(lambda pair: [pair[0]] * pair[1])
    return st.lists(run, max_size=4).map(lambda parts: [a for part in parts for a in part][:max_size])


def random_weights(edits: Edits) -> Tensor:
    return torch.rand(len(edits), dtype=torch.double, generator=torch.Generator().manual_seed(len(edits)))


def expected_psi(sequences: Sequences, edits: Edits, weights: Tensor, phi: Callable[..., Features]) -> list[Features]:
    """``Σ_y w_y (φ(y) - φ(x))`` for each sequence, with every neighbor built and its features counted anew."""
    own = [tuple(x) for x in sequences.to_lists()]
    psi: list[Features] = [{} for _ in own]
    triples = zip(edits.owner.tolist(), edits.apply(sequences).to_lists(), weights.tolist(), strict=True)
    for row, y, weight in triples:
        for sign, features in ((1, phi(tuple(y))), (-1, phi(own[row]))):
            for key, value in features.items():
                psi[row][key] = psi[row].get(key, 0.0) + sign * weight * value
    return psi


def as_dicts(matrix: FeatureMatrix, decode: Callable[[int], tuple[int, ...]]) -> list[Features]:
    values = matrix.values.to_dense()
    codes = range(values.shape[1]) if matrix.codes is None else matrix.codes.tolist()
    labels = [decode(code) for code in codes]
    return [{label: value for label, value in zip(labels, row, strict=True) if value} for row in values.tolist()]


def assert_close(found: list[Features], expected: list[Features]) -> None:
    for a, b in zip(found, expected, strict=True):
        for key in a.keys() | b.keys():
            assert a.get(key, 0.0) == pytest.approx(b.get(key, 0.0), rel=1e-12, abs=1e-13)


def ngram(code: int, base: int, lengths: range) -> tuple[int, ...]:
    """The n-gram of a code, where the codes of longer n-grams follow those of shorter ones."""
    for length in lengths:
        if code < base**length:
            return tuple(code // base ** (length - 1 - i) % base for i in range(length))
        code -= base**length
    raise AssertionError("no such code")


@pytest.mark.parametrize("form", ["sqrt", "cosine"])
@pytest.mark.parametrize(("length", "max_length"), [(1, None), (2, None), (3, None), (4, None), (1, 3), (2, 4)])
@pytest.mark.parametrize("neighborhood", NEIGHBORHOODS)
@given(data=st.lists(runs(), min_size=1, max_size=4))
@example(data=[[], [0], [1, 1], [2, 2, 2], [0, 0, 0, 0, 0, 0, 0]])
@settings(max_examples=8, deadline=None)
def test_contiguous_features_by_local_changes(
    data: list[list[int]], neighborhood: str, length: int, max_length: int | None, form: str
) -> None:
    sequences = Sequences.of(data, 3)
    edits = NEIGHBORHOODS[neighborhood].edits(sequences)
    weights = random_weights(edits)
    kernel = ContiguousKernel(length, max_length, form)  # type: ignore[arg-type]

    def phi(x: tuple[int, ...]) -> Features:
        return oracle.csk_features(x, length, max_length or length, form)

    def decode(code: int) -> tuple[int, ...]:
        return ngram(code, 3, kernel.lengths)

    assert_close(as_dicts(kernel.features(sequences), decode), [phi(tuple(x)) for x in data])
    found = as_dicts(kernel.stein_features(sequences, edits, weights), decode)
    assert_close(found, expected_psi(sequences, edits, weights, phi))


@pytest.mark.parametrize("form", ["sqrt", "cosine"])
@pytest.mark.parametrize(("length", "max_length"), [(1, None), (3, None), (1, 3)])
def test_contiguous_features_of_a_large_alphabet(length: int, max_length: int | None, form: str) -> None:
    size = 50_000
    data = [[49_999, 49_999, 49_999, 0, 49_998], [1, 49_999], [49_999] * 4, [7], []]
    sequences = Sequences.of(data, size)
    edits = zs(insertable=[49_999, 3], symbols=1).edits(sequences)
    weights = random_weights(edits)
    kernel = ContiguousKernel(length, max_length, form)  # type: ignore[arg-type]
    matrix = kernel.stein_features(sequences, edits, weights)
    assert matrix.values.is_sparse

    def decode(code: int) -> tuple[int, ...]:
        return ngram(code, size, kernel.lengths)

    def phi(x: tuple[int, ...]) -> Features:
        return oracle.csk_features(x, length, max_length or length, form)

    assert_close(as_dicts(matrix, decode), expected_psi(sequences, edits, weights, phi))
    gram = kernel.gram(sequences, sequences)
    for i, x in enumerate(data):
        for j, y in enumerate(data):
            expected = oracle.csk(tuple(x), tuple(y), length, max_length or length, form)
            assert float(gram[i, j]) == pytest.approx(expected, rel=1e-12, abs=1e-13)


def test_more_ngrams_than_codes_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"at most 2\*\*62 different features, found 3125.*; use shorter"):
        ContiguousKernel(5).features(Sequences.of([[0], [1]], 50_000))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"length": 0}, "length: expected n-grams of at least 1 symbol, found 0"),
        ({"length": 3, "max_length": 2}, "max_length: expected at least length = 3, found 2"),
        ({"form": "square"}, "form: expected 'sqrt' or 'cosine', found 'square'"),
    ],
)
def test_contiguous_kernel_refuses(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ContiguousKernel(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("neighborhood", NEIGHBORHOODS)
@given(data=st.lists(runs(), min_size=1, max_size=4))
@example(data=[[], [0], [1, 1], [2, 2, 2], [0, 0, 0, 0, 0, 0, 0]])
@settings(max_examples=8, deadline=None)
def test_start_features_by_local_changes(data: list[list[int]], neighborhood: str, width: int) -> None:
    sequences = Sequences.of(data, 3)
    edits = NEIGHBORHOODS[neighborhood].edits(sequences)
    weights = random_weights(edits)
    kernel = StartKernel(width)

    def phi(x: tuple[int, ...]) -> Features:
        return {(*x, *[3] * width)[:width]: 1.0}

    def decode(code: int) -> tuple[int, ...]:
        return ngram(code, 4, range(width, width + 1))

    assert_close(as_dicts(kernel.features(sequences), decode), [phi(tuple(x)) for x in data])
    found = as_dicts(kernel.stein_features(sequences, edits, weights), decode)
    assert_close(found, expected_psi(sequences, edits, weights, phi))


def test_start_of_a_large_alphabet() -> None:
    sequences = Sequences.of([[49_999, 0, 49_999], [5], []], 50_000)
    edits = zs(symbols=1, insertable=[2]).edits(sequences)
    weights = random_weights(edits)
    matrix = StartKernel(3).stein_features(sequences, edits, weights)

    def phi(x: tuple[int, ...]) -> Features:
        return {(*x, *[50_000] * 3)[:3]: 1.0}

    found = as_dicts(matrix, lambda code: ngram(code, 50_001, range(3, 4)))
    assert_close(found, expected_psi(sequences, edits, weights, phi))


def test_edits_that_keep_the_start_leave_no_trace() -> None:
    sequences = Sequences.of(["abcabc", "bcb"])
    edits = Substitutions(locations=2).edits(sequences)
    psi = StartKernel().stein_features(sequences, edits, random_weights(edits))
    assert not psi.values.to_dense().any()


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


@pytest.mark.parametrize("kernel", [ContiguousKernel(2), StartKernel(), LengthKernel()])
def test_no_edits_no_features(kernel: FeatureKernel) -> None:
    sequences = Sequences.of(["ab", "b"])
    psi = kernel.stein_features(sequences, Edits((), 2), torch.empty(0, dtype=torch.double))
    assert not psi.values.to_dense().any()

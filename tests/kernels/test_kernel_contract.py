# SPDX-License-Identifier: Apache-2.0
"""What every kernel promises."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pairwise_formulas import PAIRWISE, Formula, assert_same, plain_gram, random_rows, refuse, widened
from torch import Tensor

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.edits.splices import Edits
from pyro_ksd.edits.weighted_edits import WeightedEdits
from pyro_ksd.kernels import (
    CompositionKernel,
    ContiguousKernel,
    CyclicGaussianKernel,
    DiracKernel,
    EmbeddingKernel,
    EndKernel,
    EndsKernel,
    FeatureKernel,
    FrequencyKernel,
    GapWeightedKernel,
    HammingKernel,
    IMQHammingKernel,
    Kernel,
    LandmarkKernel,
    LengthKernel,
    MirrorKernel,
    PositionKernel,
    RepeatsKernel,
    SkipKernel,
    StartKernel,
)
from pyro_ksd.kernels import aligned_comparison as aligned
from pyro_ksd.results.labels import feature_labels
from pyro_ksd.sequences.container import Sequences

SIZE = 4
WHICH = ["all edits", "substitutions"]
UNCHANGED = [
    "contiguous",
    "frequency",
    "skip",
    "embedding",
]  # they may have few features, but do not tell their changes


Diagonal = Callable[[Sequences], Tensor]


def one(x: Sequences) -> Tensor:
    return torch.ones(len(x), dtype=torch.double)


def at_least(length: int) -> Diagonal:
    return lambda x: (x.lengths >= length).double()


def square_of(count: Callable[[list[int]], float]) -> Diagonal:
    """The square of a number that a function reads off the symbols of each sequence."""
    return lambda x: torch.tensor([count(own) ** 2 for own in x.to_lists()], dtype=torch.double)


def mirrored(x: list[int]) -> float:
    return sum(x[i] == x[-1 - i] for i in range(len(x) // 2))


def repeated(x: list[int], width: int) -> float:
    return sum(len(set(x[i : i + width])) == 1 for i in range(len(x) - width + 1))


def uneven(x: list[int]) -> float:
    return sum(count**2 for count in Counter(x).values()) / max(len(x), 1)


def position_counts(period: int) -> Diagonal:
    def squares(x: list[int]) -> int:
        return sum(count**2 for count in Counter((i % period, symbol) for i, symbol in enumerate(x)).values())

    return lambda x: torch.tensor([squares(own) for own in x.to_lists()], dtype=torch.double)


def pair_counts(*distances: int) -> Diagonal:
    def squares(x: list[int]) -> float:
        counts = Counter((d, *pair) for d in distances for pair in zip(x, x[d:], strict=False))
        return sum(count**2 for count in counts.values()) / max(len(x), 1)

    return lambda x: torch.tensor([squares(own) for own in x.to_lists()], dtype=torch.double)


def frequencies(width: int) -> Diagonal:
    def squares(x: list[int]) -> float:
        counts = Counter(tuple(x[i : i + width]) for i in range(len(x) - width + 1))
        return sum((count / len(x)) ** 2 for count in counts.values())

    return lambda x: torch.tensor([squares(own) for own in x.to_lists()], dtype=torch.double)


def waves(lengths: Tensor) -> Tensor:
    return torch.stack([lengths.double().cos(), lengths.double().sin(), lengths.double()], 1)


def symbol_sums(x: Sequences) -> Tensor:
    return torch.stack([x.tokens.sum(1).double().cos(), x.tokens.sum(1).double().sin()], 1)


LANDMARKS = Sequences.of(random_rows(SIZE, 25, 7, seed=11), SIZE)


def projected(kernel: Kernel[Any], landmarks: Sequences) -> Diagonal:
    inverse = torch.linalg.pinv(kernel.gram(landmarks, landmarks), rtol=1e-10, hermitian=True)

    def diagonal(x: Sequences) -> Tensor:
        between = kernel.gram(x, landmarks)
        return (between @ inverse * between).sum(1)

    return diagonal


# Each kernel with k(x, x), as documented.
KERNELS: dict[str, tuple[Kernel[Any], Diagonal]] = {
    "contiguous, 1": (ContiguousKernel(1), at_least(1)),
    "contiguous, 3": (ContiguousKernel(3), at_least(3)),
    "contiguous, 2 to 4": (ContiguousKernel(2, 4), at_least(2)),
    "contiguous, cosine": (ContiguousKernel(2, form="cosine"), at_least(2)),
    "contiguous, cosine, 1 to 3": (ContiguousKernel(1, 3, form="cosine"), at_least(1)),
    "start": (StartKernel(), one),
    "start, 3": (StartKernel(3), one),
    "end": (EndKernel(), one),
    "end, 3": (EndKernel(3), one),
    "ends": (EndsKernel(), one),
    "frequency, 1": (FrequencyKernel(1), frequencies(1)),
    "frequency, 2": (FrequencyKernel(2), frequencies(2)),
    "frequency, 3": (FrequencyKernel(3), frequencies(3)),
    "skip": (SkipKernel((2, 3)), pair_counts(2, 3)),
    "skip, 1": (SkipKernel((1,)), pair_counts(1)),
    "skip, 1 to 4": (SkipKernel((1, 2, 4)), pair_counts(1, 2, 4)),
    "position, 1": (PositionKernel(1), position_counts(1)),
    "position, 3": (PositionKernel(3), position_counts(3)),
    "position, 6": (PositionKernel(6), position_counts(6)),
    "mirror": (MirrorKernel(), square_of(mirrored)),
    "repeats, 2": (RepeatsKernel(2), square_of(lambda x: repeated(x, 2))),
    "repeats, 3": (RepeatsKernel(3), square_of(lambda x: repeated(x, 3))),
    "composition": (CompositionKernel(), square_of(uneven)),
    "length": (LengthKernel(), square_of(lambda x: len(x) ** 2)),
    "length, several features": (LengthKernel(waves), lambda x: one(x) + x.lengths.double().square()),
    "embedding": (EmbeddingKernel(symbol_sums), one),
    "landmarks": (LandmarkKernel(HammingKernel(), LANDMARKS), projected(HammingKernel(), LANDMARKS)),
    "landmarks, few": (
        LandmarkKernel(GapWeightedKernel(), LANDMARKS[:9]),
        projected(GapWeightedKernel(), LANDMARKS[:9]),
    ),
    "Hamming": (HammingKernel(), one),
    "IMQ Hamming": (IMQHammingKernel(scale=0.5, exponent=0.3), lambda x: one(x) * 3**0.3),
    "cyclic Gaussian": (CyclicGaussianKernel(), one),
    "Dirac": (DiracKernel(), one),
    "Dirac on the length": (DiracKernel(on="length"), one),
    "gap-weighted": (GapWeightedKernel(), at_least(2)),
    "gap-weighted, 3": (GapWeightedKernel(3, 0.9), at_least(3)),
    "sum": (ContiguousKernel(1) + HammingKernel(), lambda x: at_least(1)(x) + 1),
    "product": (ContiguousKernel(2) * StartKernel(), at_least(2)),
    "scaled": (2.5 * HammingKernel(), lambda x: 2.5 * one(x)),
}


def data(seed: int, num: int = 40, longest: int = 7) -> Sequences:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(0, longest + 1, (num,), generator=generator)
    tokens = torch.randint(0, SIZE, (num, longest), generator=generator)
    return Sequences.of(tokens, SIZE, lengths=lengths)


@pytest.fixture(params=KERNELS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_gram_is_symmetric_double_and_of_the_right_shape(name: str) -> None:
    kernel, _ = KERNELS[name]
    x, y = data(0), data(1, num=7, longest=11)
    gram = kernel.gram(x, y)
    assert gram.shape == (40, 7)
    assert gram.dtype == torch.double
    torch.testing.assert_close(gram, kernel.gram(y, x).T, rtol=1e-13, atol=1e-14)


def test_gram_is_positive_semi_definite(name: str) -> None:
    if name == "cyclic Gaussian":
        pytest.skip("not positive semi-definite for 4 symbols: its docstring says when it is, its own test shows it")
    kernel, _ = KERNELS[name]
    eigenvalues = torch.linalg.eigvalsh(kernel.gram(data(2), data(2)))
    assert eigenvalues.min() > -1e-12 * eigenvalues.max()


def test_diagonal_is_as_documented(name: str) -> None:
    kernel, diagonal = KERNELS[name]
    x = data(3)
    torch.testing.assert_close(kernel.gram(x, x).diagonal(), diagonal(x), rtol=1e-13, atol=1e-14)


def test_a_pair_does_not_depend_on_the_others_or_on_the_padding(name: str) -> None:
    kernel, _ = KERNELS[name]
    x, y = data(4, num=6), data(5, num=5)
    wide = Sequences(torch.nn.functional.pad(x.tokens, (0, 3)), x.lengths, SIZE)
    whole = kernel.gram(wide, y)
    for i in range(len(x)):
        for j in range(len(y)):
            alone = kernel.gram(x[i : i + 1], y[j : j + 1])
            assert math.isclose(float(alone), float(whole[i, j]), rel_tol=1e-13, abs_tol=1e-14)


def test_zero_across_lengths_is_true_to_its_word(name: str) -> None:
    kernel, _ = KERNELS[name]
    x = data(6)
    if kernel.zero_across_lengths:
        different = x.lengths[:, None] != x.lengths
        assert not kernel.gram(x, x)[different].any()


def random_weights(edits: Edits, which: str, seed: int) -> Tensor:
    """Weights between 0 and 1; 0 for all but substitutions if ``which`` says so."""
    weights = torch.rand(len(edits), dtype=torch.double, generator=torch.Generator().manual_seed(seed))
    if which == "substitutions":
        for block, own in zip(edits.blocks, edits.split(weights), strict=True):
            if block.removed != 1 or block.growth:
                own.zero_()
    return weights


@pytest.mark.parametrize("which", WHICH)
@pytest.mark.parametrize("seed", [7, 17])
def test_stein_matrix_equals_the_matrix_of_all_neighbors(name: str, which: str, seed: int) -> None:
    kernel, _ = KERNELS[name]
    x = data(seed, num=5, longest=6 if which == "substitutions" else 4)
    edits = zs().edits(x)
    weights = random_weights(edits, which, seed=0)
    everything = Sequences.cat([x, edits.apply(x)])
    coefficients = torch.zeros(len(x), len(everything), dtype=torch.double)
    for edit, (owner, weight) in enumerate(zip(edits.owner.tolist(), weights.tolist(), strict=True)):
        coefficients[owner, owner] -= weight
        coefficients[owner, len(x) + edit] += weight
    gram = kernel.gram(everything, everything)
    expected = coefficients @ gram @ coefficients.T
    matrix = kernel.stein(x, edits, weights)
    terms = coefficients.abs() @ gram.abs() @ coefficients.abs().T
    scale = float(expected.abs().max() + 1e-3 * terms.max())  # the expected matrix may be 0 but for rounding
    torch.testing.assert_close(matrix.dense(), expected, rtol=1e-11, atol=1e-13 * scale)
    torch.testing.assert_close(matrix.diagonal(), expected.diagonal(), rtol=1e-11, atol=1e-13 * scale)
    signs = torch.tensor([[1.0, 1, 1, 1, 1], [1, -1, 2, -1, 0]], dtype=torch.double)
    hollow = expected - expected.diagonal().diag()
    form = torch.einsum("bi,ij,bj->b", signs, hollow, signs)
    torch.testing.assert_close(matrix.off_diagonal_form(signs), form, rtol=1e-11, atol=1e-13 * scale)
    assert len(matrix) == 5


def test_several_weights_at_once_give_what_each_gives(name: str) -> None:
    kernel, x = KERNELS[name][0], data(9, num=5, longest=4)
    edits = zs().edits(x)
    weights = torch.rand(3, len(edits), dtype=torch.double, generator=torch.Generator().manual_seed(1))
    weights[0, edits.owner == 2] = 0.0
    weights[2] = 0.0
    found = kernel.stein_each(WeightedEdits(0, x, edits, weights), max_bytes=2**12)
    assert len(found) == 3
    for matrix, own in zip(found, weights, strict=True):
        torch.testing.assert_close(matrix.dense(), kernel.stein(x, edits, own).dense(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("which", WHICH)
def test_few_changes_are_differences_of_features(name: str, which: str) -> None:
    kernel, x = KERNELS[name][0], data(9, num=6, longest=5)
    if not isinstance(kernel, FeatureKernel):
        return
    edits = zs().edits(x)
    weights = random_weights(edits, which, seed=4)
    found = kernel.few_changes(WeightedEdits(0, x, edits, weights))
    phi = kernel.features(Sequences.cat([x, edits.apply(x)])).values.to_dense()
    if found is None:
        assert phi.shape[1] > 16 or name.split(",")[0] in UNCHANGED
        return
    expected = phi[len(x) :] - phi[: len(x)][edits.owner]
    used = weights > 0
    assert 0 < int(used.sum()) <= len(edits)
    torch.testing.assert_close(found[used], expected[used], rtol=1e-12, atol=1e-13)


def test_features_agree_with_the_gram(name: str) -> None:
    kernel, _ = KERNELS[name]
    x = data(8)
    if isinstance(kernel, FeatureKernel):
        assert kernel.has_features
        features = kernel.features(x)
        torch.testing.assert_close(features.dense(), kernel.gram(x, x), rtol=1e-13, atol=1e-14)
        torch.testing.assert_close(features.diagonal(), kernel.gram(x, x).diagonal(), rtol=1e-13, atol=1e-14)


def test_empty_data_against_empty_data(name: str) -> None:
    kernel, diagonal = KERNELS[name]
    nothing = Sequences.of([[], []], SIZE)
    expected = diagonal(nothing[:1]).expand(2, 2)
    torch.testing.assert_close(kernel.gram(nothing, nothing), expected)


@pytest.mark.parametrize("which", WHICH)
@pytest.mark.parametrize("weighted", [1.0, 0.0])
def test_edits_add_up_along_the_witness(name: str, weighted: float, which: str) -> None:
    kernel, sequences = KERNELS[name][0], data(5, num=6, longest=4)
    edits = zs().edits(sequences)
    weights = random_weights(edits, which, seed=3)
    weights[edits.owner == 2] *= weighted  # a sequence that cannot jump is no special case
    matrix = kernel.stein(sequences, edits, weights)
    found = kernel.edit_products(WeightedEdits(0, sequences, edits, weights), matrix, max_bytes=2**12)
    neighbors, owner = edits.apply(sequences), edits.owner
    edited, own = kernel.gram(neighbors, neighbors), kernel.gram(sequences, neighbors)
    step = edited - own[owner]  # k(y, y') - k(x, y') for all pairs of edits
    step -= kernel.gram(neighbors, sequences)[:, owner] - kernel.gram(sequences, sequences)[owner][:, owner]
    expected = (step * weights * (owner[:, None] != owner)).sum(1)
    used = weights > 0
    torch.testing.assert_close(found[used], expected[used], rtol=1e-10, atol=1e-11)
    torch.testing.assert_close((weights * found).sum(), matrix.others().sum(), rtol=1e-12, atol=1e-11)
    if kernel.has_features:  # a part of the sequences at a time
        begin, half = 3, sequences[3:]
        part = zs().edits(half)
        chosen = torch.cat([(block.owner >= begin) for block in edits.blocks])
        again = kernel.edit_products(WeightedEdits(begin, half, part, weights[chosen]), matrix)
        torch.testing.assert_close(again, found[chosen], rtol=1e-10, atol=1e-11)


def test_sums_of_a_matrix_agree_with_the_matrix_itself(name: str) -> None:
    kernel, sequences = KERNELS[name][0], data(6, num=12, longest=5)
    edits = zs().edits(sequences)
    matrix = kernel.stein(sequences, edits, torch.ones(len(edits), dtype=torch.double))
    hollow = matrix.dense().clone().fill_diagonal_(0.0)
    torch.testing.assert_close(matrix.others(), hollow.sum(1), rtol=1e-10, atol=1e-10)
    blocks = torch.stack([hollow[k : k + 4, k : k + 4].sum() for k in (0, 4, 8)])
    torch.testing.assert_close(matrix.off_diagonal_sums(4), blocks, rtol=1e-10, atol=1e-10)


def test_words_for_what_kernels_look_at() -> None:
    assert EmbeddingKernel(symbol_sums).meaning == "the features of 'symbol_sums'"
    assert EmbeddingKernel(torch.nn.Identity()).meaning == "the features of 'Identity'"
    assert EmbeddingKernel(lambda x: x.tokens).meaning == "the features of 'a function'"
    assert GapWeightedKernel(3).meaning == "subsequences of 3 symbols"
    assert DiracKernel(on="length").meaning == "the length"
    assert {kernel().meaning for kernel in (HammingKernel, DiracKernel)} == {"whole sequences"}


def test_kernels_say_what_they_look_at(name: str) -> None:
    kernel = KERNELS[name][0]
    assert len(kernel.meaning) >= 10
    if isinstance(kernel, FeatureKernel) and kernel.feature_kind:
        sequences = data(7)
        matrix = kernel.features(sequences)
        codes = torch.arange(matrix.values.shape[1]) if matrix.codes is None else matrix.codes
        ngrams = kernel.feature_symbols(codes, SIZE).tolist()
        own = [kernel.feature_label(code, SIZE) for code in codes.tolist()]
        names = feature_labels(kernel.feature_kind, own, ngrams, "abcd")
        assert len(names) == len(set(names)) == len(codes)


# ------------------------------------------------------------------- kernels that compare pairs of sequences

each_pairwise = pytest.mark.parametrize(("kernel", "plain"), PAIRWISE.values(), ids=PAIRWISE)


@each_pairwise
def test_gram_of_many_pairs(kernel: Kernel[Any], plain: Formula, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aligned, "_by_position", refuse)
    xs, ys = random_rows(6, 90, 5, seed=0), random_rows(6, 70, 7, seed=1)
    assert_same(kernel.gram(Sequences.of(xs, 6), Sequences.of(ys, 6)), plain_gram(plain, xs, ys, 6))


@each_pairwise
def test_gram_of_a_large_alphabet(kernel: Kernel[Any], plain: Formula, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aligned, "_by_one_hot", refuse)
    size = 50_000
    xs, ys = random_rows(size, 40, 4, seed=2), random_rows(size, 40, 6, seed=3)
    ys[:20] = [[(symbol + index % 3) % size for symbol in x] for index, x in enumerate(xs[:20])]
    assert_same(kernel.gram(Sequences.of(xs, size), Sequences.of(ys, size)), plain_gram(plain, xs, ys, size))


@each_pairwise
def test_gram_of_empty_sequences_only(kernel: Kernel[Any], plain: Formula) -> None:
    x = Sequences.of([[], []], 3)
    assert_same(kernel.gram(x, x), plain_gram(plain, [[], []], [[], []], 3))
    assert_same(kernel.gram(x, widened(x, 2)), plain_gram(plain, [[], []], [[], []], 3))


@each_pairwise
def test_gram_without_sequences(kernel: Kernel[Any], plain: Formula) -> None:
    x = Sequences.of([[0, 1, 2], [1]], 3)
    none = x[:0]
    assert kernel.gram(none, x).shape == (0, 2)
    assert kernel.gram(x, none).shape == (2, 0)
    assert kernel.gram(none, none).dtype == torch.double


@each_pairwise
def test_gram_leaves_its_input_alone(kernel: Kernel[Any], plain: Formula) -> None:
    x = Sequences.of(random_rows(3, 30, 5, seed=4), 3)
    tokens, lengths = x.tokens.clone(), x.lengths.clone()
    kernel.gram(x, x)
    assert torch.equal(x.tokens, tokens)
    assert torch.equal(x.lengths, lengths)


@each_pairwise
def test_zero_across_lengths_is_true(kernel: Kernel[Any], plain: Formula) -> None:
    x = Sequences.of([[0], [0, 0], [0, 0, 0, 0], [0, 0, 0, 0, 0]], 2)
    across = kernel.gram(x, x).fill_diagonal_(0.0)
    assert kernel.zero_across_lengths == bool((across == 0).all())


@pytest.mark.parametrize("name", ["hamming", "imq", "cyclic", "dirac", "dirac-length", "gap-1", "gap-2", "gap-4"])
@pytest.mark.parametrize(("size", "width", "rows"), [(4, 6, 90), (40, 4, 90), (1, 3, 60), (1000, 5, 80)])
def test_bytes_per_pair_bounds_the_peak_memory(
    name: str, size: int, width: int, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aligned, "_AT_ONCE", 1)  # as if there were many pairs: a constant for few is left out
    kernel, _ = PAIRWISE[name]
    generator = torch.Generator().manual_seed(5)
    tokens = torch.randint(size, (rows, width), generator=generator)
    x = Sequences(tokens, torch.full((rows,), width), size)
    peak = peak_bytes(lambda: kernel.gram(x, x), tmp_path / "trace.json")
    inputs = x.tokens.nbytes
    assert 8 * rows**2 <= peak <= kernel.bytes_per_pair(width) * rows**2 + 8 * inputs


def peak_bytes(call: Callable[[], object], path: Path) -> int:
    """How much memory a call takes at its peak beyond what was taken before, by the records of the allocator."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        call()
    profile.export_chrome_trace(str(path))
    events = [event for event in json.loads(path.read_text())["traceEvents"] if event["name"] == "[memory]"]
    events.sort(key=lambda event: event["ts"])
    return int(max(np.cumsum([event["args"]["Bytes"] for event in events])))


def test_self_similarity_is_as_documented() -> None:
    x = Sequences.of([[], [0], [0, 1], [1, 1, 1], [0, 1, 0, 1]], 2)
    ones = torch.ones(5, dtype=torch.double)
    for kernel in (HammingKernel(), CyclicGaussianKernel(), DiracKernel(), DiracKernel(on="length")):
        assert_same(kernel.gram(x, x).diagonal(), ones)
    assert_same(IMQHammingKernel(0.25, 2.0).gram(x, x).diagonal(), 25 * ones)
    assert_same(GapWeightedKernel(3).gram(x, x).diagonal(), torch.tensor([0.0, 0.0, 0.0, 1.0, 1.0]).double())


@pytest.mark.parametrize("name", ["hamming", "imq", "cyclic", "dirac", "gap-2"])
def test_different_alphabets_are_refused(name: str) -> None:
    kernel, _ = PAIRWISE[name]
    with pytest.raises(ValueError, match=r"expected .*one alphabet, found"):
        kernel.gram(Sequences.of(["ab"]), Sequences.of(["ac"]))

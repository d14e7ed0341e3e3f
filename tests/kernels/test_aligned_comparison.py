# SPDX-License-Identifier: Apache-2.0
"""Every pairwise kernel against its formula, written as a plain loop over two lists."""

from __future__ import annotations

import json
import math
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pyro_ksd.kernels import aligned_comparison as aligned
from pyro_ksd.kernels.aligned_comparison import aligned_sum
from pyro_ksd.kernels.cyclic_gaussian import CyclicGaussianKernel
from pyro_ksd.kernels.dirac import DiracKernel
from pyro_ksd.kernels.gap_weighted import GapWeightedKernel
from pyro_ksd.kernels.hamming import HammingKernel
from pyro_ksd.kernels.imq_hamming import IMQHammingKernel
from pyro_ksd.sequences.container import Sequences


def plain_hamming(x, y, size):
    if len(x) != len(y):
        return 0.0
    return math.exp(-sum(a != b for a, b in zip(x, y, strict=True)) / len(x)) if x else 1.0


def plain_cyclic_gaussian(x, y, size):
    if len(x) != len(y):
        return 0.0
    steps = [min((a - b) % size, (b - a) % size) for a, b in zip(x, y, strict=True)]
    return math.exp(-sum(d * d for d in steps) / len(x)) if x else 1.0


def plain_imq(scale, exponent):
    def kernel(x, y, size):
        width = max(len(x), len(y))
        pairs = zip(x + ["pad"] * (width - len(x)), y + ["pad"] * (width - len(y)), strict=True)
        return ((1 + scale) / (scale + sum(a != b for a, b in pairs))) ** exponent

    return kernel


def plain_gap_weighted(length, decay):
    def features(x):
        found = {}
        for index in combinations(range(len(x)), length):
            u = tuple(x[i] for i in index)
            found[u] = found.get(u, 0.0) + decay ** (index[-1] - index[0] + 1)
        return found

    def kernel(x, y, size):
        left, right = features(x), features(y)
        if not left or not right:
            return 0.0
        norms = [math.sqrt(sum(value**2 for value in side.values())) for side in (left, right)]
        return sum(value * right.get(u, 0.0) for u, value in left.items()) / norms[0] / norms[1]

    return kernel


KERNELS = {
    "hamming": (HammingKernel(), plain_hamming),
    "imq": (IMQHammingKernel(), plain_imq(1.0, 0.5)),
    "imq-sharp": (IMQHammingKernel(scale=0.1, exponent=2.0), plain_imq(0.1, 2.0)),
    "cyclic": (CyclicGaussianKernel(), plain_cyclic_gaussian),
    "dirac": (DiracKernel(), lambda x, y, size: float(x == y)),
    "dirac-length": (DiracKernel(on="length"), lambda x, y, size: float(len(x) == len(y))),
    "gap-1": (GapWeightedKernel(length=1), plain_gap_weighted(1, 0.5)),
    "gap-2": (GapWeightedKernel(), plain_gap_weighted(2, 0.5)),
    "gap-3": (GapWeightedKernel(length=3, decay=0.9), plain_gap_weighted(3, 0.9)),
    "gap-4": (GapWeightedKernel(length=4, decay=1.0), plain_gap_weighted(4, 1.0)),
}
each_kernel = pytest.mark.parametrize(("kernel", "plain"), KERNELS.values(), ids=KERNELS)


def plain_gram(plain, xs, ys, size):
    rows = [[plain(x, y, size) for y in ys] for x in xs]
    return torch.tensor(rows, dtype=torch.double).reshape(len(xs), len(ys))


def widened(sequences, extra):
    """The same sequences with more padding."""
    tokens = torch.nn.functional.pad(sequences.tokens, (0, extra))
    return Sequences(tokens, sequences.lengths, sequences.alphabet)


def assert_same(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-14)


@st.composite
def two_samples(draw):
    """An alphabet size and two samples: runs of equal symbols, empty sequences, repeats, all lengths up to 7."""
    size = draw(st.integers(1, 5))
    runs = st.lists(st.tuples(st.integers(0, size - 1), st.integers(1, 3)), max_size=4)
    sequence = runs.map(lambda parts: [symbol for symbol, times in parts for _ in range(times)][:7])
    sample = st.lists(sequence, min_size=1, max_size=5)
    xs, ys = draw(sample), draw(sample)
    return size, xs, ys + draw(st.sampled_from([[], xs[:2]]))


@each_kernel
@settings(max_examples=40, deadline=None)
@given(data=two_samples(), extra=st.integers(0, 2))
def test_gram_is_the_formula(kernel, plain, data, extra):
    size, xs, ys = data
    x, y = Sequences.of(xs, size), widened(Sequences.of(ys, size), extra)
    expected = plain_gram(plain, xs, ys, size)
    assert_same(kernel.gram(x, y), expected)
    assert_same(kernel.gram(y, x), expected.T)


def random_rows(size, count, width, seed):
    rng = np.random.default_rng(seed)
    return [rng.integers(size, size=rng.integers(width + 1)).tolist() for _ in range(count)]


def refuse(*arguments):
    raise AssertionError("this way should not be taken here")


@each_kernel
def test_gram_of_many_pairs(kernel, plain, monkeypatch):
    monkeypatch.setattr(aligned, "_by_position", refuse)
    xs, ys = random_rows(6, 90, 5, seed=0), random_rows(6, 70, 7, seed=1)
    assert_same(kernel.gram(Sequences.of(xs, 6), Sequences.of(ys, 6)), plain_gram(plain, xs, ys, 6))


@each_kernel
def test_gram_of_a_large_alphabet(kernel, plain, monkeypatch):
    monkeypatch.setattr(aligned, "_by_one_hot", refuse)
    size = 50_000
    xs, ys = random_rows(size, 40, 4, seed=2), random_rows(size, 40, 6, seed=3)
    ys[:20] = [[(symbol + index % 3) % size for symbol in x] for index, x in enumerate(xs[:20])]
    assert_same(kernel.gram(Sequences.of(xs, size), Sequences.of(ys, size)), plain_gram(plain, xs, ys, size))


@each_kernel
def test_gram_of_empty_sequences_only(kernel, plain):
    x = Sequences.of([[], []], 3)
    assert_same(kernel.gram(x, x), plain_gram(plain, [[], []], [[], []], 3))
    assert_same(kernel.gram(x, widened(x, 2)), plain_gram(plain, [[], []], [[], []], 3))


@each_kernel
def test_gram_without_sequences(kernel, plain):
    x = Sequences.of([[0, 1, 2], [1]], 3)
    none = x[:0]
    assert kernel.gram(none, x).shape == (0, 2)
    assert kernel.gram(x, none).shape == (2, 0)
    assert kernel.gram(none, none).dtype == torch.double


@each_kernel
def test_gram_leaves_its_input_alone(kernel, plain):
    x = Sequences.of(random_rows(3, 30, 5, seed=4), 3)
    tokens, lengths = x.tokens.clone(), x.lengths.clone()
    kernel.gram(x, x)
    assert torch.equal(x.tokens, tokens)
    assert torch.equal(x.lengths, lengths)


@each_kernel
def test_zero_across_lengths_is_true(kernel, plain):
    x = Sequences.of([[0], [0, 0], [0, 0, 0, 0], [0, 0, 0, 0, 0]], 2)
    across = kernel.gram(x, x).fill_diagonal_(0.0)
    assert kernel.zero_across_lengths == bool((across == 0).all())


@pytest.mark.parametrize("name", ["hamming", "imq", "cyclic", "dirac", "dirac-length", "gap-1", "gap-2", "gap-4"])
@pytest.mark.parametrize(("size", "width", "rows"), [(4, 6, 90), (40, 4, 90), (1, 3, 60), (1000, 5, 80)])
def test_bytes_per_pair_bounds_the_peak_memory(name, size, width, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(aligned, "_AT_ONCE", 1)  # as if there were many pairs: a constant for few is left out
    kernel, _ = KERNELS[name]
    generator = torch.Generator().manual_seed(5)
    tokens = torch.randint(size, (rows, width), generator=generator)
    x = Sequences(tokens, torch.full((rows,), width), size)
    peak = peak_bytes(lambda: kernel.gram(x, x), tmp_path / "trace.json")
    inputs = x.tokens.nbytes
    assert 8 * rows**2 <= peak <= kernel.bytes_per_pair(width) * rows**2 + 8 * inputs


def peak_bytes(call, path):
    """How much memory a call takes at its peak beyond what was taken before, by the records of the allocator."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        call()
    profile.export_chrome_trace(str(path))
    events = [event for event in json.loads(path.read_text())["traceEvents"] if event["name"] == "[memory]"]
    events.sort(key=lambda event: event["ts"])
    return max(np.cumsum([event["args"]["Bytes"] for event in events]))


@pytest.mark.parametrize("size", [5, 300])
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**16), copies=st.sampled_from([1, 30]))
def test_aligned_sum_of_an_asymmetric_table(size, seed, copies):
    xs, ys = random_rows(size, 4, 6, seed), random_rows(size, 5, 4, seed + 1)
    expected = [[sum(3 * a + b * b for a, b in zip(x, y, strict=False)) for y in ys] for x in xs]
    found = aligned_sum(Sequences.of(xs * copies, size), Sequences.of(ys * copies, size), lambda a, b: 3 * a + b * b)
    assert torch.equal(found, torch.tensor(expected, dtype=torch.double).repeat(copies, copies))


def test_aligned_sum_of_large_integers_is_exact(monkeypatch):
    """By the product of one-hots, where single precision would round."""
    monkeypatch.setattr(aligned, "_by_position", refuse)
    rows = random_rows(20, 60, 3, seed=6)
    expected = [[sum(12_345_679 * a + b for a, b in zip(x, y, strict=False)) for y in rows] for x in rows]
    x = Sequences.of(rows, 20)
    found = aligned_sum(x, x, lambda a, b: 12_345_679 * a + b)
    assert torch.equal(found, torch.tensor(expected, dtype=torch.double))


def test_values_known_by_hand():
    x, y = Sequences.of([[0, 1, 2, 3]], 8), Sequences.of([[0, 2, 2, 6]], 8)
    assert_same(HammingKernel().gram(x, y), torch.tensor([[math.exp(-0.5)]], dtype=torch.double))
    assert_same(CyclicGaussianKernel().gram(x, y), torch.tensor([[math.exp(-2.5)]], dtype=torch.double))
    assert_same(IMQHammingKernel(2.0, 1.0).gram(x, y), torch.tensor([[3 / 4]], dtype=torch.double))


def test_self_similarity_is_as_documented():
    x = Sequences.of([[], [0], [0, 1], [1, 1, 1], [0, 1, 0, 1]], 2)
    ones = torch.ones(5, dtype=torch.double)
    for kernel in (HammingKernel(), CyclicGaussianKernel(), DiracKernel(), DiracKernel(on="length")):
        assert_same(kernel.gram(x, x).diagonal(), ones)
    assert_same(IMQHammingKernel(0.25, 2.0).gram(x, x).diagonal(), 25 * ones)
    assert_same(GapWeightedKernel(3).gram(x, x).diagonal(), torch.tensor([0.0, 0.0, 0.0, 1.0, 1.0]).double())


@pytest.mark.parametrize("decay", [1e-200, 1e-3])
def test_a_small_decay_leaves_contiguous_subsequences(decay):
    x, y = Sequences.of(["abcd"], "abcd"), Sequences.of(["bcd", "acbd", "abcd"], "abcd")
    expected = torch.tensor([[2 / math.sqrt(6), 0.0, 1.0]], dtype=torch.double)
    torch.testing.assert_close(GapWeightedKernel(2, decay).gram(x, y), expected, rtol=0, atol=1e-14 + 10 * decay)


def test_cyclic_gaussian_has_negative_eigenvalues_on_four_symbols():
    ring = Sequences.of([[0, 0], [1, 0], [2, 0], [3, 0]], 4)
    gram = CyclicGaussianKernel().gram(ring, ring)
    signs = torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.double)
    assert float(signs @ gram @ signs) == pytest.approx(4 * (1 - 2 * math.exp(-0.5) + math.exp(-2)))
    assert float(torch.linalg.eigvalsh(gram)[0]) == pytest.approx(-0.0777, abs=1e-4)


@pytest.mark.parametrize(
    ("size", "first"), [(1, None), (2, None), (3, None), (4, 2), (5, 4), (6, 4), (7, 6), (8, 3), (9, 5), (10, 5)]
)
def test_cyclic_gaussian_is_positive_up_to_the_documented_length(size, first):
    """One symbol varies and the others agree: the Gram matrix of such sequences is the factor of one position."""
    negative = []
    for length in range(1, 12):
        ring = Sequences.of([[symbol] + [0] * (length - 1) for symbol in range(size)], size)
        if torch.linalg.eigvalsh(CyclicGaussianKernel().gram(ring, ring))[0] < -1e-10:
            negative.append(length)
    assert negative == ([] if first is None else list(range(first, 12)))


@pytest.mark.parametrize("name", ["hamming", "imq", "cyclic", "dirac", "gap-2"])
def test_different_alphabets_are_refused(name):
    kernel, _ = KERNELS[name]
    with pytest.raises(ValueError, match=r"expected .*one alphabet, found"):
        kernel.gram(Sequences.of(["ab"]), Sequences.of(["ac"]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: IMQHammingKernel(scale=0.0), "scale: expected a positive number, found 0.0"),
        (lambda: IMQHammingKernel(scale=math.nan), "scale: .* found nan"),
        (lambda: IMQHammingKernel(exponent=-1.0), "exponent: expected a positive number, found -1.0"),
        (lambda: IMQHammingKernel(exponent=math.inf), "exponent: .* found inf"),
        (lambda: DiracKernel(on="prefix"), "on: expected 'sequence' or 'length', found 'prefix'"),
        (lambda: GapWeightedKernel(length=0), "length: expected an integer of at least 1, found 0"),
        (lambda: GapWeightedKernel(length=2.0), "length: .* found 2.0"),
        (lambda: GapWeightedKernel(length=True), "length: .* found True"),
        (lambda: GapWeightedKernel(decay=0.0), "decay: expected a number above 0 and at most 1, found 0.0"),
        (lambda: GapWeightedKernel(decay=1.5), "decay: .* found 1.5"),
        (lambda: GapWeightedKernel(decay=math.nan), "decay: .* found nan"),
    ],
)
def test_bad_parameters_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()

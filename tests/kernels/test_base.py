# SPDX-License-Identifier: Apache-2.0
"""The Stein kernel matrix of pairwise kernels against the sum that defines it, and sums and products of kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pyro_ksd.common.chunk_sizes import PAIR_BYTES
from pyro_ksd.edits.neighborhoods import CustomNeighborhood, DoubleSubstitutions, Substitutions, zs
from pyro_ksd.edits.splices import Edits
from pyro_ksd.edits.weighted_edits import WeightedEdits
from pyro_ksd.kernels import ConditionalKernel, ContiguousKernel, FeatureKernel, LengthKernel, StartKernel
from pyro_ksd.kernels.base import Kernel, PairwiseKernel, _by_length
from pyro_ksd.kernels.cyclic_gaussian import CyclicGaussianKernel
from pyro_ksd.kernels.dirac import DiracKernel
from pyro_ksd.kernels.gap_weighted import GapWeightedKernel
from pyro_ksd.kernels.hamming import HammingKernel
from pyro_ksd.kernels.imq_hamming import IMQHammingKernel
from pyro_ksd.sequences.container import Sequences

DATA = [[0, 0, 1], [2], [], [1, 1], [2, 1, 0], [2]]
KERNELS = {
    "hamming": HammingKernel(),
    "imq": IMQHammingKernel(),
    "cyclic": CyclicGaussianKernel(),
    "dirac": DiracKernel(),
    "dirac-length": DiracKernel(on="length"),
    "gap": GapWeightedKernel(),
}
each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
BLOCKS = [1, 5_000, 100_000, PAIR_BYTES]


def random_weights(edits, seed=0):
    """Weights of either sign, some of them 0."""
    weights = torch.randn(len(edits), dtype=torch.double, generator=torch.Generator().manual_seed(seed))
    return weights.where(weights.abs() > 0.2, 0.0)


def plain_stein(kernel, sequences, edits, weights):
    """``h(x, x') = Σ_y Σ_y' w(x, y) w(x', y') (k(y, y') - k(y, x') - k(x, y') + k(x, x'))``, one pair at a time."""
    neighbors, owner = edits.apply(sequences), edits.owner.tolist()
    both, across = kernel.gram(neighbors, neighbors).tolist(), kernel.gram(neighbors, sequences).tolist()
    own, w = kernel.gram(sequences, sequences).tolist(), weights.tolist()
    total = [[0.0] * len(sequences) for _ in range(len(sequences))]
    for e, i in enumerate(owner):
        for f, j in enumerate(owner):
            total[i][j] += w[e] * w[f] * (both[e][f] - across[e][j] - across[f][i] + own[i][j])
    return torch.tensor(total, dtype=torch.double)


def assert_same(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)


@each_kernel
@pytest.mark.parametrize("max_bytes", BLOCKS)
def test_stein_is_the_double_sum(kernel, max_bytes):
    data = Sequences.of(DATA, 3)
    edits = zs(locations=2).edits(data)
    weights = random_weights(edits)
    expected = plain_stein(kernel, data, edits, weights)
    assert expected.abs().max() > 0.1
    assert_same(kernel.stein(data, edits, weights, max_bytes).dense(), expected)


@settings(max_examples=25, deadline=None)
@given(
    rows=st.lists(st.lists(st.integers(0, 2), max_size=4), min_size=1, max_size=4),
    name=st.sampled_from(sorted(KERNELS)),
    neighborhood=st.sampled_from([zs(), Substitutions(), DoubleSubstitutions(), zs(locations=1)]),
    max_bytes=st.sampled_from([10_000, PAIR_BYTES]),
)
def test_stein_of_random_sequences(rows, name, neighborhood, max_bytes):
    data = Sequences.of(rows, 3)
    edits = neighborhood.edits(data)
    weights = random_weights(edits, seed=1)
    found = KERNELS[name].stein(data, edits, weights, max_bytes).dense()
    assert_same(found, plain_stein(KERNELS[name], data, edits, weights))


def test_stein_against_the_formula_written_out():
    """Two sequences with one substitution each, on paper."""
    data = Sequences.of(["ab", "bb"])
    edits = Substitutions(locations=1).edits(data)
    assert edits.apply(data).to_lists() == [["a", "a"], ["b", "a"]]
    near, far = math.exp(-0.5), math.exp(-1.0)
    within, between = 2 - 2 * near, 2 * near - 2 * far
    expected = torch.tensor([[4 * within, 6 * between], [6 * between, 9 * within]], dtype=torch.double)
    weights = torch.tensor([2.0, 3.0], dtype=torch.double)
    assert_same(HammingKernel().stein(data, edits, weights).dense(), expected)


@each_kernel
@pytest.mark.parametrize("max_bytes", BLOCKS)
def test_stein_of_edits_that_change_the_length_by_more_than_one(kernel, max_bytes):
    data = Sequences.of(["ab", "b", "aab"])
    doubled = CustomNeighborhood(lambda x: [x + x + x, x[:1], ()])
    edits = doubled.edits(data)
    assert {block.growth for block in edits.blocks} >= {-3, 2, 4, 6}
    weights = random_weights(edits, seed=2) + 1.0
    assert_same(kernel.stein(data, edits, weights, max_bytes).dense(), plain_stein(kernel, data, edits, weights))


@each_kernel
def test_stein_without_edits_is_zero(kernel):
    data = Sequences.of([[0, 0], [0], []], 1)
    edits = Substitutions().edits(data)
    assert len(edits) == 0
    weights = torch.zeros(0, dtype=torch.double)
    assert torch.equal(kernel.stein(data, edits, weights).dense(), torch.zeros(3, 3, dtype=torch.double))


@each_kernel
def test_stein_with_weights_of_zero_is_zero(kernel):
    data = Sequences.of(DATA, 3)
    edits = zs().edits(data)
    weights = torch.zeros(len(edits), dtype=torch.double)
    assert torch.equal(kernel.stein(data, edits, weights).dense(), torch.zeros(6, 6, dtype=torch.double))


@each_kernel
def test_stein_is_double_for_weights_in_single_precision(kernel):
    data = Sequences.of(DATA, 3)
    edits = zs(locations=1).edits(data)
    weights = random_weights(edits).float()
    found = kernel.stein(data, edits, weights).dense()
    assert_same(found, plain_stein(kernel, data, edits, weights.double()))


@dataclass(frozen=True, eq=False)
class RecordingKernel(PairwiseKernel):
    """A kernel that notes how many pairs it is asked for at once, and how wide they are."""

    kernel: Kernel
    calls: list[tuple[int, int]]
    by_length: bool

    @property
    def zero_across_lengths(self) -> bool:
        return self.by_length

    def bytes_per_pair(self, width: int) -> int:
        return 100 * width

    def gram(self, x: Sequences, y: Sequences) -> Tensor:
        self.calls.append((len(x) * len(y), max(x.width, y.width)))
        return self.kernel.gram(x, y)


@pytest.mark.parametrize("by_length", [False, True])
@pytest.mark.parametrize("copies", [1, 3])
def test_stein_keeps_within_its_memory(by_length, copies):
    data = Sequences.of(DATA[:2], 3)
    edits = CustomNeighborhood(lambda x: [x * copies + (symbol,) for symbol in range(3)]).edits(data)
    kernel = RecordingKernel(HammingKernel(), [], by_length)
    kernel.stein(data, edits, random_weights(edits) + 1.0, max_bytes=8_000)
    assert len(kernel.calls) > 1
    assert all(pairs * kernel.bytes_per_pair(width) <= 8_000 for pairs, width in kernel.calls)


def test_stein_evaluates_no_pairs_of_different_lengths_where_the_kernel_is_zero():
    data = Sequences.of(DATA, 3)
    edits = zs().edits(data)
    weights = random_weights(edits, seed=3)
    grouped, whole = (RecordingKernel(HammingKernel(), [], by_length) for by_length in (True, False))
    assert_same(grouped.stein(data, edits, weights).dense(), whole.stein(data, edits, weights).dense())
    lengths = Edits.cat([Edits.identity(data), edits]).new_lengths(data.lengths)
    used = torch.cat([edits.sum_by_owner(weights), weights]) != 0
    assert sum(pairs for pairs, _ in grouped.calls) == int(lengths[used].bincount().square().sum())


@dataclass(frozen=True, eq=False)
class OneKernel(PairwiseKernel):
    """A kernel whose values share one place in memory."""

    def gram(self, x: Sequences, y: Sequences) -> Tensor:
        return torch.ones((), dtype=torch.double).expand(len(x), len(y))


def test_stein_of_a_constant_kernel_is_zero():
    data = Sequences.of(DATA, 3)
    edits = zs().edits(data)
    assert_same(
        OneKernel().stein(data, edits, random_weights(edits)).dense(), torch.zeros(len(data), len(data)).double()
    )


HAMMING, IMQ, GAP = HammingKernel(), IMQHammingKernel(), GapWeightedKernel()
COMBINED = {
    "sum": (HAMMING + IMQ, lambda h, q, g: h + q),
    "sum of three": (HAMMING + IMQ + GAP, lambda h, q, g: h + q + g),
    "product": (HAMMING * IMQ, lambda h, q, g: h * q),
    "multiple": (2.0 * IMQ, lambda h, q, g: 2 * q),
    "multiple from the right": (GAP * 3, lambda h, q, g: 3 * g),
    "all": (0.5 * (HAMMING + GAP) * IMQ + 2 * GAP, lambda h, q, g: 0.5 * (h + g) * q + 2 * g),
}


@pytest.mark.parametrize(("kernel", "formula"), COMBINED.values(), ids=COMBINED)
def test_combined_kernels(kernel, formula):
    data = Sequences.of(DATA, 3)
    x, y = data, Sequences.of([[0, 0, 1], [2, 0], [1, 1, 0, 1], [1]], 3)
    assert_same(kernel.gram(x, y), formula(*(part.gram(x, y) for part in (HAMMING, IMQ, GAP))))
    edits = zs(locations=1).edits(data)
    weights = random_weights(edits, seed=4)
    expected = plain_stein(kernel, data, edits, weights)
    for max_bytes in (1, PAIR_BYTES):
        stein = kernel.stein(data, edits, weights, max_bytes)
        assert_same(stein.dense(), expected)
        assert_same(stein.diagonal(), expected.diagonal())
        signs = torch.tensor([[1.0, 1, 1, 1, 1, 1], [1, -1, 1, 1, -1, -1]], dtype=torch.double)
        hollow = expected.clone().fill_diagonal_(0.0)
        assert_same(stein.off_diagonal_form(signs), torch.stack([s @ hollow @ s for s in signs]))


def test_combined_kernels_know_across_which_lengths_they_vanish():
    assert (HAMMING * IMQ).zero_across_lengths
    assert (HAMMING + DiracKernel()).zero_across_lengths
    assert (3.0 * HAMMING).zero_across_lengths
    assert not (HAMMING + IMQ).zero_across_lengths
    assert not (GAP * IMQ).zero_across_lengths


def test_combined_kernels_need_the_memory_of_their_parts():
    width = 50
    assert (GAP * IMQ).bytes_per_pair(width) >= GAP.bytes_per_pair(width) + 8
    assert (GAP + IMQ).bytes_per_pair(width) >= GAP.bytes_per_pair(width) + 8
    assert (2.0 * GAP).bytes_per_pair(width) >= GAP.bytes_per_pair(width)


@pytest.mark.parametrize("factor", [0.0, -1.0, math.nan, math.inf])
def test_a_factor_that_is_not_positive_is_refused(factor):
    with pytest.raises(ValueError, match=f"other: expected a finite number above 0, found {factor}"):
        factor * HAMMING


@pytest.mark.parametrize("combine", [lambda k: k + 1, lambda k: k * "2", lambda k: "2" * k])
def test_kernels_combine_with_kernels_and_numbers_only(combine):
    with pytest.raises(ValueError, match=r"other: expected (a kernel to add|a finite number above 0)"):
        combine(HAMMING)


@pytest.mark.parametrize("kernel", [ContiguousKernel(2), StartKernel(), LengthKernel()])
def test_no_edits_no_features(kernel: FeatureKernel) -> None:
    sequences = Sequences.of(["ab", "b"])
    psi = kernel.stein_features(sequences, Edits((), 2), torch.empty(0, dtype=torch.double))
    assert not psi.values.to_dense().any()


def test_a_kernel_is_derived_from_one_of_the_two_kinds() -> None:
    class Nameless(Kernel):  # type: ignore[type-arg]
        def gram(self, x: Sequences, y: Sequences) -> Tensor:
            return torch.zeros(len(x), len(y), dtype=torch.double)

    with pytest.raises(TypeError, match=r"abstract.* edit_products.* stein_each"):
        Nameless()  # type: ignore[abstract]


def test_what_a_kernel_says_of_itself_if_it_says_nothing() -> None:
    for kernel in (OneKernel(), OneKernel() + OneKernel(), OneKernel() * OneKernel(), 2 * OneKernel()):
        assert (kernel.has_features, kernel.feature_kind, kernel.feature_label(0, 2)) == (False, "", "")
        assert kernel.feature_symbols(torch.arange(3), 2).shape == (3, 0)
        assert kernel.meaning == "whole sequences"
        assert not kernel.zero_across_lengths
        assert kernel.bytes_per_pair(10) >= 64


def test_which_combinations_have_features() -> None:
    ngrams, start = ContiguousKernel(2), StartKernel()
    assert (ngrams + start).has_features
    assert (2 * ngrams).has_features
    assert not (ngrams * start).has_features
    assert not (ngrams + HAMMING).has_features


@pytest.mark.parametrize("kernel", [ContiguousKernel(2), HammingKernel()])
def test_a_factor_multiplies_what_edits_add(kernel: Kernel[Any]) -> None:
    data = Sequences.of([[0, 1, 1], [2, 0], [1]], 3)
    edits = zs().edits(data)
    weights = torch.rand(len(edits), dtype=torch.double, generator=torch.Generator().manual_seed(0))
    chunk = WeightedEdits(0, data, edits, weights)
    plain = kernel.edit_products(chunk, kernel.stein(data, edits, weights))
    tripled = 3.0 * kernel
    found = tripled.edit_products(chunk, tripled.stein(data, edits, weights))
    assert float(plain.abs().max()) > 0
    torch.testing.assert_close(found, 3 * plain, rtol=1e-10, atol=1e-12)


def test_groups_of_equal_length_are_ascending() -> None:
    lengths = 2 * (torch.arange(600) * 7 % 3)
    index = torch.arange(0, 600, 2)
    groups = _by_length(index, lengths)
    expected = [[place for place in index.tolist() if lengths[place] == length] for length in (0, 2, 4)]
    assert [group.tolist() for group in groups] == expected


class Picky(StartKernel):
    """A kernel that does not like long sequences."""

    def check_data(self, sequences: Sequences) -> None:
        if int(sequences.lengths.max()) > 3:
            raise ValueError("too long")


@pytest.mark.parametrize(
    "kernel",
    [
        Picky() + StartKernel(),
        StartKernel() + Picky(),
        0.5 * Picky(),
        Picky() * HammingKernel(),
        HammingKernel() * Picky(),
        ConditionalKernel(Picky(), lambda known: known.values[:, None]),
    ],
)
def test_composed_kernels_check_the_data_of_their_parts(kernel: Kernel[Any]) -> None:
    kernel.check_data(Sequences.of(["abc", "ab"]).with_covariates([0.0, 1.0]))
    with pytest.raises(ValueError, match="too long"):
        kernel.check_data(Sequences.of(["abca", "ab"]).with_covariates([0.0, 1.0]))

# SPDX-License-Identifier: Apache-2.0
"""Features of all neighbors, built and counted from scratch in plain Python."""

from __future__ import annotations

from collections.abc import Callable

import torch
from hypothesis import strategies as st
from torch import Tensor

from pyro_ksd.edits.neighborhoods import CustomNeighborhood, DoubleSubstitutions, Neighborhood, Substitutions, zs
from pyro_ksd.edits.splices import Edits
from pyro_ksd.kernels.base import FeatureKernel
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
    own = [phi(tuple(x)) for x in sequences.to_lists()]
    psi: list[Features] = [{} for _ in own]
    triples = zip(edits.owner.tolist(), edits.apply(sequences).to_lists(), weights.tolist(), strict=True)
    for row, y, weight in triples:
        for sign, features in ((1, phi(tuple(y))), (-1, own[row])):
            for key, value in features.items():
                psi[row][key] = psi[row].get(key, 0.0) + sign * weight * value
    return psi


def as_dicts(matrix: FeatureMatrix, decode: Callable[[int], tuple[int, ...]]) -> list[Features]:
    values = matrix.values.to_dense()
    codes = range(values.shape[1]) if matrix.codes is None else matrix.codes.tolist()
    labels = [decode(code) for code in codes]
    return [{label: value for label, value in zip(labels, row, strict=True) if value} for row in values.tolist()]


def assert_close(found: list[Features], expected: list[Features]) -> None:
    """To a relative 1e-12 or an absolute 1e-13; plain numbers, because there are very many of them."""
    for a, b in zip(found, expected, strict=True):
        for key in a.keys() | b.keys():
            value, wanted = a.get(key, 0.0), b.get(key, 0.0)
            assert abs(value - wanted) <= max(1e-12 * abs(wanted), 1e-13), key


def ngram(code: int, base: int, lengths: range) -> tuple[int, ...]:
    """The n-gram of a code, where the codes of longer n-grams follow those of shorter ones."""
    for length in lengths:
        if code < base**length:
            return tuple(code // base ** (length - 1 - i) % base for i in range(length))
        code -= base**length
    raise AssertionError("no such code")


def assert_features(
    kernel: FeatureKernel,
    data: list[list[int]],
    size: int,
    around: Neighborhood,
    phi: Callable[..., Features],
    decode: Callable[[int], tuple[int, ...]],
) -> None:
    """Compares the features and the Stein features of a kernel with plain ones, for random weights of the edits."""
    sequences = Sequences.of(data, size)
    edits = around.edits(sequences)
    weights = random_weights(edits)
    assert_close(as_dicts(kernel.features(sequences), decode), [phi(tuple(x)) for x in data])
    found = as_dicts(kernel.stein_features(sequences, edits, weights), decode)
    assert_close(found, expected_psi(sequences, edits, weights, phi))

# SPDX-License-Identifier: Apache-2.0
"""Windows of mixed shapes and another power of the counts, against counts from scratch."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Literal

import pytest
import torch
from feature_enumeration import NEIGHBORHOODS, Features, assert_features, ngram, runs
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.edits.weighted_edits import WeightedEdits
from pyro_ksd.kernels.contiguous import ContiguousKernel
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.kernels.window_kernel import Shape, WindowKernel
from pyro_ksd.kernels.witness import Witness
from pyro_ksd.sequences.container import Sequences

pytestmark = pytest.mark.usefixtures("engine")

SHAPES = (Shape(2), Shape(3, between=False), Shape(3), Shape(5, between=False))


@dataclass(frozen=True, eq=False)
class MixedKernel(WindowKernel):
    """Pairs, pairs at the distances 2 and 4, and triples."""

    power: float = 0.7  # type: ignore[misc]  # a field in place of a property

    @property
    def shapes(self) -> tuple[Shape, ...]:
        return SHAPES

    @property
    def feature_kind(self) -> Literal["ngram"]:
        return "ngram"


def counted(x: tuple[int, ...], shape: Shape) -> list[tuple[int, ...]]:
    """The symbols that count of each window."""
    windows = [x[i : i + shape.width] for i in range(len(x) - shape.width + 1)]
    return windows if shape.between else [(window[0], window[-1]) for window in windows]


def mixed_features(x: tuple[int, ...], power: float) -> Features:
    fitting = sum(len(x) >= shape.width for shape in SHAPES)
    features: Features = {}
    for index, shape in enumerate(SHAPES):
        counts = Counter(counted(x, shape))
        energy = sum(count ** (2 * power) for count in counts.values())
        for symbols, count in counts.items():
            features[index, *symbols] = count**power / math.sqrt(energy * fitting)
    return features


def decode(code: int) -> tuple[int, ...]:
    for index, shape in enumerate(SHAPES):
        if code < 3**shape.num_symbols:
            return (index, *ngram(code, 3, range(shape.num_symbols, shape.num_symbols + 1)))
        code -= 3**shape.num_symbols
    raise AssertionError("no such code")


@pytest.mark.parametrize("power", [0.5, 0.7, 1.0, 2.0])
@pytest.mark.parametrize("neighborhood", NEIGHBORHOODS)
@given(data=st.lists(runs(), min_size=1, max_size=4))
@example(data=[[], [0], [1, 1], [2, 2, 2], [0, 0, 0, 0, 0, 0, 0], [0, 1, 0, 1, 0, 1]])
@settings(max_examples=6, deadline=None)
def test_windows_of_mixed_shapes(data: list[list[int]], neighborhood: str, power: float) -> None:
    kernel = MixedKernel(power)
    assert_features(kernel, data, 3, NEIGHBORHOODS[neighborhood], lambda x: mixed_features(x, power), decode)


def test_symbols_of_all_windows() -> None:
    total = sum(3**shape.num_symbols for shape in SHAPES)
    symbols = MixedKernel().feature_symbols(torch.arange(total), 3)
    for code, own in enumerate(symbols.tolist()):
        expected = list(decode(code)[1:])
        assert own == expected + [-1] * (3 - len(expected))


def test_what_a_shape_counts() -> None:
    assert [shape.num_symbols for shape in SHAPES] == [2, 2, 3, 2]


def test_only_the_symbols_that_count_need_codes() -> None:
    size = 50_000
    data = Sequences.of([[0, 1, 2, 3, 4, 5]], size)
    values = MixedKernel().features(data).values.to_dense()
    assert int(values.count_nonzero()) == 5 + 4 + 4 + 2
    assert float(values.square().sum()) == pytest.approx(1.0)


def test_more_windows_than_there_are_codes_are_refused() -> None:
    data = Sequences.of([[0, 1, 2, 3, 4]], 10**6)
    edits = zs(insertable=[0], symbols=1).edits(data)
    with pytest.raises(
        ValueError, match=r"expected at most 2\*\*62 different runs of 4 symbols, found 1000000 symbols"
    ):
        ContiguousKernel(4).stein(data, edits, torch.ones(len(edits)).double())


def all_features(matrix: FeatureMatrix, size: int) -> torch.Tensor:
    """The features of all codes, ``[N, size]``."""
    values = matrix.values.to_dense()
    codes = torch.arange(values.shape[1]) if matrix.codes is None else matrix.codes
    return torch.zeros(len(values), size, dtype=torch.double).index_add_(1, codes, values)


@pytest.mark.parametrize("alphabet", [2, 9])
def test_edits_move_along_the_witness_as_their_features_change(alphabet: int) -> None:
    kernel, generator = MixedKernel(), torch.Generator().manual_seed(alphabet)
    rows = [torch.randint(alphabet, (length,), generator=generator).tolist() for length in (5, 0, 1, 7, 3, 4)]
    data = Sequences.of(rows, alphabet)
    edits = zs().edits(data)
    weights = (torch.rand(len(edits), dtype=torch.double, generator=generator) - 0.3).clamp(min=0)
    chunk = WeightedEdits(0, data, edits, weights)
    [psi] = kernel.stein_features_each(chunk)
    size = sum(alphabet**shape.num_symbols for shape in SHAPES)
    table = all_features(psi, size)
    change = (
        all_features(kernel.features(edits.apply(data)), size) - all_features(kernel.features(data), size)[edits.owner]
    )
    expected = ((table.sum(0) - table)[edits.owner] * change).sum(1)
    found = kernel.steps_along(chunk, Witness.of(psi, 0, len(data)))
    used = weights > 0
    torch.testing.assert_close(found[used], expected[used], rtol=1e-9, atol=1e-11)
    assert float(expected[used].abs().max()) > 0.1

# SPDX-License-Identifier: Apache-2.0
"""Kernels of which an edit changes a few features: with a short cut, without one, and piece by piece."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
import torch
from feature_enumeration import as_dicts, assert_close, expected_psi, random_weights
from torch import Tensor

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.edits.splices import SpliceBlock
from pyro_ksd.edits.weighted_edits import WeightedEdits
from pyro_ksd.kernels.local_kernel import LocalKernel
from pyro_ksd.kernels.witness import Witness
from pyro_ksd.sequences.container import Sequences

pytestmark = pytest.mark.usefixtures("engine")


@dataclass(frozen=True, eq=False)
class SquaredCounts(LocalKernel):
    """The squares of the numbers of symbols; a short cut for substitutions, if it is wanted."""

    has_short_cut: bool
    asked: list[tuple[int, int]] = field(default_factory=list)

    def num_features(self, alphabet_size: int) -> int:
        return alphabet_size

    def entries(self, sequences: Sequences) -> tuple[Tensor, Tensor, Tensor]:
        """Each count as often as the symbol occurs: the sum of equal places is the square."""
        row, position = sequences.mask.nonzero().unbind(1)
        code = sequences.tokens[row, position]
        return row, code, counts(sequences)[row, code]

    def changes(self, sequences: Sequences, block: SpliceBlock) -> tuple[Tensor, Tensor] | None:
        self.asked.append((block.removed, block.growth))
        if not self.has_short_cut or block.removed != 1 or block.growth:
            return None
        old, new = sequences.tokens[block.owner, block.start], block.inserted[:, 0]
        number = counts(sequences)
        up = 2 * number[block.owner, new] + 1
        down = 1 - 2 * number[block.owner, old]
        return torch.stack([new, old]), torch.stack([up, down])


def counts(sequences: Sequences) -> Tensor:
    """How often each symbol occurs, double ``[N, S]``."""
    rows = [[float(x.count(code)) for code in range(sequences.alphabet_size)] for x in sequences.to_lists()]
    return torch.tensor(rows, dtype=torch.double)


def phi(x: tuple[int, ...]) -> dict[tuple[int, ...], float]:
    return {(code,): float(x.count(code) ** 2) for code in set(x)}


def decode(code: int) -> tuple[int, ...]:
    return (code,)


@pytest.fixture(params=[4, 20], ids=["few features", "many features"])
def data(request: pytest.FixtureRequest) -> Sequences:
    return Sequences.of([[0, 1, 1, 3], [2, 2, 2], [], [3], [0, 0]], request.param)


@pytest.mark.parametrize("entries", [2**24, 30])
@pytest.mark.parametrize("has_short_cut", [False, True])
def test_stein_features(data: Sequences, has_short_cut: bool, entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.kernels.local_kernel.ENTRIES", entries)
    edits = zs().edits(data)
    weights = random_weights(edits)
    kernel = SquaredCounts(has_short_cut)
    assert_close(as_dicts(kernel.features(data), decode), [phi(tuple(x)) for x in data.to_lists()])
    found = as_dicts(kernel.stein_features(data, edits, weights), decode)
    assert_close(found, expected_psi(data, edits, weights, phi))


@pytest.mark.parametrize("entries", [2**24, 30])
@pytest.mark.parametrize("has_short_cut", [False, True])
def test_steps_along_a_witness_and_few_changes(
    data: Sequences, has_short_cut: bool, entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyro_ksd.kernels.local_kernel.ENTRIES", entries)
    edits, size = zs().edits(data), data.alphabet_size
    weights = random_weights(edits)
    chunk = WeightedEdits(0, data, edits, weights)
    kernel = SquaredCounts(has_short_cut)
    after = [phi(tuple(y)) for y in edits.apply(data).to_lists()]
    before = [phi(tuple(x)) for x in data.to_lists()]
    step = torch.tensor(
        [
            [new.get((code,), 0.0) - before[owner].get((code,), 0.0) for code in range(size)]
            for owner, new in zip(edits.owner.tolist(), after, strict=True)
        ],
        dtype=torch.double,
    )
    matrix = kernel.stein_features(data, edits, weights)
    psi = matrix.values.to_dense()
    if matrix.codes is not None:
        psi = torch.zeros(len(data), size, dtype=torch.double).index_copy_(1, matrix.codes, psi)
    witness = psi.sum(0) - psi
    found = kernel.steps_along(chunk, Witness.of(matrix, 0, len(data)))
    torch.testing.assert_close(found, (step * witness[edits.owner]).sum(1), rtol=1e-12, atol=1e-12)
    changes = kernel.few_changes(chunk)
    if size > 16:
        assert changes is None
    else:
        assert changes is not None
        torch.testing.assert_close(changes, step, rtol=1e-12, atol=1e-12)


def test_up_to_16_features_are_few() -> None:
    for size, is_few in ((16, True), (17, False)):
        data = Sequences.of([[0, 1], [2]], size)
        edits = zs(locations=1).edits(data)
        chunk = WeightedEdits(0, data, edits, random_weights(edits))
        assert (SquaredCounts(True).few_changes(chunk) is not None) == is_few


@pytest.mark.parametrize("models", [1, 3])
def test_edits_without_weight_are_not_looked_at(data: Sequences, models: int) -> None:
    edits = zs().edits(data)
    weights = torch.stack([(index + 1) * random_weights(edits) for index in range(models)])
    for block, own in zip(edits.blocks, edits.split(weights), strict=True):
        if block.growth:
            own.zero_()
    weights[0] = 0.0 if models > 1 else weights[0]
    kernel = SquaredCounts(True)
    matrices = kernel.stein_features_each(WeightedEdits(0, data, edits, weights))
    assert kernel.asked == [(1, 0)]
    for matrix, own in zip(matrices, weights, strict=True):
        assert_close(as_dicts(matrix, decode), expected_psi(data, edits, own, phi))

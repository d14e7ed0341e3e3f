# SPDX-License-Identifier: Apache-2.0
"""Batches of models give what each of them gives alone."""

from __future__ import annotations

import pytest
import torch
from example_models import bounded_chain, small_mrf
from pyro_programs import CHAIN, FEW_SEQUENCES, SIZE
from torch import Tensor

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.model_batch import ModelBatch, ModelList
from pyro_ksd.sequences.container import Sequences

MODELS: list[SequenceModel] = [CHAIN, small_mrf(longest=6), bounded_chain()]
EMPTY = Sequences.of([[]], SIZE)
DATA = Sequences.cat([FEW_SEQUENCES, EMPTY])
SHORT = DATA[DATA.lengths.clamp(min=1) == DATA.lengths]
SHORT = SHORT[SHORT.lengths <= 3]  # possible under all models
WHICH = torch.tensor([2, 0, 1, 1, 0, 2])


class Weights(ModelBatch):
    """Models known by their log-joints alone: a weight for each symbol."""

    def __init__(self, weights: Tensor) -> None:
        self.weights, self.asked = weights, list[tuple[tuple[object, ...], int]]()

    def __len__(self) -> int:
        return len(self.weights)

    def log_joint_each(self, sequences: Sequences, which: Tensor) -> Tensor:
        self.asked += zip(map(tuple, sequences.to_lists()), which.tolist(), strict=True)
        return self.weights[which] * sequences.lengths


def test_all_sequences_under_each_model() -> None:
    batch = ModelList(MODELS)
    assert len(batch) == 3
    found = batch.log_joint(DATA)
    assert found.dtype == torch.double
    torch.testing.assert_close(found, torch.stack([model.log_joint(DATA).double() for model in MODELS]))
    assert (found == -torch.inf).any()


def test_each_sequence_under_its_own_model() -> None:
    found = ModelList(MODELS).log_joint_each(DATA, WHICH)
    expected = [MODELS[k].log_joint(DATA[row : row + 1]) for row, k in enumerate(WHICH.tolist())]
    torch.testing.assert_close(found, torch.cat(expected).double())


def test_a_model_is_asked_only_for_its_own_sequences() -> None:
    class Short(SequenceModel):
        alphabet_size = SIZE

        def log_joint(self, sequences: Sequences) -> Tensor:
            assert sequences.lengths.max() <= 2
            return torch.zeros(len(sequences))

    which = (DATA.lengths <= 2).long()
    found = ModelList([CHAIN, Short()]).log_joint_each(DATA, which)
    assert (found[which == 1] == 0).all()
    torch.testing.assert_close(found[which == 0], CHAIN.log_joint(DATA[which == 0]))


@pytest.mark.parametrize("limit", [2**20, 5])
def test_ratios_under_each_model(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.models.evaluation.EDITED_SEQUENCES", limit)
    edits = zs().edits(SHORT)
    found = ModelList(MODELS).log_ratio(SHORT, edits)
    assert found.shape == (3, len(edits))
    expected = torch.stack([model.log_ratio(SHORT, edits).double() for model in MODELS])
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("limit", [2**20, 5])
def test_ratios_of_each_sequence_under_its_own_model(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.models.evaluation.EDITED_SEQUENCES", limit)
    edits, which = zs().edits(SHORT), torch.tensor([2, 0, 1])
    found = ModelList(MODELS).log_ratio_each(SHORT, edits, which)
    each = torch.stack([model.log_ratio(SHORT, edits).double() for model in MODELS])
    torch.testing.assert_close(found, each.gather(0, which[edits.owner][None])[0], rtol=1e-10, atol=1e-10)


def test_a_batch_needs_only_the_log_joints_of_each() -> None:
    batch = Weights(torch.tensor([-1.0, -2.0], dtype=torch.double))
    assert batch.log_joint(DATA).equal(torch.stack([-1.0 * DATA.lengths, -2.0 * DATA.lengths]).double())
    edits = zs().edits(DATA)
    growth = edits.new_lengths(DATA.lengths) - DATA.lengths[edits.owner]
    assert batch.log_ratio(DATA, edits).equal(torch.stack([-1.0 * growth, -2.0 * growth]).double())
    which = torch.tensor([0, 1, 1, 0, 1, 0])
    assert batch.log_ratio_each(DATA, edits, which).equal((batch.weights[which][edits.owner] * growth).double())


def test_equal_neighbors_of_one_model_are_scored_once() -> None:
    batch = Weights(torch.tensor([-1.0, -2.0], dtype=torch.double))
    data = Sequences.of([[0, 1], [0, 1], [0, 1]], SIZE)
    batch.log_ratio_each(data, zs().edits(data), torch.tensor([0, 1, 0]))
    assert len(batch.asked) == len(set(batch.asked))
    neighbors = {tuple(y) for y in zs().edits(data).apply(data).to_lists()} | {(0, 1)}
    assert set(batch.asked) == {(x, k) for x in neighbors for k in range(2)}

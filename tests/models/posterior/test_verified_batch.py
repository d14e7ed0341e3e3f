# SPDX-License-Identifier: Apache-2.0
"""Models that answer for the data, and their tables for data sets of their own."""

from __future__ import annotations

import pytest
import torch
from example_automata import Unfactored, hidden_markov
from example_models import random_entries
from torch import Tensor

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.models import MarkovSequence
from pyro_ksd.models.model_batch import ModelBatch, ModelList
from pyro_ksd.models.posterior.verified_batch import VerifiedBatch
from pyro_ksd.models.wrappers.verified_stand_in import DisagreementError, found_words
from pyro_ksd.sequences.container import Sequences

SIZE = 3
PROBS = random_entries(4, SIZE + 1, SIZE + 1)
CHAINS = [MarkovSequence(own / own.sum(-1, keepdim=True), order=1) for own in PROBS]
DATA = Sequences.of([[0, 1, 1, 2], [2], [1, 1, 0], [0, 0, 2], [2, 1, 0, 1, 1]], SIZE)
WHICH = torch.tensor([3, 0, 0, 2, 1])
EDITS = zs().edits(DATA)


class Planted(ModelBatch):
    """Chains, of which the last gives another probability to sequences with 0 far in front of 2."""

    def __init__(self, factor: float) -> None:
        self._models = ModelList(CHAINS)
        self._factor = factor

    def __len__(self) -> int:
        return len(self._models)

    def log_joint_each(self, sequences: Sequences, which: Tensor) -> Tensor:
        tokens = sequences.padded(-1)
        first, last = (tokens[:, :1] == 0).any(1), (tokens[:, 3:] == 2).any(1)
        planted = first & last & (which == len(CHAINS) - 1)
        return self._models.log_joint_each(sequences, which) + self._factor * planted


def test_the_models_answer_for_the_data_and_the_tables_for_other_data_sets() -> None:
    models = Planted(0.0)
    batch = VerifiedBatch(models, SIZE, form=1)
    assert len(batch) == len(CHAINS)
    assert batch.log_ratio(DATA, EDITS).equal(models.log_ratio(DATA, EDITS))
    assert batch.log_joint(DATA).equal(models.log_joint(DATA))
    assert batch.log_joint_each(DATA, WHICH).equal(models.log_joint_each(DATA, WHICH))
    found, expected = batch.log_ratio_each(DATA, EDITS, WHICH), models.log_ratio_each(DATA, EDITS, WHICH)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    batch.stand_in.confirm()


def test_models_without_an_order_have_automata() -> None:
    hidden = [hidden_markov(3, seed=seed) for seed in range(4)]
    data = hidden[0].draw(20, torch.Generator().manual_seed(0))
    words = found_words(hidden[:2], data)
    assert words is not None
    models = ModelList([Unfactored(model) for model in hidden])
    batch = VerifiedBatch(models, SIZE, words)
    edits = zs().edits(data)
    assert batch.log_ratio(data, edits).equal(models.log_ratio(data, edits))
    which = torch.arange(20) % 4
    found, expected = batch.log_ratio_each(data, edits, which), models.log_ratio_each(data, edits, which)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
    assert not found.equal(expected)
    batch.stand_in.confirm()
    planted = ModelList([Unfactored(model, [1], 0.1 * (index == 3)) for index, model in enumerate(hidden)])
    with pytest.raises(DisagreementError):
        VerifiedBatch(Odd(planted, models), SIZE, words).log_ratio(data, edits)


class Odd(ModelBatch):
    """Models that say of short sequences what others say."""

    def __init__(self, models: ModelBatch, short: ModelBatch) -> None:
        self._models = models
        self._short = short

    def __len__(self) -> int:
        return len(self._models)

    def log_joint_each(self, sequences: Sequences, which: Tensor) -> Tensor:
        long = self._models.log_joint_each(sequences, which)
        return torch.where(sequences.lengths > 7, long, self._short.log_joint_each(sequences, which))


def test_one_wrong_ratio_of_the_data_under_one_model_is_noticed() -> None:
    models = Planted(1.0)
    near = Sequences.of([[0, 1, 1, 1]], SIZE)  # no long-range term, but edits have it
    with pytest.raises(DisagreementError):
        VerifiedBatch(models, SIZE, form=1).log_ratio(near, zs().edits(near))


def test_a_wrong_log_joint_under_one_model_is_noticed() -> None:
    none = EDITS.select(torch.zeros(0, dtype=torch.long))
    for which, is_noticed in ((torch.full((5,), 2), False), (torch.tensor([3, 0, 0, 2, 1]), True)):
        batch = VerifiedBatch(Planted(1.0), SIZE, form=1)
        batch.log_ratio_each(DATA, none, which)
        if is_noticed:
            with pytest.raises(DisagreementError):
                batch.stand_in.confirm()
        else:
            batch.stand_in.confirm()

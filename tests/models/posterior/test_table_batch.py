# SPDX-License-Identifier: Apache-2.0
"""Batches of models known by their tables."""

from __future__ import annotations

import pytest
import torch
from pyro_programs import FEW_SEQUENCES as DATA
from pyro_programs import SIZE, simplex

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.models import MarkovSequence
from pyro_ksd.models.model_batch import ModelList
from pyro_ksd.models.posterior.table_batch import TableBatch
from pyro_ksd.models.wrappers.tabulated import tabulate
from pyro_ksd.sequences.container import Sequences

EDITS = zs().edits(DATA)
WHICH = torch.tensor([3, 0, 2, 2, 1])


def chains(order: int) -> ModelList:
    return ModelList([MarkovSequence(own, order=order) for own in simplex(4, *[SIZE + 1] * (order + 1))])


@pytest.mark.parametrize("order", [1, 2])
def test_the_table_of_a_batch_gives_what_its_models_give(order: int) -> None:
    models = chains(order)
    batch = TableBatch(tabulate(models.log_joint, SIZE, order))
    assert len(batch) == 4
    for found, expected in (
        (batch.log_joint(DATA), models.log_joint(DATA)),
        (batch.log_joint_each(DATA, WHICH), models.log_joint_each(DATA, WHICH)),
        (batch.log_ratio(DATA, EDITS), models.log_ratio(DATA, EDITS)),
        (batch.log_ratio_each(DATA, EDITS, WHICH), models.log_ratio_each(DATA, EDITS, WHICH)),
    ):
        assert found.dtype == torch.double
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_the_models_are_asked_only_for_the_table() -> None:
    asked: list[int] = []
    models = chains(1)

    def log_joint(sequences: Sequences) -> torch.Tensor:
        asked.append(len(sequences))
        return models.log_joint(sequences)

    batch = TableBatch(tabulate(log_joint, SIZE, 1))
    batch.log_ratio(DATA, EDITS)
    batch.log_ratio_each(DATA, EDITS, WHICH)
    assert asked == [1, SIZE, SIZE**2]


def test_each_model_draws_its_own_data_set() -> None:
    """The first symbols have the frequencies of the model, and those of no other model."""
    models = chains(1)
    batch = TableBatch(tabulate(models.log_joint, SIZE, 1))
    drawn = batch.draw_each(4000, torch.Generator().manual_seed(0))
    assert drawn is not None
    first = simplex(4, SIZE + 1, SIZE + 1)[:, -1]
    own = drawn.tokens[:, 0].masked_fill(drawn.lengths == 0, SIZE).view(4, 4000)
    found = torch.stack([row.bincount(minlength=SIZE + 1) for row in own]) / 4000
    assert float((found - first).abs().max()) < 4 * (0.25 / 4000) ** 0.5
    assert float((found - first.flip(0)).abs().max()) > 0.1


def test_tables_that_do_not_say_how_to_draw() -> None:
    endless = tabulate(lambda words: 0.0 * words.lengths.double()[None], SIZE, 1)
    assert TableBatch(endless).draw_each(5, torch.Generator()) is None

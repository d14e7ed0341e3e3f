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

# SPDX-License-Identifier: Apache-2.0
"""Ratios from the log-joints of edited sequences, each evaluated once."""

from __future__ import annotations

import pyro_programs as programs
import pytest
import torch
from pyro_programs import CHAIN, SIZE
from pyro_programs import FEW_SEQUENCES as DATA

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.edits.splices import Edits
from pyro_ksd.models.evaluation import evaluated_ratio, evaluated_ratio_each
from pyro_ksd.models.programs.vectorized import VectorizedProgram
from pyro_ksd.sequences.container import Sequences


def test_repeated_neighbors_are_scored_once(monkeypatch: pytest.MonkeyPatch) -> None:
    data = Sequences.of([[0, 1], [0, 1], [1, 0], [0, 1]], SIZE)
    model = VectorizedProgram(programs.chain_with_stop, data)
    edits = zs().edits(data)
    neighbors = {tuple(y) for y in edits.apply(data).to_lists()}
    scored: list[tuple[object, ...]] = []
    inner = VectorizedProgram._evaluate

    def counted(self: VectorizedProgram, sequences: Sequences) -> torch.Tensor:
        scored.extend(map(tuple, sequences.to_lists()))
        return inner(self, sequences)

    monkeypatch.setattr(VectorizedProgram, "_evaluate", counted)
    model.log_ratio(data, edits)
    assert len(edits) > len(neighbors)
    assert sorted(scored) == sorted(neighbors | {tuple(x) for x in data.to_lists()})


@pytest.mark.parametrize("limit", [2**20, 7, 1])
def test_ratios_are_in_the_order_of_the_edits(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.models.evaluation.EDITED_SEQUENCES", limit)
    edits = Edits.cat([zs().edits(DATA), Edits.identity(DATA)])
    expected = CHAIN.log_joint(edits.apply(DATA)) - CHAIN.log_joint(DATA)[edits.owner]
    torch.testing.assert_close(evaluated_ratio(CHAIN, DATA, edits), expected, rtol=1e-12, atol=1e-12)


def test_ratios_of_a_batch_have_its_dimension_first() -> None:
    class Batch:
        def log_joint(self, sequences: Sequences) -> torch.Tensor:
            return torch.tensor([[1.0], [-3.0]]) * sequences.lengths

        def log_joint_each(self, sequences: Sequences, which: torch.Tensor) -> torch.Tensor:
            return torch.tensor([1.0, -3.0])[which] * sequences.lengths

    edits = zs().edits(DATA)
    growth = edits.new_lengths(DATA.lengths) - DATA.lengths[edits.owner]
    assert evaluated_ratio(Batch(), DATA, edits).equal(torch.tensor([[1.0], [-3.0]]) * growth)
    which = torch.tensor([1, 0, 1, 1, 0])
    assert evaluated_ratio_each(Batch(), DATA, edits, which).equal(
        torch.tensor([1.0, -3.0])[which][edits.owner] * growth
    )


def test_equal_sequences_with_other_covariates_are_scored_apart() -> None:
    class Dosed:
        def log_joint(self, sequences: Sequences) -> torch.Tensor:
            assert sequences.covariates is not None
            return sequences.covariates.values["dose"] * sequences.lengths

    data = Sequences.of([[0, 1], [0, 1], [0, 1]], SIZE).with_covariates({"dose": torch.tensor([1.0, -3.0, 1.0])})
    edits = zs().edits(data)
    growth = edits.new_lengths(data.lengths) - data.lengths[edits.owner]
    assert evaluated_ratio(Dosed(), data, edits).equal(torch.tensor([1.0, -3.0, 1.0])[edits.owner] * growth)

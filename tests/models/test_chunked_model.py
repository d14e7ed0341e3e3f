# SPDX-License-Identifier: Apache-2.0
"""Models that are evaluated a chunk of sequences at a time."""

from __future__ import annotations

import pyro_programs as programs
import pytest
import torch
from pyro_programs import FEW_SEQUENCES as DATA
from pyro_programs import SIZE

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.models.chunked_model import ChunkedModel
from pyro_ksd.models.conversion import as_model
from pyro_ksd.sequences.container import Sequences


class Lengths(ChunkedModel):
    """Scores the length in single precision, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(SIZE)
        self.asked: list[Sequences] = []

    def _evaluate(self, sequences: Sequences) -> torch.Tensor:
        self.asked.append(sequences)
        return sequences.lengths.float() / -4


def test_chunks_are_bounded_narrow_and_of_similar_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.models.chunked_model.EVALUATED_SEQUENCES", 2)
    model = Lengths()
    found = model.log_joint(DATA)
    assert found.dtype == torch.double
    assert found.tolist() == (DATA.lengths / -4).tolist()
    assert [part.lengths.tolist() for part in model.asked] == [[1, 2], [3, 4], [5]]
    assert [part.width for part in model.asked] == [2, 4, 5]


def test_no_sequences_are_no_chunk() -> None:
    model = Lengths()
    assert model.log_joint(DATA[:0]).shape == (0,)
    assert model.asked == []


def test_sequences_must_be_over_the_symbols_of_the_model() -> None:
    assert Lengths().alphabet_size == SIZE
    with pytest.raises(ValueError, match="the model's 3 symbols, found an alphabet of 4"):
        Lengths().log_joint(Sequences.of([[0]], 4))


def test_chunks_do_not_change_the_log_joints(monkeypatch: pytest.MonkeyPatch) -> None:
    for program in (programs.chain_with_stop, programs.hmm):
        model = as_model(program, DATA)
        neighbors = zs().edits(DATA).apply(DATA)
        whole = model.log_joint(neighbors)
        monkeypatch.setattr("pyro_ksd.models.chunked_model.EVALUATED_SEQUENCES", 7)
        torch.testing.assert_close(model.log_joint(neighbors), whole, rtol=1e-12, atol=1e-12)

# SPDX-License-Identifier: Apache-2.0
"""Small models that several tests use."""

from __future__ import annotations

from torch import Tensor

from pyro_ksd.edits.splices import Edits
from pyro_ksd.examples import random_walk
from pyro_ksd.models import MarkovSequence, SequenceModel
from pyro_ksd.sequences.container import Sequences


def walk(hold: float = 0.0) -> MarkovSequence:
    """A short walk on a small ring, for speed."""
    return random_walk(5, hold=hold, mean_length=6.0)


class Unsampled(SequenceModel):
    """A model known by its ratios only."""

    def __init__(self, model: SequenceModel) -> None:
        self._model = model

    @property
    def alphabet_size(self) -> int:
        return self._model.alphabet_size

    def log_joint(self, sequences: Sequences) -> Tensor:
        return self._model.log_joint(sequences)

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        return self._model.log_ratio(sequences, edits)

# SPDX-License-Identifier: Apache-2.0
"""Small models that several tests use."""

from __future__ import annotations

import torch
from torch import Tensor

from pyro_ksd.edits import Edits
from pyro_ksd.models import MarkovSequence, SequenceModel
from pyro_ksd.sequences import Sequences


def random_walk(size: int = 5, hold: float = 0.0, mean_length: float = 6.0) -> MarkovSequence:
    """A walk on a ring that holds with a probability; every step is possible, if rarely."""
    identity = torch.eye(size, dtype=torch.double)
    steps = (1 - hold) * (identity.roll(1, 1) + identity.roll(-1, 1)) / 2 + hold * identity
    steps = steps.clamp(min=1e-3)
    uniform = torch.full((size,), 1 / size, dtype=torch.double)
    stop = torch.tensor(1 / mean_length, dtype=torch.double)
    return MarkovSequence.from_transitions(uniform, steps / steps.sum(-1, keepdim=True), stop)


class Unsampled:
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

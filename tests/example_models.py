# SPDX-License-Identifier: Apache-2.0
"""Small models that several tests use."""

from __future__ import annotations

import torch
from torch import Tensor

from pyro_ksd.edits.splices import Edits
from pyro_ksd.examples import random_walk
from pyro_ksd.models import LinearChainMRF, MarkovSequence, SequenceModel
from pyro_ksd.sequences.container import Sequences


def walk(hold: float = 0.0) -> MarkovSequence:
    """A short walk on a small ring, for speed."""
    return random_walk(5, hold=hold, mean_length=6.0)


def walks(num: int = 12, hold: float = 0.0, seed: int = 1) -> Sequences:
    """Sequences that such a walk made."""
    return walk(hold=hold).draw(num, torch.Generator().manual_seed(seed))


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


class Stopped(Unsampled):
    """A model whose user presses Ctrl-C when some more edits than a number were scored.

    :ivar scored: how many edits were scored.
    """

    def __init__(self, model: SequenceModel, after: float) -> None:
        super().__init__(model)
        self.after = after
        self.scored = 0

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        self.scored += len(edits)
        if self.scored > self.after:
            raise KeyboardInterrupt
        return super().log_ratio(sequences, edits)


def random_entries(*shape: int) -> Tensor:
    """Numbers between 0 and 1, always the same ones for a shape."""
    return torch.rand(*shape, dtype=torch.double, generator=torch.Generator().manual_seed(sum(shape)))


def bounded_chain(size: int = 3) -> MarkovSequence:
    """A chain that stops for certain after three symbols."""
    table = random_entries(*[size + 1] * 4)
    table[(size,) * 4] = 0.0  # never empty
    table[:size, :size, :size] = torch.eye(size + 1, dtype=torch.double)[size]
    return MarkovSequence(table / table.sum(-1, keepdim=True), order=3, max_length=3)


def small_mrf(size: int = 3, longest: int = 4) -> LinearChainMRF:
    """A random field whose sequences, the empty one among them, are few enough to be enumerated."""
    return LinearChainMRF(random_entries(size, size), random_entries(size), random_entries(longest + 1))

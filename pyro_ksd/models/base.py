# SPDX-License-Identifier: Apache-2.0
"""What the engine asks of a model."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from pyro_ksd.edits import Edits
from pyro_ksd.sequences import Sequences


@runtime_checkable
class SequenceModel(Protocol):
    """A model of sequences, known up to a constant factor."""

    @property
    def alphabet_size(self) -> int:
        """The number of symbols ``S``."""

    def log_joint(self, sequences: Sequences) -> Tensor:
        """``log p(x)`` up to a constant, ``[N]``; ``-inf`` where the model calls a sequence impossible."""

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        """``log p(y) - log p(x)`` for every edit ``y`` of its owner ``x``, ``[E]``; every ``p(x) > 0``."""


def impossible_sites(model: object, sequences: Sequences) -> list[str] | None:
    """The sites that make each of some impossible sequences so, if the model, or the one within it, can name them."""
    while not hasattr(model, "impossible_sites"):
        if not hasattr(model, "model"):
            return None
        model = model.model
    names: list[str] = model.impossible_sites(sequences)
    return names


@runtime_checkable
class SampleableModel(SequenceModel, Protocol):
    """A model that can be sampled, as the parametric bootstrap needs."""

    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        """Independent sequences from the model."""

# SPDX-License-Identifier: Apache-2.0
"""What the engine asks of a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

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


def impossible_sites(model: object, sequences: Sequences) -> list[str]:
    """The site that makes each of some impossible sequences so; ``""`` where none is to blame, or none is known."""
    method = _of_model_within(model, "impossible_sites")
    return [""] * len(sequences) if method is None else method(sequences)


def check_data(model: object, sequences: Sequences) -> None:
    """Lets the model, or the one within it, refuse data that are not meant for it.

    :raises ValueError: naming the sequences.
    """
    method = _of_model_within(model, "check_data")
    if method is not None:
        method(sequences)


def _of_model_within(model: object, name: str) -> Callable[[Sequences], Any] | None:
    """A method of the model, or of the one that it holds, if any has it."""
    while not hasattr(model, name):
        if not hasattr(model, "model"):
            return None
        model = model.model
    method: Callable[[Sequences], Any] = getattr(model, name)
    return method


@runtime_checkable
class SampleableModel(SequenceModel, Protocol):
    """A model that can be sampled, as the parametric bootstrap needs."""

    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        """Independent sequences from the model."""

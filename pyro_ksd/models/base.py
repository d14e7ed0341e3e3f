# SPDX-License-Identifier: Apache-2.0
"""What the engine asks of a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from pyro_ksd.edits import Edits
from pyro_ksd.neighborhoods import Neighborhood
from pyro_ksd.sequences import Sequences


@runtime_checkable
class SequenceModel(Protocol):
    """A model of sequences, known up to a constant factor.

    Any object with these three members will do:

    >>> class Shrinking:
    ...     "Every further symbol makes a sequence of two symbols e² times less probable."
    ...     alphabet_size = 2
    ...     def log_joint(self, sequences):
    ...         return -2.0 * sequences.lengths
    ...     def log_ratio(self, sequences, edits):
    ...         return -2.0 * (edits.new_lengths(sequences.lengths) - sequences.lengths[edits.owner])
    >>> isinstance(Shrinking(), SequenceModel)
    True
    """

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
    return [""] * len(sequences) if method is None else list(method(sequences))


def check_data(model: object, sequences: Sequences) -> None:
    """Lets the model, or the one within it, refuse data that are not meant for it.

    :raises ValueError: naming the sequences.
    """
    method = _of_model_within(model, "check_data")
    if method is not None:
        method(sequences)


def model_from(model: SequenceModel, row: int) -> SequenceModel:
    """The model of the sequences from a row of the data on: the model itself, unless each data set has its own."""
    shifted: Callable[[int], SequenceModel] | None = getattr(model, "from_row", None)
    return model if shifted is None else shifted(row)


def default_neighborhood(model: object) -> Neighborhood | None:
    """The edits that suit the model, or the one within it, if any of them says so."""
    found: Neighborhood | None = _of_model_within(model, "default_neighborhood")
    return found


def _of_model_within(model: object, name: str) -> Any:
    """An attribute of the model, or of the one that it holds; ``None`` if none has it."""
    while not hasattr(model, name):
        if not hasattr(model, "model"):
            return None
        model = model.model
    return getattr(model, name)


@runtime_checkable
class SampleableModel(SequenceModel, Protocol):
    """A model that can be sampled, as the parametric bootstrap needs.

    >>> from pyro_ksd.examples import random_walk
    >>> isinstance(random_walk(), SampleableModel)
    True
    """

    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        """Independent sequences from the model."""

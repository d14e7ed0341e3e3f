# SPDX-License-Identifier: Apache-2.0
"""Models of the symbols of a sequence, given its length."""

from __future__ import annotations

from torch import Tensor

from pyro_ksd.models.wrappers.base import ModelWrapper
from pyro_ksd.sequences.container import Sequences


class GivenLengths(ModelWrapper):
    """A model that gives no probability to lengths: given its length, a sequence without symbols is certain.

    :param model: the model within, asked only about sequences that have symbols.

    >>> from pyro_ksd.examples import random_walk
    >>> GivenLengths(random_walk(3)).log_joint(Sequences.of([[], [0, 1]], 3))
    tensor([ 0.0000, -4.0057], dtype=torch.float64)
    """

    @property
    def is_threadsafe(self) -> bool:
        return self.model.is_threadsafe

    def log_joint(self, sequences: Sequences) -> Tensor:
        """``log p(x)`` given the length, up to a constant for each length, ``[N]``."""
        some = sequences.lengths > 0
        values = self.model.log_joint(sequences[some])
        return values.new_zeros(len(sequences)).masked_scatter_(some, values)

# SPDX-License-Identifier: Apache-2.0
"""Hidden Markov models that are known by their log-joints alone, and products of matrices in plain Python."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from pyro_ksd.models import HiddenMarkovSequence, SequenceModel
from pyro_ksd.models.distributions.sampling import PAD
from pyro_ksd.sequences.container import Sequences


def hidden_markov(states: int, size: int = 3, seed: int = 0, stop: float = 0.1) -> HiddenMarkovSequence:
    """A hidden Markov model with random parameters."""
    generator = torch.Generator().manual_seed(seed)

    def simplex(*shape: int) -> Tensor:
        entries = torch.rand(*shape, dtype=torch.double, generator=generator) ** 2 + 0.02
        return entries / entries.sum(-1, keepdim=True)

    return HiddenMarkovSequence(simplex(states), simplex(states, states), simplex(states, size), stop)


class Unfactored(SequenceModel):
    """A model that evaluates whole sequences; those that contain a word are another factor as probable."""

    def __init__(self, inner: HiddenMarkovSequence, word: Sequence[int] = (0,), log_factor: float = 0.0) -> None:
        self.inner = inner
        self.word = torch.tensor(word)
        self.log_factor = log_factor
        self.num_scored = 0

    @property
    def alphabet_size(self) -> int:
        return self.inner.alphabet_size

    def contains(self, sequences: Sequences) -> Tensor:
        tokens = torch.nn.functional.pad(sequences.padded(PAD), (0, len(self.word)), value=PAD)
        return (tokens.unfold(1, len(self.word), 1) == self.word).all(-1).any(-1)

    def log_joint(self, sequences: Sequences) -> Tensor:
        self.num_scored += len(sequences)
        return self.inner.log_joint(sequences) + torch.where(self.contains(sequences), self.log_factor, 0.0)

    @property
    def can_draw(self) -> bool:
        return True

    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        return self.inner.draw(num_sequences, generator)


def log_of_product(first: Tensor, by_symbol: Tensor, last: Tensor, word: Sequence[int]) -> float:
    """``log aᵀ A ⋯ A b`` of one automaton, NaN of a negative number."""
    vector = first
    for symbol in word:
        vector = vector @ by_symbol[symbol]
    value = float(vector @ last)
    if value < 0:
        return math.nan
    return math.log(value) if value else -math.inf

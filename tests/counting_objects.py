# SPDX-License-Identifier: Apache-2.0
"""Neighborhoods, networks and models that count how often they are asked."""

from __future__ import annotations

import torch
from torch import Tensor

from pyro_ksd.edits.neighborhoods import Neighborhood, zs
from pyro_ksd.edits.splices import Edits
from pyro_ksd.models import SequenceModel
from pyro_ksd.sequences.container import Sequences


class CountingNeighborhood(Neighborhood):
    """The edits of another neighborhood; ``calls`` has the number of sequences of each call."""

    def __init__(self, inner: Neighborhood | None = None) -> None:
        self.inner = zs() if inner is None else inner
        self.calls: list[int] = []

    @property
    def kinds(self) -> frozenset[str]:
        return self.inner.kinds

    def edits(self, sequences: Sequences) -> Edits:
        self.calls.append(len(sequences))
        return self.inner.edits(sequences)

    def edit_bound(self, width: int, alphabet_size: int) -> int:
        return self.inner.edit_bound(width, alphabet_size)


class CountingNetwork:
    """A causal network that looks at the last code only; ``calls`` is the number of calls."""

    def __init__(self) -> None:
        self.table = torch.randn(5, 4, dtype=torch.double, generator=torch.Generator().manual_seed(0))
        self.calls = 0

    def __call__(self, codes: Tensor) -> Tensor:
        self.calls += 1
        return self.table[codes]


class CountingObject:
    """Not of the base class, but with the methods of a model; ``asked`` has the sequences of each log-joint."""

    def __init__(self, model: SequenceModel) -> None:
        self._model = model
        self.asked: list[list[list[int]]] = []

    @property
    def alphabet_size(self) -> int:
        return self._model.alphabet_size

    def log_joint(self, sequences: Sequences) -> Tensor:
        self.asked.append(sequences.to_lists())
        return self._model.log_joint(sequences)

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        return self._model.log_ratio(sequences, edits)

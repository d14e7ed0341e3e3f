# SPDX-License-Identifier: Apache-2.0
"""Several models that are asked together: all about the same sequences, or each about its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from pyro_ksd.edits import Edits
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.distribution import PAD
from pyro_ksd.models.evaluated import evaluated_ratio
from pyro_ksd.models.local import FactorTable
from pyro_ksd.sequences import Sequences


class Several(ABC):
    """``K`` models over one alphabet."""

    @abstractmethod
    def __len__(self) -> int:
        """The number of models ``K``."""

    @abstractmethod
    def log_joint_each(self, sequences: Sequences, which: Tensor) -> Tensor:
        """The log-joint of each sequence under its own model, double ``[N]``.

        :param which: long ``[N]``, the model of each sequence.
        """

    def log_joints(self, sequences: Sequences) -> Tensor:
        """The log-joints of all sequences under each model, double ``[K, N]``."""
        numbers = [torch.full_like(sequences.lengths, index) for index in range(len(self))]
        return torch.stack([self.log_joint_each(sequences, which) for which in numbers])

    def log_ratio_each(self, sequences: Sequences, edits: Edits, which: Tensor) -> Tensor:
        """The log-ratio of each edit under the model of the edited sequence, double ``[E]``.

        :param which: long ``[N]``, the model of each sequence.
        """
        return evaluated_ratio(self.log_joint_each, sequences, edits, which)

    def log_ratios(self, sequences: Sequences, edits: Edits) -> Tensor:
        """The log-ratios of all edits under each model, double ``[K, E]``."""
        same = torch.zeros_like(sequences.lengths)
        return evaluated_ratio(lambda found, _: self.log_joints(found), sequences, edits, same)


class SeveralModels(Several):
    """Models that know nothing of each other."""

    def __init__(self, models: Sequence[SequenceModel]) -> None:
        self._models = models

    def __len__(self) -> int:
        return len(self._models)

    def log_joint_each(self, sequences: Sequences, which: Tensor) -> Tensor:
        values = torch.empty(len(sequences), dtype=torch.double, device=sequences.device)
        for index in which.unique().tolist():
            rows = (which == index).nonzero().squeeze(1)
            values[rows] = self._models[index].log_joint(sequences[rows]).double()
        return values


class SeveralTables(Several):
    """Models of one order, known by their tables."""

    def __init__(self, table: FactorTable) -> None:
        self._table = table

    def __len__(self) -> int:
        return len(self._table)

    def log_joint_each(self, sequences: Sequences, which: Tensor) -> Tensor:
        return self._table.log_joint(sequences.padded(PAD), which)

    def log_ratio_each(self, sequences: Sequences, edits: Edits, which: Tensor) -> Tensor:
        return self._table.log_ratio(sequences, edits, rows=which)

    def log_ratios(self, sequences: Sequences, edits: Edits) -> Tensor:
        return self._table.log_ratios(sequences, edits)

# SPDX-License-Identifier: Apache-2.0
"""A batch of models evaluated in one call: all on the same sequences, or each on its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from pyro_ksd.edits.splices import Edits
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.evaluation import evaluated_ratio, evaluated_ratio_each
from pyro_ksd.sequences.container import Sequences


class ModelBatch(ABC):
    """``K`` models over one alphabet."""

    @abstractmethod
    def __len__(self) -> int:
        """The number of models ``K``."""

    @abstractmethod
    def log_joint_each(self, sequences: Sequences, which: Tensor) -> Tensor:
        """The log-joint of each sequence under its own model, double ``[N]``.

        :param which: long ``[N]``, the model of each sequence.
        """

    def log_joint(self, sequences: Sequences) -> Tensor:
        """The log-joints of all sequences under each model, double ``[K, N]``."""
        numbers = [torch.full_like(sequences.lengths, index) for index in range(len(self))]
        return torch.stack([self.log_joint_each(sequences, which) for which in numbers])

    def log_ratio_each(self, sequences: Sequences, edits: Edits, which: Tensor) -> Tensor:
        """The log-ratio of each edit under the model of the edited sequence, double ``[E]``.

        :param which: long ``[N]``, the model of each sequence.
        """
        return evaluated_ratio_each(self, sequences, edits, which)

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        """The log-ratios of all edits under each model, double ``[K, E]``."""
        return evaluated_ratio(self, sequences, edits)


class ModelList(ModelBatch):
    """Models that are evaluated one after the other."""

    def __init__(self, models: Sequence[SequenceModel]) -> None:
        self._models = models

    def __len__(self) -> int:
        return len(self._models)

    def log_joint_each(self, sequences: Sequences, which: Tensor) -> Tensor:
        values = torch.empty(len(sequences), dtype=torch.double)
        for index in which.unique().tolist():
            rows = (which == index).nonzero().squeeze(1)
            values[rows] = self._models[index].log_joint(sequences[rows]).double()
        return values

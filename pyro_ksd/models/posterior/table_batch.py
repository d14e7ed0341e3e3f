# SPDX-License-Identifier: Apache-2.0
"""A batch of models of one order, known by their tables."""

from __future__ import annotations

import torch
from torch import Tensor

from pyro_ksd.edits.splices import Edits
from pyro_ksd.models.distributions.factor_table import FactorTable
from pyro_ksd.models.distributions.sampling import PAD
from pyro_ksd.models.model_batch import ModelBatch
from pyro_ksd.models.posterior.table_draws import draw_each, next_symbol_probs
from pyro_ksd.sequences.container import Sequences


class TableBatch(ModelBatch):
    """The models of a table of factors, see :class:`~pyro_ksd.models.TabulatedModel`."""

    def __init__(self, table: FactorTable) -> None:
        self._table = table

    def __len__(self) -> int:
        return len(self._table)

    def log_joint_each(self, sequences: Sequences, which: Tensor) -> Tensor:
        return self._table.log_joint(sequences.padded(PAD), which)

    def log_ratio_each(self, sequences: Sequences, edits: Edits, which: Tensor) -> Tensor:
        return self._table.log_ratio(sequences, edits, rows=which)

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        return self._table.log_ratios(sequences, edits)

    def draw_each(self, size: int, generator: torch.Generator) -> Sequences | None:
        """Data sets of ``size`` sequences, one from each model; ``None`` if the table does not say how to draw them."""
        probs = next_symbol_probs(self._table)
        return None if probs is None else draw_each(probs, size, generator)

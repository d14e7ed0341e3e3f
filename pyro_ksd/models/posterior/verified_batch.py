# SPDX-License-Identifier: Apache-2.0
"""A batch of models whose tables or automata serve for null draws, as long as they agree with the models."""

from __future__ import annotations

from torch import Tensor

from pyro_ksd.edits.splices import Edits
from pyro_ksd.models.model_batch import ModelBatch
from pyro_ksd.models.wrappers.verified_stand_in import Form, VerifiedStandIn
from pyro_ksd.sequences.container import Sequences


class VerifiedBatch(ModelBatch):
    """Models that all are asked of the data, and their tables or automata of data sets of their own.

    What all models say of the same edits comes from the models, and is compared with the tables as a whole. What each
    says of edits of its own comes from the tables, see
    :class:`~pyro_ksd.models.wrappers.verified_stand_in.VerifiedStandIn`.

    :param models: the models.
    :param alphabet_size: the number of symbols.
    :param form: of the tables or automata.
    :ivar stand_in: to be confirmed after use.
    """

    def __init__(self, models: ModelBatch, alphabet_size: int, form: Form) -> None:
        self._models = models
        self.stand_in = VerifiedStandIn(models, alphabet_size, form)

    def __len__(self) -> int:
        return len(self._models)

    def log_joint_each(self, sequences: Sequences, which: Tensor) -> Tensor:
        return self._models.log_joint_each(sequences, which)

    def log_joint(self, sequences: Sequences) -> Tensor:
        return self._models.log_joint(sequences)

    def log_ratio_each(self, sequences: Sequences, edits: Edits, which: Tensor) -> Tensor:
        return self.stand_in.log_ratio(sequences, edits, which)

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        found = self._models.log_ratio(sequences, edits)
        self.stand_in.check(sequences, edits, found, self._models.log_joint(sequences))
        return found

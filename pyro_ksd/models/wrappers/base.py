# SPDX-License-Identifier: Apache-2.0
"""Models around another model."""

from __future__ import annotations

import torch
from torch import Tensor

from pyro_ksd.edits.neighborhoods import Neighborhood
from pyro_ksd.edits.splices import Edits
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.duck_typing import required_model
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.covariates import Covariates


class ModelWrapper(SequenceModel):
    """A model around another one, which does all that the wrapper does not change.

    :param model: the model within; an object with the methods of a model will do.
    """

    def __init__(self, model: SequenceModel) -> None:
        self.model = required_model(model)

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def alphabet_size(self) -> int:
        return self.model.alphabet_size

    def log_joint(self, sequences: Sequences) -> Tensor:
        return self.model.log_joint(sequences)

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        return self.model.log_ratio(sequences, edits)

    @property
    def has_quick_ratios(self) -> bool:
        return self.model.has_quick_ratios

    @property
    def can_draw(self) -> bool:
        return self.model.can_draw

    @property
    def is_costly(self) -> bool:
        return self.model.is_costly

    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        return self.model.draw(num_sequences, generator)

    @property
    def takes_covariates(self) -> bool:
        return self.model.takes_covariates

    def draw_given(self, covariates: Covariates, generator: torch.Generator | None = None) -> Sequences:
        return self.model.draw_given(covariates, generator)

    @property
    def default_neighborhood(self) -> Neighborhood | None:
        return self.model.default_neighborhood

    @property
    def defines_lengths(self) -> bool | None:
        return self.model.defines_lengths

    @property
    def ends(self) -> tuple[int, ...]:
        return self.model.ends

    def check_data(self, sequences: Sequences) -> None:
        self.model.check_data(sequences)

    @property
    def ratio_error(self) -> float | None:
        return self.model.ratio_error

    def impossible_sites(self, sequences: Sequences) -> list[str]:
        return self.model.impossible_sites(sequences)

# SPDX-License-Identifier: Apache-2.0
"""A user's own object with the methods of a model, adapted to the base class."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyro_ksd.common.random_numbers import following_seed
from pyro_ksd.edits.neighborhoods import Neighborhood
from pyro_ksd.edits.splices import Edits
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.repeated_runs import repeatable
from pyro_ksd.models.session_state import isolated
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.covariates import Covariates

_REQUIRED = ("alphabet_size", "log_joint", "log_ratio")


def adapted(model: Any) -> Any:
    """The model, with the base class if it has the methods of one; anything else is returned unchanged.

    :raises ValueError: for a class, in place of an object of it.

    >>> class Shrinking:
    ...     alphabet_size = 2
    ...     def log_joint(self, sequences):
    ...         return -2.0 * sequences.lengths
    ...     def log_ratio(self, sequences, edits):
    ...         return -2.0 * (edits.new_lengths(sequences.lengths) - sequences.lengths[edits.owner])
    >>> isinstance(adapted(Shrinking()), SequenceModel)
    True
    """
    if isinstance(model, type):
        raise ValueError(
            f"model: expected a model, found the class {model.__name__}; pass an instance, {model.__name__}(...)"
        )
    if isinstance(model, SequenceModel) or not all(hasattr(model, name) for name in _REQUIRED):
        return model
    return AdaptedModel(model)


def required_model(model: Any) -> SequenceModel:
    """The model, where nothing but a model will do.

    :raises ValueError: for a Pyro program, and for an object that lacks one of the methods of a model.

    >>> required_model(lambda: None)
    Traceback (most recent call last):
    ValueError: model: expected a model, or an object with alphabet_size, log_joint and log_ratio, found function; ...
    """
    found = adapted(model)
    if not isinstance(found, SequenceModel):
        raise ValueError(
            f"model: expected a model, or an object with alphabet_size, log_joint and log_ratio, found "
            f"{type(model).__name__}; make a model of a Pyro program with as_model(program, data)"
        )
    return found


class AdaptedModel(SequenceModel):
    """An object with ``alphabet_size``, ``log_joint`` and ``log_ratio``, and what it has of the other methods."""

    def __init__(self, model: Any) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return type(self._model).__name__

    @property
    def alphabet_size(self) -> int:
        return int(self._model.alphabet_size)

    def log_joint(self, sequences: Sequences) -> Tensor:
        with isolated():
            return repeatable(lambda: self._model.log_joint(sequences), "model")

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        with isolated():
            return repeatable(lambda: self._model.log_ratio(sequences, edits), "model")

    @property
    def can_draw(self) -> bool:
        return hasattr(self._model, "draw")

    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        if not self.can_draw:
            return super().draw(num_sequences, generator)
        with isolated(seed=following_seed(generator)):
            drawn: Sequences = self._model.draw(num_sequences, generator)
        return drawn

    @property
    def takes_covariates(self) -> bool:
        return bool(getattr(self._model, "takes_covariates", False))

    def draw_given(self, covariates: Covariates, generator: torch.Generator | None = None) -> Sequences:
        if not hasattr(self._model, "draw_given"):
            return super().draw_given(covariates, generator)
        with isolated(seed=following_seed(generator)):
            drawn: Sequences = self._model.draw_given(covariates, generator)
        return drawn

    @property
    def default_neighborhood(self) -> Neighborhood | None:
        return getattr(self._model, "default_neighborhood", None)

    @property
    def defines_lengths(self) -> bool | None:
        return getattr(self._model, "defines_lengths", None)

    @property
    def ends(self) -> tuple[int, ...]:
        return tuple(getattr(self._model, "ends", ()))

    def check_data(self, sequences: Sequences) -> None:
        if hasattr(self._model, "check_data"):
            self._model.check_data(sequences)

    @property
    def ratio_error(self) -> float | None:
        return getattr(self._model, "ratio_error", None)

    def impossible_sites(self, sequences: Sequences) -> list[str]:
        if hasattr(self._model, "impossible_sites"):
            return list(self._model.impossible_sites(sequences))
        return super().impossible_sites(sequences)

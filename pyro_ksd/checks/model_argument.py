# SPDX-License-Identifier: Apache-2.0
"""The argument ``model`` of a check, and those that say how to read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.fitting.refits import refitted
from pyro_ksd.models.programs.marginal import Marginal
from pyro_ksd.models.wrappers.sampler import Sampler
from pyro_ksd.sequences.container import Sequences


@dataclass(frozen=True, eq=False)
class ModelArgument:
    """What the user passes as a model, with the arguments of :func:`~pyro_ksd.models.as_model` of the same names."""

    model: Any
    parameters: Mapping[str, Tensor] | None = None
    order: int | None = None
    marginal: Marginal | None = None
    sampler: Sampler | None = None

    def for_data(self, sequences: Sequences, ends: tuple[int, ...]) -> SequenceModel:
        """The model for sequences.

        :param ends: the codes of the symbols with one of which every sequence ends, if there are any.
        """
        return as_model(
            self.model,
            sequences,
            parameters=self.parameters,
            order=self.order,
            end=[sequences.symbols[code] for code in ends] or None,
            marginal=self.marginal,
            sampler=self.sampler,
        )

    def fitted_to(
        self, refit: Callable[[Any, Sequences], Any], sequences: Sequences, ends: tuple[int, ...]
    ) -> SequenceModel:
        """The model as it comes out of a fit to sequences.

        :param refit: takes the user's model and sequences, and gives a model or values of its parameters by name.
        """
        fitted = refitted(refit, self.model, sequences)
        found = replace(self, parameters=fitted) if isinstance(fitted, Mapping) else replace(self, model=fitted)
        return found.for_data(sequences, ends)

# SPDX-License-Identifier: Apache-2.0
"""A program under each of several draws of its global parameters."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from copy import copy
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution

from pyro_ksd.edits import Edits
from pyro_ksd.models.base import SampleableModel, SequenceModel
from pyro_ksd.models.guards import check_program
from pyro_ksd.models.loop_program import LoopProgram
from pyro_ksd.models.parameters import bind, parameter_shapes, posterior_draws
from pyro_ksd.models.program import VectorizedProgram, convention_of, function_of
from pyro_ksd.models.sampled import with_sampler
from pyro_ksd.models.tabulated import TabulatedModel
from pyro_ksd.sequences import Sequences


class ModelDraws:
    """The models that a program becomes under posterior draws of its global parameters.

    :param program: a Pyro program that can generate sequences.
    :param data: the sequences that the program is for.
    :param posterior: the draws, in any form that :func:`~pyro_ksd.models.parameters.posterior_draws` takes.
    :param num_draws: how many draws to take from a guide, and of others at most, at even distances.
    :param order: see :func:`~pyro_ksd.models.as_model`.
    :ivar num_chains: the number of chains that the draws come from.
    :ivar values: ``[D, ...]`` by name, the draws of all chains one after the other.
    """

    def __init__(
        self, program: Any, data: Sequences, posterior: Any, *, num_draws: int = 200, order: int | None = None
    ) -> None:
        if not callable(program) or isinstance(program, Distribution | SequenceModel):
            raise ValueError(
                f"posterior: expected a Pyro program with global sample sites to give the draws to, found "
                f"{type(program).__name__}, which has its own parameters"
            )
        self._program, self._data = program, data
        self._is_loop = not inspect.signature(function_of(program)).parameters
        arguments = () if self._is_loop else convention_of(program).arguments(data.tokens, data.lengths)
        shapes = parameter_shapes(program, *arguments)
        found = posterior_draws(posterior, shapes, *arguments, num_draws=num_draws)
        if not found:
            raise ValueError(f"posterior: expected draws of some of the sites {sorted(shapes)}, found none")
        self.num_chains, length = next(iter(found.values())).shape[:2]
        chosen = torch.linspace(0, length - 1, min(length, max(1, num_draws // self.num_chains))).round().long()
        self.values = {name: value[:, chosen].flatten(0, 1) for name, value in found.items()}
        self._base = None if self._is_loop else VectorizedProgram(program, data, self._point(0))
        if self._base is not None:
            check_program(self._base, data)
            if not self._base.generates:
                raise ValueError(
                    "posterior: expected a program that can generate the replicated data, found one without the "
                    "parameter num_sequences; let it draw num_sequences sequences where it is given none"
                )
        # One table shows whether the program is of that order; neither it nor its warning is needed for each draw.
        self._order = order if order is not None and TabulatedModel(self._plain(0), order, data).is_local else None

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))

    def __iter__(self) -> Iterator[SampleableModel]:
        """The models, one for each draw."""
        return iter(self._models)

    @property
    def first(self) -> SampleableModel:
        """The model under the first draw."""
        return self._model(0)

    def batches(self, size: int) -> Iterator[ModelDraws]:
        """The draws in parts of at most ``size``."""
        for begin in range(0, len(self), size):
            part = copy(self)
            part.values = {name: value[begin : begin + size] for name, value in self.values.items()}
            yield part

    def log_ratios(self, sequences: Sequences, edits: Edits) -> Tensor:
        """The log-ratios under each draw, double ``[D, E]``; at once where the program can be vectorized over draws."""
        if self._base is None or self._order is not None:
            return torch.stack([model.log_ratio(sequences, edits).double() for model in self])
        return self._base.log_ratio_draws(sequences, edits, self.values)

    @cached_property
    def _models(self) -> list[SampleableModel]:
        return [self._model(index) for index in range(len(self))]

    def _model(self, index: int) -> SampleableModel:
        model = self._plain(index)
        ready: SequenceModel = model if self._order is None else TabulatedModel(model, self._order)
        return with_sampler(ready, model.draw if isinstance(model, LoopProgram) else model.generate)

    def _point(self, index: int) -> dict[str, Tensor]:
        return {name: value[index] for name, value in self.values.items()}

    def _plain(self, index: int) -> VectorizedProgram | LoopProgram:
        if self._base is None:
            return LoopProgram(bind(self._program, self._point(index)), self._data.alphabet_size)
        return self._base.at(self._point(index))

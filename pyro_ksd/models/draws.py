# SPDX-License-Identifier: Apache-2.0
"""A program under each of several draws of its global parameters."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution

from pyro_ksd.edits import Edits
from pyro_ksd.models.base import SampleableModel, SequenceModel, impossible_sites
from pyro_ksd.models.guards import check_program
from pyro_ksd.models.loop_program import LoopProgram
from pyro_ksd.models.parameters import bind, parameter_shapes, posterior_draws
from pyro_ksd.models.program import VectorizedProgram, called_with, convention_of, function_of
from pyro_ksd.models.sampled import Sampler, with_sampler
from pyro_ksd.models.several import Several, SeveralModels, SeveralTables
from pyro_ksd.models.several_programs import SeveralPrograms
from pyro_ksd.models.tabulated import TabulatedModel, tabulate
from pyro_ksd.sequences import Sequences


class ModelDraws:
    """The models that a program becomes under posterior draws of its global parameters.

    :param program: a Pyro program that can generate sequences.
    :param data: the sequences that the program is for.
    :param posterior: the draws, in any form that :func:`~pyro_ksd.models.parameters.posterior_draws` takes.
    :param num_draws: how many draws to take from a guide, and of others at most, at even distances.
    :param order: see :func:`~pyro_ksd.models.as_model`.
    :ivar alphabet_size: the number of symbols ``S``.
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
        self.alphabet_size = data.alphabet_size
        self._program = program
        self._is_loop = not inspect.signature(function_of(program)).parameters
        arguments = () if self._is_loop else convention_of(program).arguments(data.tokens, data.lengths)
        with called_with(program, arguments, data.alphabet_size):
            shapes = parameter_shapes(program, *arguments)
        found = posterior_draws(posterior, shapes, *arguments, num_draws=num_draws)
        if not found:
            raise ValueError(f"posterior: expected draws of some of the sites {sorted(shapes)}, found none")
        self.num_chains, length = next(iter(found.values())).shape[:2]
        chosen = torch.linspace(0, length - 1, min(length, max(1, num_draws // self.num_chains))).round().long()
        self.values = {name: value[:, chosen].flatten(0, 1) for name, value in found.items()}
        if len(self) > 1 and all(value.eq(value[:1]).all() for value in self.values.values()):
            warnings.warn(
                f"posterior: expected draws that differ, found {len(self)} times the same point; give one point as "
                "parameters=, and see refit= if it was fitted to these data",
                UserWarning,
                stacklevel=4,
            )
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

    def __getitem__(self, index: int) -> SampleableModel:
        """The model under one draw."""
        plain = self._plain(index)
        ready: SequenceModel = plain if self._order is None else TabulatedModel(plain, self._order)
        return with_sampler(ready, _sampler(plain))

    def __iter__(self) -> Iterator[SampleableModel]:
        """The models, one for each draw."""
        return (self[index] for index in range(len(self)))

    @cached_property
    def together(self) -> Several:
        """The models, to be asked together."""
        programs: Several
        if self._base is None:
            programs = SeveralModels([self._plain(index) for index in range(len(self))])
        else:
            programs = SeveralPrograms(self._base, self.values)
        if self._order is None:
            return programs
        return SeveralTables(tabulate(programs.log_joints, self.alphabet_size, self._order))

    def batches(self, size: int) -> Iterator[ModelDraws]:
        """The draws in parts of at most ``size``."""
        for begin in range(0, len(self), size):
            part = copy(self)
            part.__dict__.pop("together", None)
            part.values = {name: value[begin : begin + size] for name, value in self.values.items()}
            yield part

    def draw(self, num_sequences: int, generator: torch.Generator) -> Sequences:
        """Data sets of ``num_sequences`` sequences, one from each model, one after the other."""
        models = [self._plain(index) for index in range(len(self))]
        return Sequences.cat([with_sampler(model, _sampler(model)).draw(num_sequences, generator) for model in models])

    def stacked(self, size: int) -> StackedDraws:
        """The model of data sets of ``size`` sequences, one for each draw, that follow each other."""
        return StackedDraws(self, size)

    def _point(self, index: int) -> dict[str, Tensor]:
        return {name: value[index] for name, value in self.values.items()}

    def _plain(self, index: int) -> VectorizedProgram | LoopProgram:
        if self._base is None:
            return LoopProgram(bind(self._program, self._point(index)), self.alphabet_size)
        return self._base.at(self._point(index))


@dataclass(frozen=True, eq=False)
class StackedDraws:
    """The model of data sets that follow each other, each under its own draw.

    :param draws: the draws.
    :param size: the number of sequences in each data set.
    :param begin: the row of the data from which on the model is asked.
    """

    draws: ModelDraws
    size: int
    begin: int = 0

    @property
    def alphabet_size(self) -> int:
        """The number of symbols ``S``."""
        return self.draws.alphabet_size

    def from_row(self, row: int) -> StackedDraws:
        """The model of the sequences from a row on, see :func:`~pyro_ksd.models.base.model_from`."""
        return replace(self, begin=self.begin + row)

    def log_joint(self, sequences: Sequences) -> Tensor:
        """``log p(x)`` up to a constant, double ``[N]``."""
        return self.draws.together.log_joint_each(sequences, self._which(sequences))

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        """``log p(y) - log p(x)`` for every edit ``y`` of its owner ``x``, double ``[E]``; every ``p(x) > 0``."""
        return self.draws.together.log_ratio_each(sequences, edits, self._which(sequences))

    def impossible_sites(self, sequences: Sequences) -> list[str]:
        """For each of some sequences that its draw calls impossible, the names of the sites that do, or ``""``."""
        which = self._which(sequences).tolist()
        return [impossible_sites(self.draws[draw], sequences[row : row + 1])[0] for row, draw in enumerate(which)]

    def _which(self, sequences: Sequences) -> Tensor:
        """The draw of each sequence, long ``[N]``."""
        return (self.begin + torch.arange(len(sequences), device=sequences.device)) // self.size


def _sampler(program: VectorizedProgram | LoopProgram) -> Sampler:
    return program.draw if isinstance(program, LoopProgram) else program.generate

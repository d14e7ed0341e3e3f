# SPDX-License-Identifier: Apache-2.0
"""One model for each posterior draw of a program's global parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor
from torch.distributions import Distribution

from pyro_ksd.common.lazy_values import computed_once
from pyro_ksd.common.option_checks import check_number
from pyro_ksd.common.user_warnings import warn_user
from pyro_ksd.edits.splices import Edits
from pyro_ksd.models.base import SequenceModel, draw_data_sets
from pyro_ksd.models.conversion import checked_program
from pyro_ksd.models.distributions.factor_table import FactorTable, check_order
from pyro_ksd.models.duck_typing import adapted
from pyro_ksd.models.impossible_sequences import check_possible
from pyro_ksd.models.model_batch import ModelBatch, ModelList
from pyro_ksd.models.posterior.program_batch import ProgramBatch
from pyro_ksd.models.posterior.pyro_posteriors import posterior_draws, without_sites
from pyro_ksd.models.posterior.table_batch import TableBatch
from pyro_ksd.models.posterior.verified_batch import VerifiedBatch
from pyro_ksd.models.programs.call_conventions import convention_of, is_loop
from pyro_ksd.models.programs.global_sites import check_supports, sites_of
from pyro_ksd.models.programs.loop import LoopProgram, loop_sites
from pyro_ksd.models.programs.loop_site_names import SiteNames
from pyro_ksd.models.programs.marginal import Marginal
from pyro_ksd.models.programs.program_errors import called_with
from pyro_ksd.models.programs.vectorized import VectorizedProgram
from pyro_ksd.models.wrappers.ended import EndedBatch, EndedModel
from pyro_ksd.models.wrappers.tabulated import TabulatedModel, tabulate
from pyro_ksd.models.wrappers.verified_stand_in import Form, VerifiedStandIn, found_form
from pyro_ksd.sequences.argument_checks import check_sequences
from pyro_ksd.sequences.container import Sequences

_EXAMINED = 5  # draws, evenly spaced, for which the error of an integration over local latents is found
_SHARED_ENTRIES = 2**18  # of a table of all draws, 2 MB


class PosteriorModels:
    """The models that a program becomes under posterior draws of its global parameters.

    :param program: a Pyro program that can generate sequences.
    :param data: the sequences that the program is for.
    :param posterior: the draws, in any form that
        :func:`~pyro_ksd.models.posterior.pyro_posteriors.posterior_draws` takes.
    :param num_draws: how many draws to take from a guide, and of others at most, at even distances.
    :param order: see :func:`~pyro_ksd.models.as_model`; ``"auto"`` for tables or automata that are used for replicated
        data alone, see ``models/wrappers/verified_stand_in``.
    :param ends: the codes of end symbols, see :class:`~pyro_ksd.models.EndedModel`.
    :param marginal: see :class:`~pyro_ksd.models.Marginal`. Draws of the latents that it integrates out are not used.
    :param seed: of what a guide draws.
    :ivar alphabet_size: the number of symbols ``S``.
    :ivar num_chains: the number of chains that the draws come from.
    :ivar verified_form: with ``order="auto"``, that of the tables or automata, ``None`` if there are none.
    :ivar stand_in: what stands in for the models of the ``batch``, after it was made.
    :ivar chosen: long, which draws of each chain they are.
    :ivar values: ``[D, ...]`` by name, the draws of all chains one after the other.
    """

    def __init__(
        self,
        program: Any,
        data: Sequences,
        posterior: Any,
        *,
        num_draws: int = 200,
        order: int | Literal["auto"] | None = None,
        ends: Sequence[int] = (),
        marginal: Marginal | None = None,
        seed: int = 0,
    ) -> None:
        check_takes_draws("posterior", program)
        check_sequences("data", data)
        num_draws = check_number("num_draws", num_draws, least=1)
        self.alphabet_size = data.alphabet_size
        self._program = program
        self._ends = ends
        named = program_arguments(program, data)
        arguments = tuple(named.values())
        with called_with(program, named, data.alphabet_size):
            sites = sites_of(program, *arguments) if arguments else loop_sites(program, SiteNames())
        source = posterior if marginal is None else without_sites(posterior, sites.local)
        found = posterior_draws(source, sites.shapes, *arguments, num_draws=num_draws, local=sites.local, seed=seed)
        if not found:
            raise ValueError(f"posterior: expected draws of some of the sites {sorted(sites.shapes)}, found none")
        draws = {name: value.flatten(0, 1) for name, value in found.items()}
        check_supports("posterior", draws, sites, program, arguments)
        self.num_chains, length = next(iter(found.values())).shape[:2]
        chosen = torch.linspace(0, length - 1, min(length, max(1, num_draws // self.num_chains))).round().long()
        self.chosen = chosen
        self.values = {name: value[:, chosen].flatten(0, 1) for name, value in found.items()}
        if len(self) > 1 and all(value.eq(value[:1]).all() for value in self.values.values()):
            warn_user(
                f"posterior: expected draws that differ, found {len(self)} times the same point; pass one point as "
                "parameters=, and see refit= if it was fitted to these data"
            )
        some = torch.linspace(0, len(self) - 1, min(_EXAMINED, len(self))).long().tolist()
        others = [self._point(index) for index in some[1:]]
        self._base = None if is_loop(program) else checked_program(program, data, self._point(0), marginal, *others)
        if self._base is not None and not self._base.can_draw:
            raise ValueError(
                "posterior: expected a program that can generate the replicated data, found one without the "
                "parameter num_sequences; let it draw num_sequences sequences where it is given none"
            )
        self._order: int | None = None
        self._table: FactorTable | None = None  # of all draws, if it is small: some of them need not make it again
        self.verified_form: Form | None = None
        self.stand_in: VerifiedStandIn | None = None
        if order == "auto":
            self.verified_form = found_form([self._plain(index) for index in some], data)
        # One table shows whether the program is of that order; neither it nor its warning is needed for each draw.
        elif order is not None and TabulatedModel(self._plain(0), order, data).is_local:
            self._order = order
            if len(self) * (self.alphabet_size + 1) ** (order + 1) <= _SHARED_ENTRIES:
                self._table = self._tabulated(order)

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))

    def __getitem__(self, index: int) -> SequenceModel:
        """The model under one draw."""
        model: SequenceModel = self._plain(index)
        if self._order is not None:
            model = TabulatedModel(model, self._order)
        return self._ended(model)

    def __iter__(self) -> Iterator[SequenceModel]:
        """The models, one for each draw."""
        return (self[index] for index in range(len(self)))

    @computed_once
    def batch(self) -> ModelBatch:
        """The models, evaluated in one call."""
        models = self._programs()
        if self._order is not None:
            models = TableBatch(self._tabulated(self._order) if self._table is None else self._table)
        if self.verified_form is not None:
            models = VerifiedBatch(models, self.alphabet_size, self.verified_form)
            self.stand_in = models.stand_in
        return EndedBatch(models, self._ends) if self._ends else models

    def _programs(self) -> ModelBatch:
        if self._base is None:
            return ModelList([self._plain(index) for index in range(len(self))])
        return ProgramBatch(self._base, self.values)

    def _tabulated(self, order: int) -> FactorTable:
        check_order(order, self.alphabet_size, len(self))
        return tabulate(self._programs().log_joint, self.alphabet_size, order)

    @property
    def is_normalized(self) -> bool:
        """Whether log-joints are log-probabilities, see :class:`~pyro_ksd.models.SequenceModel`."""
        return self._ended(self._plain(0)).is_normalized

    def without_stand_in(self) -> PosteriorModels:
        """The same without tables or automata that the user did not ask for."""
        own = self._copied()
        own.verified_form = None
        return own

    def _copied(self) -> PosteriorModels:
        own = copy(self)
        own.__dict__.pop("batch", None)
        own.stand_in = None
        return own

    def of_draws(self, which: slice | Tensor) -> PosteriorModels:
        """Some of the draws, by a slice or their numbers."""
        some = self._copied()
        some.values = {name: value[which] for name, value in self.values.items()}
        some._table = None if self._table is None else self._table.of_models(which)
        return some

    def check_possible(self, sequences: Sequences) -> None:
        """Checks that every draw gives every sequence a positive probability.

        :raises ValueError: naming the sequences to which a draw does not.
        """
        possible = (self.batch.log_joint(sequences) > -torch.inf).all(1)
        for draw in (~possible).nonzero()[:, 0].tolist():
            check_possible(self[draw], sequences)

    def draw_like(self, sequences: Sequences, generator: torch.Generator) -> Sequences:
        """Data sets of the sample size and with the covariates of the sequences, one from each model.

        They are drawn from the tables of the models where there are any, else by the program.
        """
        size = len(sequences)
        covariates = sequences.covariates
        drawn = self.batch.draw_each(size, generator) if isinstance(self.batch, TableBatch) else None
        if drawn is not None:
            return drawn if covariates is None else drawn.with_covariates(covariates.repeated(len(self)))
        models = (self._ended(self._plain(index)) for index in range(len(self)))  # a table would be made in vain
        return Sequences.cat([draw_data_sets(model, 1, size, covariates, generator) for model in models])

    def stacked(self, size: int) -> StackedModels:
        """The model of data sets of ``size`` sequences, one for each draw, that follow each other."""
        return StackedModels(self, size)

    def _ended(self, model: SequenceModel) -> SequenceModel:
        return EndedModel(model, self._ends) if self._ends else model

    def _point(self, index: int) -> dict[str, Tensor]:
        return {name: value[index] for name, value in self.values.items()}

    def _plain(self, index: int) -> VectorizedProgram | LoopProgram:
        if self._base is None:
            return LoopProgram(self._program, self.alphabet_size, self._point(index))
        return self._base.at(self._point(index))


def check_takes_draws(option: str, program: object) -> None:
    """Checks that a model is a program, whose global sites can have the values of posterior draws."""
    if not callable(program) or isinstance(adapted(program), Distribution | SequenceModel):
        raise ValueError(
            f"{option}: expected a Pyro program with global sample sites to pass the draws to, found "
            f"{type(program).__name__}, which has its own parameters"
        )


def program_arguments(program: Any, data: Sequences) -> dict[str, Any]:
    """The arguments of a program for some data, by name; none for a loop."""
    if is_loop(program):
        return {}
    convention = convention_of(program, with_covariates=data.covariates is not None)
    return convention.arguments(convention.rows(data), data.vectors)


@dataclass(frozen=True, eq=False)
class StackedModels(SequenceModel):
    """The model of data sets that follow each other, each under its own draw.

    :param models: the models, one for each draw.
    :param size: the number of sequences in each data set.
    :param begin: the row of the data from which on the model is asked.
    """

    models: PosteriorModels
    size: int
    begin: int = 0

    @property
    def alphabet_size(self) -> int:
        return self.models.alphabet_size

    def for_rows(self, begin: int) -> StackedModels:
        return replace(self, begin=self.begin + begin)

    def log_joint(self, sequences: Sequences) -> Tensor:
        return self.models.batch.log_joint_each(sequences, self._which(sequences))

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        return self.models.batch.log_ratio_each(sequences, edits, self._which(sequences))

    def impossible_sites(self, sequences: Sequences) -> list[str]:
        which = self._which(sequences).tolist()
        return [self.models[draw].impossible_sites(sequences[row : row + 1])[0] for row, draw in enumerate(which)]

    def _which(self, sequences: Sequences) -> Tensor:
        """The draw of each sequence, long ``[N]``."""
        return (self.begin + torch.arange(len(sequences))) // self.size

# SPDX-License-Identifier: Apache-2.0
"""Vectorized programs with continuous latents for each sequence, which are integrated out numerically."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import torch
from pyro import poutine
from pyro.poutine.messenger import Messenger
from pyro.poutine.trace_struct import Trace
from torch import Tensor

from pyro_ksd.common.chunk_sizes import EVALUATED_SEQUENCES, in_chunks
from pyro_ksd.common.option_checks import check_number, found
from pyro_ksd.common.user_warnings import warn_user
from pyro_ksd.edits.neighborhoods import Neighborhood, Substitutions, zs
from pyro_ksd.edits.splices import Edits
from pyro_ksd.edits.symbol_relations import RandomReplacements
from pyro_ksd.models.programs.call_conventions import Rows
from pyro_ksd.models.programs.global_sites import bind
from pyro_ksd.models.programs.integration_points import GRID_DIMENSIONS, MOST_DIMENSIONS, IntegrationPoints
from pyro_ksd.models.programs.local_latents import (
    AtPoints,
    LocalDimensions,
    Proposed,
    impossible_rows,
    local_log_prob,
    local_masks,
    local_values,
)
from pyro_ksd.models.programs.program_errors import is_ours
from pyro_ksd.models.programs.repeatability import InitialParams
from pyro_ksd.models.programs.vectorized import VectorizedProgram, enough_rows
from pyro_ksd.models.session_state import isolated, unvalidated
from pyro_ksd.sequences.container import Sequences

_DEFAULT_POINTS = {1: 64, 2: 400}  # by the number of latent numbers, for each component of the proposal
_MANY_POINTS = 512
_LARGEST_ERROR = 0.5  # of a log-ratio, beyond which a check would be of another model
_COMPARED = 20  # sequences, and edits of each, on which the error is found
_SYMBOLS = 8  # replacements of a symbol there, and symbols that are inserted or deleted
_MEDIANS = torch.zeros(1, MOST_DIMENSIONS, dtype=torch.double)


@dataclass(frozen=True)
class Marginal:
    r"""How to integrate over the continuous latents of each sequence, such as the code of a VAE or a random effect.

    The log-joint of a sequence becomes an estimate of its log-marginal,

    .. math:: \log \hat p(x) = \log \sum_k w_k \frac{p(x, z_k)}{q(z_k \mid x)}, \quad z_k = z(\epsilon_k; x),

    with the same normal scores :math:`\epsilon_k` and weights :math:`w_k` for all sequences. So :math:`\hat p` is a
    model like any other, and its ratios between a sequence and its edits are smooth. The points are a grid for one or
    two latent numbers, and quasi-random for more. A warning states how much log-ratios change with other points.

    :param guide: proposes the latents: a Pyro guide with the arguments of the program, for any number of sequences,
        such as the encoder of a VAE. Half of the points come from it and half from the program's prior,
        :math:`q = (q_{guide} + p_{prior}) / 2`, so that a guide that is too narrow does no harm (Owen and Zhou, 2000,
        *Safe and effective importance sampling*). Left out, all come from the prior, which needs many points where a
        sequence says much about its latents.
    :param num_points: :math:`K`, at most; a grid has the same number along each dimension. The program runs on so many
        copies of every sequence. Left out, 64 for one latent number, 400 for two, 512 for more, and twice as many with
        a guide.

    >>> Marginal(num_points=32)
    Marginal(guide=None, num_points=32)
    """

    guide: Callable[..., Any] | None = None
    num_points: int | None = None

    def __post_init__(self) -> None:
        if self.guide is not None and (not callable(self.guide) or isinstance(self.guide, type)):
            raise ValueError(
                f"guide: expected a Pyro guide with the arguments of the program, or None, found {found(self.guide)}"
            )
        if self.num_points is not None:
            check_number("num_points", self.num_points, least=4)


class MarginalProgram(VectorizedProgram):
    """A vectorized program whose continuous latents inside the plate are integrated out, see :class:`Marginal`.

    :param program: as for :class:`~pyro_ksd.models.VectorizedProgram`.
    :param example: sequences to learn the layout of the program from.
    :param parameters: values of global sample sites and of ``pyro.param`` sites.
    :param marginal: how to integrate.
    """

    def __init__(
        self,
        program: Callable[..., Any],
        example: Sequences,
        parameters: Mapping[str, Tensor] | None,
        marginal: Marginal,
    ) -> None:
        self._guide = None if marginal.guide is None else bind(marginal.guide, {}, InitialParams())
        self._dimensions = LocalDimensions()
        self._plate: str | None = None
        self._ratio_error: float | None = None
        super().__init__(program, example, parameters)
        self._plate = self._layout.plate
        with isolated(validate=False):
            self._scored_sites(self._first)
        if not len(self._dimensions):
            raise ValueError(
                "marginal: expected a program with continuous latents inside the plate over the sequences, found none; "
                "leave out marginal="
            )
        self._grows = self._longer_has_more()
        components = 1 if self._guide is None else 2
        total = marginal.num_points or components * _DEFAULT_POINTS.get(len(self._dimensions), _MANY_POINTS)
        self._each = total // components
        self._points = self._points_for(seed=0)

    @property
    def ratio_error(self) -> float | None:
        return self._ratio_error

    def state_error(self, data: Sequences, others: Sequence[MarginalProgram] = ()) -> None:
        """Finds how much log-ratios change with other points, and warns of it.

        :param others: the same program with other values of its parameters, of which the largest error counts.
        :raises ValueError: if it is so much that a check would be of another model.
        """
        changes = torch.cat([one._changes(data) for one in (self, *others)])
        if not len(changes):
            return
        self._ratio_error = float(changes.max())
        names = ", ".join(map(repr, self._dimensions.names[:3])) + (", ..." if len(self._dimensions.names) > 3 else "")
        said = (
            f"the latents {names} are integrated out with {len(self._points)} points"
            f"{'' if self._guide is None else ' of the prior and as many of the guide'}, so log-joints are estimates: "
            f"with other points the log-ratios of {len(changes)} edits change by up to {self._ratio_error:.2g}"
        )
        advice = "raise num_points in Marginal(...), or pass a guide that proposes the latents well: Marginal(guide)"
        if self._ratio_error > _LARGEST_ERROR:
            raise ValueError(f"marginal: {said}, expected at most {_LARGEST_ERROR}; {advice}")
        warn_user(f"{said}; for a smaller error {advice}")

    def _changes(self, data: Sequences) -> Tensor:
        """How much the log-ratios of some edits change with other points, ``[E]``; infinite where one is no number."""
        other = copy(self)
        other._points = self._points_for(seed=1)
        few = data[torch.linspace(0, len(data) - 1, min(_COMPARED, len(data))).long()]
        few = few[self.log_joint(few) > -torch.inf]
        try:
            return self._changes_around(few, _some_edits(few, lengths=True), other)
        except ValueError:  # some programs take no sequences that are longer than the data
            return self._changes_around(few, _some_edits(few, lengths=False), other)

    def _changes_around(self, sequences: Sequences, edits: Edits, other: MarginalProgram) -> Tensor:
        with torch.no_grad():
            own, theirs = (model.log_ratio(sequences, edits) for model in (self, other))
        counted = ~((own == -torch.inf) & (theirs == -torch.inf))
        return (own - theirs)[counted].abs().nan_to_num(torch.inf)

    @property
    def _looked_at(self) -> Callable[..., Any]:
        """The program with the medians of its latents, whose probability does not count."""

        def at_medians(*arguments: Any) -> Any:
            # Before the plate is known, it is one with as many members as there are sequences; another plate may have
            # as many by chance, so the dimensions that are found then are not kept.
            dimensions = LocalDimensions() if self._plate is None else self._dimensions
            medians = AtPoints(_MEDIANS, dimensions, plate=self._plate, count=len(arguments[0]), as_proposal=True)
            return medians(self._bound)(*arguments)

        return at_medians

    def _points_for(self, seed: int) -> IntegrationPoints:
        """The points, or, with another seed, others that are as good or better."""
        is_grid = len(self._dimensions) <= GRID_DIMENSIONS and not self._grows
        count = 2 * self._each if is_grid and seed else self._each
        return IntegrationPoints.of(len(self._dimensions), count, seed, grows=self._grows)

    def _longer_has_more(self) -> bool:
        """Whether sequences that are a symbol longer have more latents, as with one for each step."""
        known = len(self._dimensions)
        longer = self._first._replace(
            tokens=torch.nn.functional.pad(self._first.tokens, (0, 1)), lengths=self._first.lengths + 1
        )
        try:
            with isolated(validate=False):
                self._scored_sites(longer)
        except ValueError:  # some programs take no sequences that are longer than the data
            return False
        return len(self._dimensions) > known

    def _score(self, program: Callable[..., Any], rows: Rows) -> Tensor:
        """The log-marginals ``[N]`` under a bound program, a bounded number of copies at a time."""
        integrated = self._from_prior if self._guide is None else self._from_both
        together = max(1, EVALUATED_SEQUENCES // (2 * len(self._points)))
        index = torch.arange(len(rows.lengths))
        return torch.cat([integrated(program, rows.take(part)) for part in in_chunks(index, together)])

    def _from_prior(self, program: Callable[..., Any], rows: Rows) -> Tensor:
        """The log-marginals ``[N]`` by points of the prior: a copy of each row for every point."""
        size = len(self._points)
        copies = _copied(rows, size)
        at_points = AtPoints(self._points.scores, self._dimensions, plate=self._plate, as_proposal=True)
        total = super()._score(at_points(program), copies)[: size * len(rows.lengths)]
        return (total.view(-1, size) + self._points.log_weights).logsumexp(1)

    def _from_both(self, program: Callable[..., Any], rows: Rows) -> Tensor:
        """The log-marginals ``[N]`` by points of the guide and of the prior, two copies of each row for every point."""
        size = len(self._points)
        copies = _copied(rows, 2 * size)
        count = len(copies.lengths)
        values, possible = self._mixed_values(program, copies)
        trace = self._trace(Proposed(values, self._plate, count)(program), copies)
        log_joint = self._total(trace, count)
        masks = local_masks(trace)
        log_prior = local_log_prob(trace, count, masks)
        log_guide = local_log_prob(self._guide_trace(Proposed(values, None, count), copies), count, masks)
        log_proposal = torch.logaddexp(log_prior, log_guide) - math.log(2)
        terms = torch.where(possible, log_joint - log_proposal, -torch.inf)
        total = terms[: 2 * size * len(rows.lengths)]
        weights = torch.cat([self._points.log_weights] * 2) - math.log(2)
        return (total.view(-1, 2 * size) + weights).logsumexp(1)

    def _mixed_values(self, program: Callable[..., Any], copies: Rows) -> tuple[dict[str, Tensor], Tensor]:
        """Values of the latents by name: for each row, ``K`` copies from the guide and ``K`` from the prior.

        :returns: the values, and which copies are possible, boolean ``[N]``. Where a guide proposes what the program
            calls impossible, there are values of the prior instead, which do not count.
        """
        size = len(self._points)
        count = len(copies.lengths)
        scores = self._points.scores
        at_points = AtPoints(scores, self._dimensions, plate=self._plate, as_proposal=True)
        trace = self._trace(at_points(program), copies)
        own = local_values(trace)
        at_points = AtPoints(scores, self._dimensions, plate=None, count=count, as_proposal=True)
        guided = local_values(self._guide_trace(at_points, copies))
        if set(own) != set(guided):
            raise ValueError(
                f"marginal: expected a guide that proposes the latents {sorted(own)} of the program, each inside a "
                f"plate over the sequences, for any number of them, as an encoder does; found {sorted(guided)}. An "
                "automatic guide such as AutoNormal has parameters for the sequences of its training only"
            )
        for name, (value, _) in own.items():
            if guided[name][0].shape != value.shape:
                raise ValueError(
                    f"marginal: site {name!r}: found values of shape {list(guided[name][0].shape)} in the guide, "
                    f"expected {list(value.shape)}; if the latent depends on an enumerated state, leave out the guide"
                )
        by_guide = torch.arange(count) // size % 2 == 0
        impossible = by_guide & impossible_rows(trace, {name: value for name, (value, _) in guided.items()}, count)
        chosen = by_guide & ~impossible
        values = {
            name: torch.where(_along(chosen, dim), guided[name][0].to(value.dtype), value)
            for name, (value, dim) in own.items()
        }
        return values, ~impossible

    def _guide_trace(self, messenger: Messenger, rows: Rows) -> Trace:
        """A run of the guide, with values for its sites from a messenger."""
        try:
            with unvalidated():  # values of the prior may be outside of what the guide proposes
                return poutine.trace(messenger(self._guide)).get_trace(*self._arguments(rows).values())
        except Exception as error:
            if is_ours(error):
                raise
            first_line = next(iter(str(error).splitlines()), "")
            raise ValueError(
                "marginal: expected a guide that runs with the arguments of the program, for any number of sequences, "
                f"found that it fails with {type(error).__name__}: {first_line}"
            ) from error


def _along(rows: Tensor, dim: int) -> Tensor:
    """One value for each row, ``[N]``, along a dimension that is counted from the right."""
    return rows.view(-1, *[1] * (-1 - dim))


def _copied(rows: Rows, size: int) -> Rows:
    """Each row ``size`` times, one copy after the other."""
    return enough_rows(rows.take(torch.arange(len(rows.lengths)).repeat_interleave(size)))


def _some_edits(sequences: Sequences, *, lengths: bool) -> Edits:
    """Some edits around sequences, at random but always the same ones.

    :param lengths: whether insertions and deletions are among them.
    """
    few = sequences.symbols[:_SYMBOLS]
    relation = RandomReplacements(_SYMBOLS)
    around: Neighborhood = zs(symbols=relation, insertable=few) if lengths else Substitutions(symbols=relation)
    edits = around.edits(sequences)
    chosen = torch.randperm(len(edits), generator=torch.Generator().manual_seed(0))[: _COMPARED * len(sequences)]
    return edits.select(chosen.sort().values)

# SPDX-License-Identifier: Apache-2.0
"""Vectorized programs with continuous latents for each sequence, which are integrated out numerically."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import torch
from pyro import poutine
from torch import Tensor

from pyro_ksd.common.chunk_sizes import EVALUATED_SEQUENCES, in_chunks
from pyro_ksd.common.option_checks import check_number, found
from pyro_ksd.edits.neighborhoods import Substitutions
from pyro_ksd.models.programs.call_conventions import Rows
from pyro_ksd.models.programs.exact_probabilities import exact_log_prob
from pyro_ksd.models.programs.global_sites import bind
from pyro_ksd.models.programs.integration_points import MOST_DIMENSIONS, IntegrationPoints
from pyro_ksd.models.programs.local_latents import ROW_DIM, AtPoints, LocalDimensions, Proposed
from pyro_ksd.models.programs.plate_layout import sample_sites
from pyro_ksd.models.programs.program_errors import is_ours
from pyro_ksd.models.programs.repeatability import InitialParams
from pyro_ksd.models.programs.session_state import isolated
from pyro_ksd.models.programs.site_scores import masked_log_prob
from pyro_ksd.models.programs.vectorized import VectorizedProgram, enough_rows
from pyro_ksd.sequences.container import Sequences

_LARGEST_ERROR = 0.5  # of a log-ratio, beyond which a check would be of another model
_COMPARED = 20  # sequences, and edits of each, on which the error is found
_MEDIANS = torch.zeros(1, MOST_DIMENSIONS, dtype=torch.double)


@dataclass(frozen=True)
class Marginal:
    r"""How to integrate over the continuous latents of each sequence, such as the code of a VAE or a random effect.

    The log-joint of a sequence becomes an estimate of its log-marginal,

    .. math:: \log \hat p(x) = \log \sum_k w_k \frac{p(x, z_k)}{q(z_k \mid x)}, \quad z_k = z(\epsilon_k; x),

    with the same normal scores :math:`\epsilon_k` and weights :math:`w_k` for all sequences. So :math:`\hat p` is a
    model like any other, and its ratios between a sequence and its edits are smooth. The points are a grid for one or
    two latent numbers, and quasi-random for more. A warning states how much log-ratios change with
    other points.

    :param guide: proposes the latents, :math:`q(z \mid x)`: a Pyro guide with the arguments of the program, for any
        number of sequences, such as the encoder of a VAE. Left out, they are proposed by the program's own prior,
        :math:`q(z \mid x) = p(z)`, which needs many points where a sequence says much about its latents.
    :param num_points: :math:`K`, at most; a grid has the same number along each dimension. The program runs on so many
        copies of every sequence.

    >>> Marginal(num_points=32)
    Marginal(guide=None, num_points=32)
    """

    guide: Callable[..., Any] | None = None
    num_points: int = 64

    def __post_init__(self) -> None:
        if self.guide is not None and (not callable(self.guide) or isinstance(self.guide, type)):
            raise ValueError(
                f"guide: expected a Pyro guide with the arguments of the program, or None, found {found(self.guide)}"
            )
        check_number("num_points", self.num_points, least=2)


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
        self._num_points = marginal.num_points
        self._dimensions = LocalDimensions()
        self._plate: str | None = None
        self._ratio_error = 0.0
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
        self._points = self._points_for(seed=0)

    @property
    def ratio_error(self) -> float:
        return self._ratio_error

    def state_error(self, data: Sequences) -> None:
        """Finds how much log-ratios change with other points, and warns of it.

        :raises ValueError: if it is so much that a check would be of another model.
        """
        other = copy(self)
        other._points = self._points_for(seed=1)
        with torch.no_grad():
            few = data[torch.linspace(0, len(data) - 1, min(_COMPARED, len(data))).long()]
            few = few[self.log_joint(few) > -torch.inf]
            edits = Substitutions().edits(few)
            chosen = torch.randperm(len(edits), generator=torch.Generator().manual_seed(0))[: _COMPARED * len(few)]
            some = edits.select(chosen.sort().values)
            change = (self.log_ratio(few, some) - other.log_ratio(few, some)).abs()
        change = change[change.isfinite()]
        self._ratio_error = float(change.max()) if len(change) else 0.0
        names = ", ".join(map(repr, self._dimensions.names[:3])) + (", ..." if len(self._dimensions.names) > 3 else "")
        said = (
            f"the latents {names} are integrated out with {len(self._points)} points, so log-joints are estimates: "
            f"with other points the log-ratios of {len(change)} edits change by up to {self._ratio_error:.2g}"
        )
        advice = "raise num_points in Marginal(...), or pass a guide that proposes the latents: Marginal(guide)"
        if self._ratio_error > _LARGEST_ERROR:
            raise ValueError(f"marginal: {said}, expected at most {_LARGEST_ERROR}; {advice}")
        warnings.warn(f"{said}; for a smaller error {advice}", UserWarning, stacklevel=5)

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
        count = self._num_points if self._grows or len(self._dimensions) > 2 or seed == 0 else 2 * self._num_points
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
        together = max(1, EVALUATED_SEQUENCES // len(self._points))
        index = torch.arange(len(rows.lengths))
        return torch.cat([self._integrated(program, rows.take(part)) for part in in_chunks(index, together)])

    def _integrated(self, program: Callable[..., Any], rows: Rows) -> Tensor:
        """The log-marginals ``[N]`` of some rows, of which each is copied for every point."""
        index = torch.arange(len(rows.lengths)).repeat_interleave(len(self._points))
        copies = enough_rows(rows.take(index))
        plate = self._layout.plate
        if self._guide is None:
            at_points = AtPoints(self._points.scores, self._dimensions, plate=plate, as_proposal=True)
            total = super()._score(at_points(program), copies)
        else:
            values, log_proposal = self._proposed(self._guide, copies)
            proposed = Proposed(values, plate)
            total = super()._score(proposed(program), copies) - log_proposal
            if proposed.unused:
                raise ValueError(
                    f"marginal: found the sites {proposed.unused} in the guide, expected local latents of the program, "
                    f"{self._dimensions.names}; leave them out of the guide"
                )
        terms = total[: len(index)].view(-1, len(self._points)) + self._points.log_weights
        return terms.logsumexp(1)

    def _proposed(self, guide: Callable[..., Any], rows: Rows) -> tuple[dict[str, Tensor], Tensor]:
        """What the guide proposes for each row, by name, and the log-probabilities of it, double ``[N]``."""
        count = len(rows.lengths)
        at_points = AtPoints(self._points.scores, self._dimensions, plate=None, count=count, as_proposal=False)
        try:
            trace = poutine.trace(at_points(guide)).get_trace(*self._arguments(rows).values())
        except Exception as error:
            if is_ours(error):
                raise
            first_line = next(iter(str(error).splitlines()), "")
            raise ValueError(
                "marginal: expected a guide that runs with the arguments of the program, for any number of sequences, "
                f"found that it fails with {type(error).__name__}: {first_line}"
            ) from error
        values = {}
        total = torch.zeros(count, dtype=torch.double)
        for name, site in sample_sites(trace):
            dim = site["infer"].get(ROW_DIM)
            if dim is None:
                continue
            values[name] = site["value"]
            site["unscaled_log_prob"] = exact_log_prob(site["fn"], site["value"])
            log_prob = masked_log_prob(site).double()
            others = [axis for axis in range(-log_prob.ndim, 0) if axis != dim]
            total = total + (log_prob.sum(others) if others else log_prob)
        return values, total

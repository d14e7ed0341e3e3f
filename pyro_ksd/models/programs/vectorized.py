# SPDX-License-Identifier: Apache-2.0
"""Vectorized Pyro programs: the log-joint of every sequence from one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from functools import cached_property
from typing import Any

import torch
from pyro import poutine
from pyro.poutine.trace_struct import Trace
from torch import Tensor

from pyro_ksd.common.random_numbers import drawn_seed
from pyro_ksd.models.chunked_model import ChunkedModel
from pyro_ksd.models.programs.call_conventions import called_with, convention_of, generates
from pyro_ksd.models.programs.empty_sequence import beside_another, is_defined
from pyro_ksd.models.programs.global_sites import Shapes, bind, checked_point, parameter_shapes
from pyro_ksd.models.programs.plate_layout import Layout, find_layout, in_plate, sample_sites
from pyro_ksd.models.programs.session_state import isolated
from pyro_ksd.models.programs.site_scores import (
    Sites,
    masked_log_prob,
    nan_error,
    score_sites,
    summed_over_sites,
    summed_over_states,
)
from pyro_ksd.sequences.container import Sequences

_INSPECTED = 25  # steps of a program that are looked at to learn its layout


class VectorizedProgram(ChunkedModel):
    r"""A Pyro program that scores all sequences in one run, each in its place of one plate.

    The log-joint of a sequence is the sum of all sites inside the plate over the sequences, at its place. Discrete
    latent sites with ``infer={"enumerate": "parallel"}`` are summed out, exactly and for each sequence. Sites outside
    the plate cancel in ratios and are left out; ``poutine.scale`` is ignored. The empty sequence is possible only if a
    site that is not masked for it gives it a probability, such as a distribution of the length.

    :param program: ``program(sequences, lengths)``, or ``program(x)`` with one tensor filled with -1 after the ends.
    :param example: sequences to learn the layout of the program from; any that the program can score.
    :param parameters: values of global sample sites and of ``pyro.param`` sites.

    >>> import pyro
    >>> def program(sequences, lengths):
    ...     weight = pyro.sample("weight", pyro.distributions.Normal(0.0, 1.0))
    ...     with pyro.plate("sequences", len(lengths)):
    ...         pyro.factor("length", weight * lengths)
    >>> data = Sequences.of(["ab", "b", "aba"])
    >>> VectorizedProgram(program, data, {"weight": torch.tensor(-2.0)}).log_joint(data).tolist()
    [-4.0, -2.0, -6.0]
    """

    def __init__(
        self, program: Callable[..., Any], example: Sequences, parameters: Mapping[str, Tensor] | None = None
    ) -> None:
        super().__init__(example.alphabet_size)
        self.convention = convention_of(program)
        self._program = program
        self._example = self.convention.arguments(example.tokens[:3], example.lengths[:3])
        self._values = checked_point(parameters, self.parameter_shapes) if parameters else {}
        self._bound = bind(program, self._values)
        self._layout = self._inspect(example)

    @property
    def parameter_shapes(self) -> Shapes:
        """The shapes of the global latent sites and ``pyro.param`` sites, by name."""
        with called_with(self._program, self._example, self.alphabet_size):
            return parameter_shapes(self._program, *self._example)

    def at(self, values: Mapping[str, Tensor]) -> VectorizedProgram:
        """The same program with other values of its global parameters.

        :param values: of the same shapes as those that the program was made with.
        """
        other = copy(self)
        other.__dict__.pop("_empty_log_joint", None)
        other._values = self._values | dict(values)
        other._bound = bind(self._program, other._values)
        return other

    def score(self, values: Mapping[str, Tensor], tokens: Tensor, lengths: Tensor) -> Tensor:
        """The log-joints ``[N]`` of tokens ``[N, T]`` with any filling after the end, under values of the parameters.

        Made to be vectorized over values: no error is looked for. To be called with the program isolated.
        """
        return self._score(bind(self._program, self._values | dict(values)), tokens, lengths)

    @property
    def can_draw(self) -> bool:
        """Whether the program can be asked for sequences, with ``num_sequences=N``."""
        return generates(self._program)

    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        """Sequences that the program generates."""
        if not self.can_draw:
            return super().draw(num_sequences, generator)
        with isolated(validate=False, seed=drawn_seed(generator)):
            value = self._bound(*[None] * self.convention.arity, num_sequences=num_sequences)
        if isinstance(value, Sequences):
            given = self.convention.arguments(value.tokens, value.lengths)
            value = given if len(given) > 1 else given[0]
        tokens, lengths = self.convention.returned(value, num_sequences)
        return Sequences.of(tokens, self.alphabet_size, lengths=lengths)

    def run(self, tokens: Tensor, lengths: Tensor, *, validate: bool = False) -> Tensor:
        """The log-joints ``[N]`` of tokens ``[N, T]`` with any filling after the end."""
        with isolated(validate=validate):
            total = self._score(self._bound, tokens, lengths)
            if total.isnan().any():
                raise nan_error(self._scored_sites(self._bound, tokens, lengths), total)
            return total

    def impossible_sites(self, sequences: Sequences) -> list[str]:
        """For each of some sequences that the program calls impossible, the names of the sites that do, or ``""``."""
        with isolated(validate=False):
            sites = self._scored_sites(self._bound, sequences.tokens, sequences.lengths)
        # A site may depend on enumerated states: it is to blame if it is impossible in all of them.
        to_blame = torch.all if self._layout.enumerated else torch.any
        banned = {name: masked_log_prob(site).movedim(self._layout.dim, 0) == -torch.inf for name, site in sites}
        return [
            ", ".join(name for name, where in banned.items() if to_blame(where[row])) for row in range(len(sequences))
        ]

    def _evaluate(self, sequences: Sequences) -> Tensor:
        empty = sequences.lengths == 0
        if not empty.any():
            return self.run(sequences.tokens, sequences.lengths)
        values = torch.full(empty.shape, self._empty_log_joint, dtype=torch.double)
        if not empty.all():
            values[~empty] = self.run(sequences.tokens[~empty], sequences.lengths[~empty]).double()
        return values

    @cached_property
    def _empty_log_joint(self) -> float:
        """The log-joint of the empty sequence: ``-inf`` unless a site gives it a probability whatever its padding."""
        if not self.defines_empty:
            return -torch.inf
        tokens, lengths = beside_another(self.alphabet_size)
        with isolated(validate=False):
            totals = [float(self._score(self._bound, padded, lengths)[0]) for padded in tokens]
        return totals[0] if totals[0] == totals[-1] else -torch.inf

    @cached_property
    def defines_empty(self) -> bool:
        """Whether a site gives the empty sequence a probability, and all such sites ignore its padding."""
        tokens, lengths = beside_another(self.alphabet_size)
        with isolated(validate=False):
            traces = [self._trace(self._bound, padded, lengths) for padded in tokens]
        return is_defined([self._own_sites(trace) for trace in traces], self._layout.dim)

    def _inspect(self, example: Sequences) -> Layout:
        short = example.derived(example.tokens[:, :_INSPECTED], example.lengths.clamp(max=_INSPECTED))
        few = short[torch.arange(3) % len(example)]
        more = short[torch.arange(5) % len(example)]
        arguments = self.convention.arguments(more.tokens, more.lengths)
        # Without validation, so that what is wrong with a site is said with its name when it is scored.
        with called_with(self._program, arguments, self.alphabet_size), isolated(validate=False, seed=0):
            try:
                small = self._plain_trace(few)
                large = self._plain_trace(more)
            except Exception as error:
                self._blame_batch_size(example, error)
                raise
        return find_layout(small, len(few), large, len(more))

    def _plain_trace(self, sequences: Sequences) -> Trace:
        arguments = self.convention.arguments(sequences.tokens, sequences.lengths)
        return poutine.trace(self._bound).get_trace(*arguments)

    def _blame_batch_size(self, example: Sequences, error: Exception) -> None:
        """Raises an error that names a hard-coded batch size if the program runs on all data, but not on a part."""
        try:
            self._plain_trace(example)
        except Exception:  # the first error is the one to see
            return
        raise ValueError(
            f"the program runs on all {len(example)} sequences, but not on a few of them: a batch size seems to be "
            "hard-coded, expected pyro.plate(..., len(lengths)) and shapes taken from the arguments"
        ) from error

    def _trace(self, program: Callable[..., Any], tokens: Tensor, lengths: Tensor) -> Trace:
        if self._layout.enumerated:
            program = poutine.enum(program, first_available_dim=-1 - self._layout.nesting)
        # At least two columns: many programs have a plate over the width - 1 moves from each symbol to the next.
        wide = torch.nn.functional.pad(tokens, (0, max(0, 2 - tokens.shape[1])))
        return poutine.trace(program).get_trace(*self.convention.arguments(wide, lengths))

    def _own_sites(self, trace: Trace) -> Sites:
        return [(name, site) for name, site in sample_sites(trace) if in_plate(site, self._layout.plate)]

    def _scored_sites(self, program: Callable[..., Any], tokens: Tensor, lengths: Tensor) -> Sites:
        sites = self._own_sites(self._trace(program, tokens, lengths))
        score_sites(sites)
        return sites

    def _score(self, program: Callable[..., Any], tokens: Tensor, lengths: Tensor) -> Tensor:
        """The log-joints ``[N]`` under a bound program."""
        trace = self._trace(program, tokens, lengths)
        sites = self._own_sites(trace)
        score_sites(sites)
        if self._layout.enumerated:
            return summed_over_states(trace, sites, self._layout.plate)
        return summed_over_sites(sites, self._layout.dim, len(lengths))

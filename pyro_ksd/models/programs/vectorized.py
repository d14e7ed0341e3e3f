# SPDX-License-Identifier: Apache-2.0
"""Vectorized Pyro programs: the log-joint of every sequence from one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from copy import copy
from typing import Any, Self

import torch
from pyro import poutine
from pyro.poutine.trace_struct import Trace
from torch import Tensor

from pyro_ksd.common.lazy_values import computed_once
from pyro_ksd.common.option_checks import check_number
from pyro_ksd.common.random_numbers import check_generator, drawn_seed
from pyro_ksd.models.chunked_model import ChunkedModel
from pyro_ksd.models.programs.call_conventions import (
    Rows,
    check_is_program,
    convention_of,
    each_covariate,
    generated_codes,
    generates,
)
from pyro_ksd.models.programs.empty_sequence import beside_another, is_defined
from pyro_ksd.models.programs.enumeration import InParallel
from pyro_ksd.models.programs.global_sites import (
    Shapes,
    bind,
    check_by_name,
    checked_point,
    other_values,
    sites_of,
    sites_under,
)
from pyro_ksd.models.programs.length_sites import may_depend_on_length
from pyro_ksd.models.programs.plate_layout import (
    Layout,
    check_latents,
    find_layout,
    in_plate,
    is_enumerated,
    plate_depth,
    sample_sites,
)
from pyro_ksd.models.programs.program_errors import called_with
from pyro_ksd.models.programs.repeatability import InitialParams
from pyro_ksd.models.programs.site_scores import (
    Sites,
    first_and_others,
    is_factor,
    masked_log_prob,
    nan_error,
    score_sites,
    summed_over_sites,
    summed_over_states,
)
from pyro_ksd.models.programs.symbol_sites import check_symbol_sites, observe_twice, random_sequences
from pyro_ksd.models.repeated_runs import repeatable
from pyro_ksd.models.rounding import rounding_of_ratios
from pyro_ksd.models.session_state import isolated, session_kept
from pyro_ksd.sequences.argument_checks import check_sequences
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.covariates import Covariates, Values, check_covariates

_FEWEST = 2  # sequences and columns of a run: a dimension of size 1 is as good as none for enumeration and plates


class VectorizedProgram(ChunkedModel):
    r"""A Pyro program that scores all sequences in one run, each in its place of one plate.

    The log-joint of a sequence is the sum of all sites inside the plate over the sequences, at its place. Discrete
    latent sites with ``infer={"enumerate": "parallel"}`` are summed out, exactly and for each sequence. Sites outside
    the plate cancel in ratios and are left out; ``poutine.scale`` is ignored. The empty sequence is possible only if a
    site that is not masked for it gives it a probability, such as a distribution of the length.

    :param program: ``program(sequences, lengths)``, or ``program(x)`` with one tensor filled with -1 after the ends; it
        may take the covariates of the sequences as well, ``program(sequences, lengths, covariates)``.
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
        check_is_program(program)
        check_sequences("example", example)
        if not len(example):
            raise ValueError("example: expected at least one sequence, found none")
        if parameters is not None:
            check_by_name("parameters", parameters)
        super().__init__(example.alphabet_size)
        self.convention = convention_of(program, with_covariates=example.covariates is not None)
        self._program = program
        self._symbols = example.symbols
        given = example
        example = _not_empty(example)
        self._longest = int(example.lengths.max())
        self._vectors = example.vectors
        self._first = self.rows_of(example[example.lengths.argsort(descending=True, stable=True)[:3]])
        self._example = self._arguments(self._first)
        self._values = self._checked(parameters) if parameters else {}
        self._initial = InitialParams()
        self._bound = bind(program, self._values, self._initial)
        # What a run shows of the program. Longer sequences may reach sites and plates that shorter ones do not have.
        self._plate_depth = 0
        self._enumerated = False
        self._layout, sites, tokens = self._inspect(example)
        self._is_product = any(map(is_factor, sites))
        if self._vectors is None:
            check_symbol_sites(sites, tokens, self._layout.dim, given)
            self._is_product |= observe_twice(sites, tokens, self._layout.dim)

    @property
    def parameter_shapes(self) -> Shapes:
        """The shapes of the global latent sites and ``pyro.param`` sites, by name."""
        with called_with(self._program, self._example, self.alphabet_size):
            return sites_of(self._program, *self._example.values()).shapes

    def _checked(self, parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
        arguments = list(self._example.values())
        with called_with(self._program, self._example, self.alphabet_size):
            try:
                sites = sites_of(self._program, *arguments)
            except Exception as error:
                try:
                    sites = sites_under(parameters, self._program, *arguments)
                except Exception:  # the first error is the one to see
                    raise error from None
        return checked_point(parameters, sites, self._program, arguments)

    def at(self, values: Mapping[str, Tensor]) -> Self:
        """The same program with other values of its global parameters.

        :param values: of the same names and shapes as those that the program was made with, or some of them.
        """
        values = other_values(values, self._values)
        other = copy(self)
        other.__dict__.pop("_without_symbols", None)
        other._values = self._values | values
        other._bound = bind(self._program, other._values, self._initial)
        return other

    def rows_of(self, sequences: Sequences) -> Rows:
        """What the program is run on for sequences.

        :raises ValueError: if the program takes covariates, and the sequences have none.
        """
        return self.convention.rows(sequences)

    def score(self, values: Mapping[str, Tensor], rows: Rows) -> Tensor:
        """The log-joints ``[N]`` of some rows, under values of the parameters.

        Made to be vectorized over values: no error is looked for. To be called with the program isolated.
        """
        with session_kept(seed=0):  # a program may leave another session behind than it found
            return self._score(bind(self._program, self._values | dict(values), self._initial), rows)

    @property
    def defines_lengths(self) -> bool | None:
        """``False`` for a program of vectors without a site that depends on the length.

        The alphabet seldom has all vectors, and the probability of those that it lacks would look like that of a stop.
        """
        if self._vectors is None or self._longest < 2:
            return None
        row = self._first.take(torch.zeros(2, dtype=torch.long))
        lengths = torch.tensor([self._longest - 1, self._longest])
        with isolated(validate=False):
            sites = self._scored_sites(row._replace(lengths=lengths))
        return None if may_depend_on_length(sites, self._layout.dim) else False

    @property
    def takes_covariates(self) -> bool:
        return self.convention.takes_covariates

    @property
    def is_normalized(self) -> bool:
        """Whether the program can be asked for sequences, has no factor in the plate, and observes no symbol twice."""
        return self.can_draw and not self._is_product

    @property
    def can_draw(self) -> bool:
        """Whether the program can be asked for sequences, with ``num_sequences=N``."""
        return generates(self._program)

    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        """Sequences that the program generates."""
        if not self.can_draw:
            return super().draw(num_sequences, generator)
        if self.takes_covariates:
            raise ValueError("draw: expected covariates to draw for, as the program takes them; call draw_given")
        return self._generated(check_number("num_sequences", num_sequences, least=1), None, generator)

    def draw_given(self, covariates: Covariates, generator: torch.Generator | None = None) -> Sequences:
        """A sequence that the program generates for each row of covariates."""
        check_covariates(covariates)
        if not self.can_draw or not self.takes_covariates:
            return self.draw(len(covariates), generator).with_covariates(covariates)
        return self._generated(len(covariates), covariates.values, generator).with_covariates(covariates)

    def _generated(self, num_sequences: int, covariates: Values | None, generator: torch.Generator | None) -> Sequences:
        if generator is not None:
            check_generator(generator)
        with called_with(self._program, {}, self.alphabet_size), isolated(validate=False, seed=drawn_seed(generator)):
            value = self._bound(*self.convention.generating(covariates), num_sequences=num_sequences)
        if isinstance(value, Sequences):
            coded = self.convention.coded(value.tokens, value.lengths)
            value = coded if len(coded) > 1 else coded[0]
        elif self._vectors is not None:
            value = generated_codes(value, self._vectors)
        tokens, lengths = self.convention.returned(value, num_sequences)
        return Sequences.of(tokens, self.alphabet_size, lengths=lengths)

    def run(self, rows: Rows, *, validate: bool = False) -> Tensor:
        """The log-joints ``[N]`` of some rows."""
        with isolated(validate=validate):
            total = repeatable(lambda: self._score(self._bound, rows))
            if total.isnan().any():
                row = int(total.isnan().nonzero()[0])
                codes = rows.tokens[row, : rows.lengths[row]].tolist()
                raise nan_error(self._scored_sites(rows), [self._symbols[code] for code in codes])
            return total

    def impossible_sites(self, sequences: Sequences) -> list[str]:
        """For each of some sequences that the program calls impossible, the names of the sites that do, or ``""``."""
        with isolated(validate=False):
            sites = self._scored_sites(self.rows_of(sequences))
        # A site may depend on enumerated states: it is to blame if it is impossible in all of them.
        to_blame = torch.all if self._enumerated else torch.any
        banned = {name: masked_log_prob(site).movedim(self._layout.dim, 0) == -torch.inf for name, site in sites}
        return [
            first_and_others([name for name, where in banned.items() if to_blame(where[row])])
            for row in range(len(sequences))
        ]

    def rounding(self, rows: Rows) -> dict[str, float]:
        """By how much log-ratios may be wrong because of the rounding of each site, by name.

        Only what a site sums itself counts: the sum over sites and over plates is in double precision.
        """
        with isolated(validate=False):
            sites = self._scored_sites(rows)
        return {name: rounding_of_ratios(masked_log_prob(site)) for name, site in sites}

    def _evaluate(self, sequences: Sequences) -> Tensor:
        rows = self.rows_of(sequences)
        empty = sequences.lengths == 0
        if not empty.any():
            return self.run(rows)
        values = torch.empty(empty.shape, dtype=torch.double)
        values[empty] = self._of_empty(rows.take(empty))
        if not empty.all():
            values[~empty] = self.run(rows.take(~empty)).double()
        return values

    def _of_empty(self, rows: Rows) -> Tensor:
        """The log-joints of empty sequences, ``[N]``."""
        if rows.covariates is None:
            return self._without_symbols.expand(len(rows.lengths))
        with isolated(validate=False):
            return self.score_empty({}, rows)

    @computed_once
    def _without_symbols(self) -> Tensor:
        """The log-joint of the empty sequence, where there are no covariates; ``[1]``."""
        with isolated(validate=False):
            return self.score_empty({}, self._first.take(slice(1)))

    def score_empty(self, values: Mapping[str, Tensor], rows: Rows) -> Tensor:
        """The log-joints of empty sequences, ``[N]``: ``-inf`` unless a site gives them a probability.

        The probability must not depend on the padding. As :meth:`score`, made to be vectorized over values.
        """
        count = len(rows.lengths)
        if not self.defines_empty:
            return torch.full((count,), -torch.inf, dtype=torch.double)
        runs = beside_another(rows, self.alphabet_size)
        found = [self.score(values, padded)[:count].double() for padded in runs]
        return torch.where(found[0] == found[-1], found[0], -torch.inf)

    @computed_once
    def defines_empty(self) -> bool:
        """Whether a site gives the empty sequence a probability, and all such sites ignore its padding."""
        with isolated(validate=False):
            try:
                runs = beside_another(self._first.take(slice(1)), self.alphabet_size)
                traces = []
                for rows in runs:
                    with session_kept(seed=0):
                        traces.append(self._trace(self._looked_at, rows))
            except ValueError:  # some operations refuse sequences without symbols, such as pack_padded_sequence
                return False
        return is_defined([_inside(trace, self._layout) for trace in traces], self._layout.dim)

    def _inspect(self, example: Sequences) -> tuple[Layout, Sites, Tensor]:
        """The layout of the program, and the sites of a run with random symbols ``[N, T]``, with these symbols."""
        longest = example.lengths.argsort(descending=True, stable=True)
        few = example[longest[torch.arange(3) % len(example)]]
        more = example[longest[torch.arange(5) % len(example)]]
        other = random_sequences(example)
        # Without validation, so that what is wrong with a site is said with its name when it is scored.
        with isolated(validate=False, seed=0):
            with self._called_with(more):
                try:
                    small, large = self._plain_trace(few), self._plain_trace(more)
                except Exception as error:
                    self._blame_batch_size(example, error)
                    raise
            with self._called_with(other):
                random = self._plain_trace(other)
        self._learn(large)
        layout = find_layout(small, len(few), large, len(more))
        return layout, _inside(random, layout), other.tokens

    def _called_with(self, sequences: Sequences) -> AbstractContextManager[None]:
        """Says of an error inside the program that it was called with the sequences."""
        return called_with(self._program, self._arguments(self.rows_of(sequences)), self.alphabet_size)

    def _arguments(self, rows: Rows) -> dict[str, Any]:
        """What the program is called with."""
        return self.convention.arguments(rows, self._vectors)

    def _plain_trace(self, sequences: Sequences) -> Trace:
        with session_kept(seed=0):
            return poutine.trace(self._looked_at).get_trace(*self._arguments(self.rows_of(sequences)).values())

    @property
    def _looked_at(self) -> Callable[..., Any]:
        """The program as it runs to be looked at, with values for all latents that are not summed out."""
        return self._bound

    def _blame_batch_size(self, example: Sequences, error: Exception) -> None:
        """Raises an error that names a hard-coded batch size if the program runs on all data, but not on a part."""
        try:
            self._plain_trace(example)
        except Exception:  # the first error is the one to see
            return
        raise ValueError(
            f"the program runs on all {len(example)} sequences, but not on a few of them: a batch size seems to be "
            "hard-coded, expected pyro.plate(..., len(lengths)) without subsample_size, and shapes taken from the "
            "arguments; pass what differs between sequences as covariates, Sequences.with_covariates(...)"
        ) from error

    def _trace(self, program: Callable[..., Any], rows: Rows) -> Trace:
        summed = program
        if self._enumerated:
            summed = poutine.enum(InParallel()(program), first_available_dim=-1 - self._plate_depth)
        arguments = self._arguments(rows)
        with called_with(self._program, arguments, self.alphabet_size, self._longest):
            trace = poutine.trace(summed).get_trace(*arguments.values())
        check_latents(trace, self._layout)
        return self._trace(program, rows) if self._learn(trace) else trace

    def _learn(self, trace: Trace) -> bool:
        """Notes enumerated sites and the depth of plates; whether there are more than was known."""
        known = self._plate_depth, self._enumerated
        self._plate_depth = max(self._plate_depth, plate_depth(trace))
        self._enumerated = self._enumerated or any(is_enumerated(site) for _, site in sample_sites(trace))
        return known != (self._plate_depth, self._enumerated)

    def _scored_sites(self, rows: Rows) -> Sites:
        sites = _inside(self._trace(self._looked_at, enough_rows(rows)), self._layout)
        score_sites(sites)
        return sites

    def _score(self, program: Callable[..., Any], rows: Rows) -> Tensor:
        """The log-joints ``[N]`` under a bound program."""
        enough = enough_rows(rows)
        return self._total(self._trace(program, enough), len(enough.lengths))[: len(rows.lengths)]

    def _total(self, trace: Trace, count: int) -> Tensor:
        """The log-joints ``[N]`` of all ``count`` rows of a run."""
        sites = _inside(trace, self._layout)
        score_sites(sites)
        if self._enumerated:
            return summed_over_states(trace, sites, self._layout.plate)
        return summed_over_sites(sites, self._layout.dim, count)


def _not_empty(sequences: Sequences) -> Sequences:
    """The sequences that have symbols, if there are any."""
    some = sequences[sequences.lengths > 0]
    return some if len(some) else sequences


def _inside(trace: Trace, layout: Layout) -> Sites:
    return [(name, site) for name, site in sample_sites(trace) if in_plate(site, layout.plate)]


def enough_rows(rows: Rows) -> Rows:
    """At least two sequences, the last one repeated, and two columns.

    Many programs have a plate over the moves from each symbol to the next, one fewer than columns.
    """
    missing = max(0, _FEWEST - len(rows.lengths))
    columns = max(0, _FEWEST - rows.tokens.shape[1])

    def repeated(values: Tensor) -> Tensor:
        return torch.cat([values, values[-1:].expand(missing, *values.shape[1:])])

    wide = torch.nn.functional.pad(rows.tokens, (0, columns))
    return Rows(repeated(wide), repeated(rows.lengths), each_covariate(rows.covariates, repeated))

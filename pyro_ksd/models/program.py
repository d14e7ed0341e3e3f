# SPDX-License-Identifier: Apache-2.0
"""Vectorized Pyro programs: the log-joint of every sequence from one run."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from functools import cached_property
from typing import Any

import torch
from pyro import poutine
from pyro.nn import PyroModule
from pyro.ops import packed
from pyro.ops.contract import contract_to_tensor
from pyro.poutine.trace_struct import Trace
from torch import Tensor
from torch.distributions.utils import probs_to_logits

from pyro_ksd.models.distribution import PAD
from pyro_ksd.models.evaluated import EvaluatedModel
from pyro_ksd.models.isolation import isolated, seed_from
from pyro_ksd.models.parameters import Shapes, bind, checked_point, parameter_shapes
from pyro_ksd.models.sites import Layout, find_layout, in_plate, is_enumerated, sample_sites
from pyro_ksd.sequences import Sequences

_INSPECTED = 25  # steps of a program that are looked at to learn its layout


class Convention(ABC):
    """How a program takes sequences, and how it gives them when asked to generate."""

    arity: int
    """How many arguments there are."""

    @abstractmethod
    def arguments(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        """The program's arguments, from tokens ``[N, T]`` with any filling behind the end and lengths ``[N]``."""

    @abstractmethod
    def returned(self, value: Any, count: int) -> tuple[Tensor, Tensor]:
        """Tokens ``[N, T]`` and lengths ``[N]`` from what the program returned."""


class TokensAndLengths(Convention):
    """``model(sequences, lengths)``: long ``[N, T]`` with any symbol behind the end, and long ``[N]``."""

    arity = 2

    def arguments(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        return tokens, lengths

    def returned(self, value: Any, count: int) -> tuple[Tensor, Tensor]:
        pair = isinstance(value, tuple | list) and len(value) == 2 and all(isinstance(v, Tensor) for v in value)
        if not pair or value[0].ndim != 2 or len(value[0]) != count or value[1].shape != (count,):
            raise ValueError(
                f"the program was asked for {count} sequences (num_sequences={count}) and returned {_shown(value)}, "
                f"expected (sequences, lengths) of shapes [{count}, T] and [{count}]; end it with: "
                "return sequences, lengths"
            )
        tokens, lengths = _whole(value[0]), _whole(value[1])
        alive = (lengths < 0) | (lengths > tokens.shape[1])
        if alive.any():
            raise ValueError(
                f"{int(alive.sum())} of {count} generated sequences were still alive after {tokens.shape[1]} steps "
                "(their lengths are outside of what was generated); let the program run on until all have stopped"
            )
        return tokens, lengths


class PaddedTokens(Convention):
    """``model(x)``: long ``[N, T]``, filled with -1 behind the end."""

    arity = 1

    def arguments(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        behind = torch.arange(tokens.shape[1], device=tokens.device) >= lengths[:, None]
        return (tokens.masked_fill(behind, PAD),)

    def returned(self, value: Any, count: int) -> tuple[Tensor, Tensor]:
        if not isinstance(value, Tensor) or value.ndim != 2 or len(value) != count:
            raise ValueError(
                f"the program was asked for {count} sequences (num_sequences={count}) and returned {_shown(value)}, "
                f"expected a tensor [{count}, T] filled with -1 behind the end; end it with: return x"
            )
        return _whole(value), (value != PAD).sum(1)


def _whole(numbers: Tensor) -> Tensor:
    """Numbers that a program generated, as integers."""
    if numbers.is_floating_point() and not numbers.equal(numbers.round()):
        raise ValueError(
            f"expected codes and lengths from the program, found {numbers[numbers != numbers.round()][0].item():g}; "
            "generate integers"
        )
    return numbers.long()


@contextmanager
def called_with(program: Callable[..., Any], arguments: Sequence[Tensor], alphabet_size: int) -> Iterator[None]:
    """Adds to an error of a program what it was called with, if anything."""
    try:
        yield
    except Exception as error:
        if arguments:
            names, more = "sequences, lengths", ", and the lengths"
            if len(arguments) == 1:
                names, more = "x", ", filled with -1 behind the ends"
            error.add_note(
                f"The program was called as program({names}) with the codes 0..{alphabet_size - 1} of the symbols, "
                f"long {list(arguments[0].shape)}{more}."
            )
        if isinstance(program, torch.nn.Module) and not isinstance(program, PyroModule):
            error.add_note(
                "It is a torch module, not a Pyro program: for a network that gives the logits of the next symbol see "
                "pyro_ksd.models.AutoregressiveModel."
            )
        raise


class VectorizedProgram(EvaluatedModel):
    r"""A Pyro program that scores all sequences in one run, each in its place of one plate.

    The log-joint of a sequence is the sum of all sites inside the plate over the sequences, at its place. Discrete
    latent sites with ``infer={"enumerate": "parallel"}`` are summed out, exactly and for each sequence. Sites outside
    the plate cancel in ratios and are left out; ``poutine.scale`` is ignored. The empty sequence is possible only if a
    site that is not masked for it gives it a probability, such as a law of the length.

    :param program: ``program(sequences, lengths)``, or ``program(x)`` with one tensor filled with -1 behind the ends.
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
        other.__dict__.pop("_log_joint_of_nothing", None)
        other._values = self._values | dict(values)
        other._bound = bind(self._program, other._values)
        return other

    def score(self, values: Mapping[str, Tensor], tokens: Tensor, lengths: Tensor) -> Tensor:
        """The log-joints ``[N]`` of tokens ``[N, T]`` with any filling behind the end, under values of the parameters.

        Made to be vectorized over values: no error is looked for. To be called with the program isolated.
        """
        return self._score(bind(self._program, self._values | dict(values)), tokens, lengths)

    @property
    def generates(self) -> bool:
        """Whether the program can be asked for sequences, with ``num_sequences=N``."""
        return "num_sequences" in inspect.signature(function_of(self._program)).parameters

    def generate(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        """Sequences that the program generates, with the random state untouched."""
        with isolated(validate=False, seed=seed_from(generator)):
            value = self._bound(*[None] * self.convention.arity, num_sequences=num_sequences)
        if isinstance(value, Sequences):
            given = self.convention.arguments(value.tokens, value.lengths)
            value = given if len(given) > 1 else given[0]
        tokens, lengths = self.convention.returned(value, num_sequences)
        return Sequences.of(tokens, self.alphabet_size, lengths=lengths)

    def run(self, tokens: Tensor, lengths: Tensor, *, validate: bool = False) -> Tensor:
        """The log-joints ``[N]`` of tokens ``[N, T]`` with any filling behind the end."""
        with isolated(validate=validate):
            total = self._score(self._bound, tokens, lengths)
            if total.isnan().any():
                raise _nan(self._trace(self._bound, tokens, lengths), self._layout, total)
            return total

    def impossible_sites(self, sequences: Sequences) -> list[str]:
        """For each of some sequences that the program calls impossible, the names of the sites that do, or ``""``."""
        with isolated(validate=False):
            trace = self._trace(self._bound, sequences.tokens, sequences.lengths)
            _score_sites(self._own_sites(trace))
        # A site may depend on enumerated states: it is to blame if it is impossible in all of them.
        to_blame = torch.all if self._layout.enumerated else torch.any
        banned = {
            name: _masked(site).movedim(self._layout.dim, 0) == -torch.inf for name, site in self._own_sites(trace)
        }
        return [
            ", ".join(name for name, where in banned.items() if to_blame(where[row])) for row in range(len(sequences))
        ]

    def _evaluate(self, sequences: Sequences) -> Tensor:
        empty = sequences.lengths == 0
        if not empty.any():
            return self.run(sequences.tokens, sequences.lengths)
        values = torch.full(empty.shape, self._log_joint_of_nothing, dtype=torch.double, device=empty.device)
        if not empty.all():
            values[~empty] = self.run(sequences.tokens[~empty], sequences.lengths[~empty]).double()
        return values

    @cached_property
    def _log_joint_of_nothing(self) -> float:
        """The log-joint of the empty sequence: ``-inf`` unless a site speaks of it and none reads its padding."""
        if not self.speaks_of_nothing:
            return -torch.inf
        tokens, lengths = self.beside_nothing
        with isolated(validate=False):
            totals = [float(self._score(self._bound, fill, lengths)[0]) for fill in tokens]
        return totals[0] if totals[0] == totals[-1] else -torch.inf

    @cached_property
    def speaks_of_nothing(self) -> bool:
        """Whether a site speaks of the empty sequence, and all that do so say the same whatever its padding."""
        tokens, lengths = self.beside_nothing
        with isolated(validate=False):
            traces = [self._trace(self._bound, fill, lengths) for fill in tokens]
        spoken = [
            [site for _, site in self._own_sites(trace) if not is_enumerated(site) and self._counts_for_first(site)]
            for trace in traces
        ]
        read = [[self._first_value(site) for site in sites] for sites in spoken]
        return bool(spoken[0]) and all(a.equal(b) for a, b in zip(read[0], read[-1], strict=True))

    @property
    def beside_nothing(self) -> tuple[Tensor, Tensor]:
        """The empty sequence, with other padding each time, and one beside it, so that the program has a step to do."""
        device = self._example[0].device
        fills = torch.arange(min(2, self.alphabet_size), device=device)
        return fills[:, None, None].expand(-1, 2, 1), torch.tensor([0, 1], device=device)

    def _counts_for_first(self, site: dict[str, Any]) -> bool:
        """Whether a site is not masked for the first sequence."""
        mask = site["mask"]
        if mask is None or isinstance(mask, bool):
            return mask is not False
        whole = mask.expand(torch.broadcast_shapes(mask.shape, site["fn"].batch_shape))
        return bool(whole.movedim(self._layout.dim, 0)[0].any())

    def _first_value(self, site: dict[str, Any]) -> Tensor:
        """The value of a site for the first sequence."""
        fn, value = site["fn"], site["value"]
        event = value.shape[value.ndim - fn.event_dim :]  # not fn.event_shape: sequences may be narrower than that
        whole: Tensor = value.expand(*fn.batch_shape, *event)
        return whole.movedim(self._layout.dim - fn.event_dim, 0)[0]

    def _inspect(self, example: Sequences) -> Layout:
        short = example.derived(example.tokens[:, :_INSPECTED], example.lengths.clamp(max=_INSPECTED))
        few, more = short[torch.arange(3) % len(example)], short[torch.arange(5) % len(example)]
        arguments = self.convention.arguments(more.tokens, more.lengths)
        # Without validation, so that what is wrong with a site is said with its name when it is scored.
        with called_with(self._program, arguments, self.alphabet_size), isolated(validate=False, seed=0):
            try:
                small, large = self._plain_trace(few), self._plain_trace(more)
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

    def _own_sites(self, trace: Trace) -> list[tuple[str, dict[str, Any]]]:
        return [(name, site) for name, site in sample_sites(trace) if in_plate(site, self._layout.plate)]

    def _score(self, program: Callable[..., Any], tokens: Tensor, lengths: Tensor) -> Tensor:
        """The log-joints ``[N]`` under a bound program."""
        trace = self._trace(program, tokens, lengths)
        own = self._own_sites(trace)
        _score_sites(own)
        if self._layout.enumerated:
            return _marginal(trace, own, self._layout.plate)
        total = torch.zeros(len(lengths), dtype=torch.double, device=tokens.device)
        for _, site in own:
            values = _masked(site)
            others = [dim for dim in range(-values.ndim, 0) if dim != self._layout.dim]
            total = total + (values.sum(others) if others else values)
        return total


def convention_of(program: Callable[..., Any]) -> Convention:
    """The convention of a program, from the number of sequence arguments it takes.

    :raises ValueError: if it takes none, or more than two.
    """
    parameters = inspect.signature(function_of(program)).parameters.values()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names = [p.name for p in positional if p.name != "num_sequences"]
    required = [p.name for p in positional if p.default is p.empty]
    if len(names) == 1:
        return PaddedTokens()
    if len(names) >= 2 and len(required) <= 2:
        return TokensAndLengths()
    raise ValueError(
        f"expected a program model(sequences, lengths), model(x) or, for one sequence at a time, model(), found the "
        f"parameters {[p.name for p in positional]}"
    )


def function_of(program: Callable[..., Any]) -> Callable[..., Any]:
    return program.forward if isinstance(program, torch.nn.Module) else program


def _shown(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor {list(value.shape)}"
    if isinstance(value, tuple | list):
        return f"{type(value).__name__} of {len(value)}: {', '.join(_shown(v) for v in value[:3])}"
    return "nothing" if value is None else type(value).__name__


def _score_sites(sites: list[tuple[str, dict[str, Any]]]) -> None:
    """Gives the sites their log-probabilities, without masks and scales."""
    for name, site in sites:
        try:
            values = _log_prob(site)
        except (ValueError, IndexError) as error:
            raise ValueError(f"site {name!r}: {error}") from error
        site["unscaled_log_prob"] = site["log_prob"] = values


def _log_prob(site: dict[str, Any]) -> Tensor:
    """The log-probability of a site's value.

    A Categorical takes the logarithms of the probabilities of all symbols, for each sequence, before it looks one up.
    That takes most of the time of a run, so the probability of an observed symbol is looked up first.
    """
    fn, value = site["fn"], site["value"]
    by_probs = isinstance(fn, torch.distributions.Categorical) and "probs" in fn.__dict__ and not fn._validate_args
    if by_probs and site["is_observed"]:
        index, probs = torch.broadcast_tensors(value.long()[..., None], fn.probs)
        return probs_to_logits(probs.gather(-1, index[..., :1]).squeeze(-1))
    values: Tensor = fn.log_prob(value, *site["args"], **site["kwargs"])
    return values


def _masked(site: dict[str, Any]) -> Tensor:
    values: Tensor = site["unscaled_log_prob"]
    mask = site["mask"]
    if mask is None or mask is True:
        return values
    if mask is False:
        return torch.zeros_like(values)
    return torch.where(mask, values, 0.0)


def _marginal(trace: Trace, own: list[tuple[str, dict[str, Any]]], plate: str) -> Tensor:
    """The log-joint of each sequence with the enumerated sites summed out."""
    trace.pack_tensors()
    symbol = trace.plate_to_symbol[plate]
    factors: OrderedDict[frozenset[str], list[Tensor]] = OrderedDict()
    enumerated: set[str] = set()
    for _, site in own:
        frames = frozenset(trace.plate_to_symbol[f.name] for f in site["cond_indep_stack"] if f.vectorized)
        values = site["packed"]["unscaled_log_prob"]
        if is_enumerated(site):
            # Never masked: behind the end the states must still sum to 1, or each padded step would add log K.
            enumerated |= set(values._pyro_dims)
        else:
            values = packed.scale_and_mask(values, mask=site["packed"]["mask"])
        factors.setdefault(frames, []).append(values)
    enumerated -= set(trace.plate_to_symbol.values())
    total: Tensor = contract_to_tensor(factors, enumerated, target_ordinal=frozenset({symbol}))
    return total


def _nan(trace: Trace, layout: Layout, total: Tensor) -> ValueError:
    own = [(name, site) for name, site in sample_sites(trace) if in_plate(site, layout.plate)]
    _score_sites(own)
    sites = [name for name, site in own if bool(_masked(site).isnan().any())]
    row = int(total.isnan().nonzero()[0])
    return ValueError(
        f"site {', '.join(map(repr, sites)) or 'unknown'}: found NaN in the log-probability of sequence {row} of a "
        "batch; mend the parameters of the distribution there"
    )

# SPDX-License-Identifier: Apache-2.0
"""How a program takes sequences, and how it returns them when asked to generate."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from pyro.poutine.messenger import _bound_partial, _context_wrap
from torch import Tensor
from torch.distributions import Distribution

from pyro_ksd.common.option_checks import found
from pyro_ksd.models.distributions.sampling import PAD
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.covariates import Values
from pyro_ksd.sequences.vector_symbols import vector_codes

COVARIATES = "covariates"
"""The name of a parameter that takes covariates, wherever it stands after the first."""


class Rows(NamedTuple):
    """The sequences that a program is run on.

    :ivar tokens: long ``[N, T]``, with any filling after the ends.
    :ivar lengths: long ``[N]``.
    :ivar covariates: ``[N, ...]``, or several such tensors by name, for a program that takes covariates.
    """

    tokens: Tensor
    lengths: Tensor
    covariates: Values | None = None

    def take(self, index: slice | Tensor) -> Rows:
        """Some of the rows."""
        return Rows(self.tokens[index], self.lengths[index], each_covariate(self.covariates, lambda x: x[index]))


def each_covariate(covariates: Values | None, change: Callable[[Tensor], Tensor]) -> Values | None:
    """The covariates with a function applied to each of their tensors."""
    if covariates is None or isinstance(covariates, Tensor):
        return covariates if covariates is None else change(covariates)
    return {name: change(column) for name, column in covariates.items()}


class Convention(ABC):
    """How a program takes sequences, and how it returns them when asked to generate.

    :param takes_covariates: whether it takes covariates as well, after the sequences.
    """

    names: tuple[str, ...]
    """The names of the arguments, without the covariates."""

    def __init__(self, takes_covariates: bool = False) -> None:
        self.takes_covariates = takes_covariates

    def rows(self, sequences: Sequences) -> Rows:
        """What the program is to be run on.

        :raises ValueError: if the program takes covariates, and the sequences have none.
        """
        if not self.takes_covariates:
            return Rows(sequences.tokens, sequences.lengths)
        if sequences.covariates is None:
            raise ValueError(
                "sequences: expected some with covariates, which the program takes, found none; pass "
                "sequences.with_covariates(covariates)"
            )
        return Rows(sequences.tokens, sequences.lengths, sequences.covariates.values)

    def arguments(self, rows: Rows, vectors: Tensor | None = None) -> dict[str, Any]:
        """The program's arguments, by name and in their order.

        :param vectors: ``[S, C]``, the vectors of the symbols; the program then gets ``[N, T, C]`` in place of codes.
        """
        codes, *others = self.coded(rows.tokens, rows.lengths)
        if vectors is not None:
            codes = torch.where((codes >= 0)[..., None], vectors[codes.clamp(min=0)], PAD)
        known = {COVARIATES: rows.covariates} if self.takes_covariates else {}
        return {**dict(zip(self.names, (codes, *others), strict=True)), **known}

    def generating(self, covariates: Values | None) -> tuple[Any, ...]:
        """The arguments with which the program generates sequences, for some covariates."""
        return (None,) * len(self.names) + ((covariates,) if self.takes_covariates else ())

    @abstractmethod
    def coded(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        """The program's arguments where it takes codes."""

    @abstractmethod
    def returned(self, value: Any, count: int) -> tuple[Tensor, Tensor]:
        """Tokens ``[N, T]`` and lengths ``[N]`` from what the program returned."""


class TokensAndLengths(Convention):
    """``model(sequences, lengths)``: long ``[N, T]`` with any symbol after the end, and long ``[N]``."""

    names = ("sequences", "lengths")

    def coded(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        return tokens, lengths

    def returned(self, value: Any, count: int) -> tuple[Tensor, Tensor]:
        pair = isinstance(value, tuple | list) and len(value) == 2 and all(isinstance(v, Tensor) for v in value)
        if not pair or value[0].ndim != 2 or len(value[0]) != count or value[1].shape != (count,):
            raise ValueError(
                f"the program was asked for {count} sequences (num_sequences={count}) and returned {_shown(value)}, "
                f"expected (sequences, lengths) of shapes [{count}, T] and [{count}]; end it with: "
                "return sequences, lengths"
            )
        tokens = _whole(value[0])
        lengths = _whole(value[1])
        alive = (lengths < 0) | (lengths > tokens.shape[1])
        if alive.any():
            raise ValueError(
                f"{int(alive.sum())} of {count} generated sequences were still alive after {tokens.shape[1]} steps "
                "(their lengths are outside of what was generated); let the program run on until all have stopped"
            )
        return tokens, lengths


class PaddedTokens(Convention):
    """``model(x)``: long ``[N, T]``, filled with -1 after the end."""

    names = ("x",)

    def coded(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        behind = torch.arange(tokens.shape[1]) >= lengths[:, None]
        return (tokens.masked_fill(behind, PAD),)

    def returned(self, value: Any, count: int) -> tuple[Tensor, Tensor]:
        if not isinstance(value, Tensor) or value.ndim != 2 or len(value) != count:
            raise ValueError(
                f"the program was asked for {count} sequences (num_sequences={count}) and returned {_shown(value)}, "
                f"expected a tensor [{count}, T] filled with -1 after the end; end it with: return x"
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


def generated_codes(value: Any, vectors: Tensor) -> Any:
    """What a program generated, with codes in place of vectors; anything else as it is.

    :param vectors: ``[S, C]``, those of the symbols.
    :raises ValueError: if it generated a vector that is no symbol.
    """
    if isinstance(value, tuple | list) and len(value) == 2 and isinstance(value[0], Tensor) and value[0].ndim == 3:
        codes = vector_codes(value[0], vectors)
        if isinstance(value[1], Tensor) and value[1].shape == codes.shape[:1]:
            codes = codes.masked_fill(torch.arange(codes.shape[1]) >= value[1][:, None], 0)
        _check_known(codes, value[0])
        return codes, value[1]
    if isinstance(value, Tensor) and value.ndim == 3:
        codes = vector_codes(value, vectors)
        _check_known(codes.masked_fill((value == PAD).all(-1), 0), value)
        return codes
    return value


def _check_known(codes: Tensor, values: Tensor) -> None:
    if (codes < 0).any():
        row, position = (codes < 0).nonzero()[0].tolist()
        raise ValueError(
            f"the program generated the vector {values[row, position].tolist()}, expected one of the alphabet; "
            "state all vectors that it may generate, Sequences.of(data, alphabet=vectors), or use bootstrap='wild'"
        )


def check_is_program(program: object) -> None:
    """Checks that an argument can be a Pyro program: neither a class nor a distribution.

    >>> check_is_program("model")
    Traceback (most recent call last):
    ValueError: program: expected a Pyro program, a function such as model(sequences, lengths), found 'model'
    """
    if not callable(program) or isinstance(program, type | Distribution):
        words = "a Pyro program, a function such as model(sequences, lengths)"
        raise ValueError(f"program: expected {words}, found {found(program)}")


def convention_of(program: Callable[..., Any], *, with_covariates: bool = False) -> Convention:
    """The convention of a program, from the parameters that it has.

    A second parameter is that of the lengths, unless it has a default other than ``None``: then it is an option, as in
    ``ising(x, beta=0.5)``, and keeps its default. Covariates are the third parameter, if it has no default, or the one
    that is called ``covariates``.

    :param with_covariates: whether the data have covariates; a program need not take them.
    :raises ValueError: if it takes no sequences, or more than sequences, lengths and covariates.
    """
    parameters = inspect.signature(function_of(program)).parameters.values()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    passed = [p for p in positional if p.name != "num_sequences"]
    named = [index for index, p in enumerate(passed) if p.name == COVARIATES]
    place = named[0] if named else 2
    is_there = 0 < place <= 2 and place < len(passed)
    is_required = is_there and passed[place].default is inspect.Parameter.empty
    if is_required and not with_covariates:
        raise _missing_covariates(passed, place)
    takes_covariates = with_covariates and (is_required or (is_there and bool(named)))
    others = [p for index, p in enumerate(passed) if index != place]
    required = [p.name for p in others if p.default is p.empty]
    if len(others) == 1 or (len(others) > 1 and not _is_passed(others[1])):
        return PaddedTokens(takes_covariates)
    if len(others) >= 2 and len(required) <= 2:
        return TokensAndLengths(takes_covariates)
    raise ValueError(
        f"expected a program model(sequences, lengths), model(sequences, lengths, covariates), model(x) or, for one "
        f"sequence at a time, model(), found the parameters {[p.name for p in positional]}; set others before: "
        "functools.partial(model, args=args)"
    )


def _is_passed(parameter: inspect.Parameter) -> bool:
    """Whether a parameter gets an argument: it has no default, or ``None``."""
    return parameter.default is inspect.Parameter.empty or parameter.default is None


def _missing_covariates(passed: list[inspect.Parameter], place: int) -> ValueError:
    names = [p.name for p in passed]
    return ValueError(
        f"expected data with covariates for the parameter {names[place]!r} of the program, found none; pass "
        "Sequences.of(data).with_covariates(covariates), one row for each sequence, or, if it is no covariate, set it "
        f"before: functools.partial(model, {names[place]}={names[place]})"
    )


def function_of(program: Callable[..., Any]) -> Callable[..., Any]:
    """The function whose signature says how the program is called, without Pyro's handlers around it."""
    while True:
        if isinstance(program, _bound_partial):
            program = program.func
        elif isinstance(program, partial) and program.func is _context_wrap:
            program = program.args[1]
        else:
            return program.forward if isinstance(program, torch.nn.Module) else program


def generates(program: Callable[..., Any]) -> bool:
    """Whether a program can be asked for sequences, with ``num_sequences=N``."""
    return "num_sequences" in inspect.signature(function_of(program)).parameters


def is_loop(program: Callable[..., Any]) -> bool:
    """Whether a program makes one sequence at a time: it takes no arguments."""
    return not inspect.signature(function_of(program)).parameters


def _shown(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor {list(value.shape)}"
    if isinstance(value, tuple | list):
        return f"{type(value).__name__} of {len(value)}: {', '.join(_shown(v) for v in value[:3])}"
    return "nothing" if value is None else type(value).__name__

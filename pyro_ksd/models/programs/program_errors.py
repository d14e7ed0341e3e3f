# SPDX-License-Identifier: Apache-2.0
"""Errors inside a user's program: what it was called with, and what may be wrong."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from pyro.nn import PyroModule

from pyro_ksd.common.tensor_checks import shown

_OURS = __name__.partition(".")[0]
BY_ROW = (
    "if by the row of the batch, pass what differs between sequences as covariates, Sequences.with_covariates(...): "
    "the rows of a batch are sequences and their edits, in any number and order"
)
"""What to say of a table that has too few rows."""
_SHAPES = re.compile(r"\s*Trace Shapes:")  # Pyro adds them to every error that passes a trace


@contextmanager
def called_with(
    program: Callable[..., Any], arguments: Mapping[str, Any], alphabet_size: int, longest: int | None = None
) -> Iterator[None]:
    """Says of an error inside a program what the program was called with, and what may be wrong.

    Errors that this package raises while the program runs keep their message.

    :param arguments: by name, the sequences ``[N, T]`` first; nothing for a program without arguments.
    :param longest: the length of the longest sequence of the data; ``None`` if sequences of the data were passed.
    """
    try:
        yield
    except Exception as error:
        if is_ours(error):
            raise ValueError(_SHAPES.split(str(error))[0]) from error.__cause__
        parts = [f"the program failed with {type(error).__name__}: {_first_words(error)}"]
        if arguments:
            parts.append(_called(arguments, alphabet_size))
        parts += _advice(program, error, arguments, alphabet_size, longest)
        raise ValueError("; ".join(parts)) from error


def _first_words(error: Exception) -> str:
    """The first line of an error, and the second if the first ends in the middle of a sentence."""
    first, *others = _SHAPES.split(str(error))[0].splitlines() or [""]
    return f"{first} {others[0].strip()}" if others and first.rstrip().endswith(":") else first


def is_ours(error: BaseException) -> bool:
    """Whether an error was raised by this package."""
    frames = list(traceback.walk_tb(error.__traceback__))
    return bool(frames) and str(frames[-1][0].f_globals.get("__name__")).partition(".")[0] == _OURS


def _called(arguments: Mapping[str, Any], alphabet_size: int) -> str:
    first, *others = arguments
    tokens = arguments[first]
    what = f"the codes 0..{alphabet_size - 1}" if tokens.ndim == 2 else f"the vectors ({tokens.dtype})"
    more = ", filled with -1 after the ends"
    if others:
        more = more if first == "x" else ""
        more += ", and the lengths" if "lengths" in others else ""
        more += f", and the covariates {_shapes(arguments['covariates'])}" if "covariates" in others else ""
    return f"it was called as program({', '.join(arguments)}) with {what} of the symbols, {list(tokens.shape)}{more}"


def _shapes(covariates: Any) -> str:
    """What covariates are, without their values."""
    if isinstance(covariates, Mapping):
        return "{" + ", ".join(f"{name!r}: {shown(column)}" for name, column in covariates.items()) + "}"
    return shown(covariates)


def _advice(
    program: Callable[..., Any],
    error: Exception,
    arguments: Mapping[str, Any],
    alphabet_size: int,
    longest: int | None,
) -> list[str]:
    advice = []
    if "subsample" in str(error):
        advice.append(
            "a plate with a batch size gives no log-joint for the sequences left out: leave out the batch size, or "
            "subsample_size"
        )
    if longest is not None and arguments and next(iter(arguments.values())).shape[1] > longest:
        advice.append(
            f"if it can score no sequence longer than the data ({longest} symbols), as with a table of positions, let "
            "it give longer ones the log-probability -inf, or pass neighborhood=Substitutions()"
        )
    elif isinstance(error, IndexError | KeyError):
        advice.append(
            f"if it looks up tables by symbols, they need {alphabet_size} rows: widen them, or state the symbols that "
            "the program knows in the order of their codes, Sequences.of(data, alphabet=...)"
        )
        advice.append(BY_ROW)
    if isinstance(program, torch.nn.Module) and not isinstance(program, PyroModule):
        advice.append(
            "expected a Pyro program, found a torch module: for a network that gives the logits of the next symbol see "
            "pyro_ksd.models.AutoregressiveModel"
        )
    return advice or ["run it on the data by itself to find the reason"]

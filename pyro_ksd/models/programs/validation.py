# SPDX-License-Identifier: Apache-2.0
"""Cheap checks that a vectorized program scores each sequence by itself."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from pyro_ksd.models.programs.call_conventions import PaddedTokens
from pyro_ksd.models.programs.vectorized import VectorizedProgram
from pyro_ksd.sequences.container import Sequences

_ROWS = 4  # sequences to run the program on
_EXTRA = 3  # columns of padding to add
_CLOSE = {"rtol": 1e-5, "atol": 1e-5}


def check_program(program: VectorizedProgram, data: Sequences) -> None:
    """Checks that the log-joint of a sequence depends neither on its batch mates nor on its padding.

    :raises ValueError: saying which of them it depends on, and the usual reason.
    """
    tokens, lengths = _probes(data)
    own = _first_run(program, tokens, lengths)
    _compare(own[:2], program.run(tokens[:2], lengths[:2]), _MATES)
    try:
        again = program.run(*_refilled(tokens, lengths, data.alphabet_size, _EXTRA))
    except ValueError:  # some programs take no more columns than the data have, such as those with tables of positions
        again = program.run(*_refilled(tokens, lengths, data.alphabet_size, 0))
    _compare(own, again, _WIDTH)


def _first_run(program: VectorizedProgram, tokens: Tensor, lengths: Tensor) -> Tensor:
    try:
        return program.run(tokens, lengths, validate=True)
    except ValueError as error:
        if "nan" in f"{error} {error.__cause__}":
            program.run(tokens, lengths)  # without Pyro's validation it is our error that comes, with the site's name
        padding = (
            "; the program takes one argument, which is filled with -1 after the ends: a value that is no symbol for "
            "distributions of single symbols. Take two arguments, model(sequences, lengths), and mask"
            if isinstance(program.convention, PaddedTokens)
            else ""
        )
        raise ValueError(f"the program does not score the data: {error}{padding}") from error


def _probes(data: Sequences) -> tuple[Tensor, Tensor]:
    """A few sequences of different lengths, the longest among them, tokens ``[R, T]`` and lengths ``[R]``."""
    order = data.lengths.argsort(descending=True, stable=True)
    order = order[data.lengths[order] > 0] if data.lengths.any() else order
    ranks = torch.linspace(0, len(order) - 1, _ROWS).round().long()
    probes = data[order[ranks[torch.tensor([0, _ROWS - 1, *range(1, _ROWS - 1)])]]].narrowed()
    return probes.tokens, probes.lengths


def _refilled(tokens: Tensor, lengths: Tensor, alphabet_size: int, columns: int) -> tuple[Tensor, Tensor]:
    """The sequences with other symbols, and more columns, after their ends."""
    wide = pad(tokens, (0, columns))
    after = torch.arange(wide.shape[1]) >= lengths[:, None]
    return torch.where(after, alphabet_size - 1, wide), lengths


_MATES = (
    "the program's log-joint of a sequence changes with the other sequences of the batch, from {0:.6g} to {1:.6g}; "
    "expected one value for each sequence: a factor must not be summed over the batch, and the first dimension of "
    "sequences [N, T] must stay that of the plate"
)
_WIDTH = (
    "the program's log-joint of a sequence changes with the padding after its end, from {0:.6g} to {1:.6g}; "
    "expected steps t >= lengths to count nothing: put them under poutine.mask(mask=t < lengths), or multiply the "
    "terms of a factor by torch.arange(sequences.shape[1]) < lengths[:, None]"
)


def _compare(own: Tensor, again: Tensor, message: str) -> None:
    off = ~torch.isclose(own, again, **_CLOSE)  # type: ignore[arg-type]
    if off.any():
        row = int(off.nonzero()[0])
        raise ValueError(message.format(float(own[row]), float(again[row])))

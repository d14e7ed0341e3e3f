# SPDX-License-Identifier: Apache-2.0
"""Cheap checks that a vectorized program scores each sequence by itself."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from pyro_ksd.models.programs.call_conventions import PaddedTokens, Rows
from pyro_ksd.models.programs.vectorized import VectorizedProgram
from pyro_ksd.models.rounding import warn_of_rounding
from pyro_ksd.sequences.container import Sequences

_ROWS = 4  # sequences to run the program on
_EXTRA = 3  # columns of padding to add
_CLOSE = {"rtol": 1e-5, "atol": 1e-5}


def check_program(program: VectorizedProgram, data: Sequences) -> None:
    """Checks that the log-joint of a sequence depends neither on its batch mates nor on its padding.

    Warns of log-probabilities that a site sums in single precision, if they are so large that rounding matters.

    :raises ValueError: saying which of them it depends on, and the usual reason.
    """
    probes = _probes(data)
    rows = program.rows_of(probes)
    own = _first_run(program, rows)
    _compare(own[:2], program.run(rows.take(slice(2))), _MATES)
    try:
        again = program.run(_refilled(rows, data.alphabet_size, _EXTRA))
    except ValueError:  # some programs take no more columns than the data have, such as those with tables of positions
        again = program.run(_refilled(rows, data.alphabet_size, 0))
    _compare(own, again, _WIDTH)
    errors = program.rounding(rows)
    if errors:
        site = max(errors, key=lambda name: errors[name])
        warn_of_rounding(errors[site], f"site {site!r}")


def _first_run(program: VectorizedProgram, rows: Rows) -> Tensor:
    try:
        return program.run(rows, validate=True)
    except ValueError as error:
        if "nan" in f"{error} {error.__cause__}":
            program.run(rows)  # without Pyro's validation it is our error that comes, with the site's name
        padding = (
            "; the program takes one argument, which is filled with -1 after the ends: a value that is no symbol for "
            "distributions of single symbols. Take two arguments, model(sequences, lengths), and mask"
            if isinstance(program.convention, PaddedTokens)
            else ""
        )
        raise ValueError(f"the program does not score the data: {error}{padding}") from error


def _probes(data: Sequences) -> Sequences:
    """A few sequences of different lengths, the longest among them."""
    order = data.lengths.argsort(descending=True, stable=True)
    order = order[data.lengths[order] > 0] if data.lengths.any() else order
    ranks = torch.linspace(0, len(order) - 1, _ROWS).round().long()
    return data[order[ranks[torch.tensor([0, _ROWS - 1, *range(1, _ROWS - 1)])]]].narrowed()


def _refilled(rows: Rows, alphabet_size: int, columns: int) -> Rows:
    """The sequences with other symbols, and more columns, after their ends."""
    wide = pad(rows.tokens, (0, columns))
    after = torch.arange(wide.shape[1]) >= rows.lengths[:, None]
    return rows._replace(tokens=torch.where(after, alphabet_size - 1, wide))


_MATES = (
    "the program's log-joint of a sequence changes with the other sequences of the batch, from {0:.6g} to {1:.6g}; "
    "expected one value for each sequence: a factor must not be summed over the batch, covariates must not be "
    "standardized in the program (use constants), and the first dimension of sequences [N, T] must stay that of the "
    "plate"
)
_WIDTH = (
    "the program's log-joint of a sequence changes with the padding after its end, from {0:.6g} to {1:.6g}; "
    "expected steps t >= lengths to count nothing, neither symbols nor latents of a step, and no guide to read them: "
    "put them under poutine.mask(mask=t < lengths), or multiply the terms of a factor by "
    "torch.arange(sequences.shape[1]) < lengths[:, None]"
)


def _compare(own: Tensor, again: Tensor, message: str) -> None:
    off = ~torch.isclose(own, again, **_CLOSE)  # type: ignore[arg-type]
    if off.any():
        row = int(off.nonzero()[0])
        raise ValueError(message.format(float(own[row]), float(again[row])))

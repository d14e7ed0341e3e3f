# SPDX-License-Identifier: Apache-2.0
"""Cheap checks that a vectorized program scores each sequence by itself."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from pyro_ksd.models.programs.call_conventions import PaddedTokens, Rows
from pyro_ksd.models.programs.vectorized import VectorizedProgram
from pyro_ksd.models.rounding import warn_of_rounding
from pyro_ksd.sequences.batch_probes import EXTRA_COLUMNS, batch_fault, few_rows, in_many_rows, padding_fault
from pyro_ksd.sequences.container import Sequences


def check_program(program: VectorizedProgram, data: Sequences) -> None:
    """Checks that the log-joint of a sequence depends on the sequence alone.

    It must be the same in every run, in every row of the batch, whatever its batch mates are, and with any padding.
    Warns of log-probabilities that a site sums in single precision, if they are so large that rounding matters.

    :raises ValueError: saying what else it depends on, and the usual reason.
    """
    rows = program.rows_of(data[few_rows(data.lengths)].narrowed())
    own = _first_run(program, rows)
    many = in_many_rows(rows.lengths, data)
    fault = batch_fault(lambda index, wide: program.run(_taken(rows, index, wide)), own, many)
    if fault is None:
        fault = padding_fault(lambda: program.run(rows), own, _run_refilled(program, rows, data.alphabet_size))
    if fault is not None:
        raise fault.error("the program's log-joint of a sequence", alone=_ALONE, masked=_MASKED)
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


def _taken(rows: Rows, index: Tensor, wide: bool) -> Rows:
    """Some of the rows, with no more columns than they need unless they are to be wide."""
    taken = rows.take(index)
    return taken if wide else taken._replace(tokens=taken.tokens[:, : int(taken.lengths.max())])


def _run_refilled(program: VectorizedProgram, rows: Rows, alphabet_size: int) -> Tensor:
    """The log-joints with another padding."""
    try:
        return program.run(_refilled(rows, alphabet_size, EXTRA_COLUMNS))
    except ValueError:  # some programs take no more columns than the data have, such as those with tables of positions
        return program.run(_refilled(rows, alphabet_size, 0))


def _refilled(rows: Rows, alphabet_size: int, columns: int) -> Rows:
    """The sequences with other symbols, and more columns, after their ends."""
    wide = pad(rows.tokens, (0, columns))
    after = torch.arange(wide.shape[1]) >= rows.lengths[:, None]
    return rows._replace(tokens=torch.where(after, alphabet_size - 1, wide))


_ALONE = (
    "a factor must not be summed over the batch, covariates must not be standardized in the program (use constants), "
    "and the first dimension of sequences [N, T] must stay that of the plate"
)
_MASKED = (
    "steps t >= lengths to count nothing, neither symbols nor latents of a step, and no guide to read them: put them "
    "under poutine.mask(mask=t < lengths), or multiply the terms of a factor by "
    "torch.arange(sequences.shape[1]) < lengths[:, None]"
)

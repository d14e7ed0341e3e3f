# SPDX-License-Identifier: Apache-2.0
"""Cheap checks that a vectorized program scores each sequence by itself, and what it says of lengths."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.program import PaddedTokens, VectorizedProgram
from pyro_ksd.sequences import Sequences

_ROWS, _LONGEST = 4, 6  # beginnings of a few sequences are enough, and cost little
_EXTRA = 3  # columns of padding to add
_FAR = 100  # lengths up to which a model at least is asked whether it has a law of the length
_CLOSE = {"rtol": 1e-5, "atol": 1e-5}


def check_program(program: VectorizedProgram, data: Sequences) -> None:
    """Checks that the log-joint of a sequence depends neither on its batch mates nor on its padding.

    :raises ValueError: saying which of them it depends on, and the usual reason.
    """
    tokens, lengths = _beginnings(data)
    own = _first_run(program, tokens, lengths)
    _compare(own[:2], program.run(tokens[:2], lengths[:2]), _MATES)
    wide = pad(tokens, (0, _EXTRA))
    behind = torch.arange(wide.shape[1], device=tokens.device) >= lengths[:, None]
    refilled = torch.where(behind, data.alphabet_size - 1, wide)
    _compare(own, program.run(refilled, lengths), _WIDTH)


def _first_run(program: VectorizedProgram, tokens: Tensor, lengths: Tensor) -> Tensor:
    try:
        return program.run(tokens, lengths, validate=True)
    except (ValueError, IndexError, RuntimeError) as error:
        if "nan" in str(error):
            program.run(tokens, lengths)  # without Pyro's validation it is our error that comes, with the site's name
        padding = (
            "; the program takes one argument, which is filled with -1 behind the ends: a value that is no symbol for "
            "distributions of single symbols. Take two arguments, model(sequences, lengths), and mask"
            if isinstance(program.convention, PaddedTokens)
            else ""
        )
        raise ValueError(f"the program does not score the data: {error}{padding}") from error


_MATES = (
    "the program's log-joint of a sequence changes with the other sequences of the batch, from {0:.6g} to {1:.6g}; "
    "expected one value for each sequence: a factor must not be summed over the batch, and the first dimension of "
    "sequences [N, T] must stay that of the plate"
)
_WIDTH = (
    "the program's log-joint of a sequence changes with the padding behind its end, from {0:.6g} to {1:.6g}; "
    "expected steps t >= lengths to count nothing: put them under poutine.mask(mask=t < lengths), or multiply the "
    "terms of a factor by torch.arange(sequences.shape[1]) < lengths[:, None]"
)


def _compare(own: Tensor, again: Tensor, message: str) -> None:
    off = ~torch.isclose(own, again, **_CLOSE)  # type: ignore[arg-type]
    if off.any():
        row = int(off.nonzero()[0])
        raise ValueError(message.format(float(own[row]), float(again[row])))


def _beginnings(data: Sequences) -> tuple[Tensor, Tensor]:
    """Beginnings of different lengths of the first sequences, tokens ``[R, T]`` and lengths ``[R]``."""
    rows = torch.arange(_ROWS, device=data.device) % len(data)
    shorter = torch.tensor([_LONGEST, _LONGEST // 2, 1, 2], device=data.device)
    lengths = torch.minimum(data.lengths[rows], shorter)
    width = int(lengths.max())
    tokens = data.tokens[rows, :width]
    return tokens.masked_fill(torch.arange(width, device=data.device) >= lengths[:, None], 0), lengths


def has_length_law(model: SequenceModel, data: Sequences) -> bool:
    r"""Whether the model says how long a sequence is.

    A program that draws symbols, but neither a stop nor a length, gives the sequences of *every* length a total
    probability of 1: :math:`\sum_s p(x \cdot s) = p(x)` for all :math:`x`. A score without a term of the length may
    even grow, :math:`\sum_s p(x \cdot s) > p(x)`, and has no finite sum over all lengths. That is looked for along one
    sequence, first at its start and then, since a law may be uniform up to a maximum, far beyond the longest sequence
    of the data: a law of the length makes the mass of some length smaller than that of a shorter one.
    """
    few = data[: 10 * _ROWS]
    possible = torch.where(model.log_joint(few) > -torch.inf, few.lengths, 0)
    row, longest = int(possible.argmax()), int(possible.max())
    if not longest:
        return True
    far = max(4 * int(data.lengths.max()), _FAR)
    path = few.tokens[row, :longest].repeat(1 + far // longest)
    for lengths in (range(1, min(5, longest + 1)), range(5, far, 1 + far // 12)):
        own, change = _growth(model, data, path, lengths)
        if (change < 0).any():
            return True
    impossible = [length for length, value in zip(lengths, own.tolist(), strict=True) if value == -torch.inf]
    if impossible:  # somewhere before, the sequence became impossible: because of its symbols, or of its length?
        _, change = _growth(model, data, path, range(max(1, impossible[0] - 1 - far // 12), impossible[0]))
        return bool((change != 0).any())
    return False


def _growth(model: SequenceModel, data: Sequences, path: Tensor, lengths: range) -> tuple[Tensor, Tensor]:
    """How the mass changes by a further symbol, along a path.

    :returns: the log-joints of its beginnings, ``[M]``; and, for those that are possible, the log-ratios of all their
        extensions by one symbol together to them, 0 for a change that is nothing but rounding.
    """
    size, ends = data.alphabet_size, torch.tensor(lengths, device=path.device)
    columns = torch.arange(max(lengths, default=0) + 1, device=path.device)
    beginnings = path[: len(columns)].expand(len(ends), -1).masked_fill(columns >= ends[:, None], 0)
    longer = beginnings.repeat_interleave(size, 0)
    index = ends.repeat_interleave(size)
    longer.scatter_(1, index[:, None], torch.arange(size, device=path.device).repeat(len(ends))[:, None])
    own = model.log_joint(data.derived(beginnings, ends))
    extended = model.log_joint(data.derived(longer, index + 1)).view(-1, size).logsumexp(1)
    same = torch.isclose(extended, own, rtol=1e-6, atol=1e-5)
    return own, (extended - own).masked_fill(same, 0.0)[own > -torch.inf]

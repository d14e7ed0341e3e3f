# SPDX-License-Identifier: Apache-2.0
"""Reading padded arrays, one sequence a row, filled up after its end; and which of the rows are meant."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pyro_ksd.common.option_checks import found
from pyro_ksd.common.tensor_checks import shown
from pyro_ksd.common.user_warnings import warn_user
from pyro_ksd.sequences.alphabets import LARGEST_CODE, Alphabet
from pyro_ksd.sequences.row_reading import Coded, coded_rows

_FEW_ROWS = 10
_MOST_ROWS = 0.5
_TIMES = 5


def coded_array(array: Tensor | np.ndarray, alphabet: Alphabet | None, lengths: Any, pad: Any) -> Coded:
    """The codes of a padded array of integers, one sequence a row."""
    if isinstance(array, Tensor) and array.is_meta:
        raise ValueError("data: expected a tensor with values, found one on the device meta")
    if isinstance(array, np.ndarray) and array.dtype.kind not in "biufc":
        raise ValueError(f"data: expected an array of integers or strings, found {array.dtype} {list(array.shape)}")
    tensor = array.cpu() if isinstance(array, Tensor) else torch.as_tensor(np.array(array, order="C"))
    if not len(tensor):
        raise ValueError("expected at least one sequence, found an empty data set")
    if (tensor.is_floating_point() or tensor.is_complex()) and tensor.numel():
        missing = tensor.isnan()
        row, position = first_place(missing) if missing.any() else (0, 0)
        value = tensor[0, 0].item()
        kind = "NaN" if missing.any() else f"the {type(value).__name__} {value!r}"
        raise ValueError(
            f"sequence {row}, position {position}: found {kind}, expected an integer code; "
            "code the symbols as integers and fill the padding with an integer such as -1 (pad=-1)"
        )
    tensor = tensor.long()
    if pad is not None:
        pad = check_pad(pad)
    columns = torch.arange(tensor.shape[1])
    if lengths is not None:
        lengths = _as_lengths(lengths, len(tensor))
        check_lengths(lengths, tensor.shape[1])
    elif pad is not None:
        lengths = tensor.ne(pad).long().cumprod(1).sum(1)
    else:
        lengths = torch.full((len(tensor),), tensor.shape[1])
        _warn_of_zeros(tensor)
    inside = columns < lengths[:, None]
    if pad is not None:
        _check_padding(tensor, inside, pad)
    tokens = tensor.masked_fill(~inside, 0)
    if alphabet is None:
        negative = inside & (tensor < 0)
        if negative.any():
            row, position = first_place(negative)
            raise ValueError(
                f"sequence {row}, position {position}: found {int(tensor[row, position])}, expected a code of at "
                f"least 0; if it marks the padding, say pad={int(tensor[row, position])}, and if it is a symbol, state "
                "all symbols in alphabet=[...]"
            )
        alphabet = int(tokens.max()) + 1 if tokens.numel() else 1
    if not isinstance(alphabet, int) and all(type(symbol) is int for symbol in alphabet):
        rows = [tensor[i, : lengths[i]].tolist() for i in range(len(tensor))]
        return coded_rows(rows, alphabet)
    return tokens, lengths, alphabet


def _warn_of_zeros(tensor: Tensor) -> None:
    """Warns where zeros at the ends of rows look like padding that nobody has named.

    Most rows end in several zeros then, and in far more of them than the share of zeros before them explains.
    """
    is_zero = tensor == 0
    last = is_zero.flip(1).long().cumprod(1).sum(1)
    before = tensor.numel() - int(last.sum())
    if len(tensor) < _FEW_ROWS or not before or len(last.unique()) == 1:
        return
    share = (int(is_zero.sum()) - int(last.sum())) / before
    typical = share / (1 - share)  # the mean number at the end of a row of independent symbols
    if float((last > 1).double().mean()) >= _MOST_ROWS and float(last.double().mean()) > 1 + _TIMES * typical:
        warn_user(
            f"data: {int((last > 1).sum())} of {len(tensor)} rows end in several zeros, which count as symbols here; "
            "if they are padding, pass lengths=, or pad=0 if 0 is no symbol; if not, pass lengths= to say so"
        )


def stripped_rows(rows: list[list[Any]], lengths: Any, pad: Any) -> list[list[Any]]:
    """The symbols of each row of a padded array of objects or strings."""
    if lengths is not None:
        checked = _as_lengths(lengths, len(rows))
        check_lengths(checked, len(rows[0]) if rows else 0)
        ends = checked.tolist()
    else:
        ends = [row.index(pad) if pad is not None and pad in row else len(row) for row in rows]
    for index, (row, end) in enumerate(zip(rows, ends, strict=True)):
        if pad is None:
            break
        if pad in row[:end]:
            raise ValueError(
                f"sequence {index}, position {row.index(pad)}: found the padding value {pad!r} inside the sequence, "
                "expected it only after the end; fix lengths=, or use a padding value that is no symbol"
            )
        for position in range(end, len(row)):
            if row[position] != pad:
                raise ValueError(
                    f"sequence {index}, position {position}: found {row[position]!r} after the padding value {pad!r}, "
                    "expected padding up to the end of the row; a pad inside a sequence has no meaning, remove it"
                )
    return [row[:end] for row, end in zip(rows, ends, strict=True)]


def check_single_column(rows: list[list[Any]]) -> None:
    """Refuses an array with one column of strings, which are sequences rather than symbols."""
    for row, cells in enumerate(rows):
        if len(cells) == 1 and isinstance(cells[0], str | bytes) and len(cells[0]) > 1:
            raise ValueError(
                f"sequence {row}: found the string {cells[0]!r} in an array with a single column, where it would be "
                "one symbol; pass data[:, 0] if each string is a sequence, or [[symbol] for symbol in data[:, 0]]"
            )


def check_lengths(lengths: Tensor, width: int) -> None:
    bad = (lengths < 0) | (lengths > width)
    if bad.any():
        row = int(bad.nonzero()[0])
        raise ValueError(
            f"lengths: sequence {row}: found the length {int(lengths[row])}, expected 0..{width}, the number of columns"
        )


def check_pad(pad: object) -> int:
    """Checks a padding value of codes, and gives it as an integer of Python."""
    if isinstance(pad, Integral) and not isinstance(pad, bool) and abs(int(pad)) <= LARGEST_CODE:
        return int(pad)
    raise ValueError(f"pad: expected an integer of 64 bits, as the codes are, found {found(pad)}")


def _check_padding(tensor: Tensor, inside: Tensor, pad: int) -> None:
    within = inside & (tensor == pad)
    if within.any():
        row, position = first_place(within)
        raise ValueError(
            f"sequence {row}, position {position}: found the padding value {pad} inside the sequence, expected it only "
            "after the end; fix lengths=, or use a padding value that is no symbol"
        )
    behind = ~inside & (tensor != pad)
    if behind.any():
        row, position = first_place(behind)
        raise ValueError(
            f"sequence {row}, position {position}: found {int(tensor[row, position])} after the padding value {pad}, "
            "expected padding up to the end of the row; a pad inside a sequence has no meaning, remove it"
        )


def _as_lengths(lengths: Any, count: int) -> Tensor:
    array = _as_array(lengths)
    if array.dtype.kind not in "iu" or array.shape != (count,):
        raise ValueError(f"lengths: expected {count} integers, one for each row, found {shown(lengths)}")
    return torch.as_tensor(array.astype(np.int64))


def as_rows(rows: Any, count: int) -> slice | Tensor:
    """Which of ``count`` rows are meant: a slice, row numbers (long), or a mask (boolean ``[count]``)."""
    if isinstance(rows, slice):
        return rows
    if isinstance(rows, Integral):
        raise ValueError(f"rows: expected several rows, found the single index {rows}; use data[{rows}:{rows + 1}]")
    tensor = rows if isinstance(rows, Tensor) else _row_numbers(rows)
    if tensor.ndim != 1 or tensor.is_floating_point() or tensor.is_complex() or not tensor.is_cpu:
        raise wrong_rows(rows, count)
    return tensor if tensor.dtype == torch.bool else tensor.long()


def wrong_rows(rows: Any, count: int) -> ValueError:
    """The error for what does not say which of ``count`` rows are meant."""
    return ValueError(
        f"rows: expected a slice, row numbers from 0 to {count - 1}, or a boolean tensor [{count}], found {shown(rows)}"
    )


def _row_numbers(rows: Any) -> Tensor:
    """Row numbers or a mask from a list or an array; a single NaN if it is something else."""
    array = _as_array(rows) if isinstance(rows, list | range) or hasattr(rows, "__array__") else np.array(None)
    if array.shape == (0,):
        return torch.empty(0, dtype=torch.long)
    return torch.as_tensor(array) if array.dtype.kind in "biu" else torch.tensor(torch.nan)


def _as_array(values: Any) -> np.ndarray:
    """An array of what a user passes as a list of numbers; one of objects if it is something else."""
    try:
        return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.array(values)
    except (TypeError, ValueError, NotImplementedError):  # numbers of different depth, or a tensor without values
        return np.array(None)


def first_place(mask: Tensor) -> tuple[int, int]:
    row, position = mask.nonzero()[0].tolist()
    return row, position

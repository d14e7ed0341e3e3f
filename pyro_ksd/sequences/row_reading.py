# SPDX-License-Identifier: Apache-2.0
"""Reading lists of sequences: each a string, or an iterable of symbols."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pyro_ksd.sequences.alphabets import Alphabet, plain_symbol, unknown_symbol

Coded = tuple[Tensor, Tensor, Alphabet]
"""Tokens, long ``[N, T]`` padded with 0; lengths, long ``[N]``; and the alphabet."""


def coded_rows(rows: list[Any], alphabet: Alphabet | None) -> Coded:
    """The codes of a list of sequences, each an iterable of symbols."""
    if not rows:
        raise ValueError("expected at least one sequence, found an empty data set")
    symbols = [_symbols(row, index) for index, row in enumerate(rows)]
    if alphabet is None and _seem_padded(symbols):
        raise ValueError(
            "found lists of one length with -1 only at their ends, which seems to be padding; pass it as an array, "
            "Sequences.of(numpy.array(rows), pad=-1), or, if -1 is a symbol, state alphabet="
        )
    if alphabet is None:
        alphabet = _infer_alphabet(symbols)
    codes = None if isinstance(alphabet, int) else {symbol: code for code, symbol in enumerate(alphabet)}
    lengths = torch.tensor([len(sequence) for sequence in symbols])
    inside = torch.arange(int(lengths.max())) < lengths[:, None]
    coded = _codes_of_known(symbols, codes)
    if coded is None:
        coded = [
            _code(symbol, codes, alphabet, row, position)
            for row, sequence in enumerate(symbols)
            for position, symbol in enumerate(sequence)
        ]
    tokens = torch.zeros(inside.shape, dtype=torch.long)
    tokens[inside] = torch.tensor(coded, dtype=torch.long)
    return tokens, lengths, alphabet


def _symbols(row: Any, index: int) -> list[Any]:
    if isinstance(row, str):
        return list(row)
    if isinstance(row, Tensor | np.ndarray):
        if row.ndim != 1:
            raise ValueError(f"sequence {index}: expected one dimension, found shape {list(row.shape)}")
        if isinstance(row, Tensor) and row.is_meta:
            raise ValueError(f"sequence {index}: expected a tensor with values, found one on the device meta")
        return list(row.tolist())
    if isinstance(row, bytes) or not isinstance(row, Iterable):
        missing = row is None or (isinstance(row, float) and math.isnan(row))
        fix = "remove or fill missing sequences" if missing else "pass each sequence as a list, bytes decoded"
        raise ValueError(
            f"sequence {index}: expected a string or a list of symbols, found {row!r}; {fix} before the check"
        )
    return list(map(plain_symbol, row))


def _seem_padded(rows: list[list[Any]]) -> bool:
    """Whether lists look like the rows of an array that is filled with -1."""
    if len({len(row) for row in rows}) > 1 or not any(row and type(row[-1]) is int and row[-1] == -1 for row in rows):
        return False
    if not all(type(symbol) is int for row in rows for symbol in row):
        return False
    return all(set(row[row.index(-1) :]) == {-1} for row in rows if -1 in row)


def _codes_of_known(rows: list[list[Any]], codes: dict[Hashable, int] | None) -> list[int] | None:
    """The codes of all symbols, quickly; ``None`` if one may be unknown, or they are integers of a stated number."""
    if codes is None or not _are_strings(rows):
        return None
    try:
        return [codes[symbol] for symbol in chain.from_iterable(rows)]
    except KeyError:
        return None


def _are_strings(rows: list[list[Any]]) -> bool:
    return set(map(type, chain.from_iterable(rows))) <= {str}


def _infer_alphabet(rows: list[list[Any]]) -> Alphabet:
    if _are_strings(rows):
        return tuple(sorted(set(chain.from_iterable(rows)))) or 1
    seen = dict.fromkeys(
        _code(symbol, None, None, index, position)
        for index, row in enumerate(rows)
        for position, symbol in enumerate(row)
    )
    if all(type(symbol) is int and symbol >= 0 for symbol in seen):
        return max(seen, default=0) + 1
    try:
        return tuple(sorted(seen))
    except TypeError:  # symbols of several kinds have no order of their own
        return tuple(seen)


def _code(symbol: Any, codes: dict[Hashable, int] | None, alphabet: Alphabet | None, row: int, position: int) -> Any:
    """The code of a symbol, or the symbol itself where no alphabet is known yet."""
    where = f"sequence {row}, position {position}"
    if isinstance(symbol, float | complex):
        kind = f"the {type(symbol).__name__} {symbol!r}" if symbol == symbol else "NaN"
        raise ValueError(f"{where}: found {kind}, expected a discrete symbol; use integers or strings")
    if symbol is None or isinstance(symbol, Tensor) or not isinstance(symbol, Hashable):
        raise ValueError(f"{where}: found {symbol!r}, expected a hashable symbol such as an integer or a string")
    if codes is not None:
        if symbol not in codes:
            raise unknown_symbol(row, position, symbol, tuple(codes))
        return codes[symbol]
    if isinstance(alphabet, int) and not (type(symbol) is int and 0 <= symbol < alphabet):
        raise unknown_symbol(row, position, symbol, alphabet)
    return symbol

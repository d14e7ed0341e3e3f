# SPDX-License-Identifier: Apache-2.0
"""Symbols that are vectors: each distinct row of channels is a symbol."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pyro_ksd.sequences.alphabets import Alphabet, unknown_symbol
from pyro_ksd.sequences.row_reading import Coded

_ALL = 64  # vectors, up to which an alphabet has all of them
_MOST = 200_000  # vectors of an alphabet that is read off the data


class Vector(tuple[int, ...]):
    """A symbol with a whole number in each channel; shown by the channels that are on, if there are only 0 and 1.

    >>> Vector([0, 1, 1]), Vector([0, 0]), Vector([2, 0])
    ({1,2}, {}, (2,0))
    """

    __slots__ = ()

    def __repr__(self) -> str:
        if set(self) <= {0, 1}:
            return f"{{{','.join(str(channel) for channel, value in enumerate(self) if value)}}}"
        return f"({','.join(map(str, self))})"

    __str__ = __repr__


class VectorAlphabet(tuple[Vector, ...]):
    """Vectors in the order of their codes.

    :ivar dtype: in which a program gets them.
    :ivar of_data: whether they are the vectors of some data and those that differ from one of them in one channel, so
        that others may exist. An alphabet that a user states has all vectors that are to count.
    """

    dtype: torch.dtype
    of_data: bool

    def __new__(cls, vectors: Iterable[Vector], dtype: torch.dtype, of_data: bool = False) -> VectorAlphabet:
        alphabet = super().__new__(cls, vectors)
        alphabet.dtype = dtype
        alphabet.of_data = of_data
        return alphabet

    @cached_property
    def vectors(self) -> Tensor:
        """``[S, C]``, the vector of each symbol."""
        return torch.tensor([list(vector) for vector in self], dtype=self.dtype)


def is_vectors(data: Any) -> bool:
    """Whether something is an array, or a list of arrays, with a dimension of channels after that of the steps."""
    if isinstance(data, Tensor | np.ndarray):
        return data.ndim == 3
    return isinstance(data, list | tuple) and bool(data) and all(_is_array(row, 2) for row in data)


def as_vector_alphabet(vectors: Any) -> VectorAlphabet:
    """The alphabet of distinct rows ``[S, C]``, in their order.

    >>> as_vector_alphabet(torch.tensor([[0, 1], [1, 0]]))
    ({1}, {0})
    """
    rows = _whole(vectors, 0)
    return VectorAlphabet(map(Vector, rows.long().tolist()), rows.dtype)


def coded_vectors(data: Any, alphabet: Alphabet | None, lengths: Any) -> Coded:
    """The codes of sequences of vectors, in a list of ``[T, C]`` or a padded array ``[N, T, C]``."""
    rows = [_whole(row, index) for index, row in enumerate(data)]
    ends = [len(row) for row in rows] if lengths is None else _checked_lengths(lengths, rows)
    rows = [row[:end] for row, end in zip(rows, ends, strict=True)]
    channels = sorted({row.shape[1] for row in rows})
    if len(channels) > 1:
        raise ValueError(f"data: expected vectors with the same number of channels, found {channels}; pad them alike")
    everything = torch.cat(rows)
    if not len(everything):
        raise ValueError(f"data: expected symbols, found {len(rows)} empty sequences only")
    if alphabet is None:
        alphabet = _alphabet_of(everything.unique(dim=0))
    codes = _known_codes(rows, alphabet)
    sizes = torch.tensor(ends)
    inside = torch.arange(int(sizes.max())) < sizes[:, None]
    tokens = torch.zeros(inside.shape, dtype=torch.long)
    tokens[inside] = codes
    return tokens, sizes, alphabet


def _alphabet_of(vectors: Tensor) -> VectorAlphabet:
    """The alphabet of data with the distinct vectors ``[V, C]``: all vectors, or those near the data.

    An alphabet of nothing but the vectors of the data would make a true model look better, or worse, than it is, since
    the data themselves decide which edits there are.
    """
    is_binary = bool(((vectors == 0) | (vectors == 1)).all())
    values = [torch.tensor([0, 1]).to(vectors) if is_binary else channel.unique() for channel in vectors.T]
    sizes = [len(own) for own in values]
    if math.prod(sizes) <= _ALL:
        every = torch.cartesian_prod(*values).view(-1, len(values))
        return VectorAlphabet(map(Vector, every.long().tolist()), vectors.dtype)
    if len(vectors) * (sum(sizes) - len(sizes)) > _MOST:
        raise ValueError(
            f"data: found {len(vectors)} distinct vectors with {len(sizes)} channels, which have more than {_MOST} "
            "neighbors that differ in one channel; state the alphabet, such as the vectors of the data: "
            "Sequences.of(data, alphabet=vectors)"
        )
    near = [vectors]
    for channel, own in enumerate(values):
        for value in own:
            near.append(vectors.index_fill(1, torch.tensor([channel]), value))
    together = torch.cat(near).unique(dim=0)
    return VectorAlphabet(map(Vector, together.long().tolist()), vectors.dtype, of_data=True)


def vector_codes(values: Tensor, vectors: Tensor) -> Tensor:
    """The code of each vector ``[..., C]``, long ``[...]``; -1 for one that is no symbol.

    :param vectors: ``[S, C]``, those of the symbols.
    """
    _, ids = torch.cat([vectors, values.reshape(-1, values.shape[-1]).to(vectors.dtype)]).unique(
        dim=0, return_inverse=True
    )
    code = torch.full((int(ids.max()) + 1,), -1).index_copy_(0, ids[: len(vectors)], torch.arange(len(vectors)))
    return code[ids[len(vectors) :]].view(values.shape[:-1])


def _known_codes(rows: Sequence[Tensor], alphabet: Alphabet) -> Tensor:
    if not isinstance(alphabet, VectorAlphabet):
        raise ValueError(
            f"alphabet: expected the vectors of the symbols, an array [S, {rows[0].shape[1]}], found {alphabet!r}"
        )
    parts = []
    for index, row in enumerate(rows):
        codes = vector_codes(row, alphabet.vectors.to(row.dtype))
        if (codes < 0).any():
            position = int((codes < 0).nonzero()[0])
            raise unknown_symbol(index, position, Vector(row[position].long().tolist()), alphabet)
        parts.append(codes)
    return torch.cat(parts)


def _checked_lengths(lengths: Any, rows: Sequence[Tensor]) -> list[int]:
    ends = torch.as_tensor(lengths)
    width = len(rows[0])
    if ends.is_floating_point() or ends.shape != (len(rows),) or bool(((ends < 0) | (ends > width)).any()):
        raise ValueError(
            f"lengths: expected {len(rows)} integers from 0 to {width}, one for each sequence, found {lengths!r}"
        )
    return [int(end) for end in ends]


def _whole(row: Any, index: int) -> Tensor:
    """The vectors of a sequence, ``[T, C]``, all of whose values are whole numbers."""
    values = row.cpu() if isinstance(row, Tensor) else torch.as_tensor(np.asarray(row))
    if values.ndim != 2 or values.is_complex() or not values.shape[1]:
        raise ValueError(f"sequence {index}: expected vectors, an array [T, C], found shape {list(values.shape)}")
    if values.is_floating_point() and not values.equal(values.round()):
        position = int((values != values.round()).any(1).nonzero()[0])
        raise ValueError(
            f"sequence {index}, position {position}: found the vector {values[position].tolist()}, expected whole "
            "numbers in all channels; symbols are discrete"
        )
    return values


def _is_array(value: Any, ndim: int) -> bool:
    return isinstance(value, Tensor | np.ndarray) and value.ndim == ndim

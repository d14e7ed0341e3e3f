# SPDX-License-Identifier: Apache-2.0
"""Counts of what a sequence contains (n-grams, its first and last symbol, its length), and how edits change them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import pad

from pyro_ksd.common.option_checks import check_choice, check_instance, check_number, found
from pyro_ksd.edits.splices import Edits
from pyro_ksd.sequences.container import Sequences

_LARGEST_CODE = 2**63 - 1


@dataclass(frozen=True)
class Count:
    """A number that every sequence has.

    :param kind: ``"ngram"``, how many windows equal the symbols; ``"first"`` and ``"last"``, 1 if the sequence begins
        or ends with the symbol, else 0; ``"length"``, the number of symbols.
    :param symbols: the codes of the symbols: at least one for an n-gram, one for the first and the last symbol, none
        for the length.

    >>> counts = [Count("ngram", (0, 0)), Count("first", (1,)), Count("last", (0,)), Count("length")]
    >>> count_values(counts, Sequences.of(["aaa", "ba"])).tolist()
    [[2.0, 0.0, 1.0, 3.0], [0.0, 1.0, 1.0, 2.0]]
    """

    kind: Literal["ngram", "first", "last", "length"]
    symbols: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, ("ngram", "first", "last", "length"))
        check_instance("symbols", self.symbols, tuple, "a tuple of codes of symbols, such as (0, 1)")
        for symbol in self.symbols:
            check_number("symbols", symbol, least=0)
        fits = {"ngram": len(self.symbols) >= 1, "length": not self.symbols}.get(self.kind, len(self.symbols) == 1)
        if not fits:
            words = {"ngram": "at least one symbol", "length": "no symbols"}.get(self.kind, "one symbol")
            raise ValueError(f"symbols: expected {words} for the kind {self.kind!r}, found {self.symbols}")

    def window(self, boundary: int) -> tuple[int, ...]:
        """The window of symbols that is counted, with a boundary before the first and after the last symbol."""
        return {"first": (boundary, *self.symbols), "last": (*self.symbols, boundary)}.get(self.kind, self.symbols)


def check_counts(counts: object, alphabet_size: int) -> None:
    """Checks that an argument is a list of distinct counts of symbols that the alphabet has.

    >>> check_counts([Count("first", (3,))], alphabet_size=2)
    Traceback (most recent call last):
    ValueError: counts: expected codes of 2 symbols, from 0 to 1, found Count(kind='first', symbols=(3,))
    """
    words = "a list of distinct counts, such as [Count('ngram', (0, 1))]"
    if not isinstance(counts, Sequence) or not all(isinstance(count, Count) for count in counts):
        raise ValueError(f"counts: expected {words}, found {found(counts)}")
    if not counts or len(set(counts)) < len(counts):
        raise ValueError(f"counts: expected {words}, at least one, found {counts}")
    for count in counts:
        if any(symbol >= alphabet_size for symbol in count.symbols):
            raise ValueError(
                f"counts: expected codes of {alphabet_size} symbols, from 0 to {alphabet_size - 1}, found {count}"
            )
        if (alphabet_size + 1) ** len(count.window(0)) > _LARGEST_CODE:
            raise ValueError(f"counts: expected n-grams short enough to be numbered by long integers, found {count}")


def count_values(counts: Sequence[Count], sequences: Sequences) -> Tensor:
    """The counts of each sequence, double ``[N, D]``."""
    boundary = sequences.alphabet_size
    check_counts(counts, boundary)
    values = torch.zeros(len(sequences), len(counts), dtype=torch.double)
    for width, windows in _by_width(counts, boundary):
        if not width:
            values[:, windows.index] = sequences.lengths[:, None].double()
            continue
        tokens = pad(sequences.padded(boundary), (1, width), value=boundary)
        codes = torch.zeros_like(tokens[:, : tokens.shape[1] - width + 1])
        for offset in range(width):
            codes.mul_(boundary + 1).add_(tokens[:, offset : offset + codes.shape[1]])
        row, _, feature = windows.find(codes)
        values.index_put_((row, feature), torch.ones(len(row), dtype=torch.double), accumulate=True)
    return values


def count_changes(counts: Sequence[Count], sequences: Sequences, edits: Edits) -> tuple[Tensor, Tensor, Tensor]:
    """By how much each edit changes the counts, without the zeros.

    The n-grams that an edit changes lie around it, so that the cost does not depend on the length of the sequences.

    :returns: the edit, the count and the change, long ``[M]`` each, in ascending order of the count, then of the edit.

    >>> data = Sequences.of(["ab"])
    >>> one = torch.ones(1, dtype=torch.long)
    >>> from pyro_ksd.edits.splices import SpliceBlock
    >>> b_becomes_a = Edits((SpliceBlock(owner=0 * one, start=one, removed=1, inserted=0 * one[:, None]),), 1)
    >>> count_changes([Count("ngram", (0, 1)), Count("length"), Count("ngram", (0,))], data, b_becomes_a)
    (tensor([0, 0]), tensor([0, 2]), tensor([-1,  1]))
    """
    boundary = sequences.alphabet_size
    check_counts(counts, boundary)
    keys = [edits.owner[:0]]
    signs = [edits.owner[:0]]
    for width, windows in _by_width(counts, boundary):
        margin = max(width - 1, 0)
        padded = pad(sequences.padded(boundary), (margin, margin), value=boundary)
        begin = 0
        for block in edits.blocks:
            if width:
                for codes, sign in zip(block.codes(padded, margin, width, boundary + 1), (-1, 1), strict=True):
                    _, edit, feature = windows.find(codes)
                    keys.append(feature * len(edits) + (edit + begin))
                    signs.append(torch.full_like(edit, sign))
            elif block.growth:
                edit = torch.arange(begin, begin + len(block))
                keys.append(windows.index * len(edits) + edit)
                signs.append(torch.full_like(edit, block.growth))
            begin += len(block)
    key, inverse = torch.cat(keys).unique(return_inverse=True)
    change = torch.zeros_like(key).index_add_(0, inverse, torch.cat(signs))
    kept = change.nonzero().squeeze(1)
    key = key[kept]
    size = max(len(edits), 1)
    return key % size, key // size, change[kept]


@dataclass(frozen=True, eq=False)
class _Windows:
    """Windows of one width that are counted.

    :param code: long ``[D]``, ascending.
    :param index: long ``[D]``, the places of the windows in the list of counts.
    """

    code: Tensor
    index: Tensor

    def find(self, codes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Row, column and count of the windows among codes ``[A, B]`` that are counted; long ``[M]`` each."""
        place = torch.searchsorted(self.code, codes).clamp_(max=len(self.code) - 1)
        row, column = (self.code[place] == codes).nonzero().unbind(1)
        return row, column, self.index[place[row, column]]


def _by_width(counts: Sequence[Count], boundary: int) -> Iterator[tuple[int, _Windows]]:
    """The windows of the counts by their width; the length is a window of width 0."""
    windows = [count.window(boundary) for count in counts]
    for width in sorted({len(window) for window in windows}):
        index = [place for place, window in enumerate(windows) if len(window) == width]
        codes = [_code(windows[place], boundary + 1) for place in index]
        code, order = torch.tensor(codes).sort()
        yield width, _Windows(code, torch.tensor(index)[order])


def _code(window: tuple[int, ...], base: int) -> int:
    """The number whose digits are the symbols."""
    code = 0
    for symbol in window:
        code = code * base + symbol
    return code

# SPDX-License-Identifier: Apache-2.0
"""Variable-length discrete sequences as padded tensors, made from whatever the user has."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

Alphabet = int | tuple[Hashable, ...]


@dataclass(frozen=True, eq=False)
class Sequences:
    """A data set of ``N`` sequences over an alphabet of ``S`` symbols, coded from 0 to ``S - 1``.

    :param tokens: long ``[N, T]``, the coded symbols, padded with 0 behind the end.
    :param lengths: long ``[N]``, the number of symbols of each sequence, at most ``T``.
    :param alphabet: the number of symbols ``S``, or the symbols themselves in the order of their codes.

    Use :meth:`of` to make one from strings, lists, arrays or columns.

    >>> data = Sequences.of(["ACG", "T", "GG"])
    >>> data.alphabet, data.lengths.tolist()
    (('A', 'C', 'G', 'T'), [3, 1, 2])
    >>> data.to_lists()
    [['A', 'C', 'G'], ['T'], ['G', 'G']]
    >>> Sequences.of(["AC", "GG"], "ACGT")
    Sequences(2 over ('A', 'C', 'G', 'T'): ['A', 'C'], ['G', 'G'])
    """

    tokens: Tensor
    lengths: Tensor
    alphabet: Alphabet

    def __post_init__(self) -> None:
        _check_alphabet(self.alphabet)
        for name, tensor, dims in (("tokens", self.tokens, 2), ("lengths", self.lengths, 1)):
            if not isinstance(tensor, Tensor) or tensor.dtype != torch.long or tensor.ndim != dims:
                found = f"{tensor.dtype} {list(tensor.shape)}" if isinstance(tensor, Tensor) else type(tensor).__name__
                raise ValueError(
                    f"{name}: expected a long tensor with {dims} dimension(s), found {found}; "
                    "use Sequences.of(...) to convert other data"
                )
        if len(self.tokens) != len(self.lengths):
            raise ValueError(
                f"expected one length for each of the {len(self.tokens)} rows of tokens, found {len(self.lengths)}"
            )
        _check_lengths(self.lengths, self.width)
        size = self.alphabet_size
        bad = (self.tokens < 0) | (self.tokens >= size)
        if bad.any():
            row, position = _first(bad)
            if position < self.lengths[row]:
                raise _outside(row, position, int(self.tokens[row, position]), self.alphabet)
        if (self.tokens.ne(0) & ~self.mask).any():
            row, position = _first(self.tokens.ne(0) & ~self.mask)
            raise ValueError(
                f"sequence {row}, position {position}: found {int(self.tokens[row, position])} behind the end "
                f"(length {int(self.lengths[row])}), expected the padding 0; use Sequences.of(tokens, lengths=lengths)"
            )

    @classmethod
    def of(
        cls,
        data: Any,
        alphabet: int | Iterable[Hashable] | None = None,
        *,
        lengths: Any = None,
        pad: Any = None,
    ) -> Sequences:
        """Makes ``Sequences`` from the forms in which sequences come.

        :param data: a list (or any iterable, a pandas or xarray column) of sequences, each a string or an iterable of
            hashable symbols; or a two-dimensional padded array (numpy, torch, xarray), one sequence a row.
        :param alphabet: the number of symbols or the symbols in the order of their codes. Left out, it is read off
            the data: ``max + 1`` for integers, the sorted symbols otherwise. State it where the model knows symbols
            that the data may lack.
        :param lengths: for padded arrays, the number of symbols of each row.
        :param pad: for padded arrays, the value that fills a row behind its end. A padded array with neither
            ``lengths`` nor ``pad`` has full rows.
        :raises ValueError: naming the sequence, the position, the value found, what was expected and the fix.

        >>> Sequences.of([[0, 2], [], [1]]).lengths.tolist()
        [2, 0, 1]
        >>> import torch
        >>> Sequences.of(torch.tensor([[0, 1, 1], [1, -1, -1]]), alphabet=2, pad=-1).to_lists()
        [[0, 1, 1], [1]]
        """
        if isinstance(data, Sequences):
            if alphabet is not None and _as_alphabet(alphabet) != data.alphabet:
                raise ValueError(f"the data already has the alphabet {data.alphabet}, found another one: {alphabet}")
            return data
        if isinstance(data, str | bytes):
            raise ValueError(f"expected several sequences, found the single string {data!r}; pass a list of strings")
        if not isinstance(data, Tensor | Iterable) or isinstance(data, Mapping):
            raise ValueError(f"expected a list of sequences or a padded array, found {type(data).__name__}")
        fixed = None if alphabet is None else _as_alphabet(alphabet)
        if hasattr(data, "columns"):
            _check_table(data)
        is_array = hasattr(data, "dtype") or hasattr(data, "dtypes")  # a pandas table has dtypes
        array = data if isinstance(data, Tensor) else (np.asarray(data) if is_array else None)
        if array is not None and array.ndim == 2:
            if not isinstance(array, Tensor) and array.dtype.kind in "OUS":
                return cls._from_rows(_strip(array.tolist(), lengths, pad), fixed, "cpu")
            return cls._from_padded(array, fixed, lengths, pad)
        if array is not None and array.ndim != 1:
            raise ValueError(
                f"expected a padded array with 2 dimensions, found shape {list(array.shape)}; "
                "one sequence a row, one symbol a column"
            )
        if lengths is not None or pad is not None:
            raise ValueError("lengths= and pad= belong to padded arrays; a list of sequences needs neither")
        return cls._from_rows(list(data) if array is None else array.tolist(), fixed, "cpu")

    @classmethod
    def _from_rows(cls, rows: list[Any], alphabet: Alphabet | None, device: str) -> Sequences:
        if not rows:
            raise ValueError("expected at least one sequence, found an empty data set")
        symbols = [_symbols(row, index) for index, row in enumerate(rows)]
        if alphabet is None and _seem_padded(symbols):
            raise ValueError(
                "found lists of one length with -1 only at their ends, which seems to be padding; give it as an array, "
                "Sequences.of(numpy.array(rows), pad=-1), or, if -1 is a symbol, state alphabet="
            )
        if alphabet is None:
            alphabet = _infer_alphabet(symbols)
        codes = None if isinstance(alphabet, int) else {symbol: code for code, symbol in enumerate(alphabet)}
        lengths = torch.tensor([len(sequence) for sequence in symbols])
        inside = torch.arange(int(lengths.max())) < lengths[:, None]
        coded = [
            _code(symbol, codes, alphabet, row, position)
            for row, sequence in enumerate(symbols)
            for position, symbol in enumerate(sequence)
        ]
        tokens = torch.zeros(inside.shape, dtype=torch.long)
        tokens[inside] = torch.tensor(coded, dtype=torch.long)
        return cls(tokens.to(device), lengths.to(device), alphabet)

    @classmethod
    def _from_padded(cls, array: Tensor | np.ndarray, alphabet: Alphabet | None, lengths: Any, pad: Any) -> Sequences:
        tensor = array if isinstance(array, Tensor) else torch.as_tensor(np.array(array, order="C"))
        if not len(tensor):
            raise ValueError("expected at least one sequence, found an empty data set")
        if (tensor.is_floating_point() or tensor.is_complex()) and tensor.numel():
            missing = tensor.isnan()
            row, position = _first(missing) if missing.any() else (0, 0)
            found = "NaN" if missing.any() else f"the {type(tensor[0, 0].item()).__name__} {tensor[0, 0].item()!r}"
            raise ValueError(
                f"sequence {row}, position {position}: found {found}, expected an integer code; "
                "code the symbols as integers and fill the padding with an integer such as -1 (pad=-1)"
            )
        tensor = tensor.long()
        if pad is not None and (isinstance(pad, bool) or not isinstance(pad, int | np.integer)):
            raise ValueError(f"pad: expected an integer for an integer array, found {pad!r}")
        columns = torch.arange(tensor.shape[1], device=tensor.device)
        if lengths is not None:
            lengths = _as_lengths(lengths, len(tensor), tensor.device)
            _check_lengths(lengths, tensor.shape[1])
        elif pad is not None:
            lengths = tensor.ne(int(pad)).long().cumprod(1).sum(1)
        else:
            lengths = torch.full((len(tensor),), tensor.shape[1], device=tensor.device)
        inside = columns < lengths[:, None]
        if pad is not None:
            _check_padding(tensor, inside, int(pad))
        tokens = tensor.masked_fill(~inside, 0)
        if alphabet is None:
            negative = inside & (tensor < 0)
            if negative.any():
                row, position = _first(negative)
                raise ValueError(
                    f"sequence {row}, position {position}: found {int(tensor[row, position])}, expected a code of at "
                    f"least 0; if it marks the padding, say pad={int(tensor[row, position])}"
                )
            alphabet = int(tokens.max()) + 1 if tokens.numel() else 1
        if not isinstance(alphabet, int) and all(type(symbol) is int for symbol in alphabet):
            rows = [tensor[i, : lengths[i]].tolist() for i in range(len(tensor))]
            return cls._from_rows(rows, alphabet, str(tensor.device))
        return cls(tokens, lengths, alphabet)

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self[:3].to_lists()))
        return f"Sequences({len(self)} over {_shown(self.alphabet)}: {shown}{', ...' if len(self) > 3 else ''})"

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, rows: slice | Tensor | Sequence[int]) -> Sequences:
        """The sequences of the given rows (a slice, a list of indices, an index or boolean tensor)."""
        if isinstance(rows, int):
            raise ValueError(f"expected several rows, found the single index {rows}; use data[{rows}:{rows + 1}]")
        return self.derived(self.tokens[rows], self.lengths[rows])

    def derived(self, tokens: Tensor, lengths: Tensor) -> Sequences:
        """Sequences over the same alphabet, from tensors made of valid ones: they are not checked again."""
        new = object.__new__(Sequences)
        for name, value in (("tokens", tokens), ("lengths", lengths), ("alphabet", self.alphabet)):
            object.__setattr__(new, name, value)
        return new

    def narrowed(self) -> Sequences:
        """The same sequences without columns that are padding in all of them."""
        width = int(self.lengths.max()) if len(self) else 0
        return self.derived(self.tokens[:, :width], self.lengths)

    def over(self, alphabet: int | Iterable[Hashable]) -> Sequences:
        """The same codes as symbols of another alphabet of the same size, for what a model drew.

        >>> Sequences.of([[0, 2], [1]], 3).over("abc").to_lists()
        [['a', 'c'], ['b']]
        """
        symbols = _as_alphabet(alphabet)
        found = symbols if isinstance(symbols, int) else len(symbols)
        if found != self.alphabet_size:
            raise ValueError(f"expected an alphabet of {self.alphabet_size} symbols, found one of {found}")
        return Sequences(self.tokens, self.lengths, symbols)

    @property
    def alphabet_size(self) -> int:
        """The number of symbols ``S``."""
        return self.alphabet if isinstance(self.alphabet, int) else len(self.alphabet)

    @property
    def symbols(self) -> tuple[Hashable, ...]:
        """The symbols in the order of their codes."""
        return tuple(range(self.alphabet)) if isinstance(self.alphabet, int) else self.alphabet

    @property
    def width(self) -> int:
        """The number of columns ``T`` of ``tokens``."""
        return self.tokens.shape[1]

    @property
    def mask(self) -> Tensor:
        """Boolean ``[N, T]``, true inside the sequences."""
        return torch.arange(self.width, device=self.tokens.device) < self.lengths[:, None]

    @property
    def device(self) -> torch.device:
        return self.tokens.device

    def encode(self, symbols: Iterable[Hashable]) -> list[int]:
        """The codes of symbols of the alphabet."""
        codes = {symbol: code for code, symbol in enumerate(self.symbols)}
        found = list(symbols)
        for symbol in found:
            if symbol not in codes:
                raise ValueError(f"found the symbol {symbol!r}, expected one of the alphabet {_shown(self.alphabet)}")
        return [codes[symbol] for symbol in found]

    def to_lists(self) -> list[list[Hashable]]:
        """The sequences as lists of their symbols, the inverse of :meth:`of`."""
        symbols = self.symbols
        rows = zip(self.tokens.tolist(), self.lengths.tolist(), strict=True)
        return [[symbols[code] for code in row[:length]] for row, length in rows]

    def padded(self, pad: int) -> Tensor:
        """``tokens`` with another padding value: long ``[N, T]``."""
        return self.tokens.masked_fill(~self.mask, pad)

    def to(self, device: torch.device | str) -> Sequences:
        """The same sequences on another device."""
        return self.derived(self.tokens.to(device), self.lengths.to(device))

    @staticmethod
    def cat(parts: Sequence[Sequences]) -> Sequences:
        """The sequences of all parts in one data set; the parts share an alphabet."""
        if any(part.alphabet != parts[0].alphabet for part in parts):
            raise ValueError(f"expected one alphabet, found {sorted({_shown(part.alphabet) for part in parts})}")
        width = max(part.width for part in parts)
        tokens = [torch.nn.functional.pad(part.tokens, (0, width - part.width)) for part in parts]
        return parts[0].derived(torch.cat(tokens), torch.cat([part.lengths for part in parts]))


def _first(mask: Tensor) -> tuple[int, int]:
    row, position = mask.nonzero()[0].tolist()
    return row, position


def _shown(alphabet: Alphabet) -> str:
    if isinstance(alphabet, int):
        return f"0..{alphabet - 1}"
    return repr(alphabet) if len(alphabet) <= 30 else f"{alphabet[:30]!r} and {len(alphabet) - 30} more"


def _outside(row: int, position: int, symbol: Any, alphabet: Alphabet) -> ValueError:
    return ValueError(
        f"sequence {row}, position {position}: found the symbol {symbol!r}, expected one of the alphabet "
        f"{_shown(alphabet)}; add it to alphabet= or mend the sequence"
    )


def _as_alphabet(alphabet: int | Iterable[Hashable]) -> Alphabet:
    if not isinstance(alphabet, int | np.integer | Iterable):
        raise ValueError(f"alphabet: expected a number of symbols or the symbols, found {alphabet!r}")
    given: Alphabet = int(alphabet) if isinstance(alphabet, int | np.integer) else tuple(map(_plain, alphabet))
    _check_alphabet(given)
    return given


def _plain(symbol: Any) -> Any:
    """A symbol without the wrapping of numpy or torch scalars, which compare or hash in other ways."""
    return symbol.item() if isinstance(symbol, np.generic | Tensor) and symbol.ndim == 0 else symbol


def split(data: Any, fraction: float = 0.5, *, seed: int = 0) -> tuple[Sequences, Sequences]:
    """Two parts of the data at random: one to fit a model to, one to check it on.

    A model that was fitted to other sequences is a given model for these: the check has its level, and nothing needs to
    be refitted.

    :param data: :class:`Sequences`, or what :meth:`Sequences.of` takes.
    :param fraction: the share of the first part.
    :param seed: of the random choice.

    >>> fit_to, check_on = split(["ab", "b", "abb", "ba", "a"], 0.4)
    >>> len(fit_to), len(check_on), fit_to.alphabet == check_on.alphabet
    (2, 3, True)
    """
    sequences = Sequences.of(data)
    if not isinstance(fraction, int | float) or not 0 < round(fraction * len(sequences)) < len(sequences):
        raise ValueError(
            f"fraction: expected a share that leaves sequences in both parts, found {fraction} of {len(sequences)}"
        )
    count = round(fraction * len(sequences))
    order = torch.randperm(len(sequences), generator=torch.Generator().manual_seed(seed)).to(sequences.device)
    return sequences[order[:count]], sequences[order[count:]]


def _check_alphabet(alphabet: Alphabet) -> None:
    size = alphabet if isinstance(alphabet, int) else len(alphabet)
    if size < 1:
        raise ValueError(f"alphabet: expected at least one symbol, found {alphabet!r}")
    for symbol in () if isinstance(alphabet, int) else alphabet:
        if not isinstance(symbol, Hashable):
            raise ValueError(f"alphabet: expected hashable symbols, found {symbol!r}")
    if not isinstance(alphabet, int) and len(set(alphabet)) < size:
        twice = next(symbol for symbol in alphabet if alphabet.count(symbol) > 1)
        raise ValueError(f"alphabet: expected distinct symbols, found {twice!r} more than once")


def _check_lengths(lengths: Tensor, width: int) -> None:
    bad = (lengths < 0) | (lengths > width)
    if bad.any():
        row = int(bad.nonzero()[0])
        raise ValueError(
            f"sequence {row}: found the length {int(lengths[row])}, expected 0..{width}, the number of columns"
        )


def _check_padding(tensor: Tensor, inside: Tensor, pad: int) -> None:
    within = inside & (tensor == pad)
    if within.any():
        row, position = _first(within)
        raise ValueError(
            f"sequence {row}, position {position}: found the padding value {pad} inside the sequence, expected it only "
            "behind the end; mend lengths=, or use a padding value that is no symbol"
        )
    behind = ~inside & (tensor != pad)
    if behind.any():
        row, position = _first(behind)
        raise ValueError(
            f"sequence {row}, position {position}: found {int(tensor[row, position])} behind the padding value {pad}, "
            "expected padding up to the end of the row; a pad inside a sequence has no meaning, remove it"
        )


def _as_lengths(lengths: Any, count: int, device: torch.device) -> Tensor:
    tensor = torch.as_tensor(lengths if isinstance(lengths, Tensor) else np.array(lengths), device=device)
    if tensor.is_floating_point() or tensor.shape != (count,):
        raise ValueError(
            f"lengths: expected {count} integers, one for each row, found {tensor.dtype} of shape {list(tensor.shape)}"
        )
    return tensor.long()


def _strip(rows: list[list[Any]], lengths: Any, pad: Any) -> list[list[Any]]:
    """The symbols of each row of a padded array of objects or strings."""
    if lengths is not None:
        found = _as_lengths(lengths, len(rows), torch.device("cpu"))
        _check_lengths(found, len(rows[0]) if rows else 0)
        ends = found.tolist()
    else:
        ends = [row.index(pad) if pad is not None and pad in row else len(row) for row in rows]
    for index, (row, end) in enumerate(zip(rows, ends, strict=True)):
        if pad is None:
            break
        if pad in row[:end]:
            raise ValueError(
                f"sequence {index}, position {row.index(pad)}: found the padding value {pad!r} inside the sequence, "
                "expected it only behind the end; mend lengths=, or use a padding value that is no symbol"
            )
        for position in range(end, len(row)):
            if row[position] != pad:
                raise ValueError(
                    f"sequence {index}, position {position}: found {row[position]!r} behind the padding value {pad!r}, "
                    "expected padding up to the end of the row; a pad inside a sequence has no meaning, remove it"
                )
    return [row[:end] for row, end in zip(rows, ends, strict=True)]


def _check_table(table: Any) -> None:
    """Checks that a pandas table is a padded array, and not the sequences in one of its columns."""
    kinds = sorted({str(kind) for kind in table.dtypes})
    if len(kinds) > 1:
        raise ValueError(
            f"expected a table of symbols, one sequence a row, found columns of the kinds {kinds}; give the column of "
            f"the sequences, such as data[{table.columns[0]!r}]"
        )


def _symbols(row: Any, index: int) -> list[Any]:
    if isinstance(row, Tensor | np.ndarray):
        if row.ndim != 1:
            raise ValueError(f"sequence {index}: expected one dimension, found shape {list(row.shape)}")
        return list(row.tolist())
    if isinstance(row, bytes) or not isinstance(row, Iterable):
        missing = row is None or (isinstance(row, float) and math.isnan(row))
        mend = "remove or fill missing sequences" if missing else "give each sequence as a list, bytes decoded"
        raise ValueError(
            f"sequence {index}: expected a string or a list of symbols, found {row!r}; {mend} before the check"
        )
    return list(map(_plain, row))


def _seem_padded(rows: list[list[Any]]) -> bool:
    """Whether lists look like the rows of an array that is filled with -1."""
    if len({len(row) for row in rows}) > 1 or not any(row and type(row[-1]) is int and row[-1] == -1 for row in rows):
        return False
    if not all(type(symbol) is int for row in rows for symbol in row):
        return False
    return all(set(row[row.index(-1) :]) == {-1} for row in rows if -1 in row)


def _infer_alphabet(rows: list[list[Any]]) -> Alphabet:
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
    if isinstance(symbol, float):
        kind = "NaN" if math.isnan(symbol) else f"the float {symbol!r}"
        raise ValueError(f"{where}: found {kind}, expected a discrete symbol; use integers or strings")
    if symbol is None or isinstance(symbol, Tensor) or not isinstance(symbol, Hashable):
        raise ValueError(f"{where}: found {symbol!r}, expected a hashable symbol such as an integer or a string")
    if codes is not None:
        if symbol not in codes:
            raise _outside(row, position, symbol, tuple(codes))
        return codes[symbol]
    if isinstance(alphabet, int) and not (type(symbol) is int and 0 <= symbol < alphabet):
        raise _outside(row, position, symbol, alphabet)
    return symbol

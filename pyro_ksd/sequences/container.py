# SPDX-License-Identifier: Apache-2.0
"""Variable-length discrete sequences as padded tensors, made from whatever the user has."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_instance, found
from pyro_ksd.common.tensor_checks import shown
from pyro_ksd.sequences.alphabets import Alphabet, as_alphabet, shown_alphabet, unknown_symbol
from pyro_ksd.sequences.array_reading import as_rows, check_lengths, check_pad, first_place, wrong_rows
from pyro_ksd.sequences.covariates import Covariates
from pyro_ksd.sequences.frame_reading import coded_log
from pyro_ksd.sequences.reading import coded
from pyro_ksd.sequences.vector_symbols import VectorAlphabet

_SHOWN = 10  # symbols of a sequence


@dataclass(frozen=True, eq=False)
class Sequences:
    """A data set of ``N`` sequences over an alphabet of ``S`` symbols with the codes 0 to ``S - 1``.

    :param tokens: long ``[N, T]``, the coded symbols, padded with 0 after the end.
    :param lengths: long ``[N]``, the number of symbols of each sequence, at most ``T``.
    :param alphabet: the number of symbols ``S``, or the symbols themselves in the order of their codes.
    :param covariates: what else is known about each sequence, see :meth:`with_covariates`.

    Use :meth:`of` to make one from strings, lists, arrays or columns, and :meth:`from_frame` for a log with one event
    per row.

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
    covariates: Covariates | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "alphabet", as_alphabet(self.alphabet))
        for name, tensor, dims in (("tokens", self.tokens, 2), ("lengths", self.lengths, 1)):
            if not isinstance(tensor, Tensor) or tensor.dtype != torch.long or tensor.ndim != dims:
                raise ValueError(
                    f"{name}: expected a long tensor with {dims} dimension(s), found {shown(tensor)}; "
                    "use Sequences.of(...) to convert other data"
                )
            if not tensor.is_cpu:
                raise ValueError(
                    f"{name}: expected a tensor on the CPU, found one on {tensor.device}; pass {name}.cpu()"
                )
        if len(self.tokens) != len(self.lengths):
            raise ValueError(
                f"expected one length for each of the {len(self.tokens)} rows of tokens, found {len(self.lengths)}"
            )
        check_lengths(self.lengths, self.width)
        if self.covariates is not None and len(self.covariates) != len(self):
            raise ValueError(
                f"covariates: expected those of {len(self)} sequences, found those of {len(self.covariates)}"
            )
        size = self.alphabet_size
        bad = (self.tokens < 0) | (self.tokens >= size)
        if bad.any():
            row, position = first_place(bad)
            if position < self.lengths[row]:
                raise unknown_symbol(row, position, int(self.tokens[row, position]), self.alphabet, "tokens")
        if (self.tokens.ne(0) & ~self.mask).any():
            row, position = first_place(self.tokens.ne(0) & ~self.mask)
            raise ValueError(
                f"sequence {row}, position {position}: found {int(self.tokens[row, position])} after the end "
                f"(length {int(self.lengths[row])}), expected the padding 0; use Sequences.of(tokens, lengths=lengths)"
            )

    @classmethod
    def of(
        cls,
        data: Any,
        alphabet: int | Iterable[Hashable] | None = None,
        *,
        sep: str | None = None,
        lengths: Any = None,
        pad: Any = None,
    ) -> Sequences:
        """Makes ``Sequences`` from strings, lists, arrays or columns.

        :param data: a list (or any iterable, a pandas or xarray column) of sequences, each a string or an iterable of
            hashable symbols; or a two-dimensional padded array (numpy, torch, xarray), one sequence per row. Symbols
            can be vectors: a list of arrays ``[T, C]``, or a padded array ``[N, T, C]`` with ``lengths=``, where each
            distinct row of channels is a symbol.
        :param alphabet: the number of symbols or the symbols in the order of their codes. The default is inferred
            from the data: ``max + 1`` for integers, the sorted symbols otherwise. State it if the model knows symbols
            that the data may lack.
        :param sep: for strings, what separates the symbols, such as ``" "`` or ``","``. ``" "`` splits at any run of
            whitespace. Any other separator needs a symbol on both sides, and whitespace around the symbols is removed.
            An empty string is the empty sequence. By default, each character is a symbol, and a warning is given for
            strings that look like words, unless ``alphabet`` is stated.
        :param lengths: for padded arrays, the number of symbols of each row.
        :param pad: for padded arrays, the value that fills a row after its end. A padded array with neither
            ``lengths`` nor ``pad`` has full rows.
        :raises ValueError: naming the sequence, the position, the value found, what was expected and the fix.

        >>> Sequences.of([[0, 2], [], [1]]).lengths.tolist()
        [2, 0, 1]
        >>> Sequences.of(["home search buy", "home", ""], sep=" ").to_lists()
        [['home', 'search', 'buy'], ['home'], []]
        >>> Sequences.of(["home, search", "home"], sep=",").to_lists()
        [['home', 'search'], ['home']]
        >>> import torch
        >>> Sequences.of(torch.tensor([[0, 1, 1], [1, -1, -1]]), alphabet=2, pad=-1).to_lists()
        [[0, 1, 1], [1]]
        """
        if isinstance(data, Sequences):
            _check_unread(data, alphabet, sep, lengths, pad)
            return data
        return cls(*coded(data, alphabet, sep, lengths, pad))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        by: Hashable | Sequence[Hashable],
        symbol: Hashable,
        order_by: Hashable | Sequence[Hashable] | None = None,
        alphabet: int | Iterable[Hashable] | None = None,
    ) -> Sequences:
        """Makes ``Sequences`` from a log, a pandas data frame with one event per row.

        Sequences are in the order in which they first appear in the frame: sequence ``i`` belongs to
        ``frame["visit"].unique()[i]``, or to row ``i`` of ``frame[["user", "visit"]].drop_duplicates()``.

        :param frame: a pandas data frame.
        :param by: the column that identifies the sequences, or a list of columns: one sequence for each distinct
            value.
        :param symbol: the column of symbols.
        :param order_by: the column, or a list of columns, that orders the events of a sequence: numbers, times, or
            times as text such as ``"2024-01-31 09:30"``. By default, the events stay in the order of the rows. Ties
            stay in this order too, and a warning says how many there are, unless their symbols are equal.
        :param alphabet: as in :meth:`of`.
        :raises ValueError: naming the row (from 0) and the column, or the argument, what was found and the fix. Missing
            values are refused.

        >>> import pandas
        >>> log = pandas.DataFrame(
        ...     {
        ...         "visit": [7, 3, 7, 3, 3],
        ...         "page": ["home", "buy", "search", "home", "search"],
        ...         "time": [1, 6, 2, 4, 5],
        ...     }
        ... )
        >>> Sequences.from_frame(log, by="visit", symbol="page", order_by="time").to_lists()
        [['home', 'search'], ['home', 'search', 'buy']]
        """
        known = None if alphabet is None else as_alphabet(alphabet)
        return cls(*coded_log(frame, by, symbol, order_by, known))

    def __repr__(self) -> str:
        first = ", ".join(map(_beginning, self[:3].to_lists()))
        more = ", ..." if len(self) > 3 else ""
        known = "" if self.covariates is None else f"; {self.covariates}"
        return f"Sequences({len(self)} over {shown_alphabet(self.alphabet)}: {first}{more}{known})"

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, rows: slice | Tensor | Sequence[int]) -> Sequences:
        """The sequences of the given rows (a slice, a list of indices, an index or boolean tensor)."""
        chosen = as_rows(rows, len(self))
        try:
            return self.derived(self.tokens[chosen], self.lengths[chosen], chosen)
        except (IndexError, TypeError, ValueError) as error:  # rows that do not exist, or a mask of another length
            raise wrong_rows(rows, len(self)) from error

    def with_covariates(self, covariates: Any) -> Sequences:
        """The same sequences with covariates, such as a group, an age or a prompt for each of them.

        A program ``model(sequences, lengths, covariates)`` gets the covariates of the sequences that it scores, in the
        form in which they were passed here; the columns of a data frame become tensors by name. Edited sequences keep
        the covariates of the sequence they come from, and the bootstrap draws new sequences for the same covariates.

        :param covariates: a tensor, an array or a list with one entry for each sequence, several of them by name, or a
            pandas data frame. Rows are in the order of the sequences, whatever the index of a frame is: after
            :meth:`from_frame` that is ``people.loc[log["visit"].unique()]``. Integers become long, categories
            their codes, and floats get the default dtype unless they are in a tensor. Missing values raise an error.
            Lists of integers of different lengths, such as prompts, are padded with -1.

        >>> Sequences.of(["ab", "b"]).with_covariates({"group": [1, 0]})[[1]]
        Sequences(1 over ('a', 'b'): ['b']; Covariates(1: 'group'[N]))
        """
        known = covariates if isinstance(covariates, Covariates) else Covariates.of(covariates, len(self))
        return Sequences(self.tokens, self.lengths, self.alphabet, known)

    def derived(
        self, tokens: Tensor, lengths: Tensor, owner: slice | Tensor | Sequence[int] | None = None
    ) -> Sequences:
        """Sequences over the same alphabet, from tensors made of valid ones: they are not checked again.

        :param owner: the rows of the sequences that they come from and whose covariates they have; ``None`` if they
            come from all of them, in their order.
        """
        covariates = self.covariates
        if covariates is not None:
            covariates = covariates if owner is None else covariates[owner]
            if len(covariates) != len(tokens):
                raise ValueError(
                    f"expected {len(tokens)} rows of covariates, found {len(covariates)}; state the owners"
                )
        new = object.__new__(Sequences)
        fields = {"tokens": tokens, "lengths": lengths, "alphabet": self.alphabet, "covariates": covariates}
        for name, value in fields.items():
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
        symbols = as_alphabet(alphabet)
        size = symbols if isinstance(symbols, int) else len(symbols)
        if size != self.alphabet_size:
            raise ValueError(f"expected an alphabet of {self.alphabet_size} symbols, found one of {size}")
        return Sequences(self.tokens, self.lengths, symbols, self.covariates)

    @property
    def alphabet_size(self) -> int:
        """The number of symbols ``S``."""
        return self.alphabet if isinstance(self.alphabet, int) else len(self.alphabet)

    @property
    def symbols(self) -> tuple[Hashable, ...]:
        """The symbols in the order of their codes."""
        return tuple(range(self.alphabet)) if isinstance(self.alphabet, int) else self.alphabet

    @property
    def vectors(self) -> Tensor | None:
        """``[S, C]``, the vector of each symbol, where symbols are vectors."""
        return self.alphabet.vectors if isinstance(self.alphabet, VectorAlphabet) else None

    @property
    def width(self) -> int:
        """The number of columns ``T`` of ``tokens``."""
        return self.tokens.shape[1]

    @property
    def mask(self) -> Tensor:
        """Boolean ``[N, T]``, true inside the sequences."""
        return torch.arange(self.width) < self.lengths[:, None]

    def encode(self, symbols: Iterable[Hashable]) -> list[int]:
        """The codes of symbols of the alphabet."""
        check_instance("symbols", symbols, Iterable, "a list of symbols")
        codes = {symbol: code for code, symbol in enumerate(self.symbols)}
        passed = list(symbols)
        for symbol in passed:
            if not isinstance(symbol, Hashable) or symbol not in codes:
                raise ValueError(
                    f"found the symbol {symbol!r}, expected one of the alphabet {shown_alphabet(self.alphabet)}; fix "
                    "the symbols, or state the alphabet in Sequences.of(data, alphabet=...)"
                )
        return [codes[symbol] for symbol in passed]

    def to_lists(self) -> list[list[Hashable]]:
        """The sequences as lists of their symbols, the inverse of :meth:`of`."""
        symbols = self.symbols
        rows = zip(self.tokens.tolist(), self.lengths.tolist(), strict=True)
        return [[symbols[code] for code in row[:length]] for row, length in rows]

    def padded(self, pad: int) -> Tensor:
        """``tokens`` with another padding value: long ``[N, T]``."""
        return self.tokens.masked_fill(~self.mask, check_pad(pad))

    @staticmethod
    def cat(parts: Sequence[Sequences]) -> Sequences:
        """The sequences of all parts in one data set; the parts share an alphabet."""
        several = isinstance(parts, list | tuple) and len(parts) > 0
        if not several or not all(isinstance(part, Sequences) for part in parts):
            raise ValueError(f"parts: expected a list of Sequences, at least one, found {found(parts)}")
        if any(part.alphabet != parts[0].alphabet for part in parts):
            raise ValueError(
                f"parts: expected one alphabet, found {sorted({shown_alphabet(part.alphabet) for part in parts})}"
            )
        known = [part.covariates for part in parts if part.covariates is not None]
        if len(known) not in (0, len(parts)):
            raise ValueError(
                f"parts: expected covariates in all of them or in none, found {len(known)} of {len(parts)}"
            )
        width = max(part.width for part in parts)
        tokens = torch.cat([torch.nn.functional.pad(part.tokens, (0, width - part.width)) for part in parts])
        lengths = torch.cat([part.lengths for part in parts])
        if not known:
            return parts[0].derived(tokens, lengths)
        return Sequences(tokens, lengths, parts[0].alphabet, Covariates.cat(known))


def _check_unread(data: Sequences, alphabet: int | Iterable[Hashable] | None, sep: Any, lengths: Any, pad: Any) -> None:
    """Checks that no option says how to read sequences that have been read already."""
    if alphabet is not None and as_alphabet(alphabet) != data.alphabet:
        raise ValueError(
            f"alphabet: expected that of the data, {shown_alphabet(data.alphabet)}, found {found(alphabet)}; leave it "
            "out, or see Sequences.over for other names of the same symbols"
        )
    if sep is not None:
        raise ValueError("sep: expected strings to split, found Sequences; pass the strings themselves")
    for name, option in (("lengths", lengths), ("pad", pad)):
        if option is not None:
            raise ValueError(f"{name}: expected a padded array beside it, found Sequences; leave it out")


def _beginning(row: Sequence[Any]) -> str:
    """A sequence as a list, without what comes after its first symbols."""
    return str(row) if len(row) <= _SHOWN else f"{str(row[:_SHOWN])[:-1]}, ...]"

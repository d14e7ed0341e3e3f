# SPDX-License-Identifier: Apache-2.0
"""Data in parts that are read when they are needed, one after the other or on several machines."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from typing import Any

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_flag, check_instance, check_number, found
from pyro_ksd.common.part_runs import run_each
from pyro_ksd.common.progress import progress_bar
from pyro_ksd.sequences.alphabets import Alphabet, as_alphabet, shown_alphabet
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.files.file_reading import read
from pyro_ksd.sequences.part_readers import dask_readers, file_names, parquet_readers, ragged_readers

PART_ROWS = 50_000
"""The rows of a part, unless the caller chooses: about 40 MB in memory for sequences of up to 100 symbols."""


@dataclass(frozen=True, eq=False)
class Part:
    """A part of the data that can be read again and again, also by another process.

    :param number: of the part, from 0.
    :param reader: gives what :meth:`~pyro_ksd.sequences.Sequences.of` takes.
    :param alphabet: of all parts.
    :param num_rows: how many sequences it has; ``None`` if that is not known yet.
    :param source: what it is read from, such as the name of a file, for errors.
    """

    number: int
    reader: Callable[[], Any]
    alphabet: Alphabet
    num_rows: int | None = None
    source: str = ""

    @property
    def name(self) -> str:
        """The part in an error."""
        return f"part {self.number} of the data{f', {self.source}' if self.source else ''}"

    def load(self) -> Sequences:
        """The sequences of the part.

        :raises ValueError: naming the part, if it cannot be read, or has changed since it was counted.
        """
        try:
            data = self.reader()
            is_empty = isinstance(data, list) and not data
            sequences = _empty(self.alphabet) if is_empty else Sequences.of(data, self.alphabet)
        except ValueError as error:
            raise ValueError(f"{self.name}: {error}") from error
        if self.num_rows not in (None, len(sequences)):
            raise ValueError(
                f"{self.name}: expected the {self.num_rows} sequences that it had when it was "
                f"counted, found {len(sequences)}; do not change the data during a check"
            )
        return sequences


class PartitionedSequences:
    """Data in parts, of which only a few are in memory at a time.

    The alphabet is stated, since a part may lack symbols that others have. Rows are numbered over all parts. Make one
    with :meth:`from_files`, :meth:`from_parquet`, :meth:`from_ragged`, :meth:`from_dask` or :meth:`of`. If a
    ``distributed.Client`` of Dask is active, its workers read the parts, and check them.

    :param parts: all of them over one alphabet.

    >>> data = PartitionedSequences.of([["ACG", "T"], ["GG"]], alphabet="ACGT")
    >>> data
    PartitionedSequences(2 parts over ('A', 'C', 'G', 'T'))
    >>> data.load().to_lists()
    [['A', 'C', 'G'], ['T'], ['G', 'G']]
    """

    def __init__(self, parts: Iterable[Part]) -> None:
        check_instance("parts", parts, Iterable, "parts of the data, such as those of PartitionedSequences.of(...)")
        self.parts = tuple(parts)
        for part in self.parts:
            check_instance("parts", part, Part, "parts of the data, such as those of PartitionedSequences.of(...)")
        if not self.parts:
            raise ValueError("parts: expected at least one part of the data, found none")
        self.alphabet = self.parts[0].alphabet

    @classmethod
    def of(cls, parts: Iterable[Any], alphabet: int | Iterable[Hashable]) -> PartitionedSequences:
        """Parts that are read by functions of your own, or that are in memory.

        :param parts: for each part a function without arguments that reads it, such as ``partial(read_rows, path)``, or
            the data themselves; either gives what :meth:`Sequences.of <pyro_ksd.sequences.Sequences.of>` takes. A
            function is called several times, and must give the same sequences each time.
        :param alphabet: the number of symbols, or the symbols in the order of their codes.

        >>> data = PartitionedSequences.of([lambda: ["ab", "b"], lambda: ["ba"]], alphabet="ab")
        >>> data.take([2]).to_lists()
        [['b', 'a']]
        """
        if isinstance(parts, str | bytes | os.PathLike) or not isinstance(parts, Iterable):
            raise ValueError(f"parts: expected a list of parts, each with sequences or a reader, found {found(parts)}")
        known = as_alphabet(alphabet)
        return cls(Part(number, _reader(number, part), known) for number, part in enumerate(parts))

    @classmethod
    def from_files(cls, paths: Any, alphabet: int | Iterable[Hashable], **options: Any) -> PartitionedSequences:
        """Files of sequences, each of them a part.

        :param paths: the name of a file, or a list of them; on several machines, all of them must see the files.
        :param alphabet: the number of symbols, or the symbols in the order of their codes.
        :param options: how to read a file, as for :func:`~pyro_ksd.sequences.read`, such as ``column="page"``.

        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     paths = [Path(folder, name) for name in ("one.fa", "two.fa")]
        ...     for path in paths:
        ...         _ = path.write_text(f">1\\nACG\\n>2\\nT\\n")
        ...     PartitionedSequences.from_files(paths, "ACGT").load()
        Sequences(4 over ('A', 'C', 'G', 'T'): ['A', 'C', 'G'], ['T'], ['A', 'C', 'G'], ...)
        """
        names = file_names(paths)
        unknown = sorted(set(options) - set(signature(read).parameters))
        if unknown:
            raise ValueError(f"options: expected those of pyro_ksd.read, found {', '.join(unknown)}")
        known = as_alphabet(alphabet)
        return cls.of([partial(read, os.path.abspath(name), alphabet=known, **options) for name in names], known)

    @classmethod
    def from_ragged(
        cls, symbols: Any, offsets: Any, alphabet: int | Iterable[Hashable], *, rows: int = PART_ROWS
    ) -> PartitionedSequences:
        """All sequences after one another in one array, and where each of them begins.

        :param symbols: the codes of all symbols, ``[M]``: a numpy or zarr array, or the name of an ``.npy`` file. Of
            files, and of arrays that ``numpy.load(path, mmap_mode="r")`` gave, only what a part needs is read.
        :param offsets: ``[N + 1]``: sequence ``i`` is ``symbols[offsets[i]:offsets[i + 1]]``.
        :param alphabet: the number of symbols, or the symbols in the order of their codes.
        :param rows: of a part.

        >>> import numpy as np
        >>> PartitionedSequences.from_ragged(np.array([0, 1, 1, 0]), np.array([0, 2, 2, 4]), "ab", rows=2).load()
        Sequences(3 over ('a', 'b'): ['a', 'b'], [], ['b', 'a'])
        """
        check_number("rows", rows, least=1)
        known = as_alphabet(alphabet)
        readers = ragged_readers(symbols, offsets, known, rows)
        return cls(Part(number, reader, known, len(reader)) for number, reader in enumerate(readers))

    @classmethod
    def from_parquet(
        cls, paths: Any, column: str, alphabet: int | Iterable[Hashable], *, rows: int = PART_ROWS
    ) -> PartitionedSequences:
        """A column of Parquet files with a list of symbols, or a string of them, in each row.

        :param paths: the name of a file, or a list of them.
        :param column: lists of codes if the alphabet is a number of symbols; else lists of symbols, or strings.
        :param alphabet: the number of symbols, or the symbols in the order of their codes.
        :param rows: a part has one row group, or several that follow each other, up to so many rows.
        """
        check_instance("column", column, str, "the name of a column")
        check_number("rows", rows, least=1)
        known = as_alphabet(alphabet)
        readers = parquet_readers(paths, column, known, rows)
        return cls(Part(number, reader, known, reader.num_rows, reader.source) for number, reader in enumerate(readers))

    @classmethod
    def from_dask(
        cls,
        collection: Any,
        alphabet: int | Iterable[Hashable],
        *,
        column: Hashable = None,
        sep: str | None = None,
        pad: int | None = None,
    ) -> PartitionedSequences:
        """A Dask Bag of sequences, a data frame with a column of them, or a padded array; a part for each partition.

        :param collection: not persisted; what it takes to compute a partition is computed each time it is needed.
        :param alphabet: the number of symbols, or the symbols in the order of their codes.
        :param column: of a data frame.
        :param sep: for strings, what separates the symbols, as in :meth:`~pyro_ksd.sequences.Sequences.of`.
        :param pad: for an array, the value that fills a row after its end.

        >>> import dask.bag
        >>> PartitionedSequences.from_dask(dask.bag.from_sequence(["ab", "b"], npartitions=2), "ab").load()
        Sequences(2 over ('a', 'b'): ['a', 'b'], ['b'])
        """
        known = as_alphabet(alphabet)
        readers = dask_readers(collection, known, column, sep, pad)
        return cls(Part(number, reader, known) for number, reader in enumerate(readers))

    def __repr__(self) -> str:
        count = f"{len(self.parts)} part{'' if len(self.parts) == 1 else 's'}"
        return f"PartitionedSequences({count} over {shown_alphabet(self.alphabet)})"

    def __len__(self) -> int:
        return sum(self._sizes())

    def counted(self, *, progress: bool = False) -> PartitionedSequences:
        """The same data with the number of rows of each part, for which those that are not known are read.

        >>> len(PartitionedSequences.of([["ab", "b"], ["ba"]], alphabet="ab").counted())
        3
        """
        check_flag("progress", progress)
        unknown = [part for part in self.parts if part.num_rows is None]
        if not unknown:
            return self
        known = {}
        with progress_bar(total=len(unknown), show=progress, desc="counting sequences", unit="parts") as bar:
            for part, count in zip(unknown, run_each(_num_rows, unknown, name="data"), strict=True):
                known[part.number] = count
                bar.update()
        return PartitionedSequences(
            replace(part, num_rows=known.get(part.number, part.num_rows)) for part in self.parts
        )

    def take(self, rows: Any) -> Sequences:
        """Some of the sequences, in memory.

        :param rows: their numbers, from 0, in any order.
        """
        data = self.counted()
        sizes = torch.tensor(data._sizes())
        chosen = _checked_rows(rows, int(sizes.sum()))
        begins = sizes.cumsum(0) - sizes
        ordered, place = chosen.unique(return_inverse=True)
        owner = torch.searchsorted(begins, ordered, right=True) - 1
        items = [(data.parts[part], ordered[owner == part] - begins[part]) for part in owner.unique().tolist()]
        found_rows = list(run_each(_rows_of, items, name="data"))
        return Sequences.cat(found_rows)[place] if found_rows else _empty(self.alphabet)

    def load(self) -> Sequences:
        """All sequences, in memory."""
        return Sequences.cat(list(run_each(Part.load, self.parts, name="data")))

    def _sizes(self) -> list[int]:
        """How many rows each part has."""
        sizes = [part.num_rows for part in self.parts if part.num_rows is not None]
        if len(sizes) < len(self.parts):
            raise ValueError("the number of sequences is not known yet; count them: data = data.counted()")
        return sizes


def _reader(number: int, part: Any) -> Callable[[], Any]:
    if callable(part):
        return part  # type: ignore[no-any-return]  # it is a function without arguments
    if isinstance(part, str | bytes | os.PathLike):
        raise ValueError(
            f"parts: expected sequences, or a function that reads them, found {found(part)} in part {number}; for "
            "files take PartitionedSequences.from_files(paths, alphabet)"
        )
    return partial(_itself, part)


def _itself(data: Any) -> Any:
    return data


def _empty(alphabet: Alphabet) -> Sequences:
    return Sequences(torch.zeros(0, 0, dtype=torch.long), torch.zeros(0, dtype=torch.long), alphabet)


def _num_rows(part: Part) -> int:
    return len(part.load())


def _rows_of(item: tuple[Part, Tensor]) -> Sequences:
    part, rows = item
    return part.load()[rows].narrowed()


def _checked_rows(rows: Any, size: int) -> Tensor:
    """The numbers of rows, long ``[K]``."""
    known = isinstance(rows, Tensor | Sequence) or hasattr(rows, "__array__")
    chosen = torch.as_tensor(rows) if known and not isinstance(rows, str) else None
    if chosen is not None and not chosen.numel():
        return torch.zeros(0, dtype=torch.long)
    if chosen is None or chosen.ndim != 1 or chosen.dtype == torch.bool or chosen.is_floating_point():
        raise ValueError(f"rows: expected the numbers of rows, such as [0, 5], found {found(rows)}")
    if int(chosen.min()) < 0 or int(chosen.max()) >= size:
        wrong = chosen.min() if int(chosen.min()) < 0 else chosen.max()
        raise ValueError(f"rows: expected numbers from 0 to {size - 1}, found {int(wrong)}")
    return chosen.long()

# SPDX-License-Identifier: Apache-2.0
"""What reads a part of partitioned data: small objects that can be sent to other processes."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from mmap import mmap
from typing import Any

import numpy as np
import torch

from pyro_ksd.common.option_checks import found
from pyro_ksd.sequences.alphabets import Alphabet
from pyro_ksd.sequences.array_reading import coded_array
from pyro_ksd.sequences.container import Sequences


@dataclass(frozen=True)
class MappedArray:
    """A one-dimensional array in a file, of which only what is needed is read.

    :param path: of the file.
    :param dtype: of the numbers.
    :param offset: the byte at which they begin.
    :param size: how many.
    """

    path: str
    dtype: np.dtype[Any]
    offset: int
    size: int

    @property
    def shape(self) -> tuple[int]:
        return (self.size,)

    def __getitem__(self, where: slice) -> np.ndarray[Any, Any]:
        values = np.memmap(self.path, self.dtype, "r", self.offset, (self.size,))
        return np.array(values[where])


@dataclass(frozen=True, eq=False)
class RaggedRows:
    """Consecutive rows of ragged data.

    :param symbols: the codes of all rows, or of these alone.
    :param offsets: where each row begins, and the end of the last one: of all rows, or of these alone.
    :param alphabet: of the codes.
    :param rows: which of the offsets are those of these rows.
    :param first: the number of the first symbol in ``symbols``.
    """

    symbols: Any
    offsets: Any
    alphabet: Alphabet
    rows: range
    first: int = 0

    def __len__(self) -> int:
        return len(self.rows)

    def __call__(self) -> Sequences:
        bounds = torch.as_tensor(np.asarray(self.offsets[self.rows.start : self.rows.stop + 1]).astype(np.int64))
        lengths = bounds.diff()
        if (lengths < 0).any():
            row = int((lengths < 0).nonzero()[0])
            raise ValueError(
                f"offsets: expected numbers that do not decrease, found {int(bounds[row])} and then "
                f"{int(bounds[row + 1])} in row {row} of the part"
            )
        begin, end = (int(bound) - self.first for bound in (bounds[0], bounds[-1]))
        return ragged_sequences(self.symbols[begin:end], lengths, self.alphabet)


def ragged_sequences(symbols: Any, lengths: torch.Tensor, alphabet: Alphabet) -> Sequences:
    """Sequences from the codes of all of them after one another.

    >>> ragged_sequences(np.array([0, 1, 1]), torch.tensor([2, 0, 1]), 2)
    Sequences(3 over 0..1: [0, 1], [], [1])
    """
    codes = torch.as_tensor(np.asarray(symbols).astype(np.int64))
    width = int(lengths.max()) if len(lengths) else 0
    tokens = torch.zeros(len(lengths), width, dtype=torch.long)
    ends = lengths.cumsum(0)
    room_before = torch.arange(len(lengths)) * width - (ends - lengths)  # padding before each row
    tokens.view(-1)[torch.arange(len(codes)) + room_before.repeat_interleave(lengths)] = codes
    return Sequences(tokens, lengths, alphabet)


def ragged_readers(symbols: Any, offsets: Any, alphabet: Alphabet, rows: int) -> list[RaggedRows]:
    """The readers of parts of so many rows."""
    all_symbols, all_offsets = _one_array("symbols", symbols), _one_array("offsets", offsets)
    count, total = all_offsets.shape[0] - 1, all_symbols.shape[0]
    if count < 1:
        raise ValueError(f"offsets: expected one more than there are sequences, found {count + 1} in all")
    first, last = int(all_offsets[0:1][0]), int(all_offsets[count : count + 1][0])
    if first != 0 or last != total:
        raise ValueError(f"offsets: expected numbers from 0 to the number of symbols, {total}, found {first} to {last}")
    readers = []
    for begin in range(0, count, rows):
        end = min(begin + rows, count)
        # Of what is in memory, another process is sent no more than the part.
        if isinstance(all_offsets, np.ndarray):
            known, part = all_offsets[begin : end + 1], range(end - begin)
        else:
            known, part = all_offsets, range(begin, end)
        if isinstance(all_symbols, np.ndarray):
            low, high = (int(all_offsets[row : row + 1][0]) for row in (begin, end))
            readers.append(RaggedRows(all_symbols[low:high], known, alphabet, part, low))
        else:
            readers.append(RaggedRows(all_symbols, known, alphabet, part))
    return readers


def _one_array(name: str, array: Any) -> Any:
    """An array of integers of one dimension: in memory, in a file, or a zarr array."""
    if isinstance(array, str | os.PathLike):
        try:
            array = np.load(array, mmap_mode="r")
        except (OSError, ValueError) as error:
            raise ValueError(f"{name}: expected an .npy file, found {os.fspath(array)!r} ({error})") from error
    dtype, shape = getattr(array, "dtype", None), getattr(array, "shape", ())
    if len(shape) != 1 or not isinstance(dtype, np.dtype) or dtype.kind not in "iu":
        raise ValueError(
            f"{name}: expected an array of integers of one dimension, in numpy, zarr or an .npy file, found "
            f"{found(array) if dtype is None else f'{dtype} {list(shape)}'}"
        )
    # A slice of a memory map has the offset of the whole map: it is read as any array in memory.
    if isinstance(array, np.memmap) and isinstance(array.base, mmap) and array.filename is not None:
        return MappedArray(os.path.abspath(array.filename), array.dtype, array.offset, len(array))
    return array


def file_names(paths: Any) -> list[str]:
    """The names of files that exist, from one of them or a list."""
    single = isinstance(paths, str | os.PathLike)
    if not single and not isinstance(paths, Iterable):
        raise ValueError(f"paths: expected the name of a file, or a list of them, found {found(paths)}")
    names = []
    for path in [paths] if single else paths:
        if not isinstance(path, str | os.PathLike) or not os.path.isfile(path):
            hint = "; for a pattern, pass sorted(glob.glob(pattern))" if "*" in str(path) else ""
            raise ValueError(f"paths: expected names of files that exist, found {found(path)}{hint}")
        names.append(os.fspath(path))
    if not names:
        raise ValueError("paths: expected at least one file, found none")
    return names


@dataclass(frozen=True)
class ParquetRows:
    """Some row groups of a column of a Parquet file.

    :param path: of the file.
    :param column: its name.
    :param alphabet: of the sequences.
    :param groups: the numbers of the row groups.
    :param num_rows: how many rows they have.
    """

    path: str
    column: str
    alphabet: Alphabet
    groups: tuple[int, ...]
    num_rows: int

    @property
    def source(self) -> str:
        """The place in the file."""
        first, last = self.groups[0], self.groups[-1]
        return f"{self.path}, row group{f' {first}' if first == last else f's {first} to {last}'}"

    def __call__(self) -> Any:
        import pyarrow as pa

        with _opened_parquet(self.path) as file:
            values = file.read_row_groups(list(self.groups), [self.column]).column(self.column).combine_chunks()
        if values.null_count:
            row = values.is_null().index(True).as_py()
            raise ValueError(f"column {self.column!r}: found no value in row {row} of the part, expected a sequence")
        listed = pa.types.is_list(values.type) or pa.types.is_large_list(values.type)
        if listed and isinstance(self.alphabet, int) and pa.types.is_integer(values.type.value_type):
            offsets = torch.as_tensor(values.offsets.to_numpy().astype(np.int64))
            codes = values.values[int(offsets[0]) : int(offsets[-1])]
            if codes.null_count:
                raise ValueError(f"column {self.column!r}: found a missing symbol, expected codes")
            return ragged_sequences(codes.to_numpy(), offsets.diff(), self.alphabet)
        return values.to_pylist()


def parquet_readers(paths: Any, column: str, alphabet: Alphabet, rows: int) -> list[ParquetRows]:
    """The readers of row groups of files, several groups together if they are small."""
    if find_spec("pyarrow") is None:
        raise ValueError("Parquet files are read by pyarrow; install it: pip install pyarrow")
    readers = []
    for path in file_names(paths):
        with _opened_parquet(path) as file:
            known = file.schema_arrow.names
            if column not in known:
                raise ValueError(f"column: expected one of {known} in {path!r}, found {column!r}")
            sizes = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
        groups: list[int] = []
        for number, size in enumerate(sizes):
            if groups and sum(sizes[group] for group in groups) + size > rows:
                readers.append(_parquet_rows(path, column, alphabet, groups, sizes))
                groups = []
            groups.append(number)
        if groups:
            readers.append(_parquet_rows(path, column, alphabet, groups, sizes))
    return readers


@contextmanager
def _opened_parquet(path: str) -> Iterator[Any]:
    """The file, open; errors of pyarrow say which one it is."""
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            yield file
    except OSError as error:  # what pyarrow finds wrong is an ArrowInvalid, which is a ValueError, or an OSError
        raise _damaged(path, error) from error
    except ValueError as error:
        if not type(error).__module__.startswith("pyarrow"):
            raise
        raise _damaged(path, error) from error


def _damaged(path: str, error: Exception) -> ValueError:
    reason = " ".join(str(error).split())
    return ValueError(
        f"{path!r}: expected a whole file of Parquet, found one that cannot be read ({reason}); copy or write it again"
    )


def _parquet_rows(path: str, column: str, alphabet: Alphabet, groups: list[int], sizes: list[int]) -> ParquetRows:
    return ParquetRows(os.path.abspath(path), column, alphabet, tuple(groups), sum(sizes[group] for group in groups))


@dataclass(frozen=True, eq=False)
class DaskRows:
    """A partition of a Dask collection.

    :param tasks: all that it takes to compute it.
    :param key: of the task that gives it.
    :param alphabet: of the sequences.
    :param sep: for strings, what separates the symbols.
    :param pad: for arrays, what fills a row after its end.
    """

    tasks: Mapping[Any, Any]
    key: Any
    alphabet: Alphabet
    sep: str | None
    pad: int | None

    def __call__(self) -> Any:
        from dask.local import get_sync

        data = get_sync(self.tasks, self.key)
        if isinstance(data, np.ndarray):
            if not len(data):
                return []
            return Sequences(*coded_array(data, self.alphabet, None, self.pad))
        rows = list(data)
        return Sequences.of(rows, self.alphabet, sep=self.sep) if rows else rows


def dask_readers(
    collection: Any, alphabet: Alphabet, column: Hashable, sep: str | None, pad: int | None
) -> list[DaskRows]:
    """The readers of the partitions of a Dask collection."""
    if not hasattr(collection, "__dask_graph__") or not hasattr(collection, "to_delayed"):
        raise ValueError(f"collection: expected a Dask Bag, array or data frame, found {found(collection)}")
    if _is_persisted(collection):
        raise ValueError(
            "collection: expected what is computed when it is needed, found persisted or scattered data; leave out "
            "persist(), or write the data to files"
        )
    own = collection
    if hasattr(own, "columns") and own.ndim == 2:
        if column is None or column not in list(own.columns):
            raise ValueError(f"column: expected one of {list(own.columns)}, found {column!r}")
        own = own[column]
    elif column is not None:
        raise ValueError("column: expected a data frame to take it from; leave it out")
    if hasattr(own, "chunks"):
        if own.ndim != 2:
            raise ValueError(f"collection: expected a padded array [N, T] of codes, found {own.ndim} dimension(s)")
        own = own.rechunk({1: -1})
    elif pad is not None:
        raise ValueError("pad: expected a padded array beside it; leave it out")
    readers = []
    for partition in np.ravel(np.array(own.to_delayed(), dtype=object)):
        (key,) = partition.__dask_keys__()
        tasks = dict(partition.__dask_graph__().cull({key}))  # without what only other partitions need
        readers.append(DaskRows(tasks, key, alphabet, sep, pad))
    return readers


def _is_persisted(collection: Any) -> bool:
    """Whether some of its values are held by workers."""
    import dask.base

    try:
        from distributed.client import futures_of
    except ImportError:
        return False
    return bool(dask.base.is_dask_collection(collection) and futures_of(collection))

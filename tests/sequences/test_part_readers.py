# SPDX-License-Identifier: Apache-2.0
"""Parts of ragged arrays, Parquet files and Dask collections: every cut gives the same data."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.part_readers import MappedArray
from pyro_ksd.sequences.partitions import PartitionedSequences

ROWS = [[0, 2, 1], [], [1], [2, 2], [], [0, 0, 0, 1]]
SYMBOLS = np.array([code for row in ROWS for code in row])
OFFSETS = np.array([0, 3, 3, 4, 6, 6, 10])


def sources(kind: str, folder: Path) -> tuple[Any, Any]:
    if kind == "numpy":
        return SYMBOLS.astype(np.uint8), OFFSETS
    if kind == "zarr":
        zarr = pytest.importorskip("zarr")
        arrays = []
        for name, values in (("symbols", SYMBOLS), ("offsets", OFFSETS)):
            array = zarr.open(str(folder / name), mode="w", shape=values.shape, chunks=(2,), dtype=values.dtype)
            array[:] = values
            arrays.append(array)
        return arrays[0], arrays[1]
    np.save(folder / "symbols.npy", SYMBOLS.astype(np.int8))
    np.save(folder / "offsets.npy", OFFSETS)
    if kind == "files":
        return folder / "symbols.npy", str(folder / "offsets.npy")
    mapped = np.load(folder / "symbols.npy", mmap_mode="r")
    return mapped, (OFFSETS if kind == "mapped and numpy" else np.load(folder / "offsets.npy", mmap_mode="r"))


@pytest.mark.parametrize("kind", ["numpy", "zarr", "files", "mapped", "mapped and numpy"])
@pytest.mark.parametrize("rows", [1, 2, 4, 6, 100])
def test_ragged_data_in_any_cut(kind: str, rows: int, tmp_path: Path) -> None:
    data = PartitionedSequences.from_ragged(*sources(kind, tmp_path), 3, rows=rows)
    assert len(data) == 6
    assert len(data.parts) == -(-6 // rows)
    sent = [pickle.loads(pickle.dumps(part)) for part in data.parts]
    assert PartitionedSequences(sent).load().to_lists() == ROWS
    assert data.take([5, 0]).to_lists() == [ROWS[5], ROWS[0]]


def test_of_arrays_in_memory_only_the_part_is_sent() -> None:
    size = 100_000
    data = PartitionedSequences.from_ragged(np.ones(size, dtype=np.int64), np.arange(size + 1), 2, rows=10)
    assert len(pickle.dumps(data.parts[500])) < 2000
    assert len(data.parts[500].load()) == 10


def test_of_files_only_their_names_are_sent(tmp_path: Path) -> None:
    np.save(tmp_path / "ones.npy", np.ones(100_000, dtype=np.int64))
    np.save(tmp_path / "offsets.npy", np.arange(100_001))
    mapped = np.load(tmp_path / "ones.npy", mmap_mode="r")
    data = PartitionedSequences.from_ragged(mapped, tmp_path / "offsets.npy", 2, rows=10)
    assert isinstance(data.parts[0].reader.symbols, MappedArray)  # type: ignore[attr-defined]
    assert len(pickle.dumps(data.parts[500])) < 2000


def test_a_slice_of_a_memory_map_is_read_where_it_is(tmp_path: Path) -> None:
    np.save(tmp_path / "symbols.npy", np.concatenate([[2, 2, 2], SYMBOLS]))
    later = np.load(tmp_path / "symbols.npy", mmap_mode="r")[3:]
    every_other = np.repeat(SYMBOLS, 2)
    np.save(tmp_path / "twice.npy", every_other)
    for symbols in (later, np.load(tmp_path / "twice.npy", mmap_mode="r")[::2]):
        data = PartitionedSequences.from_ragged(symbols, OFFSETS, 3, rows=2)
        sent = [pickle.loads(pickle.dumps(part)) for part in data.parts]
        assert PartitionedSequences(sent).load().to_lists() == ROWS


@pytest.mark.parametrize(
    ("symbols", "offsets", "words"),
    [
        (SYMBOLS, [0, 10], "offsets: expected an array of integers of one dimension"),
        (SYMBOLS.astype(float), OFFSETS, r"symbols: expected an array of integers .* found float64 \[10\]"),
        (SYMBOLS[None], OFFSETS, r"symbols: expected an array of integers .* found int64 \[1, 10\]"),
        (SYMBOLS, OFFSETS[:1], "offsets: expected one more than there are sequences, found 1 in all"),
        (SYMBOLS, OFFSETS[1:], "offsets: expected numbers from 0 to the number of symbols, 10, found 3 to 10"),
        (SYMBOLS[:9], OFFSETS, "offsets: expected numbers from 0 to the number of symbols, 9, found 0 to 10"),
        ("missing.npy", OFFSETS, "symbols: expected an .npy file, found 'missing.npy'"),
    ],
)
def test_wrong_ragged_data(symbols: Any, offsets: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        PartitionedSequences.from_ragged(symbols, offsets, 3)


def test_offsets_that_decrease_are_found() -> None:
    data = PartitionedSequences.from_ragged(SYMBOLS, np.array([0, 3, 5, 4, 6, 6, 10]), 3, rows=3)
    with pytest.raises(ValueError, match=r"part 0 of the data: offsets: .* found 5 and then 4 in row 2 of the part"):
        data.load()


def test_unknown_codes_are_found() -> None:
    data = PartitionedSequences.from_ragged(SYMBOLS, OFFSETS, 2, rows=3)
    with pytest.raises(ValueError, match=r"part 0 of the data: sequence 0, position 1: found the symbol 2"):
        data.load()


def test_the_size_of_a_part_is_positive() -> None:
    with pytest.raises(ValueError, match="rows"):
        PartitionedSequences.from_ragged(SYMBOLS, OFFSETS, 3, rows=0)


# ------------------------------------------------------------------------------------------------ files


def test_files_of_any_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.txt").write_text("a c b\nb\n")
    (tmp_path / "two.jsonl").write_text('["c", "c"]\n[]\n')
    monkeypatch.chdir(tmp_path)
    lines = PartitionedSequences.from_files("one.txt", "abc", sep=" ")
    objects = PartitionedSequences.from_files([tmp_path / "two.jsonl"], "abc")
    monkeypatch.chdir("/")  # workers may be in another folder
    both = PartitionedSequences([*lines.parts, replace(objects.parts[0], number=1)])
    sent = [pickle.loads(pickle.dumps(part)) for part in both.parts]
    assert PartitionedSequences(sent).load().to_lists() == [["a", "c", "b"], ["b"], ["c", "c"], []]


@pytest.mark.parametrize(
    ("paths", "options", "words"),
    [
        ([], {}, "paths: expected at least one file, found none"),
        (["none.fa"], {}, "paths: expected names of files that exist, found 'none.fa'"),
        ([3], {}, "paths: expected names of files that exist, found 3"),
        (__file__, {"colum": "x"}, "options: expected those of pyro_ksd.read, found colum"),
    ],
)
def test_wrong_files(paths: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        PartitionedSequences.from_files(paths, "abc", **options)


# ------------------------------------------------------------------------------------------------ Parquet


def parquet(folder: Path, name: str = "data.parquet", size: int = 2) -> Path:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    words = ["".join("abc"[code] for code in row) for row in ROWS]
    letters = [list(word) for word in words]
    table = {"codes": ROWS, "large": pa.array(ROWS, pa.large_list(pa.int8())), "letters": letters, "words": words}
    pq.write_table(pa.table(table), folder / name, row_group_size=size)
    return folder / name


@pytest.mark.parametrize(("rows", "num_parts"), [(1, 3), (2, 3), (4, 2), (100, 1)])
@pytest.mark.parametrize("column", ["codes", "large", "letters", "words"])
def test_parquet_columns(column: str, rows: int, num_parts: int, tmp_path: Path) -> None:
    alphabet: Any = 3 if column in ("codes", "large") else "abc"
    data = PartitionedSequences.from_parquet(parquet(tmp_path), column, alphabet, rows=rows)
    assert (len(data), len(data.parts)) == (6, num_parts)
    tokens = Sequences.of(ROWS, 3)
    found = data.load()
    assert found.tokens.equal(tokens.tokens)
    assert found.lengths.equal(tokens.lengths)


def test_several_parquet_files(tmp_path: Path) -> None:
    paths = [parquet(tmp_path, name) for name in ("one.parquet", "two.parquet")]
    assert PartitionedSequences.from_parquet(paths, "codes", 3).load().to_lists() == ROWS * 2


def test_wrong_parquet_files(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    path = parquet(tmp_path)
    with pytest.raises(ValueError, match=r"column: expected one of \['codes', .*, found 'code'"):
        PartitionedSequences.from_parquet(path, "code", 3)
    with pytest.raises(ValueError, match=r"paths: expected names of files that exist, found 'none.parquet'"):
        PartitionedSequences.from_parquet(["none.parquet"], "codes", 3)
    with pytest.raises(ValueError, match="paths: expected the name of a file"):
        PartitionedSequences.from_parquet(3, "codes", 3)
    words = r"part 0 of the data, .*data\.parquet, row groups 0 to 2: sequence 0, position 1: found the symbol 2"
    with pytest.raises(ValueError, match=words):
        PartitionedSequences.from_parquet(path, "codes", 2).load()
    with pytest.raises(ValueError, match=r"part 1 of the data, .*data\.parquet, row group 1: .*found the symbol"):
        PartitionedSequences.from_parquet(path, "codes", 2, rows=2).parts[1].load()
    with pytest.raises(ValueError, match=r"found .*; for a pattern, pass sorted\(glob\.glob\(pattern\)\)"):
        PartitionedSequences.from_parquet(str(tmp_path / "*.parquet"), "codes", 3)
    pq.write_table(pa.table({"x": [[0], None, [1]], "y": [[0], [None], [1]]}), tmp_path / "gaps.parquet")
    with pytest.raises(ValueError, match="column 'x': found no value in row 1"):
        PartitionedSequences.from_parquet(tmp_path / "gaps.parquet", "x", 2).load()
    with pytest.raises(ValueError, match="column 'y': found a missing symbol"):
        PartitionedSequences.from_parquet(tmp_path / "gaps.parquet", "y", 2).load()


def test_damaged_parquet_files_are_named(tmp_path: Path) -> None:
    path = parquet(tmp_path)
    whole = path.read_bytes()
    words = (
        r"'.*data\.parquet': expected a whole file of Parquet, found one that cannot be read \(.*\); copy or write it"
    )
    for damaged in (b"", whole[: len(whole) // 2]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=words):
            PartitionedSequences.from_parquet(path, "codes", 3)
    path.write_bytes(whole)
    data = PartitionedSequences.from_parquet(path, "codes", 3)
    path.write_bytes(whole[:4] + bytes(len(whole) // 3) + whole[4 + len(whole) // 3 :])
    with pytest.raises(ValueError, match=rf"part 0 of the data, .*: {words}"):
        data.load()


# ------------------------------------------------------------------------------------------------ Dask


def test_dask_collections() -> None:
    pytest.importorskip("dask")
    import dask.array
    import dask.bag
    import dask.dataframe
    import pandas

    bag = dask.bag.from_sequence(ROWS, npartitions=3)
    padded = Sequences.of(ROWS, 3).padded(-1).numpy()
    array = dask.array.from_array(padded, chunks=(4, 3))
    words = [" ".join("abc"[code] for code in row) for row in ROWS]
    frame = dask.dataframe.from_pandas(pandas.DataFrame({"words": words}), npartitions=2)
    assert PartitionedSequences.from_dask(bag, 3).load().to_lists() == ROWS
    data = PartitionedSequences.from_dask(array, 3, pad=-1)
    assert len(data.parts) == 2
    assert data.load().to_lists() == ROWS
    for data in (
        PartitionedSequences.from_dask(frame, "abc", column="words", sep=" "),
        PartitionedSequences.from_dask(frame["words"], "abc", sep=" "),
    ):
        assert data.load().tokens.equal(Sequences.of(ROWS, 3).tokens)
        assert len(data.counted()) == 6


def test_partitions_may_be_empty() -> None:
    pytest.importorskip("dask")
    import dask.array
    import dask.bag

    bag = dask.bag.from_sequence(ROWS, npartitions=3).filter(lambda row: len(row) > 1)
    assert PartitionedSequences.from_dask(bag, 3).load().to_lists() == [row for row in ROWS if len(row) > 1]
    array = dask.array.from_array(np.zeros((4, 2), dtype=int), chunks=(2, 2))
    array = array[dask.array.from_array(np.array([False, False, True, True]), chunks=2)]
    data = PartitionedSequences.from_dask(array, 3).counted()
    assert [part.num_rows for part in data.parts] == [0, 2]


def test_a_part_of_a_dask_collection_is_sent_without_the_others() -> None:
    pytest.importorskip("dask")
    cloudpickle = pytest.importorskip("cloudpickle")
    import dask.bag

    rows = torch.zeros(40_000, 5, dtype=torch.long).tolist()
    data = PartitionedSequences.from_dask(dask.bag.from_sequence(rows, npartitions=100), 2)
    assert len(cloudpickle.dumps(data.parts[3])) < 0.1 * len(pickle.dumps(rows))


def test_wrong_dask_collections() -> None:
    pytest.importorskip("dask")
    import dask.array
    import dask.bag
    import dask.dataframe
    import pandas

    bag = dask.bag.from_sequence(ROWS)
    frame = dask.dataframe.from_pandas(pandas.DataFrame({"x": ["a"]}), npartitions=1)
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        (ROWS, {}, "collection: expected a Dask Bag, array or data frame"),
        (frame, {}, r"column: expected one of \['x'\], found None"),
        (frame, {"column": "y"}, r"column: expected one of \['x'\], found 'y'"),
        (bag, {"column": "x"}, "column: expected a data frame"),
        (bag, {"pad": -1}, "pad: expected a padded array"),
        (dask.array.zeros((3,)), {}, r"collection: expected a padded array \[N, T\] of codes, found 1 dim"),
    ]
    for collection, options, words in wrong:
        with pytest.raises(ValueError, match=words):
            PartitionedSequences.from_dask(collection, 3, **options)

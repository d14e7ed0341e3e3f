# SPDX-License-Identifier: Apache-2.0
"""All formats through ``read``: the same sequences, and errors for options that mean nothing."""

from __future__ import annotations

import gzip
import io
import json
import re
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import pyro_ksd
from pyro_ksd import Sequences, read
from pyro_ksd.sequences.files.file_reading import FORMATS

WORDS = [["home", "search", "buy"], ["home"], ["search", "home"]]
LOG = pd.DataFrame(
    {
        "visit": ["v1", "v2", "v1", "v3", "v3", "v1"],
        "page": ["search", "home", "home", "home", "search", "buy"],
        "time": [2, 1, 1, 8, 7, 10],
    }
)


def parquet(frame: pd.DataFrame) -> bytes:
    pytest.importorskip("pyarrow")
    buffer = io.BytesIO()
    frame.to_parquet(buffer)
    return buffer.getvalue()


def lines(*values: object) -> bytes:
    return "\n".join(map(str, values)).encode() + b"\n"


IN_LOG = {"by": "visit", "symbol": "page", "order_by": "time"}
FILES: list[tuple[str, Any, dict[str, Any]]] = [
    ("f.txt", lambda: lines(*map(" ".join, WORDS)), {"sep": " "}),
    ("f.csv", lambda: lines(*map(",".join, WORDS)), {}),
    ("f.csv", lambda: lines(*map(";".join, WORDS)), {"sep": ";"}),
    ("f.tsv", lambda: lines(*map("\t".join, WORDS)), {}),
    ("f.tab", lambda: lines("id\ta\tb\tc", *(f"u{i}\t" + "\t".join(row) for i, row in enumerate(WORDS))), {"by": "id"}),
    ("f.jsonl", lambda: lines(*map(json.dumps, WORDS)), {}),
    ("f.jsonl", lambda: lines(*(json.dumps(" ".join(row)) for row in WORDS)), {"sep": " "}),
    ("f.ndjson", lambda: lines(*(json.dumps({"path": row, "n": 1}) for row in WORDS)), {"column": "path"}),
    (
        "f.csv",
        lambda: lines("id,path", *(f"{i},{' '.join(row)}" for i, row in enumerate(WORDS))),
        {"column": "path", "sep": " "},
    ),
    ("f.parquet", lambda: parquet(pd.DataFrame({"path": WORDS})), {}),
    ("f.pq", lambda: parquet(pd.DataFrame({"path": WORDS, "n": 1})), {"column": "path"}),
    ("f.csv", lambda: LOG.to_csv(index=False).encode(), IN_LOG),
    (
        "f.csv",
        lambda: LOG.to_csv(index=False, sep=";").encode(),
        IN_LOG | {"sep": ";", "by": ["visit"], "order_by": ["time"]},
    ),
    ("f.tsv", lambda: LOG.to_csv(index=False, sep="\t").encode("utf-16"), IN_LOG),
    ("f.jsonl", lambda: LOG.to_json(orient="records", lines=True).encode(), IN_LOG),
    ("f.parquet", lambda: parquet(LOG), IN_LOG),
]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("name", "make", "options"), FILES)
def test_the_same_sequences_in_all_formats(tmp_path: Path, name: str, make: Any, options: Any, packed: bool) -> None:
    file = tmp_path / (f"{name}.gz" if packed else name)
    file.write_bytes(gzip.compress(make()) if packed else make())
    data = read(file, **options)
    assert data.to_lists() == WORDS
    assert data.alphabet == ("buy", "home", "search")
    other = read(file, alphabet=["search", "home", "buy", "help"], **options)
    assert other.to_lists() == WORDS
    assert other.alphabet == ("search", "home", "buy", "help")
    if not packed:
        for wrong in (["home", "search"], ["home", "buy"]):
            with pytest.raises(
                ValueError, match=r"^f\.\w+, (line|row) \d, .*: found the symbol '(buy|search)', expected"
            ):
                read(file, alphabet=wrong, **options)
        (tmp_path / "other").write_bytes(make())
        (kind,) = [kind for kind, endings in FORMATS.items() if file.suffix in endings]
        assert read(tmp_path / "other", format=kind, **options).to_lists() == WORDS


@pytest.mark.parametrize(
    ("name", "text"), [("f.fa", ">1\nAC\nG\n>2\nT\n"), ("f.fastq", "@1\nACG\n+\nIII\n@2\nT\n+\nI\n")]
)
def test_records(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    data = read(tmp_path / name)
    assert data.to_lists() == [["A", "C", "G"], ["T"]]
    assert data.alphabet == ("A", "C", "G", "T")
    (tmp_path / name).write_text(text.replace("T", "N"))
    with pytest.raises(ValueError, match=r"found 'N', expected nucleotides"):
        read(tmp_path / name)
    assert read(tmp_path / name, alphabet="ACGTN").alphabet == tuple("ACGTN")
    with pytest.warns(
        UserWarning, match=r"left out 1 of 2 sequences .*: 'N' \(once\), first in .* line \d, column 1"
    ) as seen:
        assert read(tmp_path / name, alphabet="ACGT", skip_unknown=True).to_lists() == [["A", "C", "G"]]
    assert seen[0].filename == __file__


def test_sequences_in_and_out(tmp_path: Path) -> None:
    words = [["a b", 'say "x"', "c,d"], [], ["é"], ["NA"]]
    (tmp_path / "f.jsonl").write_text("\n".join(map(json.dumps, words)))
    assert read(tmp_path / "f.jsonl").to_lists() == words
    assert read(tmp_path / "f.jsonl", alphabet=sorted(set(chain(*words)))).to_lists() == words


def test_numbers_are_their_codes_as_in_of(tmp_path: Path) -> None:
    rows = [[3, 0, 12], [1]]
    (tmp_path / "f.csv").write_text("3,0,12\n1,,\n")
    data, expected = read(tmp_path / "f.csv"), Sequences.of(rows)
    assert data.to_lists() == rows
    assert data.alphabet == expected.alphabet == 13
    assert data.tokens.equal(expected.tokens)


OPTIONS: list[tuple[str, dict[str, Any], str]] = [
    ("f.dat", {}, "f.dat: expected a name that ends in one of .txt, .text, .csv, .tsv"),
    ("f", {}, "f: expected a name that ends in one of .* found ''; pass format= one of"),
    ("f.json", {}, r"f.json: .* for a list in a file of JSON, use Sequences.of\(json.load\(file\)\)"),
    (
        "f.txt",
        {"format": "text file"},
        "format: expected 'text', 'csv', 'tsv', 'jsonl', 'fasta', 'fastq' or 'parquet', found",
    ),
    ("f.txt", {"column": "a"}, "column: expected a format that has it, found 'text'; leave it out, or correct format="),
    ("f.fa", {"sep": " "}, "sep: expected a format that has it, found 'fasta'"),
    ("f.csv", {"symbol": "a"}, "symbol: expected by= beside it, .* pass column="),
    ("f.csv", {"order_by": "a", "by": "b"}, "order_by: expected by= and symbol= beside it"),
    ("f.csv", {"by": ["a", "b"]}, "by: expected symbol= beside several columns"),
    ("f.csv", {"by": [], "symbol": "a"}, r"by: expected the name of a column or a list of names, found \[\]"),
    (
        "f.csv",
        {"by": "a", "symbol": "a", "order_by": 3},
        "order_by: expected the name of a column or a list of names, found 3",
    ),
    ("f.csv", {"by": "a", "symbol": 3}, "symbol: expected the name of a column, found 3"),
    ("f.csv", {"column": 3}, "column: expected the name of a column, found 3"),
    ("f.csv", {"column": "a", "by": "b"}, "column: expected it, .* or by=, .* found both"),
    (
        "f.jsonl",
        {"by": "b"},
        "by: expected symbol= beside it, the column of symbols, found none for the format 'jsonl'",
    ),
    ("f.jsonl", {"by": "b", "symbol": "a", "sep": " "}, "sep: expected none for a log with one event a row"),
    ("f.txt", {"skip_unknown": True}, "skip_unknown: expected alphabet= beside it"),
    ("f.txt", {"skip_unknown": 1}, "skip_unknown: expected True or False, found 1"),
    ("f.txt", {"alphabet": "aa"}, "alphabet: expected distinct symbols, found 'a' more than once"),
    ("f.txt", {"sep": 3}, "sep: expected what separates the symbols"),
]


@pytest.mark.parametrize(("name", "options", "message"), OPTIONS)
def test_wrong_options(tmp_path: Path, name: str, options: dict[str, Any], message: str) -> None:
    (tmp_path / name).write_text("a,b\na,b\n")
    with pytest.raises(ValueError, match=f"^{message}"):
        read(tmp_path / name, **options)


@pytest.mark.parametrize("name", ["f.txt", "f.csv", "f.tsv", "f.jsonl", "f.fa", "f.fq", "f.parquet"])
def test_an_empty_file(tmp_path: Path, name: str) -> None:
    for file in (name, f"{name}.gz"):
        (tmp_path / file).write_bytes(gzip.compress(b"") if file.endswith(".gz") else b"")
        with pytest.raises(
            ValueError, match=rf"^{re.escape(file)}: expected .*, found (an empty file|one that begins with b'')"
        ):
            read(tmp_path / file)


def test_only_what_is_needed_is_imported(tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_text("ab\n")
    code = f"import sys\nfrom pyro_ksd import read\nread({str(tmp_path / 'f.txt')!r})\n"
    code += "print([name for name in ('pyro', 'pandas', 'pyarrow', 'xarray') if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_check_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_text("aabb\nbbccc\ncaa\nabbc\n" * 4)
    data = read(tmp_path / "f.txt")
    check = pyro_ksd.ksd_check(pyro_ksd.examples.random_walk(3), data, views=["content-1"], progress=False)
    assert 0 < float(check["ksd"]["p_value_overall"]) <= 1

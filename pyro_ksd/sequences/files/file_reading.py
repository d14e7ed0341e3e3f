# SPDX-License-Identifier: Apache-2.0
"""Reading sequences from a file, in the format that its name says."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Sequence
from pathlib import PurePath

from pyro_ksd.common.option_checks import check_choice, check_flag, found
from pyro_ksd.sequences.alphabets import Alphabet, as_alphabet
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.files.delimited_files import (
    delimited_file,
    delimited_table,
    warn_of_unsorted_times,
    wide_rows,
)
from pyro_ksd.sequences.files.fasta import biological, fasta_rows, fastq_rows
from pyro_ksd.sequences.files.file_contents import FileContent, content_of
from pyro_ksd.sequences.files.json_lines import json_rows, json_table
from pyro_ksd.sequences.files.parquet import only_column, parquet_frame, parquet_table
from pyro_ksd.sequences.files.symbol_rows import SymbolRows, as_sequences
from pyro_ksd.sequences.files.tables import Log, Table, column_rows, log_rows
from pyro_ksd.sequences.files.text_lines import text_rows

FORMATS = {
    "text": (".txt", ".text"),
    "csv": (".csv",),
    "tsv": (".tsv", ".tab"),
    "jsonl": (".jsonl", ".ndjson"),
    "fasta": (".fasta", ".fa", ".fna", ".ffn", ".frn", ".faa"),
    "fastq": (".fastq", ".fq"),
    "parquet": (".parquet", ".pq"),
}
"""The formats and the endings of the names of their files, which ``.gz`` may follow."""


def read(
    path: str | os.PathLike[str],
    *,
    alphabet: int | Iterable[Hashable] | None = None,
    format: str | None = None,
    sep: str | None = None,
    column: str | None = None,
    by: str | Sequence[str] | None = None,
    symbol: str | None = None,
    order_by: str | Sequence[str] | None = None,
    skip_unknown: bool = False,
) -> Sequences:
    r"""Reads sequences from a file.

    ============== ================================== =========================================================
    format         ending                             a sequence is
    ============== ================================== =========================================================
    ``"text"``     ``.txt``                           a line; its characters are the symbols, or words (``sep``)
    ``"csv"``      ``.csv``                           a row of cells; a cell (``column``); a log (``by, symbol``)
    ``"tsv"``      ``.tsv``, ``.tab``                 the same
    ``"jsonl"``    ``.jsonl``, ``.ndjson``            a string or a list; a field (``column``); a log
    ``"fasta"``    ``.fasta``, ``.fa``, ``.fna``, ... the letters of a record, over any number of lines
    ``"fastq"``    ``.fastq``, ``.fq``                the same; qualities are not used
    ``"parquet"``  ``.parquet``, ``.pq``              a list or a string in a column; a log (needs pyarrow)
    ============== ================================== =========================================================

    Each of them may be packed by gzip (``.gz``). Text is in UTF-8, or in UTF-16 with a byte order mark. Nothing is left
    out in silence: what is not clear is an error that names the file, the line and the column.

    - *Empty sequences.* A blank line is an error. An empty sequence is ``""`` or ``[]`` in JSON lines, ``""`` in CSV.
    - *Rows of CSV.* Blank cells at the end of a row are no symbols. The first line is a row, unless it has numbered
      names, such as ``t1, t2, ...``, or ``by`` is the column that names the sequences.
    - *Missing values.* Blank cells and marks such as ``NA`` are errors; in quotes, they are texts.
    - *Whole numbers.* Where all symbols between separators are whole numbers, they are integers, which are their own
      codes, as in :meth:`Sequences.of`.
    - *Nucleotides and amino acids.* FASTA and FASTQ have the alphabet ``ACGT``, ``ACGU``, or the 20 amino acids,
      whatever letters occur; lower case is read as upper case. Letters that mean several of them, such as ``N``, and
      gaps are errors until ``alphabet`` says what they are: ``alphabet="ACGTN"`` takes ``N`` as a symbol of its own,
      and ``alphabet="ACGT", skip_unknown=True`` leaves out the sequences that have others.
    - *Order of events.* In a log, ``order_by`` is a column of numbers, or of times such as ``2024-01-31 09:30``.
      Left out, events are in the order of the file.

    :param path: the path of the file.
    :param alphabet: as in :meth:`Sequences.of`. Left out, it is read off the file.
    :param format: the format, if the name of the file does not end in one of the table.
    :param sep: what separates the symbols of a text; ``" "`` is any white space. In a CSV with one sequence or event a
        row, what separates the cells; left out, this is read off the first line: ``,`` or ``;`` or a tab or ``|``.
    :param column: the column, or the field of the objects, that has the sequences.
    :param by: for a log with one event a row, the column, or several, that tells the sequences apart. In a CSV without
        ``symbol``, the column that names the sequences, one a row.
    :param symbol: for a log, the column of symbols.
    :param order_by: for a log, the column, or several, that orders the events of a sequence. Left out, they stay in the
        order of the rows.
    :param skip_unknown: whether to leave out, with a warning, the sequences that have symbols outside of ``alphabet``.
    :raises ValueError: naming the file, the line and the column, what was expected and found, and the fix.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> reads = Path(folder.name, "reads.fa")
    >>> _ = reads.write_text(">1\nACG\nT\n>2\nCC\n")
    >>> read(reads)
    Sequences(2 over ('A', 'C', 'G', 'T'): ['A', 'C', 'G', 'T'], ['C', 'C'])
    >>> log = Path(folder.name, "clicks.csv")
    >>> _ = log.write_text("visit,page,time\n7,home,1\n3,buy,6\n7,search,2\n3,home,4\n")
    >>> read(log, by="visit", symbol="page", order_by="time").to_lists()
    [['home', 'search'], ['home', 'buy']]
    >>> _ = log.write_text("home,search\nbuy,,home\n")
    >>> read(log)
    Traceback (most recent call last):
    ValueError: clicks.csv, line 2, cell 2: found an empty cell, expected a symbol; blank cells stand at the end ...
    >>> folder.cleanup()
    """
    check_flag("skip_unknown", skip_unknown)
    known = None if alphabet is None else as_alphabet(alphabet)
    if skip_unknown and known is None:
        raise ValueError("skip_unknown: expected alphabet= beside it, which says what is known, found none")
    log = _log(by, symbol, order_by)
    content = content_of(path)
    kind = _format_of(content.name, format)
    _check_options(kind, sep, column, by, symbol, order_by)
    if kind in ("fasta", "fastq"):
        records = fasta_rows(content) if kind == "fasta" else fastq_rows(content)
        rows, known = biological(records, known)
        return as_sequences(rows, known, skip_unknown)
    return as_sequences(_rows(content, kind, sep, column, by, log, known), known, skip_unknown)


def _rows(
    content: FileContent,
    kind: str,
    sep: str | None,
    column: str | None,
    by: str | Sequence[str] | None,
    log: Log | None,
    alphabet: Alphabet | None,
) -> SymbolRows:
    """The sequences of a file that has no records."""
    if kind == "text":
        return text_rows(content, sep, alphabet)
    if log is not None and kind in ("csv", "tsv"):
        file = delimited_file(content, _delimiter(kind, sep))
        table = delimited_table(file, log.columns)
        if not log.order:
            warn_of_unsorted_times(file, log.by)
        return log_rows(table, log, alphabet)
    if log is not None:
        return log_rows(_table(content, kind, sep, log.columns), log, alphabet)
    if column is not None:
        return column_rows(_table(content, kind, None, [column]), column, sep, alphabet)
    if kind == "jsonl":
        return json_rows(content, sep, alphabet)
    if kind == "parquet":
        frame = parquet_frame(content)
        name = only_column(content.name, frame)
        return column_rows(parquet_table(content.name, frame, [name]), name, sep, alphabet)
    return wide_rows(delimited_file(content, _delimiter(kind, sep)), None if by is None else str(by), alphabet)


def _table(content: FileContent, kind: str, delimiter: str | None, needed: list[str]) -> Table:
    if kind == "jsonl":
        return json_table(content, needed)
    if kind == "parquet":
        return parquet_table(content.name, parquet_frame(content), needed)
    return delimited_table(delimited_file(content, _delimiter(kind, delimiter)), needed)


def _delimiter(kind: str, sep: str | None) -> str | None:
    return "\t" if kind == "tsv" and sep is None else sep


def _format_of(file: str, stated: str | None) -> str:
    if stated is not None:
        check_choice("format", stated, list(FORMATS))
        return stated
    name = PurePath(file.lower())
    ending = PurePath(name.stem).suffix if name.suffix == ".gz" else name.suffix
    for kind, endings in FORMATS.items():
        if ending in endings:
            return kind
    known = ", ".join(ending for endings in FORMATS.values() for ending in endings)
    hint = "; for a list in a file of JSON, use Sequences.of(json.load(file))" if ending == ".json" else ""
    raise ValueError(
        f"{file}: expected a name that ends in one of {known}, found {ending!r}; pass format= one of "
        f"{list(FORMATS)}{hint}"
    )


def _log(by: object, symbol: object, order_by: object) -> Log | None:
    """The columns of a log, if the user names one of symbols."""
    if symbol is None:
        if order_by is not None:
            raise ValueError(
                "order_by: expected by= and symbol= beside it, for a log with one event a row, found no symbol="
            )
        if by is not None and not isinstance(by, str):
            raise ValueError(f"by: expected symbol= beside several columns, or a single column, found {found(by)}")
        return None
    if by is None:
        raise ValueError(
            "symbol: expected by= beside it, the column that tells the sequences apart, found none; for a column that "
            "has a whole sequence in each row, pass column="
        )
    if not isinstance(symbol, str):
        raise ValueError(f"symbol: expected the name of a column, found {found(symbol)}")
    return Log(_names("by", by), symbol, [] if order_by is None else _names("order_by", order_by))


def _names(argument: str, names: object) -> list[str]:
    several = [names] if isinstance(names, str) else names
    if not isinstance(several, list | tuple) or not several or not all(isinstance(name, str) for name in several):
        raise ValueError(f"{argument}: expected the name of a column or a list of names, found {found(names)}")
    return list(several)


def _check_options(kind: str, sep: object, column: object, by: object, symbol: object, order_by: object) -> None:
    """Refuses options that mean nothing for a format, or contradict each other."""
    if column is not None and not isinstance(column, str):
        raise ValueError(f"column: expected the name of a column, found {found(column)}")
    if column is not None and by is not None:
        raise ValueError("column: expected it, for sequences in cells, or by=, for a log, found both; leave one out")
    tables = ("csv", "tsv", "jsonl", "parquet")
    options = {"sep": sep, "column": column, "by": by, "symbol": symbol, "order_by": order_by}
    for name, value in options.items():
        if value is None or kind in tables or (kind == "text" and name == "sep"):
            continue
        raise ValueError(f"{name}: expected a format that has it, found {kind!r}; leave it out, or correct format=")
    if kind in ("jsonl", "parquet"):
        if by is not None and symbol is None:
            raise ValueError(
                f"by: expected symbol= beside it, the column of symbols, found none for the format {kind!r}"
            )
        if by is not None and sep is not None:
            raise ValueError("sep: expected none for a log with one event a row; leave it out")

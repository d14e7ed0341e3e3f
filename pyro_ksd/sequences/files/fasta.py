# SPDX-License-Identifier: Apache-2.0
"""Reading FASTA and FASTQ: records with a name, and letters that may go over several lines."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

from pyro_ksd.common.user_warnings import warn_user
from pyro_ksd.sequences.alphabets import Alphabet
from pyro_ksd.sequences.files.file_contents import FileContent
from pyro_ksd.sequences.files.symbol_rows import SymbolRows

DNA = "ACGT"
RNA = "ACGU"
AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
_RARE_AMINO_ACIDS = "OU"
_AMBIGUOUS_BASES = "BDHKMNRSVWY"
_AMBIGUOUS_AMINO_ACIDS = "BJXZ"


@dataclass(frozen=True)
class RecordRows(SymbolRows):
    """The sequences of records.

    :param lines: those of the file.
    :param starts: the number, from 0, of the first line of letters of each record.
    """

    lines: list[str] = field(repr=False)
    starts: list[int] = field(repr=False)

    def place(self, row: int, position: int) -> str:
        number = self.starts[row]
        while position >= len(self.lines[number].strip()):
            position -= len(self.lines[number].strip())
            number += 1
        indent = len(self.lines[number]) - len(self.lines[number].lstrip())
        return f"{self.file}, line {number + 1}, column {position + indent + 1}"

    def chosen(self, kept: list[int]) -> Self:
        return replace(self, rows=[self.rows[row] for row in kept], starts=[self.starts[row] for row in kept])


def fasta_rows(content: FileContent) -> RecordRows:
    """The letters of the records of FASTA. Blank lines mean nothing."""
    lines = content.lines()
    parts: list[list[str]] = []
    starts: list[int] = []
    named = 0
    for number, line in enumerate(lines):
        if line.startswith(">"):
            _check_letters(content.name, parts, named)
            parts.append([])
            starts.append(number + 1)
            named = number
        elif line.strip():
            if not parts:
                raise ValueError(
                    f"{content.name}, line {number + 1}, column 1: found {line[:1]!r}, expected '>' and the name of "
                    "the first sequence; for sequences without names, pass format='text'"
                )
            parts[-1].append(line.strip())
    _check_letters(content.name, parts, named)
    if not parts:
        raise ValueError(f"{content.name}: expected at least one sequence, found blank lines only")
    return RecordRows(content.name, ["".join(part) for part in parts], lines, starts)


def fastq_rows(content: FileContent) -> RecordRows:
    """The letters of the records of FASTQ; qualities are not used. A record without letters is an empty sequence."""
    lines = content.lines()
    while lines and not lines[-1].strip():
        lines.pop()
    rows: list[str] = []
    starts: list[int] = []
    number = 0
    while number < len(lines):
        title = number
        _check_start(content.name, lines, number, "@", "'@' and the name of the next read")
        start = number = number + 1
        while number < len(lines) and not lines[number].startswith("+"):
            number += 1
        letters = "".join(line.strip() for line in lines[start:number])
        _check_start(content.name, lines, number, "+", f"'+' after the letters of the read of line {title + 1}")
        repeated = lines[number][1:].strip()
        if repeated and repeated != lines[title][1:].strip():
            raise ValueError(
                f"{content.name}, line {number + 1}, column 2: found the name {repeated!r}, expected that of line "
                f"{title + 1} or none; correct the file"
            )
        plus, number = number, number + 1
        count = 0
        while number < len(lines) and (count < len(letters) or number == plus + 1):
            count += len(lines[number].strip())
            number += 1
        if count != len(letters):
            raise ValueError(
                f"{content.name}, line {plus + 2}: found {count} qualities, expected {len(letters)}, one for each "
                f"letter of the read of line {title + 1}; is the file whole?"
            )
        rows.append(letters)
        starts.append(start)
    return RecordRows(content.name, rows, lines, starts)


def biological(found: RecordRows, alphabet: Alphabet | None) -> tuple[RecordRows, Alphabet]:
    """Records with upper-case letters, and the alphabet of nucleotides or amino acids, or the one that was stated.

    :raises ValueError: for letters that mean several nucleotides or amino acids, gaps and other signs, if no alphabet
        was stated.
    """
    symbols = alphabet if isinstance(alphabet, tuple) else ()
    if not any(isinstance(symbol, str) and symbol != symbol.upper() for symbol in symbols):
        found = _upper(found)
    if alphabet is not None:
        return found, alphabet
    letters = set("".join(map(str, found.rows)))
    for known in (DNA, RNA):
        if letters <= set(known):
            return found, tuple(known)
    named = set(filter(str.isalpha, letters))
    is_protein = bool(named - set(RNA + DNA + _AMBIGUOUS_BASES)) and named <= set(
        AMINO_ACIDS + _RARE_AMINO_ACIDS + _AMBIGUOUS_AMINO_ACIDS
    )
    if not is_protein:
        known = RNA if "U" in letters and "T" not in letters else DNA
        raise _unclear(found, letters - set(known), known, "nucleotides")
    others = letters - set(AMINO_ACIDS + _RARE_AMINO_ACIDS)
    known = AMINO_ACIDS + "".join(letter for letter in _RARE_AMINO_ACIDS if letter in letters)
    if others:
        raise _unclear(found, others, known, "amino acids")
    return found, tuple(known)


def _upper(found: RecordRows) -> RecordRows:
    """Records with upper-case letters; a warning says if only some of them were written in lower case."""
    rows = [str(row) for row in found.rows]
    upper = [row.upper() for row in rows]
    if rows == upper:
        return found
    if any(row != row.lower() for row in rows):
        count = sum(sum(map(str.islower, row)) for row in rows)
        warn_user(
            f"{found.file}: read {count} letters in lower case, which often mark masked regions, as upper case; state "
            "alphabet= with both cases to tell them apart, or with upper case only and change the file to silence this"
        )
    return replace(found, rows=upper)


def _unclear(found: RecordRows, others: set[str], known: str, kind: str) -> ValueError:
    """The error for letters of which nobody has said what they mean."""
    row, position = found.first(others)
    letter = found.rows[row][position]
    rows = sum(not others.isdisjoint(letters) for letters in found.rows)
    more = "".join(sorted(others))
    return ValueError(
        f"{found.place(row, position)}: found {letter!r}, expected {kind}, {known!r}; {rows} of {len(found.rows)} "
        f"sequences have {more!r}; say what that means: alphabet={known + more!r} takes each of these as a symbol of "
        f"its own, and alphabet={known!r} with skip_unknown=True leaves out the sequences that have one"
    )


def _check_letters(file: str, parts: list[list[str]], named: int) -> None:
    """Refuses a name without letters: the file may have lost them."""
    if parts and not parts[-1]:
        raise ValueError(
            f"{file}, line {named + 1}: found the name of a sequence without letters, expected letters in the next "
            "line; "
            'remove the name, or, for empty sequences, write text in JSON lines, where "" is one'
        )


def _check_start(file: str, lines: list[str], number: int, sign: str, expected: str) -> None:
    if number >= len(lines):
        raise ValueError(
            f"{file}, line {number + 1}: found the end of the file, expected {expected}; is the file whole?"
        )
    if not lines[number].startswith(sign):
        raise ValueError(f"{file}, line {number + 1}, column 1: found {lines[number][:1]!r}, expected {expected}")

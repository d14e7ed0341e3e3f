# SPDX-License-Identifier: Apache-2.0
"""Reading text, one sequence a line."""

from __future__ import annotations

from dataclasses import dataclass

from pyro_ksd.sequences.alphabets import Alphabet
from pyro_ksd.sequences.files.file_contents import FileContent
from pyro_ksd.sequences.files.symbol_rows import LineRows, SymbolRows, split_text, with_numbers
from pyro_ksd.sequences.text_reading import check_sep, warn_if_never_split, warn_of_words


@dataclass(frozen=True)
class CharacterRows(LineRows):
    """Lines whose characters are the symbols, so that positions are columns."""

    def place(self, row: int, position: int) -> str:
        return f"{self.line_place(row)}, column {position + 1}"


def text_rows(content: FileContent, sep: str | None, alphabet: Alphabet | None) -> SymbolRows:
    """The sequences of a text.

    :raises ValueError: for a blank line, which may be an empty sequence or none; for white space at the ends of lines
        whose characters are the symbols; and for a file that seems to be FASTA.
    """
    lines = content.lines()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            raise ValueError(
                f"{content.name}, line {number}: found a blank line, expected a sequence; remove the line, or, if it "
                "is "
                'an empty sequence, write JSON lines (.jsonl), where "" is one'
            )
    numbers = range(1, len(lines) + 1)
    if sep is not None:
        check_sep(sep)
        rows = [split_text(line, sep, f"{content.name}, line {number}") for number, line in enumerate(lines, 1)]
        if alphabet is None:
            warn_if_never_split(rows, sep)
        return with_numbers(LineRows(content.name, rows, numbers), alphabet)
    characters = CharacterRows(content.name, lines, numbers)
    if alphabet is not None:
        return with_numbers(characters, alphabet)
    _check_characters(content.name, lines)
    warn_of_words(lines)
    return characters


def _check_characters(file: str, lines: list[str]) -> None:
    if lines[0].startswith(">") and len(lines) > 1:
        raise ValueError(
            f"{file}, line 1, column 1: found '>', which begins a file of FASTA, expected a sequence; pass "
            "format='fasta', or state alphabet= if '>' is a symbol"
        )
    for number, line in enumerate(lines, 1):
        if line != line.strip():
            column = 1 if line[0].isspace() else len(line.rstrip()) + 1
            raise ValueError(
                f"{file}, line {number}, column {column}: found white space at the end of a line, expected none where "
                "each character is a symbol; remove it, pass sep=' ' if white space separates the symbols, or state "
                "alphabet= if it is a symbol"
            )

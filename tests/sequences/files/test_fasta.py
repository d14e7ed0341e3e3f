# SPDX-License-Identifier: Apache-2.0
"""FASTA and FASTQ."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from pyro_ksd.sequences.files.fasta import AMINO_ACIDS, RecordRows, biological, fasta_rows, fastq_rows
from pyro_ksd.sequences.files.file_contents import FileContent


def fasta(text: str) -> RecordRows:
    return fasta_rows(FileContent("f.fa", text.encode()))


def fastq(text: str) -> RecordRows:
    return fastq_rows(FileContent("f.fq", text.encode()))


def test_records_over_several_lines() -> None:
    found = fasta(">1 first\nACG\nT\n\n> 2\n  GG  \n\nC\n>3\nA")
    assert found.rows == ["ACGT", "GGC", "A"]
    places = [found.place(0, 2), found.place(0, 3), found.place(1, 1), found.place(1, 2), found.place(2, 0)]
    assert [place.removeprefix("f.fa, ") for place in places] == [
        "line 2, column 3",
        "line 3, column 1",
        "line 6, column 4",
        "line 8, column 1",
        "line 10, column 1",
    ]
    assert found.chosen([2]).place(0, 0) == "f.fa, line 10, column 1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ACG\n", "f.fa, line 1, column 1: found 'A', expected '>' and the name of the first sequence"),
        (">1\n>2\nA", "f.fa, line 1: found the name of a sequence without letters"),
        (">1\nA\n>2\n\n", "f.fa, line 3: found the name of a sequence without letters"),
        ("\n\n", "f.fa: expected at least one sequence, found blank lines only"),
    ],
)
def test_wrong_fasta(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        fasta(text)


def test_fastq() -> None:
    found = fastq("@1\nACG\n+\n@+I\n@2\n\n+2\n\n@3\nAC\nGT\n+\n@@\n++\n")
    assert found.rows == ["ACG", "", "ACGT"]
    assert found.place(2, 2) == "f.fq, line 11, column 1"


def test_fastq_of_random_reads() -> None:
    chance = random.Random(0)
    for _ in range(50):
        reads = ["".join(chance.choices("ACGT", k=chance.randrange(9))) for _ in range(chance.randrange(1, 6))]
        width = chance.randrange(1, 9)
        text = ""
        for read in reads:
            quality = "".join(chance.choices("@+I>", k=len(read)))
            parts = [[whole[i : i + width] for i in range(0, len(whole), width)] or [""] for whole in (read, quality)]
            text += "@r\n" + "\n".join(parts[0]) + "\n+\n" + "\n".join(parts[1]) + "\n"
        assert fastq(text).rows == reads


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (">1\nACG\n", "f.fq, line 1, column 1: found '>', expected '@' and the name of the next read"),
        ("@1\nACG\n", "f.fq, line 3: found the end of the file, expected '+' after the letters of the read of line 1"),
        ("@1\nACG\n+\nII\n", "f.fq, line 4: found 2 qualities, expected 3, one for each letter of the read of line 1"),
        ("@1\nACG\n+\nIIII\n", "f.fq, line 4: found 4 qualities, expected 3"),
        ("@1\nACG\n+\n", "f.fq, line 4: found 0 qualities, expected 3"),
        ("@1\nACG\n+2\nIII\n", "f.fq, line 3, column 2: found the name '2', expected that of line 1 or none"),
        ("@1\nACG\n+\nIII\nACG\n", "f.fq, line 5, column 1: found 'A', expected '@' and the name of the next read"),
        ("@1\nACG\n+\nIII\n\n@2\nA\n+\nI\n", "f.fq, line 5, column 1: found '', expected '@'"),
    ],
)
def test_wrong_fastq(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        fastq(text)


@pytest.mark.parametrize(
    ("letters", "alphabet"),
    [
        ("AC", "ACGT"),
        ("acgt", "ACGT"),
        ("ACGU", "ACGU"),
        ("MKVL", AMINO_ACIDS),
        ("MKLU", AMINO_ACIDS + "U"),
        ("MKOU", AMINO_ACIDS + "OU"),
    ],
)
def test_alphabets(letters: str, alphabet: str) -> None:
    found, known = biological(fasta(f">1\n{letters}"), None)
    assert known == tuple(alphabet)
    assert set(found.rows[0]) <= set(alphabet)


@pytest.mark.parametrize(
    ("letters", "message"),
    [
        (
            "ACNGNR",
            "f.fa, line 4, column 3: found 'N', expected nucleotides, 'ACGT'; 1 of 2 sequences have 'NR'; say what "
            "that means: alphabet='ACGTNR' takes each of these as a symbol of its own, and alphabet='ACGT' with "
            "skip_unknown=True leaves out the sequences that have one",
        ),
        ("ACUN", "f.fa, line 4, column 4: found 'N', expected nucleotides, 'ACGU'"),
        ("ACUT", "f.fa, line 4, column 3: found 'U', expected nucleotides, 'ACGT'"),
        ("AC-GT", "f.fa, line 4, column 3: found '-', expected nucleotides, 'ACGT'"),
        ("AC GT", "f.fa, line 4, column 3: found ' ', expected nucleotides, 'ACGT'"),
        ("MKLX", f"f.fa, line 4, column 4: found 'X', expected amino acids, '{AMINO_ACIDS}'"),
        ("MKL*", f"f.fa, line 4, column 4: found '*', expected amino acids, '{AMINO_ACIDS}'"),
    ],
)
def test_letters_that_are_not_clear(letters: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        biological(fasta(f">1\nAC\n>2\n{letters}"), None)


@pytest.mark.parametrize("alphabet", [tuple("ACGTN"), tuple("ACGTacgt"), 4])
def test_a_stated_alphabet(alphabet: Any) -> None:
    found, known = biological(fasta(">1\nacgt"), alphabet)
    assert known == alphabet
    assert found.rows == ["acgt" if alphabet == tuple("ACGTacgt") else "ACGT"]


def test_mixed_case_is_warned_of() -> None:
    with pytest.warns(
        UserWarning, match=r"^f.fa: read 3 letters in lower case, which often mark masked regions, as upper"
    ):
        found, _ = biological(fasta(">1\nACgt\n>2\na"), None)
    assert found.rows == ["ACGT", "A"]

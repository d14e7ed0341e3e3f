# SPDX-License-Identifier: Apache-2.0
"""Messages of Python functions, in the words of the command line."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from pyro_ksd.command_line.entry_point import main
from pyro_ksd.command_line.messages import in_options, plain_warnings

FEW = ["--num-bootstrap", "20", "--views", "content-1"]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("pass sep=' ' or state alphabet= if it is", "pass --sep ' ' or state --alphabet if it is"),
        ("order_by: expected by= and symbol=", "--order-by: expected --by and --symbol"),
        ("leave them out, skip_unknown=True", "leave them out, --skip-unknown"),
        ('pass sep="\'"; or format= one of', 'pass --sep "\'"; or --format one of'),
        ("use Sequences.of(data, alphabet=vectors)", "use Sequences.of(data, alphabet=vectors)"),
        ("such as alphabet=sorted(x)", "such as alphabet=sorted(x)"),
        ("the column: by the symbol", "the column: by the symbol"),
        ("names.txt, line 3: found 'a=b'", "names.txt, line 3: found 'a=b'"),
    ],
)
def test_arguments_become_options(message: str, expected: str) -> None:
    assert in_options(message) == expected


def test_errors_and_warnings_of_reading(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reads = tmp_path / "reads.fasta"
    reads.write_text("".join(f">{number}\nACG{'N' if number == 3 else 'T'}\n" for number in range(20)))
    words = ["check", str(reads), "--fit", "markov", *FEW]
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("pyro-ksd: reads.fasta, line 8, column 4: found 'N'")
    assert "--alphabet 'ACGTN' takes" in error
    assert "--alphabet 'ACGT' with --skip-unknown leaves" in error
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        main([*words, "--alphabet", "ACGT", "--skip-unknown"])
    error = capsys.readouterr().err
    assert error.startswith("pyro-ksd: warning: left out 1 of 20 sequences")
    assert ".py" not in error


def test_other_warnings_keep_their_place() -> None:
    usual = warnings.showwarning
    with pytest.warns(FutureWarning, match="soon gone"), plain_warnings():
        warnings.warn("soon gone", FutureWarning, stacklevel=1)
    assert warnings.showwarning is usual

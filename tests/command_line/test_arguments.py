# SPDX-License-Identifier: Apache-2.0
"""What can be written on the command line."""

from __future__ import annotations

import re

import pytest

from pyro_ksd.command_line.arguments import parser


def test_all_options_of_a_check() -> None:
    words = "check log.csv --by visit --symbol page --order-by time --format csv --sep ; --alphabet a,b --skip-unknown"
    words += " --model my_models:clicks --views content-2 length --end stop --level 0.01 --tolerance 0.1"
    words += " --num-bootstrap 99 --seed 3 --html report.html --output check.nc"
    found = vars(parser().parse_args(words.split()))
    assert found == {
        "command": "check",
        "data": "log.csv",
        "by": "visit",
        "symbol": "page",
        "order_by": "time",
        "format": "csv",
        "sep": ";",
        "alphabet": "a,b",
        "skip_unknown": True,
        "column": None,
        "model": "my_models:clicks",
        "fit": None,
        "order": None,
        "holdout": None,
        "views": ["content-2", "length"],
        "end": "stop",
        "level": 0.01,
        "tolerance": 0.1,
        "num_bootstrap": 99,
        "seed": 3,
        "html": "report.html",
        "output": "check.nc",
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "required: COMMAND"),
        ("repair names.txt", "invalid choice: 'repair'"),
        ("check names.txt", "one of the arguments --model --fit is required"),
        ("check names.txt --fit markov --model a:b", "not allowed with"),
        ("check names.txt --fit hmm", "invalid choice: 'hmm'"),
        ("check names.txt --fit markov --order two", "invalid int value: 'two'"),
        ("compare names.txt", "required: --model"),
        ("report check.nc", "required: --html"),
    ],
)
def test_wrong_words_end_with_the_code_of_an_error(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(words.split())
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_help_names_the_exit_codes_and_examples_that_can_be_parsed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert "exit codes: 0 the model may fit" in text
    examples = re.findall(r"^  pyro-ksd (.*)$", text, re.MULTILINE)
    assert len(examples) == 5
    for example in examples:
        parser().parse_args(example.split())

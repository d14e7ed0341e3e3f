# SPDX-License-Identifier: Apache-2.0
"""Checks and comparisons from the command line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
import torch

from pyro_ksd import ksd_check, ksd_compare, load, read, split
from pyro_ksd.command_line.entry_point import main
from pyro_ksd.examples import random_walk
from pyro_ksd.models import fit_markov

MODELS = """
from pyro_ksd.examples import random_walk

moves = random_walk(3, mean_length=4.0)
rests = random_walk(3, hold=0.5, mean_length=4.0)
"""
FEW = ["--num-bootstrap", "99"]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A current folder with models, and with walks that stay where they are every other time."""
    (tmp_path / "walks.py").write_text(MODELS)
    drawn = random_walk(3, hold=0.5, mean_length=4.0).draw(40, torch.Generator().manual_seed(0))
    (tmp_path / "walks.txt").write_text("".join(f"{''.join(one)}\n" for one in drawn.over("abc").to_lists()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop("walks", None)


@pytest.mark.filterwarnings("ignore:.* probability zero")
@pytest.mark.parametrize(("model", "code"), [("moves", 1), ("rests", 0)])
def test_the_exit_code_is_the_verdict(model: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["check", "walks.txt", "--model", f"walks:{model}", "--views", "content-2", "length", *FEW]
    assert main([*words, "--output", "check.nc", "--html", "report.html"]) == code
    shown = capsys.readouterr().out
    found = load("check.nc")
    assert shown == f"{found}\nResult: check.nc\nReport: report.html\n"
    hold = 0.5 if model == "rests" else 0.0
    expected = ksd_check(
        random_walk(3, hold=hold, mean_length=4.0), read("walks.txt"), views=["content-2", "length"], num_bootstrap=99
    )
    assert str(found) == str(expected)
    assert f"<h1>Does walks:{model} fit walks.txt?</h1>" in Path("report.html").read_text()


def test_a_chain_is_fitted_to_the_other_data(capsys: pytest.CaptureFixture[str]) -> None:
    random = Random(0)
    names = ["".join(random.choices("abc", k=random.randrange(2, 6))) for _ in range(60)]
    Path("names.txt").write_text("\n".join(names))
    words = ["check", "names.txt", "--fit", "markov", "--order", "2", "--holdout", "0.4", "--seed", "3", *FEW]
    code = main([*words, "--views", "content-1", "--tolerance", "0.1", "--level", "0.01"])
    shown = capsys.readouterr().out
    first = "Model: a Markov chain of order 2, fitted to 36 other sequences with back-off\nData: 24 sequences\n\n"
    fit_to, check_on = split(read("names.txt"), 0.6, seed=3)
    options = {"views": "content-1", "tolerance": 0.1, "level": 0.01, "num_bootstrap": 99, "seed": 3}
    expected = ksd_check(fit_markov(fit_to, 2, backoff=True), check_on, **options)
    assert shown == f"{first}{expected}\n"
    assert code == int(float(expected["ksd"]["p_value_overall"]) <= 0.01)


def test_models_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    Path("walks.py").write_text(MODELS.replace("moves = random_walk(3,", "moves = random_walk(3, hold=0.1,"))
    words = ["compare", "walks.txt", "--model", "a=walks:moves", "--model", "b=walks:rests", "--views", "content-2"]
    assert main([*words, "--html", "report.html"]) == 0
    models = {"a": random_walk(3, hold=0.1, mean_length=4.0), "b": random_walk(3, hold=0.5, mean_length=4.0)}
    expected = ksd_compare(models, read("walks.txt"), views=["content-2"])
    assert capsys.readouterr().out == f"{expected}\nReport: report.html\n"


def test_logs_are_read_as_the_options_say(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{visit},{page},{time}" for visit in range(9) for time, page in enumerate(["home", "buy", "home"])]
    Path("log.csv").write_text("\n".join(["visit,page,time", *reversed(rows)]))
    reading = ["--by", "visit", "--symbol", "page", "--order-by", "time", "--alphabet", "home,buy,leave"]
    words = ["check", "log.csv", *reading, "--model", "walks:rests", "--views", "content-1", *FEW, "--output", "log.nc"]
    main(words)
    found = load("log.nc")["ksd_data"]["token"]
    assert found.attrs["alphabet"] == '["home", "buy", "leave"]'
    assert found.values.tolist() == [[0, 1, 0]] * 9


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("check nothing.txt --fit markov", "nothing.txt"),
        ("check walks.txt --model walks:moves --order 2", "--order: expected --fit beside it, found --model"),
        ("check walks.txt --model walks:moves --holdout 0.2", "--holdout: expected --fit beside it"),
        ("check walks.txt --fit markov --holdout 1.0", "--holdout: expected a share between 0 and 1, found 1.0"),
        ("check walks.txt --fit markov --views nothing", "'nothing'"),
        ("check walks.txt --model walks:none", "--model: expected 'none' in the module 'walks'"),
        ("check walks.txt --fit markov --html nowhere/report.html", "--html: expected a file in a folder"),
        ("compare walks.txt --model a=walks:moves", "expected at least 2 models"),
        ("compare walks.txt --model walks:moves", "expected LABEL=MODULE:NAME"),
    ],
)
def test_a_mistake_is_an_error_in_one_line(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    error = capsys.readouterr().err
    assert error.startswith("pyro-ksd: ")
    assert error.count("\n") == 1
    assert message in error

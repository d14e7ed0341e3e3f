# SPDX-License-Identifier: Apache-2.0
"""Checks that are stopped, and go on from their checkpoint."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
import xarray as xr
from example_models import Unsampled, walk

from pyro_ksd import MarkovSequence, Sequences, ksd_check
from pyro_ksd.fit_tests import null_draws
from pyro_ksd.models import RefitMarkov, SequenceModel, fit_markov
from pyro_ksd.stein import summation

DATA = walk(hold=0.3).draw(15, torch.Generator().manual_seed(0))


def program(x: Any = None, num_sequences: int | None = None) -> Any:
    stop = pyro.sample("stop", dist.Beta(2.0, 2.0))
    chain = MarkovSequence.from_transitions(torch.full((5,), 0.2), torch.full((5, 5), 0.2), stop)
    with pyro.plate("sequences", num_sequences if x is None else len(x)):
        return pyro.sample("x", chain, obs=x)


def parametric(checkpoint: Path | None) -> xr.DataTree:
    return ksd_check(walk(), DATA, num_bootstrap=300, seed=4, checkpoint=checkpoint, progress=False)


def wild(checkpoint: Path | None) -> xr.DataTree:
    return ksd_check(walk(), DATA, bootstrap="wild", num_bootstrap=300, checkpoint=checkpoint, progress=False)


def refitted(checkpoint: Path | None) -> xr.DataTree:
    fitted = fit_markov(DATA, order=1)
    options: dict[str, Any] = {"num_bootstrap": 30, "checkpoint": checkpoint, "progress": False}
    return ksd_check(fitted, DATA, refit=RefitMarkov(), **options)


def posterior(checkpoint: Path | None) -> xr.DataTree:
    draws = {"stop": torch.linspace(0.1, 0.3, 40)}
    return ksd_check(program, DATA, posterior=draws, checkpoint=checkpoint, progress=False)


def fit(model: Any, data: Sequences) -> dict[str, torch.Tensor]:
    """Draws of the posterior of the stop."""
    stops = torch.tensor([2.0 + len(data), 2.0 + float((data.lengths - 1).sum())])
    return {"stop": dist.Beta(*stops).sample((2, 20))}


FIT_OPTIONS: dict[str, Any] = {"fit": fit, "folds": 3, "views": ["content-1", "length"], "seed": 4, "progress": False}


def held_out(checkpoint: Path | None) -> xr.DataTree:
    draws = {"stop": torch.linspace(0.1, 0.3, 40)}
    return ksd_check(program, DATA, posterior=draws, held_out=True, checkpoint=checkpoint, progress=False)


def divided(checkpoint: Path | None) -> xr.DataTree:
    return ksd_check(program, DATA, checkpoint=checkpoint, **FIT_OPTIONS)


CALLS: dict[str, Callable[[Path | None], xr.DataTree]] = {
    "parametric": parametric,
    "wild": wild,
    "refitted": refitted,
    "posterior": posterior,
    "held out": held_out,
    "divided": divided,
}


def assert_same(found: xr.DataTree, expected: xr.DataTree) -> None:
    """All numbers are the same, bit for bit."""
    assert set(found.children) == set(expected.children)
    for name, group in expected.children.items():
        for variable, values in group.to_dataset().variables.items():
            np.testing.assert_array_equal(found[name].to_dataset().variables[variable], values, err_msg=str(variable))


@pytest.mark.parametrize("name", CALLS)
def test_a_checkpoint_changes_no_result(name: str, tmp_path: Path) -> None:
    expected = CALLS[name](None)
    assert_same(CALLS[name](tmp_path / "kept"), expected)
    assert_same(CALLS[name](tmp_path / "kept"), expected)


def test_finished_draws_are_not_drawn_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    original = null_draws.null_statistics

    def stopping(model: Any, replicates: Sequences, *arguments: Any) -> Any:
        if len(drawn) == 2:
            raise KeyboardInterrupt
        drawn.append(len(replicates))
        return original(model, replicates, *arguments)

    monkeypatch.setattr(null_draws, "null_statistics", stopping)
    with pytest.raises(KeyboardInterrupt, match=r"stopped after 128 of 300 null draws, which are kept in .*kept"):
        parametric(tmp_path / "kept")
    with pytest.raises(KeyboardInterrupt, match=r"0 of 300 null draws, which are lost; pass checkpoint="):
        parametric(None)
    drawn.clear()
    monkeypatch.setattr(null_draws, "null_statistics", lambda *arguments: drawn.append(1) or original(*arguments))
    found = parametric(tmp_path / "kept")
    assert len(drawn) == 3
    assert_same(found, parametric(None))


def test_summed_sequences_are_not_visited_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.EDITS", 100)
    monkeypatch.setattr(summation, "SUMMED_ENTRIES", 500)
    monkeypatch.setattr(summation, "KEPT_SECONDS", 0.0)
    expected = wild(None)
    added: list[int] = []
    original = summation._RunningSums.add

    def stopping(running: Any, chunk: Any) -> None:
        if len(added) == 5:
            raise KeyboardInterrupt
        added.append(chunk.begin)
        original(running, chunk)

    monkeypatch.setattr(summation._RunningSums, "add", stopping)
    with pytest.raises(KeyboardInterrupt, match=r"stopped after \d+ of 30 steps, which are lost; pass checkpoint="):
        wild(None)
    added.clear()
    with pytest.raises(KeyboardInterrupt, match=r"stopped after [1-9]\d* of 30 steps, which are kept in .*kept"):
        wild(tmp_path / "kept")
    first = added.copy()
    added.clear()
    monkeypatch.setattr(
        summation._RunningSums, "add", lambda self, chunk: added.append(chunk.begin) or original(self, chunk)
    )
    assert_same(wild(tmp_path / "kept"), expected)
    assert added[0] > first[0] == 0
    assert_same(wild(tmp_path / "kept"), expected)


def test_more_draws_than_fit_are_kept_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summation, "SIGNED_ENTRIES", 20_000)
    monkeypatch.setattr(summation, "SUMMED_ENTRIES", 1)
    monkeypatch.setattr(summation, "KEPT_SECONDS", 0.0)
    added: list[int] = []
    original = summation._RunningSums.add
    monkeypatch.setattr(
        summation._RunningSums, "add", lambda self, chunk: added.append(chunk.begin) or original(self, chunk)
    )
    expected = wild(None)
    assert added.count(0) > 2  # the data are visited for some of the draws after the others
    assert_same(wild(tmp_path / "kept"), expected)
    added.clear()
    assert_same(wild(tmp_path / "kept"), expected)
    assert not added  # all of these sums are kept


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seed": 5}, "differs in: seed;"),
        ({"num_bootstrap": 30}, "differs in: num_bootstrap;"),
        ({"views": "start"}, "differs in: views, model or views;"),
        ({"balancing": "mpf"}, "differs in: model or views;"),
        ({"bootstrap": "wild"}, "differs in: bootstrap;"),
    ],
)
def test_the_file_of_another_check_is_refused(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    own: dict[str, Any] = {"num_bootstrap": 20, "checkpoint": tmp_path / "kept", "progress": False}
    ksd_check(walk(), DATA, **own)
    with pytest.raises(ValueError, match=words):
        ksd_check(walk(), DATA, **own | options)
    with pytest.raises(ValueError, match="differs in: model or views"):
        ksd_check(walk(hold=0.2), DATA, **own)
    with pytest.raises(ValueError, match="differs in: data, model or views"):
        ksd_check(walk(), DATA[:14], **own)


def test_finished_fits_and_folds_are_not_repeated(tmp_path: Path) -> None:
    fitted: list[int] = []

    def counting(model: Any, data: Sequences) -> dict[str, torch.Tensor]:
        if len(fitted) == 2:
            raise KeyboardInterrupt
        fitted.append(len(data))
        return fit(model, data)

    counting.__qualname__ = fit.__qualname__
    options = {**FIT_OPTIONS, "fit": counting, "checkpoint": tmp_path / "kept"}
    with pytest.raises(KeyboardInterrupt):
        ksd_check(program, DATA, **options)
    assert fitted == [10, 10]
    fitted[:] = [0]
    assert_same(ksd_check(program, DATA, **options), divided(None))
    assert fitted == [0, 10]  # that of the last fold alone


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seed": 5}, "differs in: seed;"),
        ({"folds": 4}, "differs in: folds;"),
        ({"num_bootstrap": 7}, "differs in: num_bootstrap;"),
        ({"fit": RefitMarkov()}, "differs in: fit;"),
        ({"views": "length"}, "differs in: views, model or views;"),
        ({"balancing": "mpf"}, "differs in: model or views;"),
    ],
)
def test_the_file_of_other_folds_is_refused(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    own = {**FIT_OPTIONS, "checkpoint": tmp_path / "kept", "num_bootstrap": 10}
    ksd_check(program, DATA, **own)
    with pytest.raises(ValueError, match=words):
        ksd_check(program, DATA, **own | options)
    with pytest.raises(ValueError, match="differs in: data;"):
        ksd_check(program, DATA[:14], **own)
    with pytest.raises(ValueError, match="differs in: model or views"):
        ksd_check(even_program, DATA, **own)


def even_program(x: Any = None, num_sequences: int | None = None) -> Any:
    """Another program with the same site."""
    stop = pyro.sample("stop", dist.Beta(2.0, 2.0))
    initial = torch.tensor([0.6, 0.1, 0.1, 0.1, 0.1])
    chain = MarkovSequence.from_transitions(initial, initial.expand(5, 5), stop)
    with pyro.plate("sequences", num_sequences if x is None else len(x)):
        return pyro.sample("x", chain, obs=x)


class FavorsLong(Unsampled):
    """A walk that gives long sequences another weight."""

    log_ratio = SequenceModel.log_ratio

    def __init__(self, bonus: float) -> None:
        super().__init__(walk())
        self.bonus = bonus

    def log_joint(self, sequences: Sequences) -> torch.Tensor:
        return super().log_joint(sequences) + self.bonus * (sequences.lengths > 5)


def test_models_that_differ_in_later_sequences_only_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyro_ksd.edits.weighted_edits.EDITS", 1)  # a chunk is one sequence
    data = Sequences.of([[0, 1]] * 4 + [[0, 1, 2, 3, 4, 3, 2]] * 4, 5)
    options: dict[str, Any] = {"views": "content-1", "num_bootstrap": 20, "progress": False}
    ksd_check(FavorsLong(0.0), data, checkpoint=tmp_path / "kept", **options)
    with pytest.raises(ValueError, match="differs in: model or views"):
        ksd_check(FavorsLong(1.0), data, checkpoint=tmp_path / "kept", **options)


def killed_after(seconds: float, work: Callable[[], Any]) -> None:
    """Does some work in another process, which is killed."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def assert_survives(name: str, runs: int, folder: Path) -> None:
    started = time.perf_counter()
    expected = CALLS[name](None)
    spent = time.perf_counter() - started
    moments = random.Random(0)
    for run in range(runs):
        kept = folder / str(run)
        for _ in range(moments.randint(1, 3)):
            killed_after(moments.uniform(0, 1.2 * spent), lambda kept=kept: CALLS[name](kept))  # type: ignore[misc]
        assert_same(CALLS[name](kept), expected)


@pytest.mark.parametrize("name", ["parametric", "divided"])
def test_a_check_that_is_killed_goes_on(name: str, tmp_path: Path) -> None:
    assert_survives(name, 2, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "runs"), [("parametric", 50), ("wild", 10), ("refitted", 10), ("posterior", 10), ("divided", 10)]
)
def test_checks_that_are_killed_at_random_moments_go_on(name: str, runs: int, tmp_path: Path) -> None:
    assert_survives(name, runs, tmp_path)

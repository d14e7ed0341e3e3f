# SPDX-License-Identifier: Apache-2.0
"""Monitors of streams: what they find, when, and that nothing depends on how a stream is cut or interrupted."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import pyro_ksd
from pyro_ksd import MarkovSequence, Sequences, ksd_monitor
from pyro_ksd.checks import Monitor
from pyro_ksd.examples import random_walk
from pyro_ksd.models import SequenceModel

ALPHABET = "abcd"


class OnlyScores(SequenceModel):
    """A walk that cannot be sampled."""

    alphabet_size = 4

    def log_joint(self, sequences: Sequences) -> torch.Tensor:
        return random_walk(4, mean_length=5.0).log_joint(sequences)


def stream(num: int, hold: float = 0.0, seed: int = 0, mean_length: float = 5.0) -> Sequences:
    walk = random_walk(4, hold=hold, mean_length=mean_length)
    return walk.draw(num, torch.Generator().manual_seed(seed)).over(ALPHABET)


def watched(data: Sequences, size: int = 50, **options: object) -> Monitor:
    monitor = ksd_monitor(random_walk(4, mean_length=5.0), ALPHABET, **options)  # type: ignore[arg-type]
    for begin in range(0, len(data), size):
        monitor.update(data[begin : begin + size])
    return monitor


def test_a_wrong_model_is_found_and_described() -> None:
    monitor = watched(stream(800, hold=0.15))
    assert monitor.rejected
    assert monitor.p_value < 1e-4
    found = monitor.result()["ksd_monitor"]
    assert 0 < found.attrs["first_clear"] < 800
    path = found["log_evidence_overall"].values
    before = found["num_sequences"].values < found.attrs["first_clear"]
    assert (path[before] < math.log(20)).all()
    features = monitor.result()["ksd_monitor_feature"]
    pairs = features.to_dataset().isel(feature=features["view_name"].values == "content-2")
    worst = pairs["label"].values[pairs["z"].values.argsort()[:4]]
    assert set(worst) == {"aa", "bb", "cc", "dd"}
    assert monitor.verdict().startswith(f"the model does not fit (p = {monitor.p_value:.2g}") or monitor.p_value < 1e-16


def test_a_true_model_is_not_rejected() -> None:
    monitors = [watched(stream(400, seed=seed), 100) for seed in range(12)]
    assert sum(monitor.rejected for monitor in monitors) <= 2
    quiet = next(monitor for monitor in monitors if not monitor.rejected)
    assert quiet.verdict() == f"no evidence against the model until now (p = {quiet.p_value:.2g} after 400 sequences)"


@pytest.mark.parametrize(("mean_length", "words"), [(3.0, "is too frequent"), (12.0, "too rare")])
def test_wrong_lengths_are_found(mean_length: float, words: str) -> None:
    monitor = watched(stream(600, mean_length=mean_length))
    assert monitor.rejected
    assert "the most evidence is in length" in monitor.verdict()


def test_lengths_of_a_model_that_cannot_be_sampled() -> None:
    monitor = ksd_monitor(OnlyScores(), ALPHABET)
    short = stream(4000)
    monitor.update(short[short.lengths < 4])
    features = monitor.result()["ksd_monitor_feature"].to_dataset()
    own = features.isel(feature=features["view_name"].values == "length")
    worst = own.isel(feature=int(own["z"].argmax("feature")))
    assert worst["label"].item() == "at least 4 symbols"
    assert monitor.rejected


@pytest.mark.parametrize("run_length", [None, 10_000])
def test_nothing_depends_on_how_the_stream_is_cut(run_length: int | None) -> None:
    data = stream(200, hold=0.1)
    whole, parts = watched(data, 200, run_length=run_length), watched(data, 7, run_length=run_length)
    a, b = whole.result()["ksd_monitor"], parts.result()["ksd_monitor"]
    assert a.attrs["first_clear"] == b.attrs["first_clear"]
    assert a["log_evidence"].values[-1] == pytest.approx(b["log_evidence"].values[-1], rel=1e-9, abs=1e-12)
    assert a.attrs["most_evidence"] == pytest.approx(b.attrs["most_evidence"], rel=1e-9)


def test_a_change_is_found_soon_and_the_past_forgotten() -> None:
    right, wrong = stream(3000, seed=3), stream(600, hold=0.3, seed=4)
    data = Sequences.cat([right, wrong])
    monitor = watched(data, 300, run_length=20_000)
    assert monitor.rejected
    first = monitor.result()["ksd_monitor"].attrs["first_clear"]
    assert 3000 < first < 3400
    assert math.isnan(monitor.p_value)
    assert monitor.verdict().startswith("the sequences do not fit the model any more (first clear after")
    assert watched(right, 300, run_length=20_000).verdict() == "no change until now (after 3000 sequences)"


def test_an_impossible_sequence_refutes_the_model_at_once() -> None:
    chain = MarkovSequence.from_transitions(torch.tensor([0.5, 0.5, 0.0]), torch.ones(3, 3) / 3, stop=0.5)
    monitor = ksd_monitor(chain, "abc")
    monitor.update(["ab", "b", "ca"])
    monitor.update(["a", "cc"])
    assert monitor.p_value == 0.0
    assert monitor.result()["ksd_monitor"].attrs["first_clear"] == 3
    assert monitor.verdict() == (
        "the model does not fit (p < 1e-16, first clear after 3 of 5 sequences): it gives probability 0 to 2 of 5 "
        "sequences"
    )


def test_a_checkpoint_goes_on_with_the_same_bits(tmp_path: Path) -> None:
    data = stream(300, hold=0.05)
    whole = watched(data)
    first = watched(data[:150], checkpoint=tmp_path / "kept")
    second = ksd_monitor(random_walk(4, mean_length=5.0), ALPHABET, checkpoint=tmp_path / "kept")
    for begin in range(150, 300, 50):
        second.update(data[begin : begin + 50])
    assert first.num_sequences == 150
    assert second.num_sequences == 300
    a, b = whole.result()["ksd_monitor"], second.result()["ksd_monitor"]
    assert a.to_dataset().drop_attrs().identical(b.to_dataset().drop_attrs())
    assert whole.p_value == second.p_value


KILLED = """
import os, signal, sys, torch
from pyro_ksd import ksd_monitor
from pyro_ksd.examples import random_walk
walk = random_walk(4, hold=0.05)
data = walk.draw(600, torch.Generator().manual_seed(0)).over("abcd")
monitor = ksd_monitor(random_walk(4), "abcd", checkpoint=sys.argv[1])
die_at = int(sys.argv[2])
while monitor.num_sequences < 600:
    if monitor.num_sequences >= die_at:
        os.kill(os.getpid(), signal.SIGKILL)
    begin = monitor.num_sequences
    monitor.update(data[begin : begin + 20])
print(repr(monitor.p_value), monitor.verdict())
"""


def test_other_work_is_refused(tmp_path: Path) -> None:
    watched(stream(60), checkpoint=tmp_path / "kept")
    with pytest.raises(ValueError, match="gives other scores"):
        ksd_monitor(random_walk(4, hold=0.3, mean_length=5.0), ALPHABET, checkpoint=tmp_path / "kept").update(
            stream(10)
        )
    with pytest.raises(ValueError, match="seen by other views"):
        ksd_monitor(OnlyScores(), ALPHABET, checkpoint=tmp_path / "kept").update(stream(10))
    with pytest.raises(ValueError, match="differs in: settings"):
        ksd_monitor(random_walk(4), ALPHABET, level=0.01, checkpoint=tmp_path / "kept")


def test_programs_and_given_lengths() -> None:
    import pyro
    from pyro import poutine

    def repeats(sequences: torch.Tensor, lengths: torch.Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(1, sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.factor(f"pair_{t}", (sequences[:, t] == sequences[:, t - 1]).double())

    monitor = ksd_monitor(repeats, "ab")
    monitor.update(["abab", "ba", "abaaba", "a"] * 30)
    assert monitor.result()["ksd_monitor"]["view"].values.tolist() == [
        "content-1",
        "content-2",
        "content-3",
        "start",
        "surprise",
    ]
    assert monitor.rejected


def test_wrong_arguments() -> None:
    walk = random_walk(3)
    with pytest.raises(ValueError, match="level"):
        ksd_monitor(walk, "abc", level=0)
    with pytest.raises(ValueError, match="run_length: expected"):
        ksd_monitor(walk, "abc", run_length=3)
    with pytest.raises(ValueError, match="locations: expected"):
        ksd_monitor(walk, "abc", locations=0)
    with pytest.raises(ValueError, match="alphabet"):
        ksd_monitor(walk, "aa")
    monitor = ksd_monitor(walk, "abc")
    with pytest.raises(ValueError, match=r"call update\(batch\) first"):
        monitor.result()
    with pytest.raises(ValueError, match="batch: expected sequences over the alphabet of the monitor"):
        monitor.update(Sequences.of(["ab"], "ab"))
    with pytest.raises(ValueError, match="found the symbol 'x'"):
        monitor.update(["ax"])
    monitor.update(["abc", "ba"])
    assert monitor.num_sequences == 2


def test_results_are_saved_and_loaded(tmp_path: Path) -> None:
    result = watched(stream(120, hold=0.2)).result()
    result.to_netcdf(tmp_path / "monitor.nc")
    loaded = pyro_ksd.load(tmp_path / "monitor.nc")
    assert loaded["ksd_monitor"]["log_evidence"].values == pytest.approx(result["ksd_monitor"]["log_evidence"].values)
    [axes] = pyro_ksd.plot_evidence(loaded)
    lines = {line.get_label(): line for line in axes.get_lines()}
    overall = lines["all together"]
    assert overall.get_xdata().tolist() == [0, 50, 100, 120]
    expected = result["ksd_monitor"]["log_evidence_overall"].values / math.log(10)
    assert overall.get_ydata()[1:].tolist() == pytest.approx(expected.tolist())


@pytest.mark.slow
def test_killed_monitors_give_the_same_answers(tmp_path: Path) -> None:
    def run(path: Path, die_at: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", KILLED, str(path), str(die_at)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    undisturbed = run(tmp_path / "whole", 10_000)
    assert undisturbed.returncode == 0, undisturbed.stderr
    for die_at in (20, 140, 360, 580):
        assert run(tmp_path / f"{die_at}", die_at).returncode == -9
        again = run(tmp_path / f"{die_at}", 10_000)
        assert again.returncode == 0, again.stderr
        assert again.stdout == undisturbed.stdout

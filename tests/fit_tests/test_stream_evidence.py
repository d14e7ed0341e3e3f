# SPDX-License-Identifier: Apache-2.0
"""What is known of a stream: counts, the first clear evidence, looks, and going on from kept parts."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from pyro_ksd.fit_tests import stream_evidence
from pyro_ksd.fit_tests.betting import Bets, log_mean_evidence
from pyro_ksd.fit_tests.stream_evidence import StreamEvidence

ALL = torch.ones(50, dtype=torch.bool)


def start(level: float = 0.05) -> StreamEvidence:
    return StreamEvidence.at_start([Bets.at_start(1, 1.0), Bets.at_start(2, 2.0)], level)


def psi(num: int, mean: float, seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    noise = torch.rand(num, 3, dtype=torch.double, generator=generator) - 0.5
    return list(((noise + mean).clamp(-1, 1)).split([1, 2], 1))


def test_counts_and_evidence() -> None:
    values = psi(50, 0.3)
    found = start().after(values, ALL)
    paths = [bets.after(own, 0)[1] for bets, own in zip(start().bets, values, strict=True)]
    overall = log_mean_evidence(paths)
    assert found.num_sequences == 50
    assert found.num_impossible == 0
    assert found.looks.tolist() == [50]
    assert found.seen.allclose(torch.stack([*paths, overall], 1)[-1:])
    assert found.most == pytest.approx(max(0.0, float(overall.max())))
    assert found.p_value == pytest.approx(math.exp(-found.most))
    assert found.first_clear == int((overall >= math.log(20)).nonzero()[0]) + 1


def test_the_p_value_never_grows() -> None:
    found = start().after(psi(50, 0.5), ALL)
    worse = found.after([-own for own in psi(50, 0.5)], ALL)
    assert worse.seen[-1, -1] < found.seen[-1, -1]
    assert worse.p_value == found.p_value
    assert worse.first_clear == found.first_clear


def test_true_models_start_at_a_p_value_of_1() -> None:
    assert start().p_value == 1.0
    assert start().after([-own for own in psi(50, 0.5)], ALL).p_value <= 1.0


def test_an_impossible_sequence_is_enough() -> None:
    possible = ALL.clone()
    possible[[7, 30]] = False
    found = start().after(psi(48, 0.0), possible)
    assert (found.num_sequences, found.num_impossible, found.first_clear) == (50, 2, 8)
    assert found.p_value == 0.0
    assert found.seen.isfinite().all()
    later = found.after(psi(50, 0.0), ALL)
    assert (later.num_sequences, later.num_impossible, later.first_clear) == (100, 2, 8)


def test_a_batch_of_impossible_sequences_only() -> None:
    found = start().after([torch.zeros(0, 1).double(), torch.zeros(0, 2).double()], torch.zeros(3, dtype=torch.bool))
    assert (found.num_sequences, found.first_clear, found.seen.tolist()) == (3, 1, [[0.0, 0.0, 0.0]])


def test_going_on_from_parts() -> None:
    first = start().after(psi(50, 0.1), ALL)
    direct = first.after(psi(50, 0.1, seed=1), ALL)
    restored = start().going_on_from(first.parts()).after(psi(50, 0.1, seed=1), ALL)
    for name, value in direct.parts().items():
        assert value.equal(restored.parts()[name]), name


def test_many_looks_are_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_evidence, "_MOST_LOOKS", 10)
    found = start()
    for _ in range(25):
        found = found.after(psi(1, 0.1), ALL[:1])
    assert len(found.looks) == len(found.seen) <= 10
    assert found.looks[-1] == 25
    assert found.looks.sort().values.equal(found.looks)

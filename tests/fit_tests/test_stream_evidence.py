# SPDX-License-Identifier: Apache-2.0
"""What is known of a stream: counts, the first clear evidence, looks, and going on from kept parts."""

from __future__ import annotations

import math
from dataclasses import replace

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


def test_the_largest_evidence_of_each_view() -> None:
    """Over all parts of the stream, and at least the 1 of the start."""
    rising, falling = psi(50, 0.5), [-own for own in psi(50, 0.5)]
    first = start().after(rising, ALL)
    paths = [bets.after(own, 0)[1] for bets, own in zip(start().bets, rising, strict=True)]
    assert first.most_of_views.tolist() == pytest.approx([float(path.max()) for path in paths])
    assert first.after(falling, ALL).most_of_views.equal(first.most_of_views)
    assert start().after([0 * own for own in rising], ALL).most_of_views.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("cuts", [[50], [10, 40], [3, 4, 43]])
def test_parts_of_a_stream_give_what_the_whole_gives(cuts: list[int]) -> None:
    values = psi(50, 0.3)
    found = start()
    for part in zip(*(own.split(cuts) for own in values), strict=True):
        found = found.after(part, ALL[: len(part[0])])
    whole = start().after(values, ALL)
    assert whole.first_clear > 10
    assert (found.first_clear, found.num_sequences) == (whole.first_clear, 50)
    assert found.most == pytest.approx(whole.most)
    assert found.seen[-1].allclose(whole.seen[-1])
    assert found.looks.tolist() == torch.tensor(cuts).cumsum(0).tolist()
    assert len(found.seen) == len(cuts)


def test_evidence_as_large_as_needed_is_enough() -> None:
    values = psi(50, 0.3)
    overall = log_mean_evidence([bets.after(own, 0)[1] for bets, own in zip(start().bets, values, strict=True)])
    rises = int(overall.argmax())
    needed = replace(start(), needed=float(overall[rises]))
    assert needed.after(values, ALL).first_clear == rises + 1


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


@pytest.mark.parametrize("impossible", [[], [7, 30]])
def test_going_on_from_parts(impossible: list[int]) -> None:
    possible = ALL.clone()
    possible[impossible] = False
    first = start().after(psi(50 - len(impossible), 0.1), possible)
    restored = start().going_on_from(first.parts())
    later = psi(50, 0.1, seed=1)
    assert restored.num_impossible == len(impossible)
    assert first.most_of_views.gt(0).all()
    for direct, found in ((first, restored), (first.after(later, ALL), restored.after(later, ALL))):
        for name, value in direct.parts().items():
            assert value.equal(found.parts()[name]), name


def test_many_looks_are_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_evidence, "_MOST_LOOKS", 10)
    found = start()
    for _ in range(25):
        found = found.after(psi(1, 0.1), ALL[:1])
    assert len(found.looks) == len(found.seen) <= 10
    assert found.looks[-1] == 25
    assert found.looks.sort().values.equal(found.looks)


def test_a_thousand_looks_are_kept() -> None:
    """With one more, every other one goes, but not the last."""
    earlier = torch.arange(1, 1000)
    rows = earlier.double()[:, None].expand(-1, 3)
    found = replace(start(), num_sequences=999, looks=earlier, seen=rows).after(psi(1, 0.1), ALL[:1])
    assert found.looks.tolist() == list(range(1, 1001))
    found = found.after(psi(1, 0.1), ALL[:1])
    assert found.looks.tolist() == list(range(1, 1002, 2))
    assert found.seen[:-1, 1].tolist() == list(range(1, 1001, 2))

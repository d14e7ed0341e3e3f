# SPDX-License-Identifier: Apache-2.0
"""The first look at partitioned data: which rows are possible, in any cut."""

from __future__ import annotations

import os
from typing import Any

import pyro
import pytest
import torch

from pyro_ksd.examples import random_walk
from pyro_ksd.models import MarkovSequence
from pyro_ksd.models.impossible_sequences import find_impossible
from pyro_ksd.models.part_survey import InSession, surveyed
from pyro_ksd.models.session_state import Session
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.partitions import PartitionedSequences

CIRCLE = torch.tensor([[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]])
WALK = MarkovSequence.from_transitions(torch.ones(3) / 3, CIRCLE, stop=0.2)  # never stays where it is
ROWS = ["ab", "aa", "", "b", "cc", "ca", "abc", "bb", "a"]
POSSIBLE = [0, 3, 5, 6, 8]


@pytest.mark.parametrize("sizes", [(9,), (1, 1, 7), (2, 0, 1, 6), (3, 6), (5, 4)])
def test_rows_in_any_cut(sizes: tuple[int, ...]) -> None:
    rows = iter(ROWS)
    data = PartitionedSequences.of([[next(rows) for _ in range(size)] for size in sizes], "abc")
    found = surveyed(WALK, data)
    whole = find_impossible(WALK, Sequences.of(ROWS, "abc"))
    assert found.impossible.tolist() == whole.rows.tolist() == [1, 2, 4, 7]
    assert found.message == whole.message
    assert found.sites == [""] * 4
    assert found.num_possible == 5
    assert found.lengths.tolist() == [0, 2, 2, 1]
    assert found.rows(torch.arange(5)).tolist() == POSSIBLE
    parts = found.parts()
    assert [row for part in parts for row in part.load().to_lists()] == [list(ROWS[row]) for row in POSSIBLE]
    assert [len(part) for part in parts] == [len(part.load()) for part in parts]
    firsts = torch.tensor([0, *map(len, parts)]).cumsum(0)[:-1]
    assert [part.first_row for part in parts] == firsts.tolist()


def test_the_digest_knows_all_sequences_and_their_probabilities() -> None:
    def digest(model: Any, *parts: list[str]) -> str:
        return surveyed(model, PartitionedSequences.of(parts, "abc")).digest

    own = digest(WALK, ["ab", "b"], ["ca"])
    assert own == digest(WALK, ["ab", "b"], ["ca"])
    others = [
        digest(WALK, ["ab", "b"], ["cb"]),
        digest(WALK, ["ab"], ["b", "ca"]),
        digest(random_walk(3, hold=0.1), ["ab", "b"], ["ca"]),
    ]
    assert len({own, *others}) == 4


def test_only_the_first_sites_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.models.part_survey.MOST_NAMED", 3)
    found = surveyed(WALK, PartitionedSequences.of([["aa", "ab", "bb"], ["cc", "", "b", "a"]], "abc"))
    assert found.impossible.tolist() == [0, 2, 3, 4]
    assert len(found.sites) == 3


def test_another_process_does_as_this_one_would() -> None:
    pyro.clear_param_store()
    pyro.param("rate", torch.tensor(0.3), constraint=pyro.distributions.constraints.unit_interval)
    torch.set_default_dtype(torch.double)
    session = Session.now()
    torch.set_default_dtype(torch.float)
    pyro.clear_param_store()
    kept = pyro.param("other", torch.tensor(1.0))

    def seen(_: int) -> tuple[Any, list[str], float]:
        store = pyro.get_param_store()
        return torch.get_default_dtype(), sorted(store.keys()), pyro.param("rate", torch.tensor(0.5)).item()

    def here() -> tuple[Any, list[str]]:
        return torch.get_default_dtype(), sorted(pyro.get_param_store().keys())

    elsewhere = Session(os.getpid() + 1, session.default_dtype, session.params)
    dtype, names, rate = InSession(seen, elsewhere)(0)
    assert (dtype, names) == (torch.double, ["rate"])
    assert rate == pytest.approx(0.3)
    assert here() == (torch.float, ["other"])
    assert pyro.get_param_store()["other"] is kept
    assert InSession(lambda _: here(), session)(0) == (torch.float, ["other"])
    pyro.clear_param_store()


class Short(MarkovSequence):
    """A chain that is meant for sequences of at most two symbols."""

    def check_data(self, sequences: Sequences) -> None:
        if int(sequences.lengths.max()) > 2:
            raise ValueError("expected short sequences")


def test_data_that_the_model_is_not_meant_for_are_named_with_their_part() -> None:
    model = Short.from_transitions(torch.ones(3) / 3, CIRCLE, stop=0.2)
    assert surveyed(model, PartitionedSequences.of([["ab", "b"], ["ca"]], "abc")).num_possible == 3
    message = "part 2 of the data, which begins with sequence 3: expected short sequences"
    with pytest.raises(ValueError, match=message):
        surveyed(model, PartitionedSequences.of([["ab", "b"], ["c"], ["a", "abc"]], "abc"))


def test_the_bar_of_the_survey_is_shown_only_if_asked_for(terminal: pytest.CaptureFixture[str]) -> None:
    data = PartitionedSequences.of([["ab", "b"], ["ca"]], "abc")
    surveyed(WALK, data)
    assert "log-probabilities" not in terminal.readouterr().err
    surveyed(WALK, data, progress=True)
    assert "log-probabilities" in terminal.readouterr().err

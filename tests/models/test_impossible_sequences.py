# SPDX-License-Identifier: Apache-2.0
"""Sequences to which a model gives probability zero."""

from __future__ import annotations

import re
from itertools import pairwise

import pyro
import pytest
import torch
from pyro import poutine
from pyro_programs import FEW_SEQUENCES as DATA
from pyro_programs import SIZE, chain_steps
from torch import Tensor

from pyro_ksd import ksd_check
from pyro_ksd.models import MarkovSequence, with_sampler
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.impossible_sequences import (
    ImpossibleSequences,
    check_drawn,
    check_possible,
    checked_log_joint,
    find_impossible,
)
from pyro_ksd.sequences.container import Sequences


def forbids_the_second_symbol(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths)):
        chain_steps(sequences, lengths)
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                pyro.factor(f"ban_{t}", torch.where((sequences[:, t] == 2) & (t > 0), -torch.inf, 0.0))


@pytest.mark.filterwarnings("ignore:the view.s. .* cannot be used with")  # of few data
def test_an_impossible_sequence_is_named_with_its_site() -> None:
    message = "probability zero to 1 of 5 sequences: sequence 0, [0, 1, 1, 2], at site ban_3. It cannot have"
    with pytest.warns(UserWarning, match=re.escape(message)):
        ksd_check(forbids_the_second_symbol, DATA, order=1, num_bootstrap=5, progress=False)


def bans_within_a_nested_plate(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths), dim=-1):
        pyro.factor("length", -lengths.double())
        with pyro.plate("symbols", SIZE, dim=-2):
            inside = torch.arange(sequences.shape[1]) < lengths[:, None]
            counts = ((sequences == torch.arange(SIZE)[:, None, None]) & inside).sum(-1)
            pyro.factor("crowd", torch.where(counts > 2, -torch.inf, 0.0))


@pytest.mark.filterwarnings("ignore:the view.s. .* cannot be used with")  # of few data
def test_one_of_several_values_of_a_site_is_enough_to_blame_it() -> None:
    with pytest.warns(UserWarning, match=re.escape("sequence 4, [2, 1, 0, 1, 1], at site crowd. It cannot have made")):
        ksd_check(bans_within_a_nested_plate, DATA, num_bootstrap=5, progress=False)


class Counted(SequenceModel):
    """Calls a sequence impossible if a symbol follows itself, and counts how often it is asked."""

    alphabet_size = SIZE

    def __init__(self, sites: bool = True) -> None:
        self.calls, self.sites = 0, sites

    def log_joint(self, sequences: Sequences) -> Tensor:
        self.calls += 1
        twins = [any(a == b for a, b in pairwise(x)) for x in sequences.to_lists()]
        return (-1.0 * sequences.lengths).masked_fill(torch.tensor(twins, dtype=torch.bool), -torch.inf)

    def impossible_sites(self, sequences: Sequences) -> list[str]:
        return [f"twins {x[0]}" if self.sites else "" for x in sequences.to_lists()]


MIXED = Sequences.of([[0, 1], [1, 1], [2], [2, 2, 0], [0, 0], [1, 0, 0], [0, 1, 0]], SIZE)


def test_rows_others_and_message() -> None:
    found = find_impossible(Counted(), MIXED)
    assert isinstance(found, ImpossibleSequences)
    assert len(found) == 4
    assert found.rows.dtype == torch.long
    assert found.rows.tolist() == [1, 3, 4, 5]
    assert found.others.dtype == torch.bool
    assert found.others.tolist() == [True, False, True, False, False, False, True]
    assert found.log_joint.tolist() == Counted().log_joint(MIXED).tolist()
    assert found.message == (
        "the model gives probability zero to 4 of 7 sequences: sequence 1, [1, 1], at site twins 1; "
        "sequence 3, [2, 2, 0], at site twins 2; sequence 4, [0, 0], at site twins 0; .... It cannot have made them"
    )


def test_message_of_a_model_without_sites() -> None:
    found = find_impossible(Counted(sites=False), MIXED[:2])
    assert found.message == (
        "the model gives probability zero to 1 of 2 sequences: sequence 1, [1, 1]. It cannot have made them"
    )


def test_nothing_impossible() -> None:
    found = find_impossible(Counted(), MIXED[[0, 2, 6]])
    assert len(found) == 0
    assert found.rows.shape == (0,)
    assert found.message == ""
    assert found.others.tolist() == [True] * 3
    assert find_impossible(Counted(), MIXED[:0]).others.shape == (0,)


def test_known_log_joints_are_used_and_the_model_is_not_asked_again() -> None:
    model = Counted()
    known = torch.tensor([0.0, 0.0, -torch.inf, 0.0, 0.0, 0.0, 0.0])
    found = find_impossible(model, MIXED, known)
    assert model.calls == 0
    assert found.rows.tolist() == [2]
    assert found.log_joint is known
    with pytest.raises(ValueError, match=r"sequence 2, \[2\], at site twins 2"):
        check_possible(model, MIXED, known)
    check_possible(model, MIXED, torch.zeros(7))
    assert model.calls == 0
    find_impossible(model, MIXED)
    assert model.calls == 1


def test_check_possible() -> None:
    check_possible(Counted(), MIXED[[0, 2, 6]])
    message = r"probability zero to 1 of 2 sequences: sequence 1, .* cannot have made them: widen the model, or leave"
    with pytest.raises(ValueError, match=message):
        check_possible(Counted(), MIXED[:2])


def test_nan_is_named() -> None:
    known = torch.tensor([0.0, torch.nan, -torch.inf])
    message = r"expected a log-probability for every sequence, found NaN for sequence 1, \[1, 1\], at site twins 1; the"
    with pytest.raises(ValueError, match=message):
        find_impossible(Counted(), MIXED[:3], known)


def test_sites_are_those_of_the_model_of_the_row() -> None:
    class ByRow(Counted):
        def __init__(self, begin: int = 0) -> None:
            super().__init__()
            self.begin = begin

        def for_rows(self, begin: int) -> ByRow:
            return ByRow(self.begin + begin)

        def impossible_sites(self, sequences: Sequences) -> list[str]:
            return [f"row {self.begin + row}" for row in range(len(sequences))]

    message = find_impossible(ByRow(), MIXED).message
    assert "sequence 1, [1, 1], at site row 1; sequence 3, [2, 2, 0], at site row 3" in message


def test_sequences_that_the_model_drew_itself() -> None:
    """A generator that cuts off what it has not finished."""
    chain = MarkovSequence.from_transitions(torch.tensor([0.5, 0.5]), torch.ones(2, 2) / 2, stop=0.2)
    drawn = Sequences.of([[0, 1], [], [1]], 2)
    message = r"the model calls 1 of 3 sequences impossible that were drawn from it: sequence 1, \[\]; let it"
    with pytest.raises(ValueError, match=message):
        check_drawn(chain, drawn)
    check_drawn(chain, drawn[[0, 2]])
    cut = with_sampler(chain, lambda count, generator: Sequences.of([[]] * count, 2))
    with pytest.raises(ValueError, match="impossible that were drawn from it"):
        ksd_check(cut, [[0, 1], [1], [0]], num_bootstrap=5, progress=False)


def test_log_joints_may_be_whole_numbers() -> None:
    class Whole(SequenceModel):
        alphabet_size = 2

        def log_joint(self, sequences: Sequences) -> Tensor:
            return -3 * sequences.lengths

    data = Sequences.of([[0], [1, 1]], 2)
    assert checked_log_joint(Whole(), data).tolist() == [-3, -6]


@pytest.mark.parametrize("wrong", [torch.zeros(2), torch.zeros(3, 1), [0.0] * 3, "high"])
def test_log_joints_that_are_no_numbers_of_each_sequence_are_refused(wrong: object) -> None:
    class Wrong(SequenceModel):
        alphabet_size = 2

        def log_joint(self, sequences: Sequences) -> Tensor:
            return wrong  # type: ignore[return-value]

    for look in (find_impossible, checked_log_joint):
        with pytest.raises(ValueError, match="log_joint: expected"):
            look(Wrong(), Sequences.of([[0], [1], [0, 1]], 2))

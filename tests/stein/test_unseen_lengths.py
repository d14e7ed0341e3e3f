# SPDX-License-Identifier: Apache-2.0
"""Walks to lengths that no sequence has, against exact ratios of their probabilities."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice

import pyro.distributions as dist
import pytest
import torch
from example_models import Unsampled, walk
from torch import Tensor

from benchmarks.true_models import field, stop_by_symbol
from pyro_ksd.edits.neighborhoods import BeforeEnd, zs
from pyro_ksd.edits.splices import Edits
from pyro_ksd.models import IndependentSequence, LinearChainMRF, SequenceModel
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.unseen_lengths import LogStep, log_steps_beyond, spread_of

TAIL = zs(locations=1)
POISSON = IndependentSequence(torch.tensor([0.3, 0.7]).double(), dist.Poisson(torch.tensor(7.0, dtype=torch.double)))


def ratios(model: SequenceModel, data: Sequences, longer: bool, count: int = 1000) -> list[float]:
    return [math.exp(step.value) for step in islice(log_steps_beyond(model, data, TAIL, longer=longer), count)]


def test_exact_where_only_the_length_decides() -> None:
    data = Sequences.of([[0, 1, 1], [1] * 5], 2)
    assert ratios(POISSON, data, True, 6) == pytest.approx([7 / length for length in range(6, 12)])
    assert ratios(POISSON, data, False) == pytest.approx([3 / 7, 2 / 7, 1 / 7, 0])
    assert all(step.spread < 1e-9 for step in islice(log_steps_beyond(POISSON, data, TAIL, longer=True), 6))


@pytest.mark.parametrize("longer", [True, False])
def test_a_field_from_sequences_of_one_length(longer: bool) -> None:
    """The ratios of a field depend on the symbols; walkers must become sequences of the field."""
    pairwise = torch.tensor([[1.5, 0.0, -2.0], [0.0, 0.5, 0.0], [0.0, 1.0, 1.0]], dtype=torch.double)
    model = field(30, pairwise=pairwise, per_symbol=-1.6)
    moves = pairwise.exp()
    mass = [
        float(torch.linalg.matrix_power(moves, length - 1).sum() * math.exp(-1.6 * length)) for length in range(1, 31)
    ]
    only = LinearChainMRF(pairwise, length=torch.full((16,), -torch.inf).index_fill_(0, torch.tensor(15), 0.0).double())
    data = only.draw(200, torch.Generator().manual_seed(0))
    found = ratios(model, data, longer)
    lengths = range(15, 30) if longer else range(15, 1, -1)
    exact = [mass[length] / mass[length - 1] if longer else mass[length - 2] / mass[length - 1] for length in lengths]
    assert found[-1] == 0.0  # after the hard end, or the empty sequence
    assert len(found) == len(exact) + 1
    assert sum(map(math.log, found[:-1])) == pytest.approx(sum(map(math.log, exact)), abs=0.35)
    assert found[0] == pytest.approx(exact[0], rel=0.05)


def test_walkers_set_out_from_several_sequences() -> None:
    """One longest sequence that can hardly stop is no measure of all: others walk up to its length."""
    model = stop_by_symbol()
    longest = [[0] * 20]
    alone = ratios(model, Sequences.of(longest, 4), True, 1)
    joined = ratios(model, Sequences.of(longest + [[3, 2, 1, 3] * 4] * 12, 4), True, 1)
    assert joined[0] < alone[0] / 2


@dataclass(frozen=True, eq=False)
class UpToSeven(SequenceModel):
    """A model that fails at lengths beyond seven."""

    alphabet_size = 2

    def log_joint(self, sequences: Sequences) -> Tensor:
        return torch.zeros(8)[sequences.lengths] - sequences.lengths


def test_a_model_that_fails_at_long_sequences() -> None:
    assert ratios(UpToSeven(), Sequences.of([[0] * 4] * 3, 2), True) == pytest.approx([2 * math.exp(-1)] * 3)


def test_the_same_walks_every_time() -> None:
    model = stop_by_symbol()
    data = model.draw(20, torch.Generator().manual_seed(0))
    assert ratios(model, data, True, 9) == ratios(Unsampled(model), data, True, 9)


def test_walks_in_front_of_the_end() -> None:
    data = Sequences.of([[0, 1, 1], [1] * 5], 2)
    steps = islice(log_steps_beyond(POISSON, data, BeforeEnd(TAIL), longer=True), 3)
    assert [math.exp(step.value) for step in steps] == pytest.approx([7 / 6, 7 / 7, 7 / 8])


def test_walkers_keep_their_covariates() -> None:
    @dataclass(frozen=True, eq=False)
    class ByGroup(SequenceModel):
        alphabet_size = 2
        takes_covariates = True

        def log_joint(self, sequences: Sequences) -> Tensor:
            assert sequences.covariates is not None
            return -sequences.covariates.values * sequences.lengths

    data = Sequences.of([[0] * 4, [1] * 4, [0] * 3], 2).with_covariates(torch.tensor([1.0, 2.0, 3.0]))
    found = ratios(ByGroup(), data, True, 40)
    assert found[0] < 2 * math.exp(-1)
    assert found[-1] == pytest.approx(2 * math.exp(-1))  # only the group with the most mass is left


def test_steps_of_log_ratios() -> None:
    step = LogStep.of(torch.tensor([0.0, 2.0, -torch.inf]))
    assert step.value == pytest.approx(math.log((1 + math.exp(2)) / 3))
    assert step.spread == 1.0
    assert spread_of(torch.tensor([-torch.inf])) == 0.0
    assert LogStep.of(torch.tensor([-torch.inf])) == (-math.inf, 0.0)


class FailsAt(Unsampled):
    """A model that cannot evaluate edits of sequences of some length."""

    def __init__(self, model: SequenceModel, length: int) -> None:
        super().__init__(model)
        self.length = length

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        if (sequences.lengths == self.length).any():
            raise RuntimeError("not made for this length")
        return super().log_ratio(sequences, edits)


def test_a_model_may_fail_beyond_the_data_and_not_at_their_lengths() -> None:
    data = Sequences.of([[0] * length for length in (3, 4, 5, 6)], 5)
    whole = list(islice(log_steps_beyond(walk(), data, zs(locations=1), longer=True), 4))
    assert len(whole) == 4
    beyond = list(log_steps_beyond(FailsAt(walk(), 8), data, zs(locations=1), longer=True))
    assert [step.value for step in beyond] == pytest.approx([step.value for step in whole[:2]])
    for length in (4, 6):
        with pytest.raises(RuntimeError, match="not made for this length"):
            list(log_steps_beyond(FailsAt(walk(), length), data, zs(locations=1), longer=True))

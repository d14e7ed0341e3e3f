# SPDX-License-Identifier: Apache-2.0
"""One step of Baum and Welch against sums over all paths of hidden states, in plain Python."""

from __future__ import annotations

import math
from itertools import pairwise, product
from typing import Any

import pytest
import torch

from pyro_ksd.models import HiddenMarkovSequence
from pyro_ksd.models.fitting import baum_welch
from pyro_ksd.models.fitting.baum_welch import HiddenParameters, improved, weighted
from pyro_ksd.sequences.container import Sequences

DATA = [[0, 1, 1], [2], [0, 1, 1], [1, 0], [2, 2, 0, 1]]
STATES, SYMBOLS = 2, 3


def points(models: int = 2, states: int = STATES) -> HiddenParameters:
    return HiddenParameters.at_random((models, states, SYMBOLS), 2.6, torch.Generator().manual_seed(7))


def plain_step(parameters: dict[str, Any], data: list[list[int]], c: float) -> tuple[dict[str, Any], float]:
    """Expected counts by visiting every path of every sequence."""
    initial, transition, emission, stop = (parameters[name] for name in ("initial", "transition", "emission", "stop"))
    states = range(len(initial))
    first = [c] * len(initial)
    moves = [[c] * len(initial) for _ in states]
    emitted = [[c] * len(emission[0]) for _ in states]
    ends = [c] * len(initial)
    visits = [2 * c] * len(initial)
    total = 0.0
    for x in data:
        weights = {}
        for path in product(states, repeat=len(x)):
            p = initial[path[0]] * stop[path[-1]]
            for before, after in pairwise(path):
                p *= (1 - stop[before]) * transition[before][after]
            for z, s in zip(path, x, strict=True):
                p *= emission[z][s]
            weights[path] = p
        whole = sum(weights.values())
        total += math.log(whole)
        for path, weight in weights.items():
            share = weight / whole
            first[path[0]] += share
            ends[path[-1]] += share
            for before, after in pairwise(path):
                moves[before][after] += share
            for z, s in zip(path, x, strict=True):
                emitted[z][s] += share
                visits[z] += share
    new = {
        "initial": [n / sum(first) for n in first],
        "transition": [[n / sum(row) for n in row] for row in moves],
        "emission": [[n / sum(row) for n in row] for row in emitted],
        "stop": [n / v for n, v in zip(ends, visits, strict=True)],
    }
    return new, total


def as_lists(parameters: HiddenParameters, model: int) -> dict[str, Any]:
    names = ("initial", "transition", "emission", "stop")
    return {name: getattr(parameters, name)[model].tolist() for name in names}


@pytest.mark.parametrize("states", [1, 2, 3])
@pytest.mark.parametrize("pseudocount", [0.0, 0.7])
@pytest.mark.parametrize("entries", [2**24, 20])
def test_a_step_against_all_paths(
    states: int, pseudocount: float, entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baum_welch, "ENTRIES", entries)  # one chunk, and chunks of few sequences
    start = points(states=states)
    found, log_likelihood = improved(start, weighted(Sequences.of(DATA)), pseudocount)
    for model in range(2):
        expected, total = plain_step(as_lists(start, model), DATA, pseudocount)
        assert float(log_likelihood[model]) == pytest.approx(total, rel=1e-12)
        for name, values in as_lists(found, model).items():
            torch.testing.assert_close(torch.tensor(values), torch.tensor(expected[name]), rtol=1e-10, atol=1e-12)


def test_the_log_likelihood_is_that_of_the_distribution() -> None:
    start = points()
    values = improved(start, weighted(Sequences.of(DATA)))[1]
    for model in range(2):
        parts = (start.initial, start.transition, start.emission, start.stop)
        distribution = HiddenMarkovSequence(*(part[model] for part in parts))
        assert float(values[model]) == pytest.approx(float(distribution.log_joint(Sequences.of(DATA)).sum()))


@pytest.mark.parametrize("pseudocount", [0.0, 0.3])
def test_steps_never_make_the_data_less_probable(pseudocount: float) -> None:
    data = HiddenMarkovSequence(
        [0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]], stop=0.2
    ).draw(40, torch.Generator().manual_seed(0))
    here, observed = points(4, 3), weighted(data)
    values = []
    for _ in range(60):
        after, log_likelihood = improved(here, observed, pseudocount)
        values.append(log_likelihood + here.log_penalty(pseudocount))
        here = after
    steps = torch.stack(values).diff(dim=0)
    assert (steps >= -1e-9).all()
    assert (steps[0] > 0.1).all()


def test_copies_are_weights_and_the_longest_come_first() -> None:
    found = weighted(Sequences.of([[1], [0, 1], [1], [2, 2, 2], [0, 1], [1]]))
    assert found.lengths.tolist() == [3, 2, 1]
    assert found.weights.tolist() == [1, 2, 3]
    assert [column.tolist() for column in found.columns] == [[2, 0, 1], [2, 1], [2]]


def test_long_sequences_do_not_underflow() -> None:
    data = Sequences.of(torch.randint(3, (2, 3000), generator=torch.Generator().manual_seed(0)))
    found, log_likelihood = improved(points(), weighted(data))
    assert (log_likelihood < -3000).all()
    assert found.transition.sum(-1).allclose(torch.ones(2, 2, dtype=torch.double))


def test_parameters_that_are_zero_stay_zero_and_states_that_are_never_visited_stay_as_they_are() -> None:
    start = HiddenParameters(
        torch.tensor([[1.0, 0.0]], dtype=torch.double),
        torch.tensor([[[1.0, 0.0], [0.3, 0.7]]], dtype=torch.double),
        torch.tensor([[[0.5, 0.5], [0.1, 0.9]]], dtype=torch.double),
        torch.tensor([[0.5, 0.25]], dtype=torch.double),
    )
    found, _ = improved(start, weighted(Sequences.of([[0, 1, 1], [1]])))
    assert found.initial.tolist() == [[1, 0]]
    assert found.transition.tolist() == start.transition.tolist()
    assert found.emission[0, 1].tolist() == [0.1, 0.9]
    assert found.emission[0, 0].tolist() == pytest.approx([1 / 4, 3 / 4])
    assert found.stop[0].tolist() == pytest.approx([2 / 4, 0.25])


def test_one_of_several_models() -> None:
    several = points(models=3)
    for index in range(3):
        one = several[index]
        assert one.initial.equal(several.initial[[index]])
        assert one.transition.equal(several.transition[[index]])
        assert one.emission.equal(several.emission[[index]])
        assert one.stop.equal(several.stop[[index]])

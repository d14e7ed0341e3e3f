# SPDX-License-Identifier: Apache-2.0
"""The twelve testing scenarios of Baum, Kanagawa and Gretton (2023), with the settings that made their printed table.

These settings differ from the text of the paper in a few places. The random models of the scenarios *second-order*,
*initial* and *length* are the very ones of the table; they are read from ``scenario_models.npz``, which holds the
probabilities of the next symbol given that there is one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyro.distributions as dist
import torch
from torch import Tensor

from pyro_ksd.examples import random_walk
from pyro_ksd.models import IndependentSequence, MarkovSequence, SequenceDistribution

_TABLES = Path(__file__).with_name("scenario_models.npz")
_FLOOR = 1e-3  # no symbol is less probable than this, before the rows are normalized: no sequence is impossible


@dataclass(frozen=True, eq=False)
class Scenario:
    """A model, and data that do not follow it.

    :param name: what a person calls it.
    :param model: the model that is tested.
    :param data_model: what the data follow.
    :param num_sequences: the size of a data set.
    :param ngram: the length ``t`` of the subsequences that the paper's kernel counts here.
    """

    name: str
    model: SequenceDistribution
    data_model: SequenceDistribution
    num_sequences: int
    ngram: int


def scenarios() -> list[Scenario]:
    """All twelve, in the order of the paper."""
    return [
        Scenario("binary i.i.d.", poisson_coin(0.6), poisson_coin(0.4), 10, 1),
        Scenario("binary, wrong order", coin(0.5), alternating(), 30, 1),
        Scenario("random walk I", random_walk(8), random_walk(8, hold=0.2), 30, 2),
        Scenario("random walk II", random_walk(8, mean_length=30), random_walk(8, hold=0.2, mean_length=30), 10, 2),
        Scenario("random walk III", walk_with_memory(0.95, 8), walk_with_memory(0.05, 8), 30, 3),
        Scenario("random walk IV", walk_with_memory(0.95, 30), walk_with_memory(0.05, 30), 8, 3),
        Scenario("second-order I", second_order("model", 8), second_order("data", 8), 30, 3),
        Scenario("second-order II", second_order("model", 20), second_order("data", 20), 8, 3),
        Scenario("second-order III", second_order("model", 8), second_order("data", 8), 8, 3),
        Scenario("initial I", first_order(8), first_order(8, favor=0.5), 30, 2),
        Scenario("initial II", first_order(20), first_order(20, favor=0.5), 8, 2),
        Scenario("length", first_order(8), first_order(20), 30, 3),
    ]


def text_variants() -> list[Scenario]:
    """The twelve scenarios as the text of the paper states them."""
    found = {scenario.name: scenario for scenario in scenarios()}
    found["binary, wrong order"] = Scenario("binary, wrong order", coin(0.6), alternating(), 30, 1)
    walk = random_walk(30, mean_length=30)
    data = held_walk(30, 8, 0.2, mean_length=30)
    found["random walk II"] = Scenario("random walk II", walk, data, 8, 2)
    for name, mean_length in (("random walk III", 8), ("random walk IV", 30)):
        walk, data = (walk_with_memory(persistence, mean_length, both_ways=True) for persistence in (0.95, 0.05))
        found[name] = replace(found[name], model=walk, data_model=data)
    return list(found.values())


def redrawn(generator: torch.Generator) -> list[Scenario]:
    """The six scenarios with random models, with new ones."""
    first, second = (dirichlet((11, 11, 10), generator) for _ in range(2))
    moves = dirichlet((10, 10), generator)
    return [
        Scenario("second-order I", stopping(first, 8), stopping(second, 8), 30, 3),
        Scenario("second-order II", stopping(first, 20), stopping(second, 20), 8, 3),
        Scenario("second-order III", stopping(first, 8), stopping(second, 8), 8, 3),
        Scenario("initial I", first_order(8, moves=moves), first_order(8, favor=0.5, moves=moves), 30, 2),
        Scenario("initial II", first_order(20, moves=moves), first_order(20, favor=0.5, moves=moves), 8, 2),
        Scenario("length", first_order(8, moves=moves), first_order(20, moves=moves), 30, 3),
    ]


def poisson_coin(one: float) -> IndependentSequence:
    """Independent zeros and ones, 20 on average; the number of them has a Poisson law and may be 0.

    :param one: the probability of a one.
    """
    length = dist.Poisson(torch.tensor(20.0, dtype=torch.double))
    return IndependentSequence(torch.tensor([1 - one, one], dtype=torch.double), length)


def coin(one: float) -> IndependentSequence:
    """Independent zeros and ones that stop with probability 1/20 after each symbol.

    :param one: the probability of a one.
    """
    length = dist.Geometric(torch.tensor(1 / 20, dtype=torch.double))
    return IndependentSequence(torch.tensor([1 - one, one], dtype=torch.double), length, minimum=1)


def alternating() -> MarkovSequence:
    """Zeros and ones in turn, with a rare repeat, that stop with probability 1/20 after each symbol."""
    return MarkovSequence.from_transitions(uniform(2), floored(1 - torch.eye(2, dtype=torch.double)), stop=1 / 20)


def walk_with_memory(
    persistence: float, mean_length: float, *, size: int = 10, both_ways: bool = False
) -> MarkovSequence:
    """A walk on a ring that goes on in its direction, or turns.

    The first step, and one after anything but a step, leads to the left or to the right with probability 1/2. So does
    one after a step to the left, unless the walk remembers steps both ways.

    :param persistence: the probability of a step in the direction of the last one, δ in the paper.
    :param size: the number of places on the ring.
    :param both_ways: whether steps to the left are remembered too, as the paper's text has it; its numbers were made
        without.
    """
    here = torch.eye(size, dtype=torch.double)
    right = here.roll(1, 1)
    left = here.roll(-1, 1)
    moves = ((right + left) / 2).repeat(size + 1, 1, 1)  # the place before, the place, the next place
    for place in range(size):
        moves[(place - 1) % size, place] = persistence * right[place] + (1 - persistence) * left[place]
        if both_ways:
            moves[(place + 1) % size, place] = persistence * left[place] + (1 - persistence) * right[place]
    start = torch.zeros(size + 1, 1, size, dtype=torch.double)
    start[size] = uniform(size)
    return stopping(torch.cat([floored(moves), start], 1), mean_length)


def second_order(which: str, mean_length: float) -> MarkovSequence:
    """A chain of order 2 over 10 symbols, whose rows, and start, were drawn from a Dirichlet(1) law.

    :param which: one of the two draws, ``"model"`` or ``"data"``.
    """
    return stopping(_table(f"second_order_{which}"), mean_length)


def held_walk(size: int, places: int, hold: float, mean_length: float) -> MarkovSequence:
    """A walk on a ring that holds with probability ``hold`` in the first ``places`` of its places."""
    here = torch.eye(size, dtype=torch.double)
    held = torch.zeros(size, 1, dtype=torch.double)
    held[:places] = hold
    steps = (1 - held) * (here.roll(1, 1) + here.roll(-1, 1)) / 2 + held * here
    return MarkovSequence.from_transitions(uniform(size), floored(steps), stop=1 / mean_length)


def first_order(mean_length: float, favor: float = 0.0, moves: Tensor | None = None) -> MarkovSequence:
    """A chain of order 1 over 10 symbols, whose rows were drawn from a Dirichlet(1) law.

    :param favor: the probability of a start with one of the first two symbols rather than with any of the ten.
    :param moves: ``[10, 10]``, the rows; those of the paper's table if left out.
    """
    first_two = torch.tensor([0.5] * 2 + [0.0] * 8, dtype=torch.double)
    start = (1 - favor) * uniform(10) + favor * first_two
    moves = _table("first_order") if moves is None else moves
    return MarkovSequence.from_transitions(start, moves, stop=1 / mean_length)


def stopping(moves: Tensor, mean_length: float) -> MarkovSequence:
    """The chain of order 2 that is never empty and stops with probability ``1 / mean_length`` after each symbol.

    :param moves: ``[S + 1, S + 1, S]``, the law of the next symbol; ``S`` stands for *before the start*.
    """
    stop = torch.full((*moves.shape[:2], 1), 1 / mean_length, dtype=torch.double)
    stop[-1, -1] = 0.0
    return MarkovSequence(torch.cat([(1 - stop) * moves, stop], -1), order=2)


def floored(probs: Tensor) -> Tensor:
    """Laws of the next symbol that make none impossible."""
    raised = probs.clamp(min=_FLOOR)
    return raised / raised.sum(-1, keepdim=True)


def uniform(size: int) -> Tensor:
    """The law that makes all symbols equally probable."""
    return torch.full((size,), 1 / size, dtype=torch.double)


def _table(name: str) -> Tensor:
    with np.load(_TABLES) as tables:
        return torch.from_numpy(tables[name])


def dirichlet(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Laws of the next symbol drawn from a Dirichlet(1) law, then floored."""
    weights = -torch.rand(shape, dtype=torch.double, generator=generator).log()
    return floored(weights / weights.sum(-1, keepdim=True))

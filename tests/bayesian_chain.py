# SPDX-License-Identifier: Apache-2.0
"""A Pyro program of a Markov chain with priors, points for its parameters, and the exact chain."""

from __future__ import annotations

import pyro
import pyro.distributions as dist
import torch
from pyro import poutine
from pyro_programs import SIZE, bernoulli, stops
from torch import Tensor

from pyro_ksd.models import MarkovSequence


def score(sequences: Tensor, lengths: Tensor, initial: Tensor, moves: Tensor) -> None:
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                probs = initial.expand(len(lengths), -1) if t == 0 else moves[sequences[:, t - 1]]
                pyro.sample(f"x_{t}", dist.Categorical(probs), obs=sequences[:, t])
                pyro.sample(f"stop_{t}", bernoulli(), obs=stops(lengths, t))


def bayesian(sequences: Tensor, lengths: Tensor) -> None:
    """A chain with Dirichlet priors, one of them in a plate over the rows."""
    ones = torch.ones(SIZE, dtype=torch.double)
    initial = pyro.sample("initial", dist.Dirichlet(ones))
    with pyro.plate("rows", SIZE):
        moves = pyro.sample("moves", dist.Dirichlet(ones))
    score(sequences, lengths, initial, moves)


def point(seed: int = 0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    initial = torch.rand(SIZE, dtype=torch.double, generator=generator) + 0.1
    moves = torch.rand(SIZE, SIZE, dtype=torch.double, generator=generator) + 0.1
    return {"initial": initial / initial.sum(), "moves": moves / moves.sum(-1, keepdim=True)}


def chain(values: dict[str, Tensor]) -> MarkovSequence:
    return MarkovSequence.from_transitions(values["initial"], values["moves"], torch.tensor(0.2, dtype=torch.double))


def many(count: int = 4) -> dict[str, Tensor]:
    points = [point(seed) for seed in range(count)]
    return {name: torch.stack([values[name] for values in points]) for name in points[0]}

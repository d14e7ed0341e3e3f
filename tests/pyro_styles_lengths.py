# SPDX-License-Identifier: Apache-2.0
"""Programs that differ in how they treat lengths, ends and impossible symbols, each with a plain-Python twin."""

from __future__ import annotations

import math
from typing import Any

import pyro
import pyro.distributions as dist
import torch
from plain_walks import Outcomes, Style, Walk, chain
from pyro import poutine
from pyro_styles import (
    CHAIN,
    END,
    INITIAL,
    MOVES,
    OTHER,
    STOP,
    Program,
    S,
    before,
    inside,
    negative_binomial,
    next_symbols,
    stops,
    table,
)
from pyro_styles_hmm import hidden
from torch import Tensor
from torch.distributions import constraints

MEAN_LENGTH = 4.0


def poisson(length: int) -> float:
    return math.exp(length * math.log(MEAN_LENGTH) - MEAN_LENGTH - math.lgamma(length + 1))


def single_precision(moves: Tensor) -> Program:
    """The default dtype of torch, and logits."""
    initial, logits = INITIAL.log().float(), moves.log().float()

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                here = initial.expand(len(lengths), -1) if t == 0 else logits[sequences[:, t - 1]]
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(logits=here), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", dist.Bernoulli(STOP), obs=(lengths == t + 1).float())

    return program


def symbols_given_lengths(moves: Tensor) -> Program:
    """Nothing about lengths."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(before(sequences, t, moves)), obs=sequences[:, t])

    return program


def poisson_and_masked_distributions(moves: Tensor) -> Program:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.sample("length", dist.Poisson(torch.tensor(MEAN_LENGTH).double()), obs=lengths.double())
            for t in range(sequences.shape[1]):
                symbol = dist.Categorical(before(sequences, t, moves)).mask(t < lengths)
                pyro.sample(f"x_{t}", symbol, obs=sequences[:, t])

    return program


def length_and_one_event(moves: Tensor) -> Program:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.sample("length", dist.NegativeBinomial(torch.tensor(3.0).double(), 0.5), obs=lengths.double())
            symbols = dist.Categorical(next_symbols(sequences, moves)).mask(inside(sequences, lengths))
            pyro.sample("x", symbols.to_event(1), obs=sequences)

    return program


def geometric_length_from_one(moves: Tensor) -> Program:
    """Lengths from 1: the number of symbols after the first is geometric."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.sample("more", dist.Geometric(END), obs=(lengths - 1).double())
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(before(sequences, t, moves)), obs=sequences[:, t])

    return program


LENGTHS = torch.tensor([0.1, 0.1, 0.2, 0.2, 0.3, 0.1], dtype=torch.double)


def table_of_lengths(moves: Tensor) -> Program:
    """A probability for each length from 0 to 5."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.sample("length", dist.Categorical(LENGTHS), obs=lengths)
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(before(sequences, t, moves)), obs=sequences[:, t])

    return program


MOTIF = table(4, S, seed=30)


def position_weights(motif: Tensor) -> Program:
    """Sequences of a fixed length, with probabilities for each position."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(motif[t]), obs=sequences[:, t])

    return program


def position_weights_as_event(motif: Tensor) -> Program:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.sample("x", dist.Categorical(motif).to_event(1), obs=sequences)

    return program


def motif_step(t: int) -> Outcomes:
    return [(prob, a, t + 1) for a, prob in enumerate(MOTIF[min(t, 3)].tolist())]


FIXED = Walk(motif_step, length=lambda length: float(length == len(MOTIF)), start=0, given_lengths=True)


def full_stop(moves: Tensor) -> Program:
    """The symbol 2 is a full stop: it comes last, and nowhere else."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(before(sequences, t, moves)), obs=sequences[:, t])
                    misplaced = (sequences[:, t] == 2) != (lengths == t + 1)
                    pyro.factor(f"end_{t}", torch.zeros(len(lengths)).double().masked_fill(misplaced, -torch.inf))

    return program


def full_stop_step(last: int | None) -> Outcomes:
    probs = (INITIAL if last is None else MOVES[last]).tolist()
    return [(prob, a, a) for a, prob in enumerate(probs)]


ZEROS = torch.tensor([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.6, 0.0, 0.4]], dtype=torch.double)
SPREAD = torch.tensor([[0.2, 0.6, 0.2], [0.4, 0.2, 0.4], [0.2, 0.4, 0.4]], dtype=torch.double)


def forbidden_moves(moves: Tensor) -> Program:
    """Some moves have probability zero."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(before(sequences, t, moves)), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", dist.Bernoulli(END), obs=stops(lengths, t))

    return program


LEFT_START = torch.tensor([1.0, 0.0], dtype=torch.double)
LEFT_MOVES = torch.tensor([[0.6, 0.4], [0.0, 1.0]], dtype=torch.double)
LEFT_EMISSION = torch.tensor([[0.6, 0.4, 0.0], [0.0, 0.3, 0.7]], dtype=torch.double)


def left_to_right(moves: Tensor) -> Program:
    """A hidden chain that never goes back, with symbols that only one of its states has."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths), dim=-1):
            z: Any = None
            for t in pyro.markov(range(sequences.shape[1])):
                with poutine.mask(mask=t < lengths):
                    probs = LEFT_START if z is None else moves[z]
                    z = pyro.sample(f"z_{t}", dist.Categorical(probs), infer={"enumerate": "parallel"})
                    pyro.sample(f"x_{t}", dist.Categorical(LEFT_EMISSION[z]), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", dist.Bernoulli(END), obs=stops(lengths, t))

    return program


def decorated(moves: Tensor) -> Program:
    """A handler with options as a decorator."""

    @poutine.scale(scale=0.5)
    def program(sequences: Tensor, lengths: Tensor) -> None:
        forbidden_moves(moves)(sequences, lengths)

    return program


def improper_prior(sequences: Tensor, lengths: Tensor) -> None:
    """An improper flat prior, which cannot be sampled."""
    logits = pyro.sample("logits", dist.ImproperUniform(constraints.real, (), (S, S)))
    forbidden_moves(logits.softmax(-1))(sequences, lengths)


STYLES = {
    "single precision": Style(single_precision(MOVES), single_precision(OTHER), CHAIN, tolerance=1e-6),
    "symbols given lengths": Style(
        symbols_given_lengths(MOVES),
        symbols_given_lengths(OTHER),
        Walk(CHAIN.step, length=lambda length: poisson(length - 1) if length else 0.0, given_lengths=True),
        given_lengths=True,
        warning="gives no probability to lengths",
    ),
    "Poisson length and masked distributions": Style(
        poisson_and_masked_distributions(MOVES),
        poisson_and_masked_distributions(OTHER),
        Walk(CHAIN.step, length=poisson),
    ),
    "length and one event": Style(
        length_and_one_event(MOVES), length_and_one_event(OTHER), Walk(CHAIN.step, length=negative_binomial)
    ),
    "geometric length from one": Style(geometric_length_from_one(MOVES), geometric_length_from_one(OTHER), CHAIN),
    "table of lengths": Style(
        table_of_lengths(MOVES),
        table_of_lengths(OTHER),
        Walk(CHAIN.step, length=lambda length: float(LENGTHS[length]) if length < len(LENGTHS) else 0.0),
    ),
    "position weights": Style(
        position_weights(MOTIF),
        position_weights(MOTIF.flip(0)),
        FIXED,
        given_lengths=True,
        warning="cannot score sequences that are longer or shorter",
    ),
    "position weights as an event": Style(
        position_weights_as_event(MOTIF),
        position_weights_as_event(MOTIF.flip(0)),
        FIXED,
        given_lengths=True,
        warning="cannot score sequences that are longer or shorter",
    ),
    "full stop": Style(full_stop(MOVES), full_stop(OTHER), Walk(full_stop_step, lambda last: float(last == 2)), end=2),
    "forbidden moves": Style(
        forbidden_moves(ZEROS), forbidden_moves(SPREAD), chain(INITIAL.tolist(), ZEROS.tolist().__getitem__, STOP)
    ),
    "left to right": Style(
        left_to_right(LEFT_MOVES),
        left_to_right(LEFT_MOVES.new_tensor([[0.1, 0.9], [0.9, 0.1]])),
        hidden(LEFT_START.tolist(), LEFT_MOVES.tolist(), LEFT_EMISSION.tolist()),
    ),
    "decorated": Style(decorated(MOVES), decorated(OTHER), CHAIN),
    "improper prior": Style(
        improper_prior,
        improper_prior,
        CHAIN,
        parameters={"logits": MOVES.log()},
        wrong_parameters={"logits": OTHER.log()},
    ),
}

# SPDX-License-Identifier: Apache-2.0
"""Hidden Markov models in the styles of Pyro's example of them, each with a plain-Python twin."""

from __future__ import annotations

import math
from typing import Any

import pyro
import pyro.distributions as dist
import torch
from plain_walks import Outcomes, Style, Walk, sigmoid
from pyro import poutine
from pyro.infer import config_enumerate
from pyro.ops.indexing import Vindex
from pyro_styles import END, STOP, Program, S, bits_of, normal, stops, table
from torch import Tensor

K = 2
PARALLEL = {"enumerate": "parallel"}
START, HIDDEN = table(K, seed=10), torch.tensor([[0.9, 0.1], [0.25, 0.75]], dtype=torch.double)
EMISSION = torch.tensor([[0.75, 0.2, 0.05], [0.05, 0.25, 0.7]], dtype=torch.double)
MIXED_UP = torch.tensor([[0.1, 0.9], [0.75, 0.25]], dtype=torch.double)


def after_first(state: Any) -> float:
    """A constant probability to stop after each symbol."""
    return 0.0 if state is None else STOP


def hidden(start: Any, moves: Any, emission: Any) -> Walk:
    """A hidden Markov model; all arguments are nested lists."""

    def step(z: int | None) -> Outcomes:
        probs = start if z is None else moves[z]
        return [
            (prob * emission[after][a], a, after) for after, prob in enumerate(probs) for a in range(len(emission[0]))
        ]

    return Walk(step, after_first)


TONE_UPS = torch.tensor([[0.8, 0.3], [0.1, 0.7]], dtype=torch.double)  # [state, bit]


def tones_and_priors(sequences: Tensor, lengths: Tensor) -> None:
    """Bits of four symbols in a plate of tones, given a hidden state."""
    moves = pyro.sample("moves", dist.Dirichlet(0.9 * torch.eye(K) + 0.1).to_event(1))
    ups = pyro.sample("ups", dist.Beta(0.1, 0.9).expand([K, 2]).to_event(2))
    tones_plate = pyro.plate("tones", 2, dim=-1)
    with pyro.plate("sequences", len(lengths), dim=-2):
        z: Any = 0
        for t in pyro.markov(range(sequences.shape[1])):
            with poutine.mask(mask=(t < lengths).unsqueeze(-1)):
                z = pyro.sample(f"z_{t}", dist.Categorical(moves[z]), infer=PARALLEL)
                pyro.sample(f"stop_{t}", dist.Bernoulli(END), obs=stops(lengths, t).unsqueeze(-1))
                with tones_plate:
                    pyro.sample(f"y_{t}", dist.Bernoulli(ups[z.squeeze(-1)]), obs=bits_of(sequences[:, t]))


def bits_emission(ups: list[list[float]]) -> list[list[float]]:
    return [[(p if a // 2 else 1 - p) * (q if a % 2 else 1 - q) for a in range(4)] for p, q in ups]


AUTOREGRESSIVE = table(K, S + 1, S, seed=11)  # [state, symbol before or none, symbol]


def autoregressive_hmm(emission: Tensor) -> Program:
    @config_enumerate
    def program(sequences: Tensor, lengths: Tensor) -> None:
        z, last = None, torch.full((len(lengths),), S)
        with pyro.plate("sequences", len(lengths), dim=-1):
            for t in pyro.markov(range(sequences.shape[1])):
                with poutine.mask(mask=t < lengths):
                    z = pyro.sample(f"z_{t}", dist.Categorical(START if z is None else HIDDEN[z]))
                    probs = Vindex(emission)[z, last]
                    last = pyro.sample(f"x_{t}", dist.Categorical(probs), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", dist.Bernoulli(END), obs=stops(lengths, t))

    return program


def autoregressive_step(state: tuple[int, int] | None) -> Outcomes:
    z, last = (None, S) if state is None else state
    probs = START if z is None else HIDDEN[z]
    return [
        (float(probs[after] * AUTOREGRESSIVE[after, last, a]), a, (after, a)) for after in range(K) for a in range(S)
    ]


FACTORIAL = table(K, 3, S, seed=13)  # [first state, second state, symbol]
SECOND_MOVES = table(3, 3, seed=14)


def factorial_hmm(emission: Tensor) -> Program:
    """Two hidden chains of their own, and symbols that depend on both."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        w = z = torch.tensor(0)
        with pyro.plate("sequences", len(lengths), dim=-1):
            for t in pyro.markov(range(sequences.shape[1])):
                with poutine.mask(mask=t < lengths):
                    w = pyro.sample(f"w_{t}", dist.Categorical(HIDDEN[w]), infer=PARALLEL)
                    z = pyro.sample(f"z_{t}", dist.Categorical(SECOND_MOVES[z]), infer=PARALLEL)
                    pyro.sample(f"x_{t}", dist.Categorical(Vindex(emission)[w, z]), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", dist.Bernoulli(END), obs=stops(lengths, t))

    return program


def factorial_step(state: tuple[int, int] | None) -> Outcomes:
    w, z = state or (0, 0)
    after = [(float(HIDDEN[w, v] * SECOND_MOVES[z, y]), v, y) for v in range(K) for y in range(3)]
    return [(prob * float(FACTORIAL[v, y, a]), a, (v, y)) for prob, v, y in after for a in range(S)]


TWO_BACK = torch.tensor([[[0.9, 0.1], [0.2, 0.8]], [[0.8, 0.2], [0.3, 0.7]]], dtype=torch.double)


def second_order_hmm(moves: Tensor) -> Program:
    """A hidden state that depends on the two states before."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        last = z = torch.tensor(0)
        with pyro.plate("sequences", len(lengths), dim=-1):
            for t in pyro.markov(range(sequences.shape[1]), history=2):
                with poutine.mask(mask=t < lengths):
                    last, z = z, pyro.sample(f"z_{t}", dist.Categorical(Vindex(moves)[last, z]), infer=PARALLEL)
                    pyro.sample(f"x_{t}", dist.Categorical(EMISSION[z]), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", dist.Bernoulli(END), obs=stops(lengths, t))

    return program


def second_order_step(state: tuple[int, int] | None) -> Outcomes:
    last, z = state or (0, 0)
    return [(float(TWO_BACK[last, z, y] * EMISSION[y, a]), a, (z, y)) for y in range(K) for a in range(S)]


class Tones(torch.nn.Module):
    """Logits of the next two bits from a hidden state and the two bits before."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        weights = normal(K + 2, 2, seed=seed, scale=2.0)
        self.of_state, self.of_bits = (torch.nn.Parameter(part) for part in weights.split([K, 2]))

    def forward(self, z: Tensor, bits: Tensor) -> Tensor:
        return torch.tanh(self.of_state[z] + bits @ self.of_bits) * 2


def neural_hmm(tones: Tones) -> Program:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        pyro.module("tones", tones)
        bits = bits_of(sequences)
        last = torch.zeros(len(lengths), 2, dtype=torch.double)
        with pyro.plate("sequences", len(lengths), dim=-1):
            z: Any = 0
            for t in pyro.markov(range(sequences.shape[1])):
                with poutine.mask(mask=t < lengths):
                    z = pyro.sample(f"z_{t}", dist.Categorical(HIDDEN[z]), infer=PARALLEL)
                    pyro.sample(f"y_{t}", dist.Bernoulli(logits=tones(z, last)).to_event(1), obs=bits[:, t])
                    pyro.sample(f"stop_{t}", dist.Bernoulli(END), obs=stops(lengths, t))
                last = bits[:, t]

    return program


TONES, OTHER_TONES = Tones(seed=15), Tones(seed=16)


def neural_step(state: tuple[int, int] | None) -> Outcomes:
    z, last = state or (0, 0)
    outcomes: Outcomes = []
    for y in range(K):
        of_state, of_bits = TONES.of_state.tolist(), TONES.of_bits.tolist()
        sums = [of_state[y][j] + last // 2 * of_bits[0][j] + last % 2 * of_bits[1][j] for j in range(2)]
        ups = [sigmoid(2 * math.tanh(total)) for total in sums]
        outcomes += [(float(HIDDEN[z, y]) * bits_emission([ups])[0][a], a, (y, a)) for a in range(4)]
    return outcomes


STYLES = {
    "tones and priors": Style(
        tones_and_priors,
        tones_and_priors,
        hidden(HIDDEN[0].tolist(), HIDDEN.tolist(), bits_emission(TONE_UPS.tolist())),
        size=4,
        parameters={"moves": HIDDEN, "ups": TONE_UPS},
        wrong_parameters={"moves": HIDDEN, "ups": TONE_UPS.flip(1)},
    ),
    "autoregressive HMM": Style(
        autoregressive_hmm(AUTOREGRESSIVE),
        autoregressive_hmm(AUTOREGRESSIVE.flip(2)),
        Walk(autoregressive_step, after_first),
    ),
    "factorial HMM": Style(
        factorial_hmm(FACTORIAL), factorial_hmm(FACTORIAL.flip(2)), Walk(factorial_step, after_first)
    ),
    "second-order HMM": Style(
        second_order_hmm(TWO_BACK), second_order_hmm(TWO_BACK.flip(2)), Walk(second_order_step, after_first)
    ),
    "neural HMM": Style(neural_hmm(TONES), neural_hmm(OTHER_TONES), Walk(neural_step, after_first), size=4),
}

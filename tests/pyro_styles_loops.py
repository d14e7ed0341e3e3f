# SPDX-License-Identifier: Apache-2.0
"""Networks, and programs that make one sequence in a loop or by recursion, each with a plain-Python twin."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import count, pairwise
from typing import Any

import pyro
import pyro.distributions as dist
import torch
from plain_walks import Outcomes, Style, Walk, Weights, sigmoid, softmax
from pyro import poutine
from pyro.nn import PyroModule
from pyro_styles import CHAIN, END, INITIAL, MOVES, OTHER, STOP, Program, S, normal, stops
from torch import Tensor, nn
from torch.nn.functional import one_hot, pad
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

WIDTH = 4  # of hidden layers


def initialized(module: nn.Module, seed: int) -> Any:
    """A module in double precision with weights large enough to matter."""
    module = module.double().eval()
    with torch.no_grad():
        for index, weight in enumerate(module.parameters()):
            weight.copy_(normal(*weight.shape, seed=100 * seed + index, scale=1.0))
    return module


def shifted(sequences: Tensor) -> Tensor:
    """One-hot rows of the symbols before, with a row of zeros for the first, ``[N, T, S]``."""
    return pad(one_hot(sequences, S).double(), (0, 0, 1, 0))[:, :-1]


def observe(logits: Tensor, sequences: Tensor, lengths: Tensor) -> None:
    """Symbols and stops from logits ``[N, T, S + 1]``."""
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                pyro.sample(f"x_{t}", dist.Categorical(logits=logits[:, t, :S]), obs=sequences[:, t])
                pyro.sample(f"stop_{t}", dist.Bernoulli(logits=logits[:, t, S] - 1), obs=stops(lengths, t))


def network_walk(logits_after: Callable[[tuple[int, ...]], list[float]]) -> Walk:
    """Symbols, and a stop after each, from logits ``[S + 1]`` of what was there before the symbol."""

    logits = cache(logits_after)

    def stop(history: tuple[int, ...]) -> float:
        return sigmoid(logits(history[:-1])[S] - 1) if history else 0.0

    def step(history: tuple[int, ...]) -> Outcomes:
        probs = softmax(logits(history)[:S])
        return [(prob, a, (*history, a)) for a, prob in enumerate(probs)]

    return Walk(step, stop, start=())


# ----------------------------------------------------------------------------------------------------------- networks


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.RNNBase], seed: int) -> None:
        super().__init__()
        self.rnn = kind(S, WIDTH, batch_first=True)
        self.head = nn.Linear(WIDTH, S + 1)
        initialized(self, seed)

    def forward(self, rows: Tensor) -> Tensor:
        logits: Tensor = self.head(self.rnn(rows)[0])
        return logits


def recurrent(network: Recurrent) -> Program:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        pyro.module("network", network)
        observe(network(shifted(sequences)), sequences, lengths)

    return program


def packed(network: Recurrent) -> Program:
    """The recurrent network skips the padding."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        pyro.module("network", network)
        rows = pack_padded_sequence(shifted(sequences), lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(network.rnn(rows)[0], batch_first=True, total_length=sequences.shape[1])
        observe(network.head(states), sequences, lengths)

    return program


def affine(weight: Tensor, bias: Tensor, *inputs: float) -> list[float]:
    """A linear layer, by plain loops."""
    rows = zip(weight.tolist(), bias.tolist(), strict=True)
    return [offset + sum(w * x for w, x in zip(row, inputs, strict=True)) for row, offset in rows]


def gru_logits(network: Recurrent, history: tuple[int, ...]) -> list[float]:
    h = [0.0] * WIDTH
    rnn = network.rnn
    for symbol in (None, *history):
        from_input = affine(rnn.weight_ih_l0, rnn.bias_ih_l0, *(float(a == symbol) for a in range(S)))
        from_state = affine(rnn.weight_hh_l0, rnn.bias_hh_l0, *h)
        for i, old in enumerate(h.copy()):
            reset, update = (sigmoid(from_input[i + j * WIDTH] + from_state[i + j * WIDTH]) for j in range(2))
            new = math.tanh(from_input[i + 2 * WIDTH] + reset * from_state[i + 2 * WIDTH])
            h[i] = (1 - update) * new + update * old
    return affine(network.head.weight, network.head.bias, *h)


def lstm_logits(network: Recurrent, history: tuple[int, ...]) -> list[float]:
    h, memory = [0.0] * WIDTH, [0.0] * WIDTH
    rnn = network.rnn
    for symbol in (None, *history):
        from_input = affine(rnn.weight_ih_l0, rnn.bias_ih_l0, *(float(a == symbol) for a in range(S)))
        from_state = affine(rnn.weight_hh_l0, rnn.bias_hh_l0, *h)
        gates = [a + b for a, b in zip(from_input, from_state, strict=True)]
        for i in range(WIDTH):
            keep, forget, cell, out = (gates[i + j * WIDTH] for j in range(4))
            memory[i] = sigmoid(forget) * memory[i] + sigmoid(keep) * math.tanh(cell)
            h[i] = sigmoid(out) * math.tanh(memory[i])
    return affine(network.head.weight, network.head.bias, *h)


GRU, OTHER_GRU = Recurrent(nn.GRU, seed=1), Recurrent(nn.GRU, seed=2)
LSTM, OTHER_LSTM = Recurrent(nn.LSTM, seed=3), Recurrent(nn.LSTM, seed=4)


class Attention(PyroModule):
    """One layer of a transformer, with a causal mask and positions as sines."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(S + 1, WIDTH)
        self.layer = nn.TransformerEncoderLayer(WIDTH, nhead=2, dim_feedforward=8, dropout=0.0, batch_first=True)
        self.head = nn.Linear(WIDTH, S + 1)
        initialized(self, seed)

    def logits(self, codes: Tensor, mask: Tensor | None) -> Tensor:
        positions = torch.arange(codes.shape[1]).double()[:, None] / torch.arange(1, WIDTH + 1)
        logits: Tensor = self.head(self.layer(self.embedding(codes) + positions.sin(), src_mask=mask))
        return logits

    def forward(self, sequences: Tensor, lengths: Tensor) -> None:
        codes = pad(sequences, (1, 0), value=S)[:, :-1]
        width = codes.shape[1]
        causal = torch.ones(width, width, dtype=torch.bool).triu(1)
        observe(self.logits(codes, causal), sequences, lengths)

    def after(self, history: tuple[int, ...]) -> list[float]:
        """The logits after some symbols: the last row sees all of them, and needs no mask."""
        with torch.no_grad():
            found: list[float] = self.logits(torch.tensor([[S, *history]]), None)[0, -1].tolist()
        return found


ATTENTION, OTHER_ATTENTION = Attention(seed=5), Attention(seed=6)


# -------------------------------------------------------------------------------------------------------------- loops


def recursion(moves: Tensor) -> Program:
    """A function that samples a symbol and calls itself for the rest."""

    def rest(t: int, probs: Tensor) -> list[Tensor]:
        x = pyro.sample(f"x_{t}", dist.Categorical(probs))
        if pyro.sample(f"stop_{t}", dist.Bernoulli(END)):
            return [x]
        return [x, *rest(t + 1, moves[x])]

    def program() -> list[Tensor]:
        return rest(0, INITIAL)

    return program


OPENING = torch.tensor([0.5, 0.2, 0.3], dtype=torch.double)  # of "(", ")" and a letter
BRACKETS_END = torch.tensor([0.5, 0.15], dtype=torch.double)  # where none is open, and where some are


def brackets(closing: float) -> Program:
    """A hidden counter: the more brackets are open, the rather one is closed; none is closed that is not open."""

    def program() -> None:
        depth, stop, t = torch.tensor(0.0).double(), False, 0
        while not stop:
            close = torch.where(depth > 0, closing * depth, -torch.inf)
            logits = OPENING.log() + torch.stack([torch.zeros(()).double(), close, torch.zeros(()).double()])
            x = pyro.sample(f"x_{t}", dist.Categorical(logits=logits))
            depth = depth + (x == 0).double() - (x == 1).double()
            stop = pyro.sample(f"stop_{t}", dist.Bernoulli(BRACKETS_END[(depth > 0).long()])).bool()
            t += 1

    return program


def brackets_step(depth: int | None) -> Outcomes:
    level = depth or 0
    opening, closing, letter = OPENING.tolist()
    weights = [opening, closing * math.exp(0.8 * level) if level else 0.0, letter]
    return [(weights[a] / sum(weights), a, level + (1, -1, 0)[a]) for a in range(S)]


class RecurrentLoop(PyroModule):
    """A network that writes, symbol by symbol, until it stops."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.of_symbol, self.of_state = nn.Linear(S, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, S + 1)
        initialized(self, seed)

    def forward(self) -> None:
        state, row = torch.zeros(WIDTH).double(), torch.zeros(S).double()
        for t in pyro.markov(count()):
            state = torch.tanh(self.of_symbol(row) + self.of_state(state))
            logits = self.head(state)
            x = pyro.sample(f"x_{t}", dist.Categorical(logits=logits[:S]))
            if pyro.sample(f"stop_{t}", dist.Bernoulli(logits=logits[S] - 1)):
                return
            row = torch.eye(S).double()[x]


def rnn_logits(network: RecurrentLoop, history: tuple[int, ...]) -> list[float]:
    h = [0.0] * WIDTH
    for symbol in (None, *history):
        from_input = affine(network.of_symbol.weight, network.of_symbol.bias, *(float(a == symbol) for a in range(S)))
        from_state = affine(network.of_state.weight, network.of_state.bias, *h)
        h = [math.tanh(a + b) for a, b in zip(from_input, from_state, strict=True)]
    return affine(network.head.weight, network.head.bias, *h)


RNN, OTHER_RNN = RecurrentLoop(seed=7), RecurrentLoop(seed=8)


def stop_first(moves: Tensor) -> Program:
    """Asks before each symbol whether to stop, so a sequence may be empty; with a prior and a deterministic site."""

    def program() -> None:
        stop = pyro.sample("stop", dist.Beta(1.0, 3.0))
        kept = pyro.deterministic("go on", 1 - stop)
        probs, t = INITIAL, 0
        while pyro.sample(f"stop_{t}", dist.Bernoulli(1 - kept)) == 0:
            probs = moves[pyro.sample(f"x_{t}", dist.Categorical(probs))]
            t += 1

    return program


STAY = torch.tensor([0.9, 0.7, 0.2, 0.05], dtype=torch.double)  # after a run of 1, 2, 3 and more symbols


def runs(stay: Tensor) -> Program:
    """A symbol is repeated with a probability that depends on how often it was already."""

    def program() -> None:
        x = pyro.sample("x_0", dist.Categorical(INITIAL))
        length, t = torch.tensor(0), 0
        while not pyro.sample(f"stop_{t}", dist.Bernoulli(END)):
            t += 1
            same = stay[length.clamp(max=3)]
            others = (1 - same) / (S - 1)
            here = torch.arange(S) == x
            after = pyro.sample(f"x_{t}", dist.Categorical(torch.where(here, same, others)))
            length = torch.where(after == x, length + 1, 0)
            x = after

    return program


def runs_step(state: tuple[int, int] | None) -> Outcomes:
    if state is None:
        return [(float(INITIAL[a]), a, (a, 0)) for a in range(S)]
    x, length = state
    same = float(STAY[min(length, 3)])
    return [(same, a, (a, length + 1)) if a == x else ((1 - same) / (S - 1), a, (a, 0)) for a in range(S)]


PAIRS = normal(S, S, seed=26)


def loop_with_factors(pairs: Tensor) -> Program:
    """A chain with a maximal length, times potentials of neighbors."""

    def program() -> None:
        last, stop, t = None, False, 0
        while not stop and t < 5:
            x = pyro.sample(f"x_{t}", dist.Categorical(INITIAL))
            if last is not None:
                pyro.factor(f"pair_{t}", pairs[last, x])
            stop = pyro.sample(f"stop_{t}", dist.Bernoulli(END)).bool() if t < 4 else True
            last, t = x, t + 1

    return program


def log_loop_with_factors(x: Any) -> float:
    total = sum(math.log(INITIAL[a]) for a in x) + sum(float(PAIRS[a, b]) for a, b in pairwise(x))
    return total + (len(x) - 1) * math.log(1 - STOP) + (math.log(STOP) if len(x) < 5 else 0.0)


POLISH = torch.tensor([0.35, 0.15, 0.25, 0.25], dtype=torch.double)  # two letters, "not" and "and"


def polish_notation(probs: Tensor) -> Program:
    """A grammar: an expression is a letter, "not" and an expression, or "and" and two expressions."""

    def program() -> None:
        steps = count()

        def expression() -> None:
            x = pyro.sample(f"x_{next(steps)}", dist.Categorical(probs))
            for _ in range(max(int(x) - 1, 0)):
                expression()

        expression()

    return program


def polish_step(missing: int) -> Outcomes:
    return [(prob, a, missing - 1 + max(a - 1, 0)) for a, prob in enumerate(POLISH.tolist())]


STYLES = {
    "GRU": Style(recurrent(GRU), recurrent(OTHER_GRU), network_walk(lambda x: gru_logits(GRU, x))),
    "LSTM": Style(recurrent(LSTM), recurrent(OTHER_LSTM), network_walk(lambda x: lstm_logits(LSTM, x))),
    "transformer": Style(ATTENTION, OTHER_ATTENTION, network_walk(ATTENTION.after)),
    "recursion": Style(recursion(MOVES), recursion(OTHER), CHAIN),
    "brackets": Style(
        brackets(0.8),
        brackets(-0.8),
        Walk(brackets_step, lambda depth: 0.0 if depth is None else 0.15 if depth else 0.5),
    ),
    "network in a loop": Style(RNN, OTHER_RNN, network_walk(lambda x: rnn_logits(RNN, x))),
    "runs": Style(runs(STAY), runs(STAY.flip(0)), Walk(runs_step, lambda state: 0.0 if state is None else STOP)),
    "loop with factors": Style(
        loop_with_factors(PAIRS), loop_with_factors(-PAIRS), Weights(log_loop_with_factors, S, 5)
    ),
    "packed GRU": Style(packed(GRU), packed(OTHER_GRU), network_walk(lambda x: gru_logits(GRU, x))),
    "stop first": Style(
        stop_first(MOVES),
        stop_first(OTHER),
        Walk(CHAIN.step, lambda last: STOP),
        parameters={"stop": END},
        wrong_parameters={"stop": END},
    ),
    "Polish notation": Style(
        polish_notation(POLISH),
        polish_notation(POLISH[[1, 0, 2, 3]]),
        Walk(polish_step, lambda missing: float(missing == 0), start=1),
        size=4,
        warning="cannot be vectorized|hardly ever allows the edits of the view.s. length",
        warns_when_scored=True,
        count=50,
    ),
}

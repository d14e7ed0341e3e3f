# SPDX-License-Identifier: Apache-2.0
"""Sequence models as Pyro users write them, each with its log-joint in plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import pyro
import pyro.distributions as dist
import torch
from pyro import poutine
from torch import Tensor

from pyro_ksd.models import MarkovSequence
from pyro_ksd.sequences.container import Sequences

SIZE, STATES, STOP = 3, 2, 0.2


def simplex(*shape: int, seed: int = 0) -> Tensor:
    values = torch.rand(*shape, dtype=torch.double, generator=torch.Generator().manual_seed(seed)) + 0.1
    return values / values.sum(-1, keepdim=True)


INITIAL, MOVES = simplex(SIZE), simplex(SIZE, SIZE, seed=1)
SECOND = simplex(SIZE + 1, SIZE, SIZE, seed=2)  # [symbol before last or none, last symbol, next symbol]
HIDDEN_START, HIDDEN_MOVES, EMISSION = simplex(STATES), simplex(STATES, STATES, seed=3), simplex(STATES, SIZE, seed=4)
OTHER_MOVES, BOTH = simplex(STATES, STATES, seed=5), simplex(STATES, STATES, SIZE, seed=6)
CLASSES, CLASS_MOVES = simplex(STATES, seed=7), simplex(STATES, SIZE, SIZE, seed=8)
PAIRS = torch.randn(SIZE, SIZE, dtype=torch.double, generator=torch.Generator().manual_seed(9))
CHAIN = MarkovSequence.from_transitions(INITIAL, MOVES, torch.tensor(STOP, dtype=torch.double))
FEW_SEQUENCES = Sequences.of([[0, 1, 1, 2], [2], [1, 1, 0], [0, 0], [2, 1, 0, 1, 1]], SIZE)


def stops(lengths: Tensor, t: int) -> Tensor:
    return (lengths == t + 1).double()


def bernoulli() -> Any:
    return dist.Bernoulli(torch.tensor(STOP, dtype=torch.double))


def chain_steps(sequences: Tensor, lengths: Tensor) -> None:
    """The sites of a chain with stops, to stand inside a plate."""
    for t in range(sequences.shape[1]):
        with poutine.mask(mask=t < lengths):
            probs = INITIAL.expand(len(lengths), -1) if t == 0 else MOVES[sequences[:, t - 1]]
            pyro.sample(f"x_{t}", dist.Categorical(probs), obs=sequences[:, t])
            pyro.sample(f"stop_{t}", bernoulli(), obs=stops(lengths, t))


def chain_with_stop(sequences: Tensor | None = None, lengths: Tensor | None = None, num_sequences: int = 0) -> Any:
    if lengths is None:
        return generate(num_sequences)
    assert sequences is not None
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                probs = INITIAL.expand(len(lengths), -1) if t == 0 else MOVES[sequences[:, t - 1]]
                pyro.sample(f"x_{t}", dist.Categorical(probs), obs=sequences[:, t])
                pyro.sample(f"stop_{t}", bernoulli(), obs=stops(lengths, t))
    return None


def generate(num_sequences: int) -> tuple[Tensor, Tensor]:
    """Generation as a user would write it: until all have stopped."""
    columns, lengths = [], torch.zeros(num_sequences, dtype=torch.long)
    alive = torch.ones(num_sequences, dtype=torch.bool)
    with pyro.plate("sequences", num_sequences):
        while alive.any():
            t = len(columns)
            probs = INITIAL.expand(num_sequences, -1) if t == 0 else MOVES[columns[-1]]
            columns.append(pyro.sample(f"x_{t}", dist.Categorical(probs)))
            stop = pyro.sample(f"stop_{t}", bernoulli()).bool()
            lengths[alive & stop] = t + 1
            alive = alive & ~stop
    return torch.stack(columns, 1), lengths


def chain_backwards(sequences: Tensor, lengths: Tensor) -> None:
    """Other names, and the steps in another order."""
    with pyro.plate("walks", sequences.shape[0], dim=-1):
        for t in reversed(range(sequences.shape[1])):
            with poutine.mask(mask=t < lengths):
                pyro.sample(f"end {t}", bernoulli(), obs=stops(lengths, t))
                probs = INITIAL.expand(len(lengths), -1) if t == 0 else MOVES[sequences[:, t - 1]]
                pyro.sample(f"place {t}", dist.Categorical(probs), obs=sequences[:, t])


def chain_without_loop(sequences: Tensor, lengths: Tensor) -> None:
    """The steps as a nested plate."""
    count, width = sequences.shape
    inside = torch.arange(width) < lengths[:, None]
    with pyro.plate("sequences", count, dim=-2):
        pyro.sample("first", dist.Categorical(INITIAL), obs=sequences[:, :1])
        with pyro.plate("steps", width, dim=-1), poutine.mask(mask=inside):
            pyro.sample("stop", bernoulli(), obs=(torch.arange(width) + 1 == lengths[:, None]).double())
        if width > 1:
            with pyro.plate("moves", width - 1, dim=-1), poutine.mask(mask=inside[:, 1:]):
                pyro.sample("x", dist.Categorical(MOVES[sequences[:, :-1]]), obs=sequences[:, 1:])


def chain_with_end_symbol(sequences: Tensor, lengths: Tensor) -> None:
    count, width = sequences.shape
    table = CHAIN.probs
    before = torch.full((count,), SIZE)
    with pyro.plate("sequences", count):
        for t in range(width + 1):
            here = sequences[:, t].where(t < lengths, torch.tensor(SIZE)) if t < width else torch.full((count,), SIZE)
            with poutine.mask(mask=t <= lengths):
                pyro.sample(f"x_{t}", dist.Categorical(logits=table[before].log()), obs=here)
            before = here


def chain_as_one_site(x: Tensor | None = None, num_sequences: int = 0) -> Tensor:
    with pyro.plate("sequences", num_sequences if x is None else len(x)):
        return pyro.sample("x", CHAIN, obs=x)


def chain_in_a_loop() -> None:
    t, stop, before = 0, False, None
    while not stop:
        before = pyro.sample(f"x_{t}", dist.Categorical(INITIAL if before is None else MOVES[before]))
        stop = pyro.sample(f"stop_{t}", bernoulli()).bool()
        t += 1


def second_order(sequences: Tensor, lengths: Tensor) -> None:
    count = len(lengths)
    with pyro.plate("sequences", count):
        before, last = torch.full((count,), SIZE), None
        for t in pyro.markov(range(sequences.shape[1]), history=2):
            with poutine.mask(mask=t < lengths):
                probs = INITIAL.expand(count, -1) if last is None else SECOND[before, last]
                here = pyro.sample(f"x_{t}", dist.Categorical(probs), obs=sequences[:, t])
                pyro.sample(f"stop_{t}", bernoulli(), obs=stops(lengths, t))
            before, last = (before if last is None else last), here


def length_first(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths)):
        pyro.sample("length", dist.Poisson(torch.tensor(2.0).double()), obs=lengths.double())
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                pyro.sample(f"x_{t}", dist.Categorical(INITIAL), obs=sequences[:, t])


def nested_features(sequences: Tensor, lengths: Tensor) -> None:
    inside = torch.arange(sequences.shape[1]) < lengths[:, None]
    with pyro.plate("sequences", len(lengths), dim=-1):
        with pyro.plate("symbols", SIZE, dim=-2):
            counts = ((sequences == torch.arange(SIZE)[:, None, None]) & inside).sum(-1)
            pyro.factor("rarity", -0.3 * counts.double() ** 2)
        pyro.factor("length", -0.7 * lengths.double())


def hidden_steps(
    sequences: Tensor, lengths: Tensor, start: Tensor, moves: Tensor, emission: Tensor, stop: Tensor
) -> None:
    """A hidden Markov model step by step, with enumerated states."""
    with pyro.plate("sequences", len(lengths), dim=-1):
        z: Any = None
        for t in pyro.markov(range(sequences.shape[1])):
            with poutine.mask(mask=t < lengths):
                probs = start if z is None else moves[z]
                z = pyro.sample(f"z_{t}", dist.Categorical(probs), infer={"enumerate": "parallel"})
                pyro.sample(f"x_{t}", dist.Categorical(emission[z]), obs=sequences[:, t])
                pyro.sample(f"stop_{t}", dist.Bernoulli(stop), obs=stops(lengths, t))


def hmm(sequences: Tensor, lengths: Tensor) -> None:
    stop = torch.tensor(STOP, dtype=torch.double)
    hidden_steps(sequences, lengths, HIDDEN_START, HIDDEN_MOVES, EMISSION, stop)


def coupled_hmm(sequences: Tensor, lengths: Tensor) -> None:
    """Two hidden chains, the second driven by the first."""
    with pyro.plate("sequences", len(lengths), dim=-1):
        z: Any = None
        w: Any = None
        for t in pyro.markov(range(sequences.shape[1])):
            with poutine.mask(mask=t < lengths):
                z = pyro.sample(
                    f"z_{t}",
                    dist.Categorical(HIDDEN_START if z is None else HIDDEN_MOVES[z]),
                    infer={"enumerate": "parallel"},
                )
                mixed = OTHER_MOVES[z] if w is None else (OTHER_MOVES[z] + HIDDEN_MOVES[w]) / 2
                w = pyro.sample(f"w_{t}", dist.Categorical(mixed), infer={"enumerate": "parallel"})
                pyro.sample(f"x_{t}", dist.Categorical(BOTH[z, w]), obs=sequences[:, t])
                pyro.sample(f"stop_{t}", bernoulli(), obs=stops(lengths, t))


def mixture_of_chains(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths), dim=-1):
        c = pyro.sample("class", dist.Categorical(CLASSES), infer={"enumerate": "parallel"})
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                probs = INITIAL if t == 0 else CLASS_MOVES[c, sequences[:, t - 1]]
                pyro.sample(f"x_{t}", dist.Categorical(probs), obs=sequences[:, t])
                pyro.sample(f"stop_{t}", bernoulli(), obs=stops(lengths, t))


def mrf_by_steps(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths)):
        for t in range(1, sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                pyro.factor(f"pair_{t}", PAIRS[sequences[:, t - 1], sequences[:, t]])
        pyro.factor("length", torch.where((lengths >= 1) & (lengths <= 5), 0.0, -torch.inf).double())


def mrf_by_sequence(sequences: Tensor, lengths: Tensor) -> None:
    inside = torch.arange(1, sequences.shape[1]) < lengths[:, None]
    pairs = PAIRS[sequences[:, :-1], sequences[:, 1:]].masked_fill(~inside, 0).sum(-1)
    possible = (lengths >= 1) & (lengths <= 5)
    with pyro.plate("sequences", len(lengths)):
        pyro.factor("energy", pairs.masked_fill(~possible, -torch.inf))


def product_of_experts(sequences: Tensor, lengths: Tensor) -> None:
    """A chain that may not say 2 right after 0, and likes pairs."""
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                probs = INITIAL.expand(len(lengths), -1) if t == 0 else MOVES[sequences[:, t - 1]]
                pyro.sample(f"x_{t}", dist.Categorical(probs), obs=sequences[:, t])
                pyro.sample(f"stop_{t}", bernoulli(), obs=stops(lengths, t))
                if t:
                    banned = (sequences[:, t - 1] == 0) & (sequences[:, t] == 2)
                    pairs = PAIRS[sequences[:, t - 1], sequences[:, t]] - 1  # the sum over all sequences is finite
                    pyro.factor(f"taste_{t}", pairs.masked_fill(banned, -torch.inf))


def scaled_and_subject_to_priors(sequences: Tensor, lengths: Tensor) -> None:
    """Scales and sites outside the plate do not change the ratios."""
    pyro.sample("prior", dist.Normal(0.0, 1.0), obs=torch.tensor(0.7))
    with poutine.scale(scale=3.0):
        chain_with_stop(sequences, lengths)


# ---------------------------------------------------------------------------------- the same in plain Python


def log_chain(x: Sequence[int]) -> float:
    if not x:
        return -math.inf
    path = [math.log(INITIAL[x[0]])] + [math.log(MOVES[a, b]) for a, b in pairwise(x)]
    return sum(path) + (len(x) - 1) * math.log(1 - STOP) + math.log(STOP)


def log_pairs(x: Sequence[int]) -> float:
    return sum(float(PAIRS[a, b]) for a, b in pairwise(x))


def log_second_order(x: Sequence[int]) -> float:
    if not x:
        return -math.inf
    total = math.log(INITIAL[x[0]]) + (len(x) - 1) * math.log(1 - STOP) + math.log(STOP)
    for t in range(1, len(x)):
        total += math.log(SECOND[x[t - 2] if t > 1 else SIZE, x[t - 1], x[t]])
    return total


def log_length_first(x: Sequence[int]) -> float:
    poisson = len(x) * math.log(2.0) - 2.0 - math.lgamma(len(x) + 1)
    return poisson + sum(math.log(INITIAL[a]) for a in x)


def log_rarity(x: Sequence[int]) -> float:
    return sum(-0.3 * list(x).count(a) ** 2 for a in range(SIZE))


def log_sum(values: list[float]) -> float:
    top = max(values)
    return top + math.log(sum(math.exp(value - top) for value in values))


def log_stops(x: Sequence[int]) -> float:
    return (len(x) - 1) * math.log(1 - STOP) + math.log(STOP)


def log_hmm(x: Sequence[int]) -> float:
    if not x:
        return -math.inf
    paths = []
    for z in product(range(STATES), repeat=len(x)):
        total = math.log(HIDDEN_START[z[0]]) + sum(math.log(HIDDEN_MOVES[a, b]) for a, b in pairwise(z))
        paths.append(total + sum(math.log(EMISSION[s, a]) for s, a in zip(z, x, strict=True)))
    return log_sum(paths) + log_stops(x)


def log_coupled(x: Sequence[int]) -> float:
    if not x:
        return -math.inf
    start, moves, other, both = (table.tolist() for table in (HIDDEN_START, HIDDEN_MOVES, OTHER_MOVES, BOTH))
    total = 0.0
    for z in product(range(STATES), repeat=len(x)):
        for w in product(range(STATES), repeat=len(x)):
            weight = start[z[0]] * other[z[0]][w[0]] * both[z[0]][w[0]][x[0]]
            for t in range(1, len(x)):
                weight *= moves[z[t - 1]][z[t]]
                weight *= (other[z[t]][w[t]] + moves[w[t - 1]][w[t]]) / 2
                weight *= both[z[t]][w[t]][x[t]]
            total += weight
    return math.log(total) + log_stops(x)


def log_mixture(x: Sequence[int]) -> float:
    if not x:
        return -math.inf
    each = [math.log(CLASSES[c]) + sum(math.log(CLASS_MOVES[c, a, b]) for a, b in pairwise(x)) for c in range(STATES)]
    return math.log(INITIAL[x[0]]) + log_sum(each) + log_stops(x)


def log_mrf(x: Sequence[int]) -> float:
    return log_pairs(x) if 1 <= len(x) <= 5 else -math.inf


def log_experts(x: Sequence[int]) -> float:
    if any((a, b) == (0, 2) for a, b in pairwise(x)):
        return -math.inf
    return log_chain(x) + log_pairs(x) - max(0, len(x) - 1)


@dataclass(frozen=True)
class Example:
    """A program and its log-joint, which may differ by a constant."""

    program: Callable[..., Any]
    log_joint: Callable[[Sequence[int]], float]


EXAMPLES = {
    "chain with stop": Example(chain_with_stop, log_chain),
    "chain backwards": Example(chain_backwards, log_chain),
    "chain without loop": Example(chain_without_loop, log_chain),
    "chain with end symbol": Example(chain_with_end_symbol, log_chain),
    "chain as one site": Example(chain_as_one_site, log_chain),
    "second order": Example(second_order, log_second_order),
    "length first": Example(length_first, log_length_first),
    "nested features": Example(nested_features, lambda x: log_rarity(x) - 0.7 * len(x)),
    "HMM": Example(hmm, log_hmm),
    "coupled HMM": Example(coupled_hmm, log_coupled),
    "mixture of chains": Example(mixture_of_chains, log_mixture),
    "MRF by steps": Example(mrf_by_steps, log_mrf),
    "MRF by sequence": Example(mrf_by_sequence, log_mrf),
    "product of experts": Example(product_of_experts, log_experts),
    "scaled, with a prior": Example(scaled_and_subject_to_priors, log_chain),
}

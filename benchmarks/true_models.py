# SPDX-License-Identifier: Apache-2.0
"""True models of all kinds, each with an exact sampler, to measure how often a check rejects them.

Markov random fields with hard and soft ends, chains with rare symbols, ring walks, hidden Markov models, constrained
outputs, large alphabets, long, short and heavy-tailed lengths.
"""

from __future__ import annotations

from functools import partial

import pyro
import pyro.distributions as dist
import torch
from pyro import poutine
from torch import Tensor

from benchmarks.fault_models import (
    chain_with_lengths,
    heavy_tailed_lengths,
    reversible_chain,
    reversible_moves,
    sticky_hidden_chain,
)
from benchmarks.scenario_models import (
    alternating,
    dirichlet,
    first_order,
    poisson_coin,
    second_order,
    uniform,
    walk_with_memory,
)
from pyro_ksd.examples import random_walk
from pyro_ksd.models import (
    HiddenMarkovSequence,
    IndependentSequence,
    LinearChainMRF,
    MarkovSequence,
    SequenceModel,
    VectorizedProgram,
    constrain,
    with_sampler,
)
from pyro_ksd.sequences.container import Sequences


def true_models() -> dict[str, SequenceModel]:
    """All models, by name."""
    return {
        "MRF, hard end at 30": field(30),
        "MRF, hard end at 5": field(5),
        "MRF, hard end at 100": field(100, per_symbol=-1.39),
        "MRF, soft end": field(200, per_symbol=-1.6),
        "MRF, quadratic length term": field(60, per_square=-0.01),
        "MRF, repeating": field(20, pairwise=1.5 * torch.eye(3, dtype=torch.double), per_symbol=-1.87),
        "chain with two rare symbols": rare_symbols(),
        "chain, nearly deterministic": nearly_deterministic(),
        "chain of two symbols": alternating(),
        "chain of order 2": second_order("model", 8),
        "chain, stop by symbol": stop_by_symbol(),
        "ring walk, floor 1e-3": random_walk(8),
        "ring walk, floor 1e-6": ring_walk(1e-6),
        "ring walk with memory": walk_with_memory(0.95, 8),
        "long ring walk with memory": walk_with_memory(0.95, 30),
        "hidden Markov model": sticky_hidden_chain(),
        "hidden Markov model, Pyro program": enumerated_program(),
        "constrained to end with 0": constrain(first_order(8), ends_with_zero),
        "constrained to equal ends": constrain(reversible_chain(), has_equal_ends),
        "200 symbols, independent": large_alphabet(),
        "200 symbols, chain": large_chain(),
        "mean length 200": reversible_chain(200),
        "fixed length 200": lengths_between(200, 200),
        "fixed length 10": lengths_between(10, 10),
        "lengths 8 to 12": lengths_between(8, 12),
        "lengths uniform on 1 to 30": lengths_between(1, 30),
        "heavy-tailed lengths": chain_with_lengths(*reversible_moves(), heavy_tailed_lengths()),
        "Poisson lengths, two symbols": poisson_coin(0.6),
        "mean length 1.5, empty allowed": very_short(),
    }


def field(
    longest: int, *, pairwise: Tensor | None = None, per_symbol: float = -1.45, per_square: float = 0.0
) -> LinearChainMRF:
    r"""A Markov random field over three symbols with the length term :math:`a \ell + b \ell^2`, never empty.

    :param longest: the last possible length, a hard end where the length term still allows more.
    :param pairwise: ``[3, 3]``; by default equal neighbors attract and 0 and 2 repel each other.
    """
    if pairwise is None:
        pairwise = torch.tensor([[1.0, 0.0, -1.0], [0.0, 0.5, 0.0], [-1.0, 0.0, 1.0]], dtype=torch.double)
    count = torch.arange(longest + 1, dtype=torch.double)
    length = per_symbol * count + per_square * count.square()
    length[0] = -torch.inf
    return LinearChainMRF(pairwise, length=length)


def rare_symbols() -> MarkovSequence:
    """Independent symbols, of which two have the probability 1e-3 each; 10 on average."""
    probs = torch.tensor([0.5, 0.3, 0.198, 1e-3, 1e-3], dtype=torch.double)
    return MarkovSequence.from_transitions(probs, probs.expand(5, 5), stop=0.1)


def nearly_deterministic() -> MarkovSequence:
    """A cycle through five symbols that makes another step in 1 % of the cases."""
    moves = 0.9875 * torch.eye(5, dtype=torch.double).roll(1, 1) + 0.0025
    return MarkovSequence.from_transitions(uniform(5), moves, stop=0.1)


def stop_by_symbol() -> MarkovSequence:
    """The chain of :func:`reversible_moves` that hardly ever stops but after the symbol 3."""
    stop = torch.tensor([0.01, 0.02, 0.05, 0.3], dtype=torch.double)
    return MarkovSequence.from_transitions(*reversible_moves(), stop=stop)


def ring_walk(floor: float) -> MarkovSequence:
    """A walk on a ring of eight places; every other move has the probability ``floor``."""
    here = torch.eye(8, dtype=torch.double)
    steps = ((here.roll(1, 1) + here.roll(-1, 1)) / 2).clamp(min=floor)
    return MarkovSequence.from_transitions(uniform(8), steps / steps.sum(-1, keepdim=True), stop=1 / 8)


def enumerated_program() -> SequenceModel:
    """The hidden Markov model as a program with enumerated states, and its exact sampler."""
    hidden = sticky_hidden_chain()
    example = Sequences.of([[0, 1, 2, 3]], hidden.alphabet_size)
    return with_sampler(VectorizedProgram(partial(hidden_program, hidden), example), hidden.draw)


def hidden_program(hidden: HiddenMarkovSequence, sequences: Tensor, lengths: Tensor) -> None:
    """A hidden Markov model step by step."""
    with pyro.plate("sequences", len(lengths), dim=-1):
        state: Tensor | None = None
        for t in pyro.markov(range(sequences.shape[1])):
            with poutine.mask(mask=t < lengths):
                probs = hidden.initial if state is None else hidden.transition[state]
                state = pyro.sample(f"z_{t}", dist.Categorical(probs), infer={"enumerate": "parallel"})
                pyro.sample(f"x_{t}", dist.Categorical(hidden.emission[state]), obs=sequences[:, t])
                pyro.sample(f"stop_{t}", dist.Bernoulli(hidden.stop[0]), obs=(lengths == t + 1).double())


def ends_with_zero(sequences: Sequences) -> Tensor:
    """Which sequences have the symbol 0 at the end, boolean ``[N]``."""
    return _last(sequences) == 0


def has_equal_ends(sequences: Sequences) -> Tensor:
    """Which sequences end as they begin, boolean ``[N]``."""
    return (_last(sequences) == sequences.tokens[:, 0]) & (sequences.lengths > 0)


def _last(sequences: Sequences) -> Tensor:
    """The last symbols, long ``[N]``; -1 for an empty sequence."""
    last = sequences.tokens.gather(1, (sequences.lengths - 1).clamp(min=0)[:, None])[:, 0]
    return last.masked_fill(sequences.lengths == 0, -1)


def large_alphabet() -> IndependentSequence:
    """Independent symbols out of 200, the most frequent ones 200 times as frequent as the rarest; 5 on average."""
    weights = 1 / torch.arange(1, 201, dtype=torch.double)
    length = dist.Geometric(torch.tensor(0.2, dtype=torch.double))
    return IndependentSequence(weights / weights.sum(), length, minimum=1)


def large_chain() -> MarkovSequence:
    """A chain over 200 symbols with random transitions; 5 symbols on average."""
    moves = dirichlet((200, 200), torch.Generator().manual_seed(0))
    return MarkovSequence.from_transitions(uniform(200), moves, stop=0.2)


def lengths_between(shortest: int, longest: int) -> LinearChainMRF:
    """The chain of :func:`reversible_moves` with lengths that are uniform between two ends."""
    lengths = torch.zeros(longest + 1, dtype=torch.double)
    lengths[shortest:] = 1 / (longest - shortest + 1)
    return chain_with_lengths(*reversible_moves(), lengths)


def very_short() -> IndependentSequence:
    """Independent symbols out of four, 1.5 on average; 40 % of the sequences are empty."""
    probs = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.double)
    return IndependentSequence(probs, dist.Geometric(torch.tensor(0.4, dtype=torch.double)))

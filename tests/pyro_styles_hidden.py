# SPDX-License-Identifier: Apache-2.0
"""Other programs with hidden states, in the styles of Pyro's examples and tutorials, each with a plain-Python twin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise, product
from typing import Any

import pyro
import pyro.distributions as dist
import torch
from plain_walks import Outcomes, Style, Walk, Weights, softmax
from pyro import poutine
from pyro.contrib.mue.missingdatahmm import MissingDataDiscreteHMM
from pyro.infer import config_enumerate
from pyro.ops.indexing import Vindex
from pyro_styles import END, STOP, Program, S, bits_of, inside, normal, stops, table
from pyro_styles_hmm import EMISSION, HIDDEN, MIXED_UP, PARALLEL, START, K, after_first, hidden
from torch import Tensor
from torch.nn.functional import one_hot

GROUPS, SHIFTS = table(3, seed=17), normal(3, K, K, seed=18, scale=2.0)


def random_effects(shifts: Tensor) -> Program:
    """A discrete random effect of each sequence on the logits of its hidden moves."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("individuals", len(lengths), dim=-1):
            group = pyro.sample("group", dist.Categorical(GROUPS), infer=PARALLEL)
            z = torch.tensor(0)
            for t in pyro.markov(range(sequences.shape[1])):
                with poutine.mask(mask=t < lengths):
                    logits = HIDDEN.log()[z] + Vindex(shifts)[group, z]
                    z = pyro.sample(f"z_{t}", dist.Categorical(logits=logits), infer=PARALLEL)
                    pyro.sample(f"x_{t}", dist.Categorical(EMISSION[z]), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", dist.Bernoulli(END), obs=stops(lengths, t))

    return program


def random_effects_step(state: tuple[int, int] | None) -> Outcomes:
    groups = [(float(GROUPS[g]), g, 0) for g in range(3)] if state is None else [(1.0, *state)]
    outcomes: Outcomes = []
    for weight, group, z in groups:
        probs = softmax([math.log(HIDDEN[z, y]) + float(SHIFTS[group, z, y]) for y in range(K)])
        outcomes += [(weight * probs[y] * float(EMISSION[y, a]), a, (group, y)) for y in range(K) for a in range(S)]
    return outcomes


SURVIVE, SEEN = torch.tensor([0.8, 0.9], dtype=torch.double)


def capture_recapture(survive: Tensor, seen: Tensor) -> Program:
    """An animal is seen (1) only while it is alive: a hidden Bernoulli that is multiplied with probabilities."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("animals", len(lengths), dim=-1):
            alive = torch.ones(len(lengths)).double()
            for t in pyro.markov(range(sequences.shape[1])):
                with poutine.mask(mask=t < lengths):
                    alive = pyro.sample(f"alive_{t}", dist.Bernoulli(survive * alive), infer=PARALLEL)
                    chance = seen * alive + 0.05 * (1 - alive)
                    pyro.sample(f"seen_{t}", dist.Bernoulli(chance), obs=sequences[:, t].double())
                    pyro.sample(f"end_{t}", dist.Bernoulli(END), obs=stops(lengths, t))

    return program


def capture_step(alive: int | None) -> Outcomes:
    survive = float(SURVIVE) if alive is None or alive else 0.0
    outcomes: Outcomes = []
    for after, prob in ((1, survive), (0, 1 - survive)):
        chance = float(SEEN) if after else 0.05
        outcomes += [(prob * chance, 1, after), (prob * (1 - chance), 0, after)]
    return outcomes


ABSORBING = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.5, 0.4]], dtype=torch.double)  # the last state is the end


def absorbing_state(moves: Tensor) -> Program:
    """The sequence ends when the hidden chain reaches its last state, which is observed."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        stay = torch.tensor([[0.0, 0.0, 1.0]], dtype=torch.double)
        logits = torch.cat([moves, stay]).log()
        first = torch.tensor([0.5, 0.5, 0.0], dtype=torch.double).log()
        emission = torch.cat([EMISSION, torch.ones(1, S).double() / S])
        with pyro.plate("sequences", len(lengths), dim=-1):
            z: Any = None
            for t in pyro.markov(range(sequences.shape[1] + 1)):
                with poutine.mask(mask=t <= lengths):
                    z = pyro.sample(
                        f"z_{t}", dist.Categorical(logits=first if z is None else logits[z]), infer=PARALLEL
                    )
                    pyro.sample(f"over_{t}", dist.Delta((z == K).double()), obs=(lengths == t).double())
                if t < sequences.shape[1]:
                    with poutine.mask(mask=t < lengths):
                        pyro.sample(f"x_{t}", dist.Categorical(emission[z]), obs=sequences[:, t])

    return program


def absorbing_step(z: int | None) -> Outcomes:
    going = 1.0 if z is None else 1 - float(ABSORBING[z, K])
    probs = [0.5, 0.5] if z is None else [float(ABSORBING[z, y]) / going for y in range(K)]
    return [(probs[y] * float(EMISSION[y, a]), a, y) for y in range(K) for a in range(S)]


DURATIONS = [[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]]  # [state, duration - 1]


def semi_markov(durations: list[list[float]]) -> Program:
    """States that last for a while: pairs of a state and the steps that are left, in one hidden site."""
    pairs = list(product(range(K), range(len(durations[0]))))
    moves = torch.zeros(len(pairs), len(pairs), dtype=torch.double)
    for (z, left), (y, lasts) in product(pairs, pairs):
        counts_down = z == y and lasts == left - 1
        moves[pairs.index((z, left)), pairs.index((y, lasts))] = (
            float(counts_down) if left else float(z != y) * durations[y][lasts]
        )
    start = torch.tensor([durations[z][left] / K for z, left in pairs], dtype=torch.double)
    emission = EMISSION.repeat_interleave(len(durations[0]), 0)

    @config_enumerate(default="parallel")
    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths), dim=-1):
            z: Any = None
            for t in pyro.markov(range(sequences.shape[1])):
                with poutine.mask(mask=t < lengths):
                    z = pyro.sample(f"z_{t}", dist.Categorical(logits=(start if z is None else moves[z]).log()))
                    pyro.sample(f"x_{t}", dist.Categorical(emission[z]), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", dist.Bernoulli(END), obs=stops(lengths, t))

    return program


def semi_markov_step(state: tuple[int, int] | None) -> Outcomes:
    if state is None:
        segments = [(DURATIONS[z][left] / K, z, left) for z in range(K) for left in range(3)]
    elif state[1]:
        segments = [(1.0, state[0], state[1] - 1)]
    else:
        segments = [(DURATIONS[1 - state[0]][left], 1 - state[0], left) for left in range(3)]
    return [(prob * float(EMISSION[z, a]), a, (z, left)) for prob, z, left in segments for a in range(S)]


MOTIF_WEIGHTS, MOTIFS, OTHER_MOTIFS = table(K, seed=19), table(K, 4, S, seed=20), table(K, 4, S, seed=21)


def mixture_of_motifs(motifs: Tensor) -> Program:
    """A mixture of position weight matrices, whose last column goes on for ever."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths), dim=-1):
            motif = pyro.sample("motif", dist.Categorical(MOTIF_WEIGHTS), infer=PARALLEL)
            pyro.sample("length", dist.Geometric(END), obs=lengths.double())
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(motifs[motif, min(t, 3)]), obs=sequences[:, t])

    return program


def motif_step(state: tuple[int, int] | None) -> Outcomes:
    choices = [(float(MOTIF_WEIGHTS[c]), c, 0) for c in range(K)] if state is None else [(1.0, *state)]
    return [(p * float(MOTIFS[c, min(t, 3), a]), a, (c, t + 1)) for p, c, t in choices for a in range(S)]


CLASSES, CLASS_SYMBOLS = table(3, seed=22), normal(3, S, seed=23, scale=2.0)


def one_hot_class(symbols: Tensor) -> Program:
    """A one-hot label of each sequence, as in the semi-supervised VAE, times a matrix."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("data", len(lengths), dim=-1):
            label = pyro.sample("label", dist.OneHotCategorical(CLASSES), infer=PARALLEL)
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(logits=label @ symbols), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", dist.Bernoulli(END), obs=stops(lengths, t))

    return program


def class_step(label: int | None) -> Outcomes:
    choices = [(float(CLASSES[c]), c) for c in range(3)] if label is None else [(1.0, label)]
    return [(prob * softmax(CLASS_SYMBOLS[c].tolist())[a], a, c) for prob, c in choices for a in range(S)]


TOPICS = torch.tensor([[0.9, 0.1], [0.2, 0.8]], dtype=torch.double)  # [kind, topic]


def topics_of_words(topics: Tensor) -> Program:
    """Each document has a kind, each of its words a topic: hidden sites in two nested plates, and no loop."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        documents = pyro.plate("documents", len(lengths), dim=-2)
        words = pyro.plate("words", sequences.shape[1], dim=-1)
        with documents:
            kind = pyro.sample("kind", dist.Categorical(START), infer=PARALLEL)
            pyro.sample("length", dist.Geometric(END), obs=lengths.double().unsqueeze(-1))
            with words, poutine.mask(mask=inside(sequences, lengths)):
                topic = pyro.sample("topic", dist.Categorical(topics[kind]), infer=PARALLEL)
                pyro.sample("word", dist.Categorical(EMISSION[topic]), obs=sequences)

    return program


def topic_step(kind: int | None) -> Outcomes:
    kinds = [(float(START[c]), c) for c in range(K)] if kind is None else [(1.0, kind)]
    outcomes: Outcomes = []
    for (prob, c), topic, a in product(kinds, range(K), range(S)):
        outcomes.append((prob * float(TOPICS[c, topic] * EMISSION[topic, a]), a, c))
    return outcomes


BIT_MOVES = torch.tensor([[[0.9, 0.1], [0.2, 0.8]], [[0.3, 0.7], [0.6, 0.4]]], dtype=torch.double)  # [bit, z, next z]
BIT_UPS = torch.tensor([[0.1, 0.9], [0.2, 0.7]], dtype=torch.double)  # [bit, z]


def a_chain_for_each_bit(moves: Tensor) -> Program:
    """Hidden chains inside a nested plate."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        bits = torch.arange(2)
        with pyro.plate("sequences", len(lengths), dim=-2):
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=(t < lengths).unsqueeze(-1)):
                    pyro.sample(f"stop_{t}", dist.Bernoulli(END), obs=stops(lengths, t).unsqueeze(-1))
            with pyro.plate("bits", 2, dim=-1):
                z: Any = torch.tensor(0)
                for t in pyro.markov(range(sequences.shape[1])):
                    with poutine.mask(mask=(t < lengths).unsqueeze(-1)):
                        z = pyro.sample(f"z_{t}", dist.Categorical(Vindex(moves)[bits, z]), infer=PARALLEL)
                        pyro.sample(f"y_{t}", dist.Bernoulli(Vindex(BIT_UPS)[bits, z]), obs=bits_of(sequences[:, t]))

    return program


def bit_chains_step(state: tuple[int, int] | None) -> Outcomes:
    own = state or (0, 0)
    outcomes: Outcomes = []
    for a, z0, z1 in product(range(4), range(2), range(2)):
        prob = 1.0
        for bit, (up, z) in enumerate(((a // 2, z0), (a % 2, z1))):
            rate = float(BIT_UPS[bit, z])
            prob *= float(BIT_MOVES[bit, own[bit], z]) * (rate if up else 1 - rate)
        outcomes.append((prob, a, (z0, z1)))
    return outcomes


LABEL_PAIRS, LABEL_SYMBOLS = normal(K, K, seed=24), normal(K, S, seed=25)
LONGEST = 6


def random_field_of_labels(pairs: Tensor) -> Program:
    """Labels of the symbols, with potentials on pairs of labels and on a label and its symbol."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths), dim=-1):
            z: Any = None
            for t in pyro.markov(range(sequences.shape[1])):
                with poutine.mask(mask=t < lengths):
                    last, z = z, pyro.sample(f"z_{t}", dist.Categorical(torch.ones(K).double()), infer=PARALLEL)
                    pyro.factor(f"symbol_{t}", LABEL_SYMBOLS[z, sequences[:, t]])
                    if last is not None:
                        pyro.factor(f"pair_{t}", pairs[last, z])
            possible = (lengths >= 1) & (lengths <= LONGEST)
            pyro.factor("length", torch.where(possible, -2.5 * lengths.double(), -torch.inf))

    return program


def log_field(x: Sequence[int]) -> float:
    pairs, symbols = LABEL_PAIRS.tolist(), LABEL_SYMBOLS.tolist()
    total = 0.0
    for z in product(range(K), repeat=len(x)):
        of_symbols = sum(symbols[label][a] for label, a in zip(z, x, strict=True))
        total += math.exp(of_symbols + sum(pairs[a][b] for a, b in pairwise(z)))
    return math.log(total) - (2.5 + math.log(K)) * len(x)


# ------------------------------------------------------------------------------------------- distributions of Pyro


def discrete_hmm(moves: Tensor) -> Program:
    """The hidden Markov model as one site; its observations are masked after the end."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        alive = inside(sequences, lengths)
        with pyro.plate("sequences", len(lengths)):
            symbols = dist.Categorical(EMISSION).expand((*alive.shape, K)).mask(alive[..., None])
            steps = moves.log().expand(*alive.shape, K, K)
            pyro.sample("x", dist.DiscreteHMM(START.log(), steps, symbols), obs=sequences)
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"stop_{t}", dist.Bernoulli(END), obs=stops(lengths, t))

    return program


PROFILE = torch.tensor(  # two positions, a place for insertions, and the end
    [[0.1, 0.6, 0.2, 0.1], [0.05, 0.05, 0.4, 0.5], [0.2, 0.2, 0.4, 0.2], [0.0, 0.0, 0.0, 1.0]], dtype=torch.double
)
PROFILE_START = torch.tensor([0.6, 0.1, 0.2, 0.1], dtype=torch.double)
PROFILE_SYMBOLS = torch.tensor(
    [[0.9, 0.05, 0.05, 0.0], [0.05, 0.05, 0.9, 0.0], [0.2, 0.6, 0.2, 0.0], [0.0, 0.0, 0.0, 1.0]], dtype=torch.double
)


def profile_with_end_symbol(moves: Tensor) -> Program:
    """One-hot rows with an end symbol, and rows of zeros after it, as in ``pyro.contrib.mue``."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        width = sequences.shape[1]
        codes = torch.where(inside(sequences, lengths), sequences, S)
        codes = torch.cat([codes, torch.full((len(codes), 1), S)], 1)
        rows = one_hot(codes, S + 1).double() * (torch.arange(width + 1) <= lengths[:, None])[..., None]
        tiny = 1e-30  # the distribution gives NaN where a logit is -inf
        hmm = MissingDataDiscreteHMM(PROFILE_START.log(), (moves + tiny).log(), (PROFILE_SYMBOLS + tiny).log())
        with pyro.plate("sequences", len(lengths)):
            pyro.sample("x", hmm, obs=rows)

    return program


def profile_row(z: int | None) -> list[float]:
    row: list[float] = (PROFILE_START if z is None else PROFILE[z]).tolist()
    return row


def profile_step(z: int | None) -> Outcomes:
    *places, end = profile_row(z)
    return [
        (prob / (1 - end) * symbol, a, y)
        for y, prob in enumerate(places)
        for a, symbol in enumerate(PROFILE_SYMBOLS[y, :S].tolist())
    ]


STYLES = {
    "random effects": Style(
        random_effects(SHIFTS), random_effects(SHIFTS.flip(2)), Walk(random_effects_step, after_first)
    ),
    "capture and recapture": Style(
        capture_recapture(SURVIVE, SEEN), capture_recapture(SEEN / 2, SURVIVE), Walk(capture_step, after_first), size=2
    ),
    "absorbing state": Style(
        absorbing_state(ABSORBING),
        absorbing_state(ABSORBING.flip(0)),
        Walk(absorbing_step, lambda z: 0.0 if z is None else float(ABSORBING[z, K])),
    ),
    "semi-Markov": Style(semi_markov(DURATIONS), semi_markov(DURATIONS[::-1]), Walk(semi_markov_step, after_first)),
    "mixture of motifs": Style(
        mixture_of_motifs(MOTIFS), mixture_of_motifs(OTHER_MOTIFS), Walk(motif_step, lambda state: STOP)
    ),
    "one-hot class": Style(
        one_hot_class(CLASS_SYMBOLS), one_hot_class(CLASS_SYMBOLS.roll(1, 1)), Walk(class_step, after_first)
    ),
    "topics of words": Style(
        topics_of_words(TOPICS), topics_of_words(TOPICS.flip(1)), Walk(topic_step, lambda kind: STOP)
    ),
    "a chain for each bit": Style(
        a_chain_for_each_bit(BIT_MOVES),
        a_chain_for_each_bit(BIT_MOVES.flip(0)),
        Walk(bit_chains_step, after_first),
        size=4,
    ),
    "random field of labels": Style(
        random_field_of_labels(LABEL_PAIRS), random_field_of_labels(-LABEL_PAIRS), Weights(log_field, S, LONGEST)
    ),
    "DiscreteHMM": Style(
        discrete_hmm(HIDDEN),
        discrete_hmm(MIXED_UP),
        # Unlike a loop, this distribution moves before its first symbol.
        hidden((START @ HIDDEN).tolist(), HIDDEN.tolist(), EMISSION.tolist()),
    ),
    "profile with an end symbol": Style(
        profile_with_end_symbol(PROFILE),
        profile_with_end_symbol(PROFILE[[1, 0, 2, 3]]),
        Walk(profile_step, lambda z: profile_row(z)[-1]),
    ),
}

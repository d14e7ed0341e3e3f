# SPDX-License-Identifier: Apache-2.0
"""Programs without hidden states, in the styles of Pyro's examples and tutorials, each with a plain-Python twin."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations, pairwise
from typing import Any

import pyro
import pyro.distributions as dist
import torch
from plain_walks import Style, Walk, Weights, chain, sigmoid, softmax
from pyro import poutine
from pyro.nn import PyroModule, PyroParam, PyroSample
from torch import Tensor
from torch.distributions import constraints
from torch.nn.functional import one_hot, pad

S, STOP = 3, 0.25
Program = Callable[..., Any]


def normal(*shape: int, seed: int, scale: float = 1.5) -> Tensor:
    return scale * torch.randn(*shape, dtype=torch.double, generator=torch.Generator().manual_seed(seed))


def table(*shape: int, seed: int) -> Tensor:
    """Probabilities that differ clearly."""
    return normal(*shape, seed=seed).softmax(-1)


INITIAL, MOVES, OTHER = table(S, seed=0), table(S, S, seed=1), table(S, S, seed=2)
END = torch.tensor(STOP, dtype=torch.double)
CHAIN = chain(INITIAL.tolist(), MOVES.tolist().__getitem__, STOP)


def stops(lengths: Tensor, t: int) -> Tensor:
    return (lengths == t + 1).double()


def before(sequences: Tensor, t: int, moves: Tensor) -> Tensor:
    """The probabilities of the symbol at step ``t``, ``[N, S]``."""
    return INITIAL.expand(len(sequences), -1) if t == 0 else moves[sequences[:, t - 1]]


def next_symbols(sequences: Tensor, moves: Tensor) -> Tensor:
    """The probabilities of the symbols at all steps, ``[N, T, S]``."""
    return torch.cat([INITIAL.expand(len(sequences), 1, -1), moves[sequences[:, :-1]]], 1)


def inside(sequences: Tensor, lengths: Tensor) -> Tensor:
    return torch.arange(sequences.shape[1]) < lengths[:, None]


# ------------------------------------------------------------------------------------------ distributions of symbols


def one_hot_rows(moves: Tensor) -> Program:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        rows = one_hot(sequences, S).double()
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.OneHotCategorical(before(sequences, t, moves)), obs=rows[:, t])
                    pyro.sample(f"stop_{t}", dist.Bernoulli(END), obs=stops(lengths, t))

    return program


BIT_BIAS, BIT_WEIGHTS = normal(2, seed=3), normal(2, 2, seed=4)


def bits_of(codes: Tensor) -> Tensor:
    return torch.stack([codes // 2, codes % 2], -1).double()


def bits_as_event(weights: Tensor) -> Program:
    """Four symbols, each made of two bits, which depend on the two bits before."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        last = torch.zeros(len(lengths), 2, dtype=torch.double)
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                bits = bits_of(sequences[:, t])
                with poutine.mask(mask=t < lengths):
                    logits = BIT_BIAS + last @ weights
                    pyro.sample(f"bits_{t}", dist.Bernoulli(logits=logits).to_event(1), obs=bits)
                    pyro.sample(f"stop_{t}", dist.Bernoulli(END), obs=stops(lengths, t))
                last = bits

    return program


def bits_step(last: int) -> list[float]:
    """The probabilities of the next of four symbols."""
    ups = []
    for j in range(2):
        ups.append(sigmoid(BIT_BIAS[j] + sum((last // 2, last % 2)[i] * BIT_WEIGHTS[i, j] for i in range(2))))
    return [(ups[0] if a // 2 else 1 - ups[0]) * (ups[1] if a % 2 else 1 - ups[1]) for a in range(4)]


CUTS, SLOPES = torch.tensor([-0.5, 0.8], dtype=torch.double), torch.tensor([1.5, 0.0, -2.0], dtype=torch.double)


def ordinal(slopes: Tensor) -> Program:
    """Symbols in an order, such as ratings."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                shift = slopes[sequences[:, t - 1]] if t else torch.zeros(len(lengths), dtype=torch.double)
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.OrderedLogistic(shift, CUTS), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", dist.Bernoulli(END), obs=stops(lengths, t))

    return program


def ordinal_probs(shift: float) -> list[float]:
    below = [0.0, *(sigmoid(cut - shift) for cut in CUTS.tolist()), 1.0]
    return [b - a for a, b in pairwise(below)]


def counts_as_symbols(rates: Tensor) -> Program:
    """Symbols that are numbers: a Binomial of the one before."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                rate = rates[sequences[:, t - 1]] if t else rates[0]
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Binomial(S - 1, probs=rate), obs=sequences[:, t].double())
                    pyro.sample(f"stop_{t}", dist.Bernoulli(END), obs=stops(lengths, t))

    return program


RATES, OTHER_RATES = (torch.tensor(rates, dtype=torch.double) for rates in ([0.7, 0.5, 0.2], [0.3, 0.5, 0.7]))


def binomial_probs(before: int) -> list[float]:
    rate = float(RATES[before])
    return [math.comb(S - 1, a) * rate**a * (1 - rate) ** (S - 1 - a) for a in range(S)]


def bag_of_symbols(probs: Tensor) -> Program:
    """The counts of the symbols, in no order."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        counts = (one_hot(sequences, S) * inside(sequences, lengths)[..., None]).sum(1).double()
        with pyro.plate("sequences", len(lengths)):
            pyro.sample("counts", dist.Multinomial(probs=probs, validate_args=False), obs=counts)
            pyro.factor("length", torch.where((lengths >= 1) & (lengths <= 6), -0.3 * lengths.double(), -torch.inf))

    return program


def log_bag(x: Sequence[int]) -> float:
    counts = [list(x).count(a) for a in range(S)]
    arrangements = math.lgamma(len(x) + 1) - sum(math.lgamma(count + 1) for count in counts)
    return (
        arrangements + sum(count * math.log(prob) for count, prob in zip(counts, INITIAL, strict=True)) - 0.3 * len(x)
    )


CONCENTRATION = torch.tensor([0.4, 0.6, 0.3], dtype=torch.double)


def urn(concentration: Tensor) -> Program:
    """Each sequence has symbol probabilities of its own, integrated out (LDA with one topic a document)."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        counts = (one_hot(sequences, S) * inside(sequences, lengths)[..., None]).sum(1).double()
        total = lengths.double()
        with pyro.plate("documents", len(lengths)):
            pyro.sample("length", dist.Geometric(END), obs=total)
            pyro.sample("counts", dist.DirichletMultinomial(concentration, total, validate_args=False), obs=counts)
            pyro.factor("order", (counts + 1).lgamma().sum(-1) - (total + 1).lgamma())

    return program


def urn_step(counts: tuple[int, ...]) -> list[tuple[float, int, tuple[int, ...]]]:
    weights = [count + alpha for count, alpha in zip(counts, CONCENTRATION.tolist(), strict=True)]
    after = [tuple(count + (a == b) for b, count in enumerate(counts)) for a in range(S)]
    return [(weights[a] / sum(weights), a, after[a]) for a in range(S)]


# --------------------------------------------------------------------------------------------------- plates and masks


def masked_distributions(moves: Tensor) -> Program:
    """Masks on the distributions, not around the sites."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                alive = t < lengths
                pyro.sample(f"x_{t}", dist.Categorical(before(sequences, t, moves)).mask(alive), obs=sequences[:, t])
                pyro.sample(f"stop_{t}", dist.Bernoulli(END).mask(alive), obs=stops(lengths, t))

    return program


def whole_sequences_as_events(moves: Tensor) -> Program:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        alive = inside(sequences, lengths)
        last = torch.arange(sequences.shape[1]) + 1 == lengths[:, None]
        with pyro.plate("sequences", len(lengths)):
            symbols = dist.Categorical(next_symbols(sequences, moves)).mask(alive).to_event(1)
            pyro.sample("x", symbols, obs=sequences)
            pyro.sample("stops", dist.Bernoulli(END).expand(alive.shape).mask(alive).to_event(1), obs=last.double())

    return program


SHAPE, RATE = 3.0, 0.5


def negative_binomial_length(moves: Tensor) -> Program:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        shape, rate = torch.tensor([SHAPE, RATE], dtype=torch.double)
        sequence_plate = pyro.plate("sequences", len(lengths), dim=-2)
        steps_plate = pyro.plate("steps", sequences.shape[1], dim=-1)
        with sequence_plate:
            pyro.sample("length", dist.NegativeBinomial(shape, rate), obs=lengths.double()[:, None])
        with sequence_plate, steps_plate, poutine.mask(mask=inside(sequences, lengths)):
            pyro.sample("x", dist.Categorical(next_symbols(sequences, moves)), obs=sequences)

    return program


def negative_binomial(length: int) -> float:
    log_choose = math.lgamma(length + SHAPE) - math.lgamma(length + 1) - math.lgamma(SHAPE)
    return math.exp(log_choose) * (1 - RATE) ** SHAPE * RATE**length


def padded_with_minus_one(moves: Tensor) -> Program:
    def program(x: Tensor) -> None:
        alive = x >= 0
        codes = x.clamp(min=0)
        following = pad(alive, (0, 1))[:, 1:]
        with pyro.plate("sequences", len(x)):
            for t in range(x.shape[1]):
                with poutine.mask(mask=alive[:, t]):
                    pyro.sample(f"x_{t}", dist.Categorical(before(codes, t, moves)), obs=codes[:, t])
                    pyro.sample(f"stop_{t}", dist.Bernoulli(END), obs=(~following[:, t]).double())

    return program


def batch_of_a_plate(moves: Tensor) -> Program:
    """The plate gives the indices of its members, as for subsampling; options come from a script."""

    def program(sequences: Tensor, lengths: Tensor, args: Namespace, batch_size: int | None = None) -> None:
        with pyro.plate("sequences", len(sequences), batch_size) as batch:
            lengths = lengths[batch]
            for t in pyro.markov(range(int(lengths.max()) if args.narrow else sequences.shape[1])):
                with poutine.mask(mask=(t < lengths)):
                    pyro.sample(f"x_{t}", dist.Categorical(before(sequences[batch], t, moves)), obs=sequences[batch, t])
                    pyro.sample(f"stop_{t}", dist.Bernoulli(END), obs=stops(lengths, t))

    return partial(program, args=Namespace(narrow=True))


def conditioned_generator(moves: Tensor) -> Program:
    """A generative program without data, conditioned on them."""

    def generator(lengths: Tensor, width: int) -> None:
        x = None
        with pyro.plate("sequences", len(lengths)):
            for t in range(width):
                with poutine.mask(mask=t < lengths):
                    x = pyro.sample(f"x_{t}", dist.Categorical(INITIAL if x is None else moves[x]))
                    pyro.sample(f"stop_{t}", dist.Bernoulli(END))

    def program(sequences: Tensor, lengths: Tensor) -> Any:
        width = sequences.shape[1]
        symbols = {f"x_{t}": sequences[:, t] for t in range(width)}
        ends = {f"stop_{t}": stops(lengths, t) for t in range(width)}
        return pyro.condition(generator, data=symbols | ends)(lengths, width)

    return program


def handlers_around(moves: Tensor) -> Program:
    """A scaled program, one of whose sites is hidden from inference."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("penalty", -sequences[:, 0].double())
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(before(sequences, t, moves)), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", dist.Bernoulli(END), obs=stops(lengths, t))

    return poutine.block(poutine.scale(program, scale=0.1), hide=["penalty"])


def with_deterministic_sites(weight: float) -> Program:
    """The number of zeros so far changes the probability of a zero, and is kept in the trace."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        zeros = torch.zeros(len(lengths), dtype=torch.double)
        with pyro.plate("sequences", len(lengths)):
            pyro.deterministic("rows", one_hot(sequences, S))
            for t in range(sequences.shape[1]):
                logits = INITIAL.log() + weight * zeros[:, None] * torch.tensor([1.0, 0.0, 0.0]).double()
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(logits=logits), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", dist.Bernoulli(END), obs=stops(lengths, t))
                zeros = pyro.deterministic(f"zeros_{t}", zeros + (sequences[:, t] == 0))

    return program


def zeros_step(zeros: int | None) -> list[tuple[float, int, int]]:
    so_far = zeros or 0
    probs = softmax([math.log(INITIAL[a]) + (0.8 * so_far if a == 0 else 0.0) for a in range(S)])
    return [(probs[a], a, so_far + (a == 0)) for a in range(S)]


# --------------------------------------------------------------------------------------------------------- parameters


def param_with_constraint(sequences: Tensor, lengths: Tensor) -> None:
    moves = pyro.param("moves", lambda: torch.ones(S, S).double() / S, constraint=constraints.simplex)
    stop = pyro.param("stop", torch.tensor(0.5).double(), constraint=constraints.unit_interval)
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                pyro.sample(f"x_{t}", dist.Categorical(before(sequences, t, moves)), obs=sequences[:, t])
                pyro.sample(f"stop_{t}", dist.Bernoulli(stop), obs=stops(lengths, t))


def fill_the_store() -> None:
    store = pyro.get_param_store()
    store.setdefault("moves", MOVES.clone(), constraint=constraints.simplex)
    store.setdefault("stop", END.clone(), constraint=constraints.unit_interval)


class ParamModule(PyroModule):
    def __init__(self, moves: Tensor) -> None:
        super().__init__()
        self.initial = PyroParam(INITIAL.clone(), constraint=constraints.simplex)
        self.moves = PyroParam(moves.clone(), constraint=constraints.simplex)

    def forward(self, sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                probs = self.initial.expand(len(lengths), -1) if t == 0 else self.moves[sequences[:, t - 1]]
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(probs), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", dist.Bernoulli(END), obs=stops(lengths, t))


class BayesianRegression(PyroModule):
    """A linear layer with a prior, from the last two symbols to the next."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = PyroModule[torch.nn.Linear](2 * S, S)
        self.linear.weight = PyroSample(dist.Normal(torch.zeros(S, 2 * S).double(), 1.0).to_event(2))
        self.linear.bias = PyroSample(dist.Normal(torch.zeros(S).double(), 1.0).to_event(1))

    def forward(self, sequences: Tensor, lengths: Tensor) -> None:
        rows = pad(one_hot(sequences, S).double(), (0, 0, 2, 0))
        logits = self.linear(torch.cat([rows[:, 1:-1], rows[:, :-2]], -1))
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(logits=logits[:, t]), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", dist.Bernoulli(END), obs=stops(lengths, t))


WEIGHT, OTHER_WEIGHT, BIAS = normal(S, 2 * S, seed=5), normal(S, 2 * S, seed=6), normal(S, seed=7, scale=0.5)


def regression_probs(*last: int) -> list[float]:
    """The probabilities of the next symbol after the last symbols, none, one or two."""
    logits = BIAS.tolist()
    for back, symbol in enumerate(reversed(last)):
        logits = [logit + float(WEIGHT[a, back * S + symbol]) for a, logit in enumerate(logits)]
    return softmax(logits)


def dirichlet_priors(sequences: Tensor, lengths: Tensor) -> None:
    stop = pyro.sample("stop", dist.Beta(1.0, 3.0))
    initial = pyro.sample("initial", dist.Dirichlet(torch.ones(S)))
    with pyro.plate("contexts", S):
        moves = pyro.sample("moves", dist.Dirichlet(0.5 * torch.ones(S)))
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            probs = initial.expand(len(lengths), -1) if t == 0 else moves[sequences[:, t - 1]]
            with poutine.mask(mask=t < lengths):
                pyro.sample(f"x_{t}", dist.Categorical(probs), obs=sequences[:, t])
                pyro.sample(f"stop_{t}", dist.Bernoulli(stop), obs=stops(lengths, t))


def correlated_logits(sequences: Tensor, lengths: Tensor) -> None:
    """The logits of the moves have a multivariate normal prior with an LKJ prior on its correlations."""
    with pyro.plate("symbols", S):
        scales = pyro.sample("scales", dist.HalfCauchy(torch.ones(S).double()))
    correlations = pyro.sample("correlations", dist.LKJCholesky(S, torch.ones(()).double()))
    covariance_root = scales.sqrt()[:, None] * correlations
    with pyro.plate("contexts", S):
        logits = pyro.sample("logits", dist.MultivariateNormal(torch.zeros(S).double(), scale_tril=covariance_root))
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                probs = before(sequences, t, logits.softmax(-1))
                pyro.sample(f"x_{t}", dist.Categorical(probs), obs=sequences[:, t])
                pyro.sample(f"stop_{t}", dist.Bernoulli(END), obs=stops(lengths, t))


CORRELATION_POINT = {"scales": torch.ones(S).double(), "correlations": torch.eye(S).double()}


# ------------------------------------------------------------------------------------------------------------ factors


FIELDS, COUPLING = normal(S, seed=8, scale=0.5), 0.7


def long_range(coupling: float) -> Program:
    """All pairs of equal symbols attract each other, the less the farther apart they are."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        steps = torch.arange(sequences.shape[1])
        with pyro.plate("sequences", len(lengths)):
            with poutine.mask(mask=(lengths >= 1) & (lengths <= 5)):
                pyro.factor("fields", (FIELDS[sequences] * (steps < lengths[:, None])).sum(-1))
            for i, j in combinations(steps.tolist(), 2):
                with poutine.mask(mask=j < lengths):
                    same = (sequences[:, i] == sequences[:, j]).double()
                    pyro.factor(f"pair_{i}_{j}", coupling * same / (j - i))
            pyro.factor("length", torch.where((lengths >= 1) & (lengths <= 5), -1.8 * lengths.double(), -torch.inf))

    return program


def log_long_range(x: Sequence[int]) -> float:
    pairs = [COUPLING / (j - i) for i, j in combinations(range(len(x)), 2) if x[i] == x[j]]
    return sum(pairs) + sum(float(FIELDS[a]) for a in x) - 1.8 * len(x)


STYLES = {
    "one-hot rows": Style(one_hot_rows(MOVES), one_hot_rows(OTHER), CHAIN),
    "bits as an event": Style(
        bits_as_event(BIT_WEIGHTS), bits_as_event(-BIT_WEIGHTS), chain(bits_step(0), bits_step, STOP), size=4
    ),
    "ordinal": Style(
        ordinal(SLOPES),
        ordinal(-SLOPES),
        chain(ordinal_probs(0.0), lambda a: ordinal_probs(float(SLOPES[a])), STOP),
    ),
    "counts as symbols": Style(
        counts_as_symbols(RATES), counts_as_symbols(OTHER_RATES), chain(binomial_probs(0), binomial_probs, STOP)
    ),
    "bag of symbols": Style(bag_of_symbols(INITIAL), bag_of_symbols(INITIAL.flip(0)), Weights(log_bag, S, 6)),
    "urn": Style(
        urn(CONCENTRATION),
        urn(20 * CONCENTRATION),
        Walk(urn_step, lambda counts: STOP, start=(0,) * S),
    ),
    "masked distributions": Style(masked_distributions(MOVES), masked_distributions(OTHER), CHAIN),
    "whole sequences as events": Style(whole_sequences_as_events(MOVES), whole_sequences_as_events(OTHER), CHAIN),
    "negative binomial length": Style(
        negative_binomial_length(MOVES), negative_binomial_length(OTHER), Walk(CHAIN.step, length=negative_binomial)
    ),
    "padded with -1": Style(padded_with_minus_one(MOVES), padded_with_minus_one(OTHER), CHAIN),
    "batch of a plate": Style(batch_of_a_plate(MOVES), batch_of_a_plate(OTHER), CHAIN),
    "conditioned generator": Style(conditioned_generator(MOVES), conditioned_generator(OTHER), CHAIN),
    "handlers around": Style(handlers_around(MOVES), handlers_around(OTHER), CHAIN),
    "deterministic sites": Style(
        with_deterministic_sites(0.8),
        with_deterministic_sites(-0.8),
        Walk(zeros_step, lambda zeros: 0.0 if zeros is None else STOP),
    ),
    "param with a constraint": Style(
        param_with_constraint, param_with_constraint, CHAIN, prepare=fill_the_store, wrong_parameters={"moves": OTHER}
    ),
    "PyroParam": Style(ParamModule(MOVES), ParamModule(OTHER), CHAIN),
    "PyroSample": Style(
        BayesianRegression(),
        BayesianRegression(),
        chain(regression_probs(), regression_probs, STOP, order=2),
        parameters={"linear.weight": WEIGHT, "linear.bias": BIAS},
        wrong_parameters={"linear.weight": OTHER_WEIGHT, "linear.bias": BIAS},
    ),
    "Dirichlet priors": Style(
        dirichlet_priors,
        dirichlet_priors,
        CHAIN,
        parameters={"stop": END, "initial": INITIAL, "moves": MOVES},
        wrong_parameters={"stop": END, "initial": INITIAL, "moves": OTHER},
    ),
    "LKJ prior": Style(
        correlated_logits,
        correlated_logits,
        CHAIN,
        parameters=CORRELATION_POINT | {"logits": MOVES.log()},
        wrong_parameters=CORRELATION_POINT | {"logits": OTHER.log()},
    ),
    "long range": Style(long_range(COUPLING), long_range(-COUPLING), Weights(log_long_range, S, 5)),
}

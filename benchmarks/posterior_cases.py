# SPDX-License-Identifier: Apache-2.0
"""Models with flat priors whose posteriors are drawn fast: Markov chains, and hidden Markov models of two states."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar

import torch
from torch import Tensor
from torch.distributions import Categorical, Dirichlet, Geometric

from pyro_ksd import HiddenMarkovSequence, MarkovSequence, Sequences
from pyro_ksd.models import SequenceDistribution
from pyro_ksd.models.model_batch import ModelList
from pyro_ksd.models.posterior.posterior_models import StackedModels

SIZE = 3
STATES = 2
STOP = torch.tensor(0.2, dtype=torch.double)
_PARALLEL = 16  # Gibbs samplers, started from the prior
_WARMUP = 30
_APART = 2  # sweeps from one draw to the next

Values = dict[str, Tensor]
"""Parameters by name, ``[D, ...]`` for ``D`` draws."""


class Case(ABC):
    """A family of models with flat Dirichlet priors. All random numbers are those of torch's global generator.

    :cvar shapes: of the parameters, by name.
    :cvar replicates: how many replicated data sets a check has, or each fold; few if the model is slow.
    """

    shapes: ClassVar[Mapping[str, tuple[int, ...]]]
    replicates: ClassVar[int]

    @abstractmethod
    def model(self, values: Values) -> SequenceDistribution:
        """The model with some parameters."""

    @abstractmethod
    def posteriors(self, data: Sequences, seen: Tensor, num_draws: int) -> list[Values]:
        """Draws of several posteriors.

        :param seen: boolean ``[P, N]``, the sequences that each of them is given.
        """

    @abstractmethod
    def drawn(self, values: Values, size: int) -> Sequences:
        """Data sets of ``size`` sequences from the model of each draw, one after the other."""

    def prior(self) -> Values:
        """Parameters from the prior, one value of each."""
        return {name: Dirichlet(torch.ones(shape, dtype=torch.double)).sample() for name, shape in self.shapes.items()}


class Chain(Case):
    """Markov chains; the posterior is a product of Dirichlet distributions."""

    shapes: ClassVar = {"initial": (SIZE,), "moves": (SIZE, SIZE)}
    replicates = 39

    def model(self, values: Values) -> SequenceDistribution:
        return MarkovSequence.from_transitions(values["initial"], values["moves"], STOP)

    def posteriors(self, data: Sequences, seen: Tensor, num_draws: int) -> list[Values]:
        return [self._posterior(data[rows], num_draws) for rows in seen]

    def _posterior(self, data: Sequences, num_draws: int) -> Values:
        inside = torch.arange(data.width - 1) + 1 < data.lengths[:, None]
        pairs = (data.tokens[:, :-1] * SIZE + data.tokens[:, 1:])[inside]
        moves = 1.0 + pairs.bincount(minlength=SIZE**2).double().view(SIZE, SIZE)
        initial = 1.0 + data.tokens[:, 0].bincount(minlength=SIZE).double()
        return {"initial": Dirichlet(initial).sample((num_draws,)), "moves": Dirichlet(moves).sample((num_draws,))}

    def drawn(self, values: Values, size: int) -> Sequences:
        return _sequences(_walks(values, size))


class HiddenChain(Case):
    """Hidden Markov models; the posterior is drawn by Gibbs samplers of hidden states and parameters in turn."""

    shapes: ClassVar = {"initial": (STATES,), "moves": (STATES, STATES), "emission": (STATES, SIZE)}
    replicates = 19

    def model(self, values: Values) -> SequenceDistribution:
        return HiddenMarkovSequence(values["initial"], values["moves"], values["emission"], STOP)

    def posteriors(self, data: Sequences, seen: Tensor, num_draws: int) -> list[Values]:
        of_sampler = seen.repeat_interleave(_PARALLEL, 0)
        counts = {name: torch.ones(len(of_sampler), *shape, dtype=torch.double) for name, shape in self.shapes.items()}
        kept = []
        rounds = -(-num_draws // _PARALLEL)
        for sweep in range(_WARMUP + rounds * _APART):
            values = {name: Dirichlet(own).sample() for name, own in counts.items()}
            if sweep >= _WARMUP and (sweep - _WARMUP) % _APART == 0:
                kept.append({name: own.unflatten(0, (len(seen), _PARALLEL)) for name, own in values.items()})
            counts = _counts(data, of_sampler, values)
        draws = {name: torch.cat([own[name] for own in kept], 1)[:, :num_draws] for name in self.shapes}
        return [{name: own[index] for name, own in draws.items()} for index in range(len(seen))]

    def drawn(self, values: Values, size: int) -> Sequences:
        states = _walks(values, size)
        emission = values["emission"].repeat_interleave(size, 0)
        rows = torch.arange(len(states))[:, None]
        return _sequences(torch.where(states < 0, -1, Categorical(emission[rows, states]).sample()))


def _walks(values: Values, size: int) -> Tensor:
    """Walks of geometric lengths on states, ``size`` for each draw, padded with -1; long ``[D * size, T]``."""
    moves = values["moves"].repeat_interleave(size, 0)
    lengths = 1 + Geometric(STOP).sample((len(moves),)).long()
    state = Categorical(values["initial"]).sample((size,)).t().reshape(-1)
    rows = torch.arange(len(moves))
    steps = [state]
    for _ in range(int(lengths.max()) - 1):
        steps.append(Categorical(moves[rows, steps[-1]]).sample())
    walks = torch.stack(steps, 1)
    return walks.masked_fill(torch.arange(walks.shape[1]) >= lengths[:, None], -1)


def _sequences(padded: Tensor) -> Sequences:
    return Sequences(padded.clamp(min=0), (padded >= 0).sum(1), SIZE)


def _counts(data: Sequences, seen: Tensor, values: Values) -> Values:
    """One plus the numbers of first states, moves and emissions, of hidden states drawn given the data.

    :param seen: boolean ``[D, N]``, the sequences that count for each of the draws of parameters.
    """
    emitted = values["emission"].transpose(1, 2)[:, data.tokens]  # samplers, sequences, positions, states
    forward = [values["initial"][:, None] * emitted[:, :, 0]]
    for position in range(1, data.width):
        before = forward[-1] / forward[-1].sum(-1, keepdim=True)
        forward.append(before @ values["moves"] * emitted[:, :, position])
    counts = {name: torch.ones_like(value) for name, value in values.items()}
    following = torch.zeros(emitted.shape[:2], dtype=torch.long)
    rows = torch.arange(len(seen))[:, None].expand_as(following)
    ones = seen.double()
    for position in range(data.width - 1, -1, -1):
        inside = (position < data.lengths).double() * ones
        has_next = (position + 1 < data.lengths).double() * ones
        onward = values["moves"].transpose(1, 2)[rows, following]  # from each state to the next one
        weights = torch.where((position + 1 < data.lengths)[:, None], forward[position] * onward, forward[position])
        state = (torch.rand(following.shape, dtype=torch.double) * weights.sum(-1) > weights[..., 0]).long()
        counts["emission"].index_put_((rows, state, data.tokens[:, position].expand_as(state)), inside, accumulate=True)
        counts["moves"].index_put_((rows, state, following), has_next, accumulate=True)
        following = torch.where(position < data.lengths, state, following)
    counts["initial"].index_put_((rows, following), ones, accumulate=True)
    return counts


class KnownPosterior:
    """The models of known draws, in place of :class:`~pyro_ksd.models.posterior.posterior_models.PosteriorModels`.

    It has what checks of held-out data and posterior predictive checks ask for, without a program.
    """

    num_chains = 1
    alphabet_size = SIZE
    is_normalized = False  # so that no log-likelihoods are kept
    verified_form = None
    stand_in = None

    def __init__(self, case: Case, values: Values) -> None:
        self._case = case
        self.values = values

    def __len__(self) -> int:
        return len(self.values["initial"])

    def __getitem__(self, index: int) -> SequenceDistribution:
        return self._case.model({name: value[index] for name, value in self.values.items()})

    def __iter__(self) -> Iterator[SequenceDistribution]:
        return (self[index] for index in range(len(self)))

    @property
    def batch(self) -> ModelList:
        return ModelList(list(self))

    def of_draws(self, which: slice | Tensor) -> KnownPosterior:
        return KnownPosterior(self._case, {name: value[which] for name, value in self.values.items()})

    def parts(self, size: int) -> Iterator[KnownPosterior]:
        return (self.of_draws(slice(begin, begin + size)) for begin in range(0, len(self), size))

    def check_possible(self, sequences: Sequences) -> None:
        """All sequences are possible."""

    def draw_like(self, sequences: Sequences, generator: torch.Generator) -> Sequences:
        return self._case.drawn(self.values, len(sequences))

    def stacked(self, size: int) -> StackedModels:
        return StackedModels(self, size)  # type: ignore[arg-type]


def cases() -> dict[str, Case]:
    """The cases by name."""
    return {"Markov chain": Chain(), "hidden Markov model": HiddenChain()}


def typical(case: Case) -> Values:
    """Parameters of one true model."""
    moves = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7], [0.4, 0.4, 0.2]], dtype=torch.double)
    sticky = torch.tensor([[0.9, 0.1], [0.2, 0.8]], dtype=torch.double)
    emission = torch.tensor([[0.8, 0.1, 0.1], [0.1, 0.4, 0.5]], dtype=torch.double)
    if isinstance(case, Chain):
        return {"initial": moves[0], "moves": moves}
    return {"initial": sticky[0], "moves": sticky, "emission": emission}


def second_order() -> MarkovSequence:
    """A chain in which the symbol before the last one says which symbol comes next."""
    probs = torch.full((SIZE + 1,) * 3, 0.1, dtype=torch.double)
    for before in range(SIZE):
        probs[before, :, (before + 1) % SIZE] = 0.8
    probs[SIZE] = 1.0
    probs[..., SIZE] = 0.0
    probs *= (1 - STOP) / probs.sum(-1, keepdim=True)
    probs[..., SIZE] = STOP
    probs[SIZE, SIZE] = torch.tensor([1.0, 1.0, 1.0, 0.0]) / SIZE
    return MarkovSequence(probs, order=2)

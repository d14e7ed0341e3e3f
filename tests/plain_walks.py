# SPDX-License-Identifier: Apache-2.0
"""Sequence models in plain Python: probabilities by brute force, and samples. Nothing here imports the package."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate, product
from random import Random
from typing import Any, Protocol

State = Hashable
Outcomes = list[tuple[float, int, State]]
"""What may happen in one step: its probability, the symbol, and the state after it."""


class Truth(Protocol):
    """A model that a program is compared with."""

    def log_joint(self, x: Sequence[int]) -> float:
        """``log p(x)`` up to a constant."""

    def draw(self, rng: Random) -> list[int]:
        """One sequence."""


@dataclass(frozen=True)
class Walk:
    """A walk over states that emits a symbol in each step. It ends in a state, or after a length drawn first.

    :ivar step: the outcomes of a step from a state; hidden states make several outcomes with one symbol.
    :ivar stop: the probability to end in a state, before the next symbol.
    :ivar length: the probability of a length, in place of ``stop``.
    :ivar start: the first state.
    :ivar given_lengths: whether lengths are only drawn, and no part of the log-joint.

    >>> coin = Walk(lambda state: [(0.5, 0, "on"), (0.5, 1, "on")], lambda state: 0.0 if state is None else 0.25)
    >>> round(math.exp(coin.log_joint([1, 1])), 9)  # 0.5 * 0.75 * 0.5 * 0.25
    0.046875
    """

    step: Callable[[Any], Outcomes]
    stop: Callable[[Any], float] | None = None
    length: Callable[[int], float] | None = None
    start: State = None
    given_lengths: bool = False

    def log_joint(self, x: Sequence[int]) -> float:
        weight = self._weight(tuple(x))
        if self.length is not None and not self.given_lengths:
            weight *= self.length(len(x))
        return math.log(weight) if weight > 0 else -math.inf

    def _weight(self, x: tuple[int, ...]) -> float:
        @cache  # the sum over all paths, in which the rest after a state comes many times
        def weight_of_rest(state: State, position: int) -> float:
            stop = 0.0 if self.stop is None else self.stop(state)
            if position == len(x):
                return 1.0 if self.stop is None else stop
            fitting = [(prob, after) for prob, symbol, after in self.step(state) if symbol == x[position] and prob > 0]
            return (1 - stop) * sum(prob * weight_of_rest(after, position + 1) for prob, after in fitting)

        return weight_of_rest(self.start, 0)

    def draw(self, rng: Random) -> list[int]:
        state = self.start
        drawn: list[int] = []
        length = self._draw_length(rng)
        while len(drawn) < length and not (self.stop is not None and rng.random() < self.stop(state)):
            outcomes = self.step(state)
            [(_, symbol, state)] = rng.choices(outcomes, weights=[prob for prob, _, _ in outcomes])
            drawn.append(symbol)
        return drawn

    def _draw_length(self, rng: Random) -> float:
        if self.length is None:
            return math.inf
        left = rng.random()
        length = 0
        while (left := left - self.length(length)) > 0:
            length += 1
        return length


@dataclass(frozen=True)
class Weights:
    """An unnormalized model: a log-weight for each sequence whose length is within bounds, ``-inf`` for the others."""

    log_weight: Callable[[Sequence[int]], float]
    size: int
    longest: int
    shortest: int = 1

    def log_joint(self, x: Sequence[int]) -> float:
        return self.log_weight(x) if self.shortest <= len(x) <= self.longest else -math.inf

    def draw(self, rng: Random) -> list[int]:
        space, cumulated = self._all
        return list(rng.choices(space, cum_weights=cumulated)[0])

    @cached_property
    def _all(self) -> tuple[list[tuple[int, ...]], list[float]]:
        lengths = range(self.shortest, self.longest + 1)
        space = [x for length in lengths for x in product(range(self.size), repeat=length)]
        return space, list(accumulate(math.exp(self.log_weight(x)) for x in space))


@dataclass(frozen=True)
class Style:
    """A program in one style of writing, the same in plain Python, and a program that does not fit.

    :ivar program: the program.
    :ivar wrong: a program with other parameters, or of another structure.
    :ivar truth: the model of ``program`` in plain Python.
    :ivar size: the number of symbols.
    :ivar parameters: values of the global sites of ``program``.
    :ivar wrong_parameters: values of the global sites of ``wrong``.
    :ivar prepare: fills the parameter store.
    :ivar warning: what a check of the programs warns of, if anything.
    :ivar warns_when_scored: whether it warns of it whenever sequences are scored.
    :ivar given_lengths: whether the program gives no probability to lengths.
    :ivar end: the symbol with which every sequence ends, if there is one.
    :ivar count: how many sequences a check gets.
    :ivar tolerance: of log-ratios, larger for programs in single precision.
    """

    program: Callable[..., Any]
    wrong: Callable[..., Any]
    truth: Truth
    size: int = 3
    parameters: Mapping[str, Any] | None = None
    wrong_parameters: Mapping[str, Any] | None = None
    prepare: Callable[[], None] = lambda: None
    warning: str | None = None
    warns_when_scored: bool = False
    given_lengths: bool = False
    end: int | None = None
    count: int = 120
    tolerance: float = 1e-10

    def draw(self, count: int, seed: int = 0) -> list[list[int]]:
        rng = Random(seed)
        return [self.truth.draw(rng) for _ in range(count)]


def chain(initial: Sequence[float], moves: Callable[..., Sequence[float]], stop: float, *, order: int = 1) -> Walk:
    """A Markov chain that may end after each symbol.

    :param moves: a function from the last ``order`` symbols, or fewer, to the probabilities of the next one.
    """

    def step(last: tuple[int, ...] | None) -> Outcomes:
        probs = initial if last is None else moves(*last)
        return [(prob, a, (*(last or ()), a)[-order:]) for a, prob in enumerate(probs)]

    return Walk(step, lambda last: 0.0 if last is None else stop)


def softmax(logits: Sequence[float]) -> list[float]:
    weights = [math.exp(logit) for logit in logits]
    return [weight / sum(weights) for weight in weights]


def sigmoid(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))

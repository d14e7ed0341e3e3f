# SPDX-License-Identifier: Apache-2.0
"""Programs that make one sequence in a loop, and the exact chain behind them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from torch import Tensor

from pyro_ksd.models import MarkovSequence
from pyro_ksd.models.programs.loop import LoopProgram
from pyro_ksd.sequences.container import Sequences

S = 3
LONGEST = 4


def table(*sizes: int) -> Tensor:
    weights = torch.rand(sizes, dtype=torch.double, generator=torch.Generator().manual_seed(len(sizes)))
    return weights / weights.sum(-1, keepdim=True)


INITIAL, TRANSITION = table(S), table(S, S)
STOPS = torch.tensor([0.2, 0.4, 0.6], dtype=torch.double)
CHAIN = MarkovSequence.from_transitions(INITIAL, TRANSITION, 0.3)


CONTROL_FLOW: dict[str, Callable[[Any], Any]] = {
    "int": int,
    "item": lambda x: x.item(),
    "index": lambda x: [0, 1, 2][x],
    "tolist": lambda x: x.tolist(),
    "if": lambda x: 0 if x == 0 else (1 if x == 1 else 2),
}
"""Uses of a symbol as a number, which cannot be vectorized."""


def space(longest: int = LONGEST, shortest: int = 0) -> Sequences:
    lengths = range(shortest, longest + 1)
    return Sequences.of([list(x) for length in lengths for x in product(range(S), repeat=length)], S)


def chain(
    *,
    index: Callable[[Any], Any] = lambda x: x,
    as_stop: Callable[[Any], Any] = lambda x: x,
    stops: Tensor | float = 0.3,
    symbol: str = "x_{}",
    stop_site: str = "stop_{}",
) -> Callable[[], None]:
    """A chain of order 1 that may stop after each symbol."""
    ends = torch.as_tensor(stops, dtype=torch.double).expand(S)

    def program() -> None:
        law, stop, t = INITIAL, False, 0
        while not stop:
            x = pyro.sample(symbol.format(t), dist.Categorical(law))
            stop = as_stop(pyro.sample(stop_site.format(t), dist.Bernoulli(ends[index(x)])))
            law, t = TRANSITION[index(x)], t + 1

    return program


def limited(limit: int, *, stop_at_the_limit: bool, index: Callable[[Any], Any] = lambda x: x) -> Callable[[], None]:
    def program():
        law, stop, t = INITIAL, False, 0
        while not stop and t < limit:
            x = pyro.sample(f"x_{t}", dist.Categorical(law))
            if stop_at_the_limit or t < limit - 1:
                stop = pyro.sample(f"stop_{t}", dist.Bernoulli(STOPS[index(x)]))
            law, t = TRANSITION[index(x)], t + 1

    return program


def with_prior() -> None:
    end = pyro.sample("end", dist.Beta(torch.tensor(2.0, dtype=torch.double), 1.0))
    chain(stops=end)()


def slow(program: Callable[[], None], **options: Any) -> LoopProgram:
    """A model of a program that cannot be vectorized, past its warning."""
    model = LoopProgram(program, S, **options)
    with pytest.warns(UserWarning, match="cannot be vectorized"):
        model.log_joint(Sequences.of([[0, 1]], S))
    return model


def enumerated(log_prob: Callable[[tuple[int, ...]], float], sequences: Sequences) -> Tensor:
    return torch.tensor([log_prob(tuple(x)) for x in sequences.to_lists()], dtype=torch.double)


def assert_same(found: Tensor, expected: Tensor, tolerance: float = 1e-12) -> None:
    assert found.dtype == torch.double
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance)

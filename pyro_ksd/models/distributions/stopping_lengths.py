# SPDX-License-Identifier: Apache-2.0
"""The exact distribution of the length of sequences from a chain that stops."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pyro_ksd.kernels.length import LengthDistribution
from pyro_ksd.models.distributions.factor_table import FactorTable

MOST_LENGTHS = 20_000
"""How many lengths are looked at."""

_MOST_WORK = 2**31  # products in all
_NEGLIGIBLE = 1e-12  # the weight of what goes on, from which on no longer sequences are looked for
_ROUNDING = 1e-3  # of the sum of all probabilities, in single precision


def chain_lengths(
    alive: Tensor, stop: Tensor, move: Callable[[Tensor], Tensor], work: int
) -> LengthDistribution | None:
    r"""The distribution of the length of a chain with finitely many states.

    With :math:`w_0` the distribution of the first state and :math:`M` the moves between states,

    .. math:: P(\ell) = w_\ell^\top \sigma, \qquad w_{\ell + 1} = M^\top w_\ell .

    :param alive: :math:`w_0`, double ``[C]``.
    :param stop: :math:`\sigma`, double ``[C]``, the probability to stop in each state.
    :param move: gives :math:`M^\top w` for :math:`w`.
    :param work: how many products one move takes.
    :returns: ``None`` if the chain goes on for too long, or its probabilities do not add up to 1.

    >>> half = torch.tensor([0.5], dtype=torch.double)
    >>> found = chain_lengths(torch.ones(1, dtype=torch.double), half, lambda alive: alive * half, work=1)
    >>> found.shortest, found.probability[:3], round(found.mean, 6)
    (0, tensor([0.5000, 0.2500, 0.1250], dtype=torch.float64), 1.0)
    """
    found = []
    for _ in range(min(MOST_LENGTHS, _MOST_WORK // work)):
        found.append(alive @ stop)
        alive = move(alive)
        if alive.sum() <= _NEGLIGIBLE:
            break
    else:
        return None
    return LengthDistribution.of(torch.stack(found)) if abs(float(sum(found)) - 1) <= _ROUNDING else None


@torch.no_grad()
def table_lengths(table: FactorTable) -> LengthDistribution | None:
    """The distribution of the length under a normalized model of order 1 or more, given by one table of factors.

    >>> from pyro_ksd.examples import random_walk
    >>> walk = random_walk(3, mean_length=4)
    >>> round(walk.length_distribution().mean, 6)
    4.0
    """
    base = table.boundary + 1
    probability = table.values.exp().view(-1, base)
    stop = probability[:, -1]
    moves = probability[:, :-1]
    start = torch.zeros_like(stop)
    start[-1] = 1.0  # before the first symbol there are boundary symbols only

    def move(alive: Tensor) -> Tensor:
        followed = (alive[:, None] * moves).view(base, -1, base - 1).sum(0)  # the oldest symbol is forgotten
        return torch.nn.functional.pad(followed, (0, 1)).view(-1)

    return chain_lengths(start, stop, move, len(table.values))

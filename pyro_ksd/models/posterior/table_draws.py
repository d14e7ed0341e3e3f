# SPDX-License-Identifier: Apache-2.0
"""Draws from models of one order that are known by their tables, up to constant factors."""

from __future__ import annotations

import torch
from torch import Tensor

from pyro_ksd.common.chunk_sizes import ENTRIES
from pyro_ksd.common.random_numbers import drawn_seed
from pyro_ksd.models.distributions.factor_table import FactorTable, context_is_possible
from pyro_ksd.models.distributions.sampling import PAD, cumulative, grow_chains
from pyro_ksd.sequences.container import Sequences

_LARGEST = 1e4  # weight of all that may follow a context; with a larger one, rounding and long sequences are near
_ROUNDING = 1e-6
_STEPS = 32  # of which the random numbers are drawn at once
_MAX_LENGTH = 1_000_000


def next_symbol_probs(table: FactorTable) -> Tensor | None:
    r"""The probabilities of the next symbol, or the stop, after each context, double ``[K, (S + 1)^k, S + 1]``.

    With the factors :math:`f` of a model, the weight :math:`v(c)` of all that may follow a context :math:`c` solves

    .. math:: v(c) = e^{f(c, \text{stop})} + \sum_b e^{f(c, b)} v(c b),

    where :math:`cb` is the context after the symbol :math:`b`. Then the next symbol is :math:`b` with probability
    :math:`e^{f(c, b)} v(cb) / v(c)`.

    :returns: ``None`` if the weights are not finite, as for a model without a distribution of the length; if no symbol
        can follow some context, which may be one that the table does not know; or if there are too many contexts.

    >>> coin = torch.tensor([[[0.25, 0.25, 0.0], [0.25, 0.25, 0.0], [0.5, 0.5, 0.0]]]).log()  # no factor of the stop
    >>> coin[..., :2, 2] = 0.0
    >>> next_symbol_probs(FactorTable(coin.double()))[0, 0]
    tensor([0.2500, 0.2500, 0.5000], dtype=torch.float64)
    """
    base = table.boundary + 1
    num_contexts = base**table.order
    if len(table) * num_contexts**2 > ENTRIES:
        return None
    factors = table.values.view(len(table), num_contexts, base).clone()
    factors[:, -1] -= factors[:, -1].amax(-1, keepdim=True)  # the constant factor of each model, in the first context
    possible = context_is_possible(table.boundary, table.order).view(-1)
    weights = factors.masked_fill(~possible[:, None], -torch.inf).exp()
    after = (torch.arange(num_contexts)[:, None] * base + torch.arange(base - 1)) % num_contexts
    moves = weights.new_zeros(len(table), num_contexts, num_contexts)
    moves.scatter_(2, after.expand(len(table), -1, -1), weights[..., :-1])
    # After a symbol that must be the last one, or of which the table does not know what follows.
    is_end = (weights[..., :-1] == 0).all(-1)
    if bool((is_end & (moves > 0).any(1)).any()):
        return None
    following, _ = torch.linalg.solve_ex(torch.eye(num_contexts, dtype=torch.double) - moves, weights[..., -1:])
    # A positive solution shows that the sum over all sequences converges.
    error = (moves @ following + weights[..., -1:] - following).abs()
    solved = (following[:, possible] > 0).all() and bool((error <= _ROUNDING * following).all())
    if not solved or not bool((following <= _LARGEST).all()):
        return None
    total = torch.cat([weights[..., :-1] * following[:, after].squeeze(-1), weights[..., -1:]], -1)
    probs: Tensor = total / following.masked_fill(~possible[:, None], 1.0)
    return probs


def draw_each(probs: Tensor, size: int, generator: torch.Generator) -> Sequences:
    """Sequences from each model, ``size`` of the first, then as many of the next one, and so on.

    Every model has random numbers of its own, so that its sequences are the same whatever the others are.

    :param probs: double ``[K, (S + 1)^k, S + 1]``, see :func:`next_symbol_probs`.

    >>> probs = torch.tensor([[[0.0, 1.0], [1.0, 0.0]]], dtype=torch.double)  # stops after one symbol
    >>> draw_each(probs, 2, torch.Generator()).to_lists()
    [[0], [0]]
    """
    count, num_contexts, base = probs.shape
    own = [torch.Generator().manual_seed(drawn_seed(generator)) for _ in range(count)]
    cumulated = cumulative(probs).view(-1, base)
    offset = torch.arange(count).repeat_interleave(size) * num_contexts
    numbers = torch.empty(0)

    def uniform(position: int, alive: Tensor) -> Tensor:
        nonlocal numbers
        if position % _STEPS == 0:
            numbers = torch.cat([torch.rand(size, _STEPS, dtype=torch.double, generator=each) for each in own])
        return numbers[alive, position % _STEPS]

    tokens = grow_chains(cumulated, offset, num_contexts, _MAX_LENGTH, uniform)
    lengths = (tokens != PAD).sum(1)
    return Sequences(tokens.clamp(min=0), lengths, base - 1)

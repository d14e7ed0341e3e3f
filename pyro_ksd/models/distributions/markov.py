# SPDX-License-Identifier: Apache-2.0
"""Markov chains of any order that stop."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import constraints

from pyro_ksd.common.option_checks import check_number
from pyro_ksd.kernels.length import LengthDistribution
from pyro_ksd.models.distributions.factor_table import context_is_possible
from pyro_ksd.models.distributions.local import LocalSequence
from pyro_ksd.models.distributions.log_space import safe_log
from pyro_ksd.models.distributions.parameter_checks import (
    Numbers,
    align,
    as_parameter,
    check_probabilities,
    check_shape,
    last_size,
)
from pyro_ksd.models.distributions.sampling import cumulative, grow_chains
from pyro_ksd.models.distributions.stopping_lengths import table_lengths


class MarkovSequence(LocalSequence):
    r"""A Markov chain of order ``k`` over ``S`` symbols that stops at random.

    .. math:: p(x) = \prod_{i=0}^{\ell} P(x_i \mid x_{i-k}, \ldots, x_{i-1})

    The index ``S`` stands for *before the start* in the context (:math:`i < 0`) and for *stop* as the next symbol
    (:math:`i = \ell`), so the probability of stopping may depend on the context. Probabilities of 0 are exact: the
    log-probability is ``-inf``. Contexts in which *before the start* follows a symbol cannot occur, and their entries
    are ignored.

    :param probs: ``batch_shape + [S + 1] * order + [S + 1]``: the context, oldest symbol first, then the next symbol.
    :param order: how many symbols the next one depends on.
    :param max_length: the width of samples; drawing a longer sequence is an error.

    >>> import torch
    >>> stop_after_b = torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    >>> model = MarkovSequence(stop_after_b, max_length=50)
    >>> model.log_prob(torch.tensor([[0, 0, 1], [0, 1, -1], [1, -1, -1]])).exp()
    tensor([0.2500, 0.5000, 0.0000])
    """

    arg_constraints = {"probs": constraints.unit_interval}  # noqa: RUF012

    def __init__(
        self, probs: Numbers, *, order: int = 1, max_length: int = 1000, validate_args: bool | None = None
    ) -> None:
        check_number("order", order, least=1)
        probs = as_parameter("probs", probs)
        size = last_size("probs", probs)
        check_shape("probs", probs, *[size] * (order + 1))
        if size < 2:
            raise ValueError("probs: expected at least one symbol beside the stop, found a last dimension of 1")
        possible = context_is_possible(size - 1, order)
        if self._validating(validate_args):
            check_probabilities("probs", probs, where=possible)
        batch_shape, (flat,) = align(probs=(probs, order + 1))
        self._probs = flat.masked_fill(~possible[..., None], 0)
        super().__init__(safe_log(self._probs.double()), max_length, batch_shape, validate_args, probs.dtype)

    @classmethod
    def from_transitions(
        cls,
        initial: Numbers,
        transition: Numbers,
        stop: Numbers | float,
        *,
        max_length: int = 1000,
        validate_args: bool | None = None,
    ) -> MarkovSequence:
        """A chain of order 1 that is never empty and may stop after each symbol.

        :param initial: ``[*, S]``, the distribution of the first symbol.
        :param transition: ``[*, S, S]``, the distribution of the next symbol where the chain goes on.
        :param stop: ``[*]``, or ``[*, S]`` if it depends on the last symbol (it then has one dimension more than the
            batch of the other two).

        >>> import torch
        >>> model = MarkovSequence.from_transitions(torch.tensor([1.0, 0.0]), torch.eye(2), stop=0.5)
        >>> model.log_prob(torch.tensor([[-1, -1], [0, -1], [0, 0], [0, 1]])).exp()
        tensor([0.0000, 0.5000, 0.2500, 0.0000])
        """
        initial = as_parameter("initial", initial)
        transition = as_parameter("transition", transition)
        size = last_size("initial", initial)
        check_shape("initial", initial, size)
        check_shape("transition", transition, size, size)
        stopping = as_parameter("stop", stop, initial.dtype).to(initial.dtype)
        batch_dims = max(initial.ndim - 1, transition.ndim - 2)
        if stopping.ndim <= batch_dims:
            stopping = stopping[..., None].expand(*stopping.shape, size)
        check_shape("stop", stopping, size)
        if cls._validating(validate_args):
            check_probabilities("initial", initial)
            check_probabilities("transition", transition)
            check_probabilities("stop", stopping, sums=False)
        batch_shape, (first, moves, ends) = align(initial=(initial, 1), transition=(transition, 2), stop=(stopping, 1))
        body = torch.cat([(1 - ends)[..., None] * moves, first[:, None]], 1)
        last = torch.nn.functional.pad(ends, (0, 1))
        probs = torch.cat([body, last[..., None]], -1).reshape(*batch_shape, size + 1, size + 1)
        return cls(probs, max_length=max_length, validate_args=validate_args)

    @property
    def probs(self) -> Tensor:
        """``batch_shape + [S + 1] * order + [S + 1]``, with 0 for the contexts that cannot occur."""
        return self._expanded(self._probs)

    def length_distribution(self) -> LengthDistribution | None:
        return table_lengths(self._table) if len(self._table) == 1 else None

    def _generate(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        base = self.alphabet_size + 1
        contexts = base**self.order
        cumulated = cumulative(self._probs.reshape(-1, base))
        offsets = self._flat_rows(shape) * contexts

        def uniform(position: int, alive: Tensor) -> Tensor:
            return torch.rand(len(alive), dtype=torch.double, generator=generator)

        return grow_chains(cumulated, offsets, contexts, self.max_length, uniform)

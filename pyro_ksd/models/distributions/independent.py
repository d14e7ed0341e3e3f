# SPDX-License-Identifier: Apache-2.0
"""Independent, identically distributed symbols with a distribution of the length."""

from __future__ import annotations

import math
from typing import Any

import torch
from pyro.distributions import Categorical
from torch import Tensor
from torch.distributions import Distribution, constraints

from pyro_ksd.common.option_checks import check_number, found
from pyro_ksd.kernels.length import LengthDistribution
from pyro_ksd.models.distributions.local import LocalSequence
from pyro_ksd.models.distributions.log_space import safe_log
from pyro_ksd.models.distributions.parameter_checks import (
    Numbers,
    as_parameter,
    check_probabilities,
    check_shape,
    common_batch,
    is_array,
    last_size,
)
from pyro_ksd.models.distributions.sampling import PAD, cumulative, grow, pick
from pyro_ksd.models.distributions.stopping_lengths import MOST_LENGTHS

_NO_TAIL = math.log(1e-12)  # the log-probability of a length from which on no longer ones are to be expected
_ROUNDING = 1e-3  # of the sum of many probabilities in single precision
_ROUNDING_OF_DOUBLES = 1e-9


class IndependentSequence(LocalSequence):
    r"""Independent symbols; their number has a distribution of its own.

    .. math:: p(x) = q(\ell - m) \prod_{i=0}^{\ell-1} \pi(x_i)

    :param probs: ``[*, S]``, the distribution :math:`\pi` of a symbol.
    :param length: the distribution :math:`q`: one over the non-negative integers (Poisson, Geometric, ...), or a tensor
        ``[*, M + 1]`` of the probabilities of ``0 .. M``.
    :param minimum: the least length :math:`m`, to which a draw from ``length`` is added.
    :param max_length: the width of samples; drawing a longer sequence is an error. Left out, it is the longest
        possible length for a tensor of probabilities, and 1000 for a distribution.

    >>> import pyro.distributions as dist, torch
    >>> model = IndependentSequence(torch.tensor([0.25, 0.75]), dist.Geometric(torch.tensor(0.5)), minimum=1)
    >>> model.log_prob(torch.tensor([[-1, -1], [0, -1], [1, 1]])).exp()
    tensor([0.0000, 0.1250, 0.1406])
    >>> IndependentSequence(torch.tensor([0.25, 0.75]), torch.tensor([0.0, 0.0, 1.0])).sample().shape
    torch.Size([2])
    """

    arg_constraints = {"probs": constraints.simplex}  # noqa: RUF012

    def __init__(
        self,
        probs: Numbers,
        length: Distribution | Numbers,
        *,
        minimum: int = 0,
        max_length: int | None = None,
        validate_args: bool | None = None,
    ) -> None:
        check_number("minimum", minimum, least=0)
        probs = as_parameter("probs", probs)
        size = last_size("probs", probs)
        check_shape("probs", probs, size)
        if is_array(length):
            length = as_parameter("length", length)
        if isinstance(length, Tensor):
            check_shape("length", length, last_size("length", length))
            if max_length is None:
                max_length = max(minimum + length.shape[-1] - 1, 1)
        if self._validating(validate_args):
            check_probabilities("probs", probs)
            if isinstance(length, Tensor):
                check_probabilities("length", length)
        distribution = Categorical(logits=safe_log(length)) if isinstance(length, Tensor) else _checked(length)
        batch_shape = common_batch({"probs": probs.shape[:-1], "length": distribution.batch_shape})
        self._minimum = minimum
        self._length = distribution.expand(batch_shape)
        self._probs = probs.expand((*batch_shape, size)).reshape(-1, size)
        factors = torch.nn.functional.pad(safe_log(self._probs.double()), (0, 1))
        super().__init__(factors, 1000 if max_length is None else max_length, batch_shape, validate_args, probs.dtype)

    @property
    def probs(self) -> Tensor:
        """``batch_shape + [S]``."""
        return self._expanded(self._probs)

    def _length_terms(self, longest: int) -> Tensor:
        drawn = torch.arange(longest + 1).double() - self._minimum
        drawn = drawn.reshape([-1] + [1] * len(self._own_shape))
        inside = (self._length.support.check(drawn) & (drawn >= 0)).expand((longest + 1, *self._own_shape))
        terms: Tensor = self._length.log_prob(drawn.where(inside, 0)).masked_fill(~inside, -torch.inf)
        return terms.double().reshape(longest + 1, -1).T

    @torch.no_grad()
    def length_distribution(self) -> LengthDistribution | None:
        if len(self._table) > 1:
            return None
        [terms] = self._length_terms(MOST_LENGTHS)
        return LengthDistribution.of(terms.exp()) if terms[-1] < _NO_TAIL - math.log(MOST_LENGTHS) else None

    def _generate(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        cumulated = cumulative(self._probs)
        rows = self._flat_rows(shape)
        lengths = self._drawn_lengths(rows, generator)

        def step(position: int, alive: Tensor) -> Tensor:
            return pick(cumulated[rows[alive]], generator).masked_fill(lengths[alive] <= position, PAD)

        return grow(len(rows), self.max_length, step)

    def _drawn_lengths(self, rows: Tensor, generator: torch.Generator | None) -> Tensor:
        """Lengths, long ``[R]``, by inverting the distribution function; ``max_length + 1`` for all longer ones.

        Samplers of torch take no generator, and to seed torch's global state for them would disturb other threads.
        """
        uniform = torch.rand(len(rows), dtype=torch.double, generator=generator)
        terms = self._length_terms(self.max_length + 1)
        single = self._length.log_prob(torch.zeros(())).dtype == torch.float
        cumulated = _distribution_function(terms, _ROUNDING if single else _ROUNDING_OF_DOUBLES)
        lengths = torch.empty_like(rows)
        for row in rows.unique().tolist():
            own = rows == row
            lengths[own] = torch.searchsorted(cumulated[row], uniform[own], right=True)
        return lengths.clamp_(max=self.max_length + 1)


def _distribution_function(terms: Tensor, rounding: float) -> Tensor:
    """The probability of each length or a shorter one, double ``[B, M]``, from log-probabilities, double ``[B, M]``.

    The last one is exactly 1, unless there are longer lengths.

    :param rounding: how far the sum of all probabilities may be from 1.
    """
    cumulated = terms.exp().cumsum(-1)
    total = cumulated[:, -1:]
    # What is missing from 1 is nothing but rounding if there is little of it and the distribution has died out.
    died_out = terms[:, -1:] < _NO_TAIL - math.log(terms.shape[1])
    whole = (total > 1) | (died_out & (total > 1 - rounding))
    return torch.where(whole, cumulated / total, cumulated).contiguous()


def _checked(length: Any) -> Any:
    if isinstance(length, torch.distributions.Categorical):
        raise ValueError(
            "length: expected a distribution over all integers from 0, found a Categorical, which gives lengths of "
            "probability 0 a small positive one; pass its probabilities as a tensor"
        )
    if not isinstance(length, Distribution):
        raise ValueError(
            "length: expected a distribution over the non-negative integers or a tensor of the probabilities of "
            f"0, 1, ..., found {found(length)}"
        )
    support: Any = length.support
    ends = torch.tensor([-1.0, 0.0]).reshape([2] + [1] * len(length.batch_shape))
    inside = support.check(ends) if support.is_discrete and not length.event_shape else None
    if inside is None or bool(inside[0].any()) or not bool(inside[1].all()):
        raise ValueError(
            f"length: expected a distribution over the integers from 0, found {type(length).__name__} with the support "
            f"{support} and the event shape {list(length.event_shape)}; pass a tensor of the probabilities of 0, 1, ..."
        )
    return length

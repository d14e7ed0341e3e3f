# SPDX-License-Identifier: Apache-2.0
"""Log-probabilities that are exact where a probability is 0 or 1.

A distribution of torch that is made from ``probs`` moves them away from 0 and 1 before it takes logarithms:
``Categorical(probs)`` gives an impossible symbol the probability 1e-7. And without validation, which would be too slow,
values outside of a support get some number, or an error. Here what cannot happen has the log-probability ``-inf``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from pyro.distributions.torch_distribution import ExpandedDistribution, MaskedDistribution
from pyro.distributions.util import scale_and_mask, sum_rightmost
from torch import Tensor
from torch.distributions import Bernoulli, Binomial, Categorical, Geometric, Independent, OneHotCategorical

Formula = Callable[[Any, Tensor, Tensor], Tensor]
"""Takes a distribution, its probabilities and a value; gives the log-probability of the value."""


def exact_log_prob(fn: Any, value: Tensor) -> Tensor:
    """``fn.log_prob(value)``, with exact logarithms of ``probs``, and ``-inf`` outside of the support.

    >>> certain = Categorical(torch.tensor([0.0, 1.0]))
    >>> exact_log_prob(certain, torch.tensor([0, 1])).tolist(), bool(certain.log_prob(torch.tensor(0)) > -20)
    ([-inf, 0.0], True)
    """
    values: Tensor
    if isinstance(fn, MaskedDistribution) and fn._mask is not False:
        values = scale_and_mask(exact_log_prob(fn.base_dist, value), mask=fn._mask)
        return values
    if isinstance(fn, Independent):
        values = sum_rightmost(exact_log_prob(fn.base_dist, value).double(), fn.reinterpreted_batch_ndims)
        return values
    if isinstance(fn, ExpandedDistribution):
        inner = exact_log_prob(fn.base_dist, value)
        return inner.expand(torch.broadcast_shapes(inner.shape, fn.batch_shape))
    formula = _formula(fn)
    possible = _nearest(fn, value)
    if fn._validate_args and (formula is not None or possible is not value):
        fn._validate_sample(value)
    values = fn.log_prob(possible) if formula is None else formula(fn, fn.probs, possible)
    return values if possible is value else torch.where(possible == value, values, -torch.inf)


def _nearest(fn: Any, value: Tensor) -> Tensor:
    """The nearest values in the support, for distributions that give others some number, or an error."""
    if isinstance(fn, Categorical):
        return value.clamp(0, fn._num_events - 1)
    return value.clamp(min=0) if isinstance(fn, Geometric) else value


def own_mask(fn: Any) -> Tensor | bool:
    """The mask that a distribution carries itself, by ``.mask(...)``; ``True`` where there is none."""
    if isinstance(fn, MaskedDistribution):
        mask: Tensor | bool = fn._mask & own_mask(fn.base_dist)
        return mask
    if isinstance(fn, Independent):
        inner = own_mask(fn.base_dist)
        if isinstance(inner, bool):
            return inner
        return inner.flatten(inner.ndim - fn.reinterpreted_batch_ndims).any(-1)
    return own_mask(fn.base_dist) if isinstance(fn, ExpandedDistribution) else True


def innermost(fn: Any) -> Any:
    """The distribution without what ``.mask``, ``.to_event`` and ``.expand`` put around it."""
    while isinstance(fn, MaskedDistribution | Independent | ExpandedDistribution):
        fn = fn.base_dist
    return fn


def _formula(fn: Any) -> Formula | None:
    """The exact formula for a distribution that was made from ``probs``, if there is one."""
    made = fn._categorical if isinstance(fn, OneHotCategorical) else fn
    # Logits are lazy, and _param is what was passed.
    probs = made.__dict__.get("probs")
    if probs is None or getattr(made, "_param", probs) is not probs:
        return None
    return next((formula for kind, formula in _FORMULAS.items() if isinstance(fn, kind)), None)


def _categorical(fn: Any, probs: Tensor, value: Tensor) -> Tensor:
    # The probability is looked up first: to take the logarithms of all of them costs most of the time of a run.
    index, table = torch.broadcast_tensors(value.long()[..., None], probs)
    chosen: Tensor = table.gather(-1, index[..., :1]).squeeze(-1)
    return chosen.log()


def _one_hot(fn: Any, probs: Tensor, value: Tensor) -> Tensor:
    terms: Tensor = torch.xlogy(value, probs)
    return terms.sum(-1)


def _bernoulli(fn: Any, probs: Tensor, value: Tensor) -> Tensor:
    value = value.to(probs.dtype)
    return torch.xlogy(value, probs) + _log_not(1 - value, probs)


def _geometric(fn: Any, probs: Tensor, value: Tensor) -> Tensor:
    return _log_not(value, probs) + probs.log()


def _binomial(fn: Any, probs: Tensor, value: Tensor) -> Tensor:
    failures = fn.total_count - value
    ways = torch.lgamma(fn.total_count + 1) - torch.lgamma(value + 1) - torch.lgamma(failures + 1)
    return ways + torch.xlogy(value, probs) + _log_not(failures, probs)


def _log_not(times: Tensor, probs: Tensor) -> Tensor:
    """``times * log(1 - probs)``, and 0 where ``times`` is 0."""
    product: Tensor = torch.special.xlog1py(times, -probs)
    return product


_FORMULAS: dict[type, Formula] = {
    Categorical: _categorical,
    OneHotCategorical: _one_hot,
    Bernoulli: _bernoulli,
    Geometric: _geometric,
    Binomial: _binomial,
}

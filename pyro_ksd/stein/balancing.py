# SPDX-License-Identifier: Apache-2.0
r"""Balancing functions :math:`g` with :math:`g(t) = t\,g(1/t)`, computed from the log-ratio :math:`r = \log t`.

References: Zanella (2020), *Informed proposals for local MCMC in discrete spaces*; Barker (1965); Sohl-Dickstein,
Battaglino and DeWeese (2011) for minimum probability flow.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_instance, found
from pyro_ksd.common.tensor_checks import shown

Balancing = Callable[[Tensor], Tensor]


def barker(log_ratio: Tensor) -> Tensor:
    r""":math:`g(t) = t / (1 + t)`, the paper's main choice; bounded by 1.

    >>> barker(torch.tensor([-float("inf"), 0.0, 800.0], dtype=torch.double)).tolist()
    [0.0, 0.5, 1.0]
    """
    _check_ratios(log_ratio)
    return log_ratio.sigmoid()


def mpf(log_ratio: Tensor) -> Tensor:
    r""":math:`g(t) = \sqrt t`, minimum probability flow.

    >>> mpf(torch.tensor([-float("inf"), 0.0, 2.0], dtype=torch.double)).tolist()
    [0.0, 1.0, 2.718281828459045]
    """
    _check_ratios(log_ratio)
    return (log_ratio / 2).exp()


def metropolis(log_ratio: Tensor) -> Tensor:
    r""":math:`g(t) = \min(1, t)`.

    >>> metropolis(torch.tensor([-float("inf"), 0.0, 800.0], dtype=torch.double)).tolist()
    [0.0, 1.0, 1.0]
    """
    _check_ratios(log_ratio)
    return log_ratio.clamp(max=0).exp()


def tempered(balancing: Balancing) -> Balancing:
    r"""The balancing function :math:`g(t) / \cosh(\tfrac12 \log t)`, with small weights for very improbable edits.

    As :math:`\cosh` is even, the result is balanced if ``balancing`` is. If that is bounded, so is the product of the
    weight and the log-ratio. Otherwise the few sequences that are much less probable than their edits would carry the
    sum of :class:`~pyro_ksd.kernels.SurpriseKernel`, and random signs do not know of those that are missing by chance.

    >>> weights = tempered(barker)(torch.tensor([-float("inf"), -20.0, 0.0, 20.0], dtype=torch.double))
    >>> [f"{weight:.1e}" for weight in weights.tolist()]
    ['0.0e+00', '1.9e-13', '5.0e-01', '9.1e-05']
    """
    if not callable(balancing):
        raise ValueError(f"balancing: expected a balancing function, such as barker, found {found(balancing)}")

    def function(log_ratio: Tensor) -> Tensor:
        root = log_ratio.abs().div_(-2).exp_()
        return balancing(log_ratio) * (2 * root).div_(root.square().add_(1))

    return function


_NAMED: dict[str, Balancing] = {"barker": barker, "mpf": mpf, "metropolis": metropolis}


def as_balancing(balancing: str | Balancing) -> Balancing:
    r"""A balancing function from its name, or a user's own function of the log-ratio after a check.

    :param balancing: ``"barker"``, ``"mpf"``, ``"metropolis"``, or a function of log-ratios ``[E]`` that gives
        weights ``[E]``.
    :raises ValueError: if the function does not satisfy :math:`g(t) = t\,g(1/t)`, is negative, or is not 0 where the
        neighbor has probability 0.

    >>> as_balancing("mpf") is mpf
    True
    >>> as_balancing(lambda r: r.exp())
    Traceback (most recent call last):
    ValueError: balancing: expected g(t) = t g(1/t) for every ratio t, found g(t) = 1.25e-09 and t g(1/t) = 1 at ...
    """
    if isinstance(balancing, str) and balancing in _NAMED:
        return _NAMED[balancing]
    if isinstance(balancing, str) or not callable(balancing):
        raise ValueError(f"balancing: expected one of {sorted(_NAMED)} or a function, found {found(balancing)}")
    if balancing in _NAMED.values():
        return balancing
    _check_balance(balancing)
    return balancing


def _check_ratios(log_ratio: object) -> None:
    check_instance("log_ratio", log_ratio, Tensor, "a tensor of log-ratios")


def _weights(balancing: Balancing, log_ratio: Tensor) -> Tensor:
    """The weights of log-ratios, after a look at what the function gives."""
    try:
        weights = balancing(log_ratio)
    except Exception as error:
        raise ValueError(
            f"balancing: expected a function of a tensor of log-ratios, found one that fails: {error}"
        ) from error
    if not isinstance(weights, Tensor) or weights.shape != log_ratio.shape:
        raise ValueError(
            f"balancing: expected finite weights of at least 0, one for each log-ratio, found {shown(weights)}"
        )
    return weights


def _check_balance(balancing: Balancing) -> None:
    r = torch.linspace(-20.5, 20.5, 83, dtype=torch.double)
    there = _weights(balancing, r)
    back = r.exp() * _weights(balancing, -r)
    if not there.isfinite().all() or (there < 0).any():
        raise ValueError("balancing: expected finite weights of at least 0, one for each log-ratio, found others")
    wrong = ~torch.isclose(there, back, rtol=1e-8, atol=0)
    if wrong.any():
        at = int(wrong.nonzero()[0])
        raise ValueError(
            f"balancing: expected g(t) = t g(1/t) for every ratio t, found g(t) = {float(there[at]):.3g} and "
            f"t g(1/t) = {float(back[at]):.3g} at t = exp({float(r[at]):.3g}); "
            "for any symmetric-in-log function h, g(t) = sqrt(t) h(t) will do"
        )
    extreme = _weights(balancing, torch.tensor([-800.0, 800.0], dtype=torch.double))
    if not extreme.isfinite().all():
        raise ValueError(
            f"balancing: expected finite weights for ratios from exp(-800) to exp(800), found {extreme.tolist()}; "
            "compute the function in a stable way, such as r.sigmoid() for exp(r) / (1 + exp(r))"
        )
    impossible = _weights(balancing, torch.tensor([-float("inf")], dtype=torch.double))
    if impossible.tolist() != [0.0]:
        raise ValueError(
            "balancing: expected weight 0 for a neighbor of probability 0 (log-ratio -inf), "
            f"found {impossible.tolist()[0]}"
        )

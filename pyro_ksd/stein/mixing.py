# SPDX-License-Identifier: Apache-2.0
"""Have chains mixed? R-hat and the effective sample size of their draws."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pyro_ksd.common.tensor_checks import check_tensor

_LEAST_DRAWS = 4


def split_rhat(draws: Tensor) -> float:
    r"""The split R-hat of Gelman et al. (2013), *Bayesian Data Analysis*, section 11.4; near 1 for mixed chains.

    Each chain is cut into halves of ``n`` draws; with the mean ``W`` of their variances and the variance ``B / n`` of
    their means it is :math:`\sqrt{((n - 1) / n \cdot W + B / n) / W}`.

    :param draws: double ``[C, T]``, at least 4 draws of each chain.
    :returns: NaN if all draws are equal.

    >>> split_rhat(torch.tensor([[0.0, 1.0, 0.0, 1.0], [5.0, 6.0, 5.0, 6.0]]).double()) > 4
    True
    """
    from pyro.ops.stats import split_gelman_rubin

    _check_draws(draws)
    return math.nan if _is_constant(draws) else float(split_gelman_rubin(draws, chain_dim=0, sample_dim=1))


def effective_sample_size(draws: Tensor) -> float:
    r"""How many independent draws the draws of all chains are worth for a mean, :math:`C\,T / \tau`.

    The autocorrelation time :math:`\tau = 1 + 2 \sum_k \rho_k` is estimated by Geyer's (1992) initial monotone sequence
    from the autocorrelations of all half chains together, as in Vehtari et al. (2021). It is at least 1, as it is for
    a reversible process.

    :param draws: double ``[C, T]``, at least 4 draws of each chain.
    :returns: NaN if all draws are equal.

    >>> independent = torch.randn(4, 100, generator=torch.Generator().manual_seed(0)).double()
    >>> round(effective_sample_size(independent)), round(effective_sample_size(independent.cumsum(1)))
    (366, 5)
    """
    _check_draws(draws)
    if _is_constant(draws):
        return math.nan
    halves = _halves(draws)
    size = halves.shape[1]
    spectrum = torch.fft.rfft(halves - halves.mean(1, keepdim=True), 2 * size).abs().square()
    covariance = torch.fft.irfft(spectrum, 2 * size)[:, :size].mean(0) / size
    total = covariance[0] + halves.mean(1).var()
    correlation = 1 - (covariance[0] * size / (size - 1) - covariance) / total
    correlation[0] = 1.0
    pairs = correlation[: size // 2 * 2].view(-1, 2).sum(1)
    initial = pairs.cummin(0).values * (pairs > 0).cumprod(0)
    return halves.numel() / max(1.0, float(2 * initial.sum() - 1))


def _check_draws(draws: Tensor) -> None:
    check_tensor("draws", draws, "C", "T")
    if draws.shape[1] < _LEAST_DRAWS:
        raise ValueError(f"draws: expected at least {_LEAST_DRAWS} draws of each chain, found {draws.shape[1]}")


def _halves(draws: Tensor) -> Tensor:
    """Each chain as two: ``[2 C, T // 2]``."""
    size = draws.shape[1] // 2
    return torch.cat([draws[:, :size], draws[:, -size:]])


def _is_constant(draws: Tensor) -> bool:
    return torch.allclose(draws, draws[:1, :1], rtol=1e-9, atol=1e-9)

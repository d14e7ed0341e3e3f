# SPDX-License-Identifier: Apache-2.0
"""R-hat and the effective sample size against plain loops and known autocorrelations."""

from __future__ import annotations

import math

import pytest
import torch
from example_chains import autoregressive

from pyro_ksd.stein.mixing import effective_sample_size, split_rhat


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
def test_effective_sample_size_of_an_autoregression(phi: float) -> None:
    draws = autoregressive(phi, 20, 2_000)
    assert effective_sample_size(draws) == pytest.approx(draws.numel() * (1 - phi) / (1 + phi), rel=0.1)
    assert effective_sample_size(-3 * draws + 7) == pytest.approx(effective_sample_size(draws))
    assert split_rhat(draws) < 1.02


def test_effective_sample_size_of_chains_apart() -> None:
    draws = autoregressive(0.0, 4, 400) + 10 * torch.arange(4)[:, None]
    assert effective_sample_size(draws) < 20


@pytest.mark.parametrize(("chains", "length"), [(3, 10), (1, 4), (2, 7), (5, 51)])
def test_split_rhat_in_plain_loops(chains: int, length: int) -> None:
    draws = autoregressive(0.9, chains, length)
    n = length // 2  # of an odd number of draws the one in the middle is left out
    halves = [half for chain in draws.tolist() for half in (chain[:n], chain[-n:])]
    means = [sum(half) / n for half in halves]
    within = sum(sum((v - m) ** 2 for v in half) / (n - 1) for half, m in zip(halves, means, strict=True)) / len(halves)
    center = sum(means) / len(means)
    of_means = sum((m - center) ** 2 for m in means) / (len(means) - 1)  # B / n
    assert split_rhat(draws) == pytest.approx(math.sqrt(((n - 1) / n * within + of_means) / within), rel=1e-12)


def test_split_rhat_sees_drift_and_distance() -> None:
    draws = autoregressive(0.0, 50, 50)
    assert split_rhat(draws) < 1.01
    assert split_rhat(draws + torch.linspace(0, 2, 50)) > 1.05
    assert split_rhat(draws + torch.linspace(0, 2, 50)[:, None]) > 1.05
    assert math.isnan(split_rhat(torch.full((4, 10), 0.1).double()))
    assert math.isnan(effective_sample_size(torch.full((4, 10), 0.1).double()))

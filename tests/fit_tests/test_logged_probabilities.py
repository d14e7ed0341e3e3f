# SPDX-License-Identifier: Apache-2.0
"""Ranks of logged tokens: uniform if they were sampled as the log says, and not otherwise."""

from __future__ import annotations

import pytest
import torch
from scipy.stats import kstest
from torch import Tensor

from pyro_ksd.fit_tests import uniform_ranks

STEPS, SIZE = 3000, 12


def logged(k: int, *, temperature: float = 1.0, cut: int = SIZE, seed: int = 0) -> tuple[Tensor, Tensor]:
    """The log of tokens that were sampled with another temperature, and from the most probable ones only."""
    generator = torch.Generator().manual_seed(seed)
    log_probs = (2 * torch.randn(STEPS, SIZE, generator=generator)).log_softmax(1)
    log_probs[::7, :4] = log_probs[::7, :1]  # ties
    log_probs = log_probs.log_softmax(1)
    order = log_probs.argsort(1, descending=True)
    kept = torch.zeros(STEPS, SIZE, dtype=torch.bool).scatter_(1, order[:, :cut], True)
    sampled = (log_probs / temperature).masked_fill(~kept, -torch.inf).softmax(1)
    token = torch.multinomial(sampled, 1, generator=generator)
    return log_probs.gather(1, token)[:, 0], log_probs.topk(k, 1).values


@pytest.mark.parametrize("k", [1, 3, 5, SIZE])
def test_ranks_are_uniform_if_the_log_is_right(k: int) -> None:
    u = uniform_ranks(*logged(k), torch.Generator().manual_seed(1))
    assert kstest(u.numpy(), "uniform").pvalue > 0.01
    pairs = torch.corrcoef(torch.stack([u[1:], u[:-1]]))[0, 1]
    assert abs(float(pairs)) < 4 / STEPS**0.5


def test_what_was_changed_silently_shows() -> None:
    cut = uniform_ranks(*logged(5, cut=5), torch.Generator().manual_seed(1))
    assert kstest(cut.numpy(), "uniform").pvalue < 1e-6
    assert (cut > 0.9).double().mean() < 0.07
    cold = uniform_ranks(*logged(5, temperature=0.7), torch.Generator().manual_seed(1))
    assert kstest(cold.numpy(), "uniform").pvalue < 1e-6
    assert cold.mean() < 0.45


def test_against_the_definition() -> None:
    """All tokens of one step in turn: their intervals are disjoint, as long as their probabilities, and fill [0, 1]."""
    probs = torch.tensor([0.4, 0.25, 0.25, 0.07, 0.03], dtype=torch.double)
    top = probs.log()[:3].expand(5, -1)
    generator = torch.Generator().manual_seed(3)
    draws = torch.stack([uniform_ranks(probs.log(), top, generator) for _ in range(4000)])
    for token, (low, high) in enumerate([(0, 0.4), (0.4, 0.9), (0.4, 0.9), (0.9, 1.0), (0.9, 1.0)]):
        assert float(draws[:, token].min()) == pytest.approx(low, abs=0.002)
        assert float(draws[:, token].max()) == pytest.approx(high, abs=0.002)


def test_fewer_alternatives_than_asked_for() -> None:
    top = torch.tensor([[0.6, 0.4, 0.0], [0.6, 0.4, 0.0]]).log()
    u = uniform_ranks(torch.tensor([0.6, 0.4]).log(), top, torch.Generator().manual_seed(0))
    assert u[0] <= 0.6 <= u[1]


@pytest.mark.parametrize(
    ("chosen", "top", "message"),
    [
        ([0.5], [[-1.0]], "chosen: expected log-probabilities, at most 0, found 0.5 at step 0"),
        ([float("nan")], [[-1.0]], "chosen: expected log-probabilities, at most 0, found nan"),
        ([-1.0], [[-0.1, -0.2]], "top: expected probabilities that add up to at most 1, found 1.72"),
        ([-1.0], [[-0.5, -1.5]], "chosen: expected one of the top log-probabilities, or a smaller one"),
        ([-1.0, -2.0], [[-0.5]], "top"),
    ],
)
def test_refuses(chosen: list[float], top: list[list[float]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        uniform_ranks(torch.tensor(chosen), torch.tensor(top))


def test_wrong_arguments_are_named() -> None:
    logs = torch.tensor([[-1.0], [-2.0]])
    with pytest.raises(ValueError, match="chosen: expected"):
        uniform_ranks(logs, logs)
    with pytest.raises(ValueError, match="generator: expected"):
        uniform_ranks(logs[:, 0], logs, 3)  # type: ignore[arg-type]


def test_a_token_without_an_alternative_has_any_rank() -> None:
    """Its log-probability is exactly 0."""
    draws = uniform_ranks(torch.zeros(2000), torch.zeros(2000, 1), torch.Generator().manual_seed(0))
    assert kstest(draws.numpy(), "uniform").pvalue > 0.01


@pytest.mark.parametrize(("excess", "is_refused"), [(9e-4, False), (1.1e-3, True)])
def test_sums_may_exceed_1_by_rounding(excess: float, is_refused: bool) -> None:
    top = torch.tensor([[0.6, 0.4 + excess]], dtype=torch.double).log()
    if is_refused:
        with pytest.raises(ValueError, match="top: expected probabilities that add up to at most 1"):
            uniform_ranks(top[:, 0], top)
    else:
        assert 0 <= float(uniform_ranks(top[:, 0], top)) <= 0.6

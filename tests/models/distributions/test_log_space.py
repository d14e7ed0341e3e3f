# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of log-probabilities that may be -inf."""

from __future__ import annotations

import torch

from pyro_ksd.models.distributions.log_space import safe_log, subtract


def test_logarithm_of_zero_is_exact_and_has_no_gradient() -> None:
    x = torch.tensor([0.0, 0.25, 1.0], dtype=torch.double, requires_grad=True)
    found = safe_log(x)
    assert found.tolist() == [-torch.inf, torch.tensor(0.25, dtype=torch.double).log().item(), 0.0]
    found[1:].sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 4.0, 1.0]


def test_gradient_beside_a_probability_of_zero_is_no_nan() -> None:
    x = torch.tensor([0.0, 0.5], dtype=torch.double, requires_grad=True)
    safe_log(x).exp().sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 1.0]


def test_difference_of_impossible_things_is_impossible() -> None:
    new = torch.tensor([1.0, -torch.inf, -torch.inf, 2.0])
    old = torch.tensor([3.0, 1.0, -torch.inf, -torch.inf])
    assert subtract(new, old).tolist() == [-2.0, -torch.inf, -torch.inf, torch.inf]

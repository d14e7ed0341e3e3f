# SPDX-License-Identifier: Apache-2.0
"""Chains of numbers whose autocorrelation is known."""

from __future__ import annotations

import torch
from torch import Tensor


def autoregressive(phi: float, chains: int, draws: int) -> Tensor:
    """Independent autoregressions of order 1 with variance 1, double ``[chains, draws]``."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(draws, chains, dtype=torch.double, generator=generator)
    values = [noise[0]]
    for step in noise[1:]:
        values.append(phi * values[-1] + (1 - phi**2) ** 0.5 * step)
    return torch.stack(values, 1)

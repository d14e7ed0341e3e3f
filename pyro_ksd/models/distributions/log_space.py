# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of log-probabilities that may be ``-inf``."""

from __future__ import annotations

import torch
from torch import Tensor


def safe_log(x: Tensor) -> Tensor:
    """``log x`` with exactly ``-inf`` at 0, where the gradient is 0 and not NaN."""
    positive = x > 0
    return x.where(positive, torch.ones_like(x)).log().masked_fill(~positive, -torch.inf)


def subtract(new: Tensor, old: Tensor) -> Tensor:
    """``new - old`` for log-probabilities; ``-inf`` wherever ``new`` is, also against an impossible ``old``."""
    return torch.where(new == -torch.inf, new, new - old)

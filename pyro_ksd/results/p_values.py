# SPDX-License-Identifier: Apache-2.0
"""p-values as people write them."""

from __future__ import annotations

import math
from collections.abc import Sequence


def rounded_p(p: float) -> str:
    """A p-value in three digits, or in one significant digit if it is smaller.

    >>> rounded_p(0.0319), rounded_p(0.00001999)
    ('0.032', '2e-05')
    """
    return f"{p:.3f}" if p >= 0.001 else f"{p:.1g}"


def p_text(p: float) -> str:
    """A p-value as an equation.

    >>> p_text(0.0319)
    'p = 0.032'
    """
    return f"p = {rounded_p(p)}"


def draws_needed(weights: Sequence[float], level: float) -> int:
    """How many null draws it takes to find a fault that only one view sees.

    Draws that are the most extreme ones of other views count as no less extreme than data that are so in one view. If
    that view counts the share ``s`` of all views, the overall p-value is then up to ``1 / (s (B + 1))``.

    >>> draws_needed([1.0], 0.05), draws_needed([1.0, 0.5, 0.5], 0.05)
    (19, 79)
    """
    return math.ceil(sum(weights) / min(weights) / level - 1e-9) - 1

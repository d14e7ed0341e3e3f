# SPDX-License-Identifier: Apache-2.0
"""p-values as people write them."""

from __future__ import annotations


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

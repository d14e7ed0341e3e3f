# SPDX-License-Identifier: Apache-2.0
"""Templates, and numbers as pages show them."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

from pyro_ksd.results.p_values import rounded_p

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, **values: Any) -> str:
    """A template filled with values; whatever they hold is escaped.

    :param template: the name of a file in ``templates``.
    """
    return _environment().get_template(template).render(**values)


def number(value: float, digits: int = 3) -> str:
    """A number as people write it, nothing where it is not known.

    >>> number(0.03467), number(12345.6), number(-2.0), number(float("inf")), number(float("nan"))
    ('0.0347', '12,346', '−2', '∞', '')
    """
    if math.isnan(value):
        return ""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    shown = f"{value:,.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"
    return shown.replace("-", "−")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("pyro_ksd.results.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "p_value": lambda p: "" if math.isnan(p) else rounded_p(p)}
    return environment

# SPDX-License-Identifier: Apache-2.0
"""The card that a notebook shows of a result."""

from __future__ import annotations

from typing import Any

from pyro_ksd.results.containers import has_group
from pyro_ksd.results.pages.charts import length_chart
from pyro_ksd.results.pages.check_page import page_of_check
from pyro_ksd.results.pages.comparison_page import page_of_comparison
from pyro_ksd.results.pages.rendering import render

_MOST_ROWS = 4


def card(result: Any, groups: str) -> str:
    """The verdict of a check, or of a comparison, or of both, with pictures and a table, as HTML.

    :param result: a container.
    :param groups: HTML that lists all groups.

    >>> from pyro_ksd import ksd_check
    >>> from pyro_ksd.examples import random_walk
    >>> check = ksd_check(random_walk(3), ["aabb", "bbccc", "caa", "abbc"] * 4, progress=False)
    >>> "The model does not fit" in card(check, "")
    True
    """
    page = page_of_check(result, _MOST_ROWS) if has_group(result, "ksd") else None
    rows = next((reason.rows for reason in page.reasons if reason.rows), []) if page else []
    is_about_length = page is not None and any(reason.view == "length" for reason in page.reasons)
    return render(
        "card.html.jinja",
        page=page,
        rows=rows,
        lengths=length_chart(result) if is_about_length else None,
        ranking=page_of_comparison(result) if has_group(result, "ksd_compare") else None,
        groups=groups,
    )

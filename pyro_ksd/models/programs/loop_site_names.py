# SPDX-License-Identifier: Apache-2.0
"""Names of the sites of a program that makes one sequence in a loop."""

from __future__ import annotations

import re


class SiteNames:
    """Tells the sites of symbols and stops by their names."""

    def __init__(self, symbol_site: str = "x_{}", stop_site: str = "stop_{}") -> None:
        for option, template in (("symbol_site", symbol_site), ("stop_site", stop_site)):
            if not isinstance(template, str) or template.count("{}") != 1:
                raise ValueError(f"{option}: expected a name with one {{}} for the step, found {template!r}")
        if symbol_site == stop_site:
            raise ValueError(
                f"symbol_site and stop_site: expected different names for symbols and stops, found {symbol_site!r} for "
                "both"
            )
        self.symbol_site = symbol_site
        self._symbol, self._stop = (
            re.compile(r"(\d+)".join(map(re.escape, template.split("{}")))) for template in (symbol_site, stop_site)
        )

    def symbol_step(self, name: str) -> int | None:
        """The step of a symbol's site, ``None`` for other sites."""
        match = self._symbol.fullmatch(name)
        return int(match[1]) if match else None

    def is_stop(self, name: str) -> bool:
        return self._stop.fullmatch(name) is not None

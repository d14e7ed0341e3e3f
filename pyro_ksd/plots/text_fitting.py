# SPDX-License-Identifier: Apache-2.0
"""Texts that fit into the room there is."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

_SIZES = (9, 8, 7, 6)  # points


def text_width(text: str, size: float) -> float:
    """The width of a text in points.

    :param size: of the letters, in points.
    """
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    width, _, _ = text_to_path.get_text_width_height_descent(text, FontProperties(size=size), ismath=False)
    return float(width)


def fitting_texts(symbols: Iterable[str], width: float, height: float) -> tuple[dict[str, str], float]:
    """What to write for symbols into cells of one size, and how large the letters are, in points.

    Letters are as large as they can be with no more than a fifth of the symbols abbreviated. Nothing is written where
    not half of the symbols could be told apart.

    :param width: of a cell, in points.
    :param height: of a cell, in points.
    """
    symbols = set(symbols)
    texts = dict.fromkeys(symbols, "")
    size = _SIZES[-1]
    for size in (size for size in _SIZES if 1.4 * size <= height):
        texts = abbreviations(symbols, width, size)
        whole = sum(texts[symbol] == symbol for symbol in symbols)
        if whole >= 0.8 * len(symbols) and not {"", "…"} & set(texts.values()):
            return texts, size
    told_apart = len(set(texts.values()) - {""})
    return texts if 2 * told_apart >= len(symbols) else dict.fromkeys(symbols, ""), size


def abbreviations(symbols: Iterable[str], width: float, size: float) -> dict[str, str]:
    """What to write for each symbol: itself, or its beginning or its end with an ellipsis.

    Either the beginnings or the ends of long symbols are kept, whichever tells more symbols apart. Of a symbol of which
    not a letter fits only the ellipsis is left, and nothing if that does not fit either.

    :param width: that a text may have, in points.
    :param size: of the letters, in points.
    """
    symbols = set(symbols)
    ways = [{symbol: _abbreviation(symbol, width, size, end) for symbol in symbols} for end in (False, True)]
    return max(ways, key=lambda texts: len(set(texts.values())))


def _abbreviation(symbol: str, width: float, size: float, end: bool) -> str:
    def shortened(kept: int) -> str:
        return "…" + symbol[len(symbol) - kept :] if end else symbol[:kept] + "…"

    if text_width(symbol, size) <= width:
        return symbol
    fitting = bisect_right(range(len(symbol)), width, key=lambda kept: text_width(shortened(kept), size))
    return shortened(fitting - 1) if fitting else ""
